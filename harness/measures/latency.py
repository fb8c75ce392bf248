"""How long a reader waits: for the first token, and between tokens that arrive in blocks (suites-and-scoring 7.3).

Emissions are the first one, at `first_ns`, and each later step that kept anything, at its `end_ns`. A gap between two
emissions is shown three ways: as it is (*step gap*), shared equally by the tokens of its block (*uniform*), or all on
the block's first token (*burst*).
"""

import math
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from draftboard.measures.pooling import NO_DECODE, absent, decode_pooled, unrecorded
from draftboard.measures.turns import TurnFacts
from draftboard.results import Figure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Gap", "gaps", "latency_figures", "percentile"]

Gap = tuple[float, int]
"""Seconds since the emission before, and the tokens that came."""


def latency_figures(turns: Sequence[TurnFacts], nothing: str = "") -> dict[str, Figure]:
    """Return TTFT, TPOT, step gaps and inter-token latencies of these turns, all in seconds."""
    import numpy as np

    timed = [turn for turn in turns if _timed(turn)]
    why = NO_DECODE if timed else unrecorded(turns, nothing)
    seconds, tokens, owners = _gaps(timed)
    n = len({timed[index].sample for index in np.unique(owners).tolist()})
    shared = seconds / tokens
    order = np.argsort(shared)
    step, uniform = np.sort(seconds), np.repeat(shared[order], tokens[order])
    burst = np.concatenate([np.zeros(len(uniform) - len(step)), step])
    # Both ways of sharing a gap leave the sum of the gaps as it is.
    mean = Figure(value=math.fsum(seconds.tolist()) / len(uniform), n=n) if len(uniform) else absent(why)
    return {
        **_first_token(turns, nothing),
        "tpot_s": decode_pooled(turns, lambda tokens, seconds: (seconds, tokens), nothing),
        **_percentiles("step_gap", step, n, why, (50, 95, 99)),
        "step_gap_max_s": Figure(value=float(step[-1]), n=n) if len(step) else absent(why),
        "itl_uniform_mean_s": mean,
        **_percentiles("itl_uniform", uniform, n, why, (50, 95, 99)),
        "itl_burst_mean_s": mean,
        **_percentiles("itl_burst", burst, n, why, (50,)),
    }


def gaps(turn: TurnFacts) -> list[Gap] | None:
    """Return the gaps of a turn in order; None where its times were not recorded, empty where it emitted once."""
    if not _timed(turn):
        return None
    seconds, tokens, _ = _gaps([turn])
    return list(zip(seconds.tolist(), tokens.tolist(), strict=True))


def _timed(turn: TurnFacts) -> bool:
    columns = turn.turn.steps
    return turn.turn.first_ns is not None and turn.steps is not None and (not columns or "end_ns" in columns)


def _gaps(turns: Sequence[TurnFacts]) -> "tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]":
    """Return the gaps of these turns, one after the other, as columns: seconds, tokens, and the turn's index."""
    import numpy as np

    columns = [turn.turn.steps for turn in turns]
    ends = np.fromiter(chain.from_iterable(column.get("end_ns", ()) for column in columns), np.float64)
    kept = np.fromiter(chain.from_iterable(column.get("kept", ()) for column in columns), np.int64)
    lengths = np.array([len(column.get("kept", ())) for column in columns], np.int64)
    owners = np.repeat(np.arange(len(turns), dtype=np.int64), lengths)
    some = kept > 0
    ends, kept, owners = ends[some], kept[some], owners[some]
    # Where the prefill gave no token, the first step that kept one is the first emission itself.
    emits = np.array([bool(turn.turn.prefill_emits) for turn in turns], bool)
    later = ~_begins(owners) | emits[owners]
    ends, kept, owners = ends[later], kept[later], owners[later]
    first = np.array([turn.turn.first_ns for turn in turns], np.float64)
    before = np.where(_begins(owners), first[owners], np.concatenate([ends[:1], ends[:-1]]))
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


def _first_token(turns: Sequence[TurnFacts], nothing: str) -> dict[str, Figure]:
    names = {"ttft_s": 50, "ttft_p90_s": 90, "ttft_p99_s": 99}
    times = sorted(turn.turn.first_ns / 1e9 for turn in turns if turn.turn.first_ns is not None)
    n = len({turn.sample for turn in turns if turn.turn.first_ns is not None})
    if not times:
        return {name: absent(unrecorded(turns, nothing)) for name in names}
    return {name: Figure(value=percentile(times, level), n=n) for name, level in names.items()}


def _percentiles(
    name: str, ordered: "NDArray[np.float64]", n: int, why: str, levels: Sequence[int]
) -> dict[str, Figure]:
    return {
        f"{name}_p{level}_s": Figure(value=percentile(ordered, level), n=n) if len(ordered) else absent(why)
        for level in levels
    }
