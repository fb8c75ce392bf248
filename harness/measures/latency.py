"""How long a reader waits: for the first token, and between tokens that arrive in blocks (suites-and-scoring 7.3).

Emissions are the first one, at `first_ns`, and each later step that kept anything, at its `end_ns`. A gap between two
emissions is shown three ways: as it is (*step gap*), shared equally by the tokens of its block (*uniform*), or all on
the block's first token (*burst*).
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from draftboard.measures.columns import Listed, Turns, distinct
from draftboard.measures.pooling import NO_DECODE, absent, decode_pooled, unrecorded
from draftboard.measures.turns import TurnFacts
from draftboard.results import Figure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Gap", "gap_seconds", "gaps", "latency_figures", "percentile"]

Gap = tuple[float, int]
"""Seconds since the emission before, and the tokens that came."""


def latency_figures(turns: Listed, nothing: str = "") -> dict[str, Figure]:
    """Return TTFT, TPOT, step gaps and inter-token latencies of these turns, all in seconds."""
    import numpy as np

    table = Turns.of(turns)
    timed = table.take(_timed(table))
    why = NO_DECODE if len(timed) else unrecorded(table, nothing)
    seconds, tokens, owners = _gaps(timed)
    n = distinct(timed.sample[owners])
    shared = seconds / tokens
    order = np.argsort(shared)
    step, uniform = np.sort(seconds), np.repeat(shared[order], tokens[order])
    burst = np.concatenate([np.zeros(len(uniform) - len(step)), step])
    # Both ways of sharing a gap leave the sum of the gaps as it is.
    mean = Figure(value=math.fsum(seconds.tolist()) / len(uniform), n=n) if len(uniform) else absent(why)
    decode_tokens, decode_s = table.decode
    return {
        **_first_token(table, nothing),
        "tpot_s": decode_pooled(table, (decode_s, decode_tokens), nothing),
        **_percentiles("step_gap", step, n, why, (50, 95, 99)),
        "step_gap_max_s": Figure(value=float(step[-1]), n=n) if len(step) else absent(why),
        "itl_uniform_mean_s": mean,
        **_percentiles("itl_uniform", uniform, n, why, (50, 95, 99)),
        "itl_burst_mean_s": mean,
        **_percentiles("itl_burst", burst, n, why, (50,)),
    }


def gaps(turn: TurnFacts) -> list[Gap] | None:
    """Return the gaps of a turn in order; None where its times were not recorded, empty where it emitted once."""
    table = Turns.of([turn])
    if not _timed(table).all():
        return None
    seconds, tokens, _ = _gaps(table)
    return list(zip(seconds.tolist(), tokens.tolist(), strict=True))


def gap_seconds(turns: Listed) -> "NDArray[np.float64]":
    """Return the seconds of all gaps of all turns whose times were recorded, in order."""
    table = Turns.of(turns)
    return _gaps(table.take(_timed(table)))[0]


def _timed(turns: Turns) -> "NDArray[np.bool_]":
    import numpy as np

    return ~np.isnan(turns.first_ns) & turns.ends_known


def _gaps(turns: Turns) -> "tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]":
    """Return the gaps of these turns, one after the other, as columns: seconds, tokens, and the turn's place."""
    import numpy as np

    steps = turns.steps
    some = steps.kept > 0
    ends, kept, owners = steps.end_ns[some], steps.kept[some].astype(np.int64), steps.owners[some]
    # Where the prefill gave no token, the first step that kept one is the first emission itself.
    later = ~_begins(owners) | (turns.emits[owners] != 0)
    ends, kept, owners = ends[later], kept[later], owners[later]
    before = np.where(_begins(owners), turns.first_ns[owners], np.concatenate([ends[:1], ends[:-1]]))
    return (ends - before) / 1e9, kept, owners


def _begins(owners: "NDArray[np.int64]") -> "NDArray[np.bool_]":
    """Return which entries are the first of their turn."""
    import numpy as np

    return np.asarray(np.diff(owners, prepend=-1) != 0)


def percentile(ordered: "Sequence[float] | NDArray[np.float64]", level: float) -> float:
    """Return a percentile of sorted values, with linear interpolation between ranks.

    The same as `statistics.quantiles(..., method="inclusive")`. Raises ValueError without any value.
    """
    if not len(ordered):
        raise ValueError("a percentile needs at least one value")
    place = (len(ordered) - 1) * level / 100
    below = math.floor(place)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    return low + (high - low) * (place - below)


def _first_token(turns: Turns, nothing: str) -> dict[str, Figure]:
    import numpy as np

    names = {"ttft_s": 50, "ttft_p90_s": 90, "ttft_p99_s": 99}
    known = ~np.isnan(turns.first_ns)
    if not known.any():
        return {name: absent(unrecorded(turns, nothing)) for name in names}
    times, n = np.sort(turns.first_ns[known] / 1e9), distinct(turns.sample[known])
    return {name: Figure(value=percentile(times, level), n=n) for name, level in names.items()}


def _percentiles(
    name: str, ordered: "NDArray[np.float64]", n: int, why: str, levels: Sequence[int]
) -> dict[str, Figure]:
    return {
        f"{name}_p{level}_s": Figure(value=percentile(ordered, level), n=n) if len(ordered) else absent(why)
        for level in levels
    }
