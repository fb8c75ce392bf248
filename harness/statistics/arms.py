"""Two arms against each other: how much faster or slower, how sure, and whether it can be told from noise.

Resampling samples does not see that a machine runs slower in one hour than in the next. The noise floor does: it is
the largest difference between two rounds of one arm (suites-and-scoring 8.4), and intervals are widened by it.

`compare_arms` is the rule of a run's results on bare times, so that its power can be simulated. The gate's
`cell_change` is another one: it has four arms (each side's method and baseline), cells that some round lacks, and the
drift of the whole figure for a floor where results have the mean of the domains' own floors, which is wider.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from draftboard.results import Interval
from draftboard.statistics.draws import Sampling
from draftboard.statistics.formulas import Statistic, pool_ratio
from draftboard.statistics.intervals import interval_of, p_value, widened

__all__ = ["ONE_ROUND", "Arm", "Comparison", "Decision", "compare_arms", "decide", "noise_floor", "pooled_drift"]

Arm = Mapping[str, Sequence[tuple[float, float]]]
"""By sample, the seconds and tokens of each round."""

Decision = Literal["faster", "same", "slower"]

ONE_ROUND = "one round: run-to-run drift is not in the intervals; use --repeats 3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How fast the second arm is, the first one being 1."""

    ratio: float
    """S_pool over the paired samples, geometric mean over domains: above 1 is faster."""
    interval: Interval | None
    """Widened by the noise floor; None where a domain has fewer than two paired samples."""
    noise_floor: float | None
    """In log scale; None with one round."""
    p: float | None
    """Two-sided, of a ratio of 1, with the noise floor in it."""
    n: int
    """Paired samples."""
    rounds: int
    """Rounds that both arms have of every paired sample."""
    decision: Decision
    notes: tuple[str, ...] = ()


def compare_arms(
    baseline: Arm,
    candidate: Arm,
    *,
    domains: Mapping[str, str] | None = None,
    tolerance: float = 0.0,
    sampling: Sampling | None = None,
) -> Comparison:
    """Compare two arms over the samples that both have.

    `domains`: each sample's domain; all are one without it. `tolerance`: a difference up to this share is "same"
    whatever the interval says; 0.02 is 2 %. Rounds beyond those that every paired sample has in both arms are left
    out. Raises ValueError where no sample is paired, or a paired one has no time or no tokens.
    """
    from draftboard.statistics.bootstrap import replicates

    shared = sorted(baseline.keys() & candidate.keys())
    if not shared:
        raise ValueError("no sample is in both arms")
    rounds = min(len(arm[sample]) for arm in (baseline, candidate) for sample in shared)
    cells = [cell for arm in (baseline, candidate) for sample in shared for cell in arm[sample][:rounds]]
    if not rounds or any(min(cell) <= 0 for cell in cells):
        raise ValueError("every paired sample needs time and tokens in both arms")
    strata = {sample: domains[sample] if domains is not None else "" for sample in shared}
    drawn = sampling or Sampling()
    drawn = Sampling(seed=drawn.seed, resamples=drawn.resamples, level=drawn.level, rounds=rounds)
    rows = [(sample, number) for sample in shared for number in range(rounds)]
    statistic = Statistic(
        samples=[sample for sample, _ in rows],
        rounds=[number for _, number in rows],
        columns=[
            [arm[sample][number][part] for sample, number in rows] for arm in (baseline, candidate) for part in (0, 1)
        ],
        formula=pool_ratio,
        over="geometric",
    )
    ((_, found),) = replicates({"": statistic}, strata, drawn)
    floor = noise_floor(baseline, candidate, strata, rounds)
    interval = interval_of(found, drawn.level)
    if interval is not None:
        interval = widened(interval, floor or 0.0)
    left = sum(len(arm[sample]) for arm in (baseline, candidate) for sample in shared) - len(cells)
    told = {
        ONE_ROUND: floor is None,
        "a domain has fewer than two paired samples: no interval": interval is None,
        f"{left} cells left out: not every paired sample has as many rounds": left > 0,
    }
    return Comparison(
        ratio=found.value,
        interval=interval,
        noise_floor=floor,
        p=p_value(found, 1.0, floor or 0.0),
        n=len(shared),
        rounds=rounds,
        decision=decide(found.value, interval, tolerance),
        notes=tuple(note for note, holds in told.items() if holds),
    )


def decide(ratio: float, interval: Interval | None, tolerance: float = 0.0) -> Decision:
    """Return whether a ratio is beyond 1 and the tolerance, and its interval beyond 1; "same" without an interval."""
    if interval is None or interval.low <= 1 <= interval.high:
        return "same"
    if ratio > 1 + tolerance:
        return "faster"
    return "slower" if ratio < 1 - tolerance else "same"


def noise_floor(baseline: Arm, candidate: Arm, strata: Mapping[str, str], rounds: int) -> float | None:
    """Return the noise floor in log scale, the mean over domains of `pooled_drift`; None with one round.

    `strata`: the domain of each sample to take.
    """
    if rounds < 2:
        return None
    members: dict[str, list[str]] = {}
    for sample, name in strata.items():
        members.setdefault(name, []).append(sample)
    floors = []
    for samples in members.values():
        arms = [
            [[arm[sample][number] for sample in samples] for number in range(rounds)] for arm in (baseline, candidate)
        ]
        floors.append(max(pooled_drift(arm) for arm in arms))
    return math.fsum(floors) / len(floors)


def pooled_drift(rounds: Sequence[Sequence[tuple[float, float]]]) -> float:
    """Return the largest |ln S_pool| between two rounds of one arm on the same samples; 0 with one round.

    `rounds`: seconds and tokens of each sample, a sequence a round.
    """
    paces = [math.fsum(s for s, _ in cells) / math.fsum(n for _, n in cells) for cells in rounds]
    return max((abs(math.log(one / other)) for one, other in combinations(paces, 2)), default=0.0)
