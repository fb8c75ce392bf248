"""The A/A measurement: the same work by two arms that are one and the same, and what their times say about noise.

The baseline decodes one prompt again and again. Each round has `samples` pairs, one generation by each arm, and who
goes first alternates from pair to pair and from round to round (suites-and-scoring 8.4). All work is identical, so
that every difference is noise. The spread is split into what a sample does and what a round does: the variance of
round means less what the samples explain of it (one-way analysis of variance, components below zero taken as zero).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from statistics import fmean, variance

from draftboard.doctor.power import Spread
from draftboard.statistics import pooled_drift

__all__ = ["Noise", "Times", "Timing", "aa_ratio", "estimate", "measure_pairs", "noise_floor"]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one generation on both clocks."""

    wall_s: float
    cpu_s: float


Times = Sequence[Sequence[tuple[float, float]]]
"""Seconds by round and sample, of the first arm and of the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What one clock says."""

    clock: str
    floor: float
    """Noise floor delta: the largest |ln| ratio of the total seconds of two rounds of one arm (8.4)."""
    ratio: float
    """Total seconds of the first arm over those of the second; 1 but for noise."""
    spread: Spread


def measure_pairs(
    work: Callable[[], Timing], *, rounds: int, samples: int, say: Callable[[str], None] = lambda text: None
) -> tuple[Times, Times]:
    """Run `work` 2 x rounds x samples times; return the wall seconds and the process CPU seconds."""
    wall: list[list[tuple[float, float]]] = []
    cpu: list[list[tuple[float, float]]] = []
    for number in range(rounds):
        say(f"noise: round {number + 1} of {rounds}")
        wall.append([])
        cpu.append([])
        for sample in range(samples):
            pair = (work(), work())
            if (sample + number) % 2:
                pair = pair[::-1]
            wall[-1].append((pair[0].wall_s, pair[1].wall_s))
            cpu[-1].append((pair[0].cpu_s, pair[1].cpu_s))
    return wall, cpu


def noise_floor(times: Times) -> float:
    """Return delta of suites-and-scoring 8.4: the larger drift of the pooled pace over the rounds of either arm."""
    # The work is the same everywhere, so that any number of tokens will do.
    return max(pooled_drift([[(pair[arm], 1.0) for pair in one] for one in times]) for arm in (0, 1))


def aa_ratio(times: Times) -> float:
    """Return S_pool of the arms: both wrote the same tokens, so that it is the ratio of total seconds."""
    return sum(a for one in times for a, _ in one) / sum(b for one in times for _, b in one)


def estimate(clock: str, times: Times) -> Noise:
    """Return the noise of one clock. Needs at least two rounds of two samples, all seconds above zero.

    Raises ValueError where a clock is too coarse to have seen every sample.
    """
    if len(times) < 2 or any(len(one) < 2 for one in times):
        raise ValueError("noise needs at least two rounds of two samples")
    if any(seconds <= 0 for one in times for pair in one for seconds in pair):
        raise ValueError(f"the {clock} clock is too coarse for these samples")
    pair, pair_drift = _components([[log(a) - log(b) for a, b in one] for one in times])
    arms = [_components([[log(seconds[arm]) for seconds in one] for one in times]) for arm in (0, 1)]
    return Noise(
        clock=clock,
        floor=noise_floor(times),
        ratio=aa_ratio(times),
        spread=Spread(
            pair=pair**0.5,
            pair_drift=pair_drift**0.5,
            arm=fmean(arm[0] for arm in arms) ** 0.5,
            arm_drift=fmean(arm[1] for arm in arms) ** 0.5,
        ),
    )


def _components(values: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the variance within rounds and that of the rounds themselves."""
    within = fmean(variance(one) for one in values)
    between = variance([fmean(one) for one in values])
    return within, max(0.0, between - within / len(values[0]))
