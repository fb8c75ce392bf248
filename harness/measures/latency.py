"""How long a reader waits: for the first token, and between tokens that arrive in blocks (suites-and-scoring 7.3).

Emissions are the first one, at `first_ns`, and each later step that kept anything, at its `end_ns`. A gap between two
emissions is shown three ways: as it is (*step gap*), shared equally by the tokens of its block (*uniform*), or all on
the block's first token (*burst*).
"""

import math
from collections.abc import Sequence
from itertools import chain, pairwise
from statistics import fmean

from draftboard.measures.pooling import NO_DECODE, absent, decode_pooled, unrecorded
from draftboard.measures.turns import TurnFacts
from draftboard.results import Figure

__all__ = ["Gap", "gaps", "latency_figures", "percentile"]

Gap = tuple[float, int]
"""Seconds since the emission before, and the tokens that came."""


def latency_figures(turns: Sequence[TurnFacts], nothing: str = "") -> dict[str, Figure]:
    """Return TTFT, TPOT, step gaps and inter-token latencies of these turns, all in seconds."""
    found = [(turn.sample, between) for turn in turns if (between := gaps(turn)) is not None]
    n = len({sample for sample, between in found if between})
    blocks = [gap for _, between in found for gap in between]
    why = NO_DECODE if found else unrecorded(turns, nothing)
    step = sorted(seconds for seconds, _ in blocks)
    uniform = sorted(chain.from_iterable([seconds / tokens] * tokens for seconds, tokens in blocks))
    burst = [*([0.0] * (len(uniform) - len(step))), *step]
    return {
        **_first_token(turns, nothing),
        "tpot_s": decode_pooled(turns, lambda tokens, seconds: (seconds, tokens), nothing),
        **_percentiles("step_gap", step, n, why, (50, 95, 99)),
        "step_gap_max_s": Figure(value=step[-1], n=n) if step else absent(why),
        "itl_uniform_mean_s": Figure(value=fmean(uniform), n=n) if uniform else absent(why),
        **_percentiles("itl_uniform", uniform, n, why, (50, 95, 99)),
        "itl_burst_mean_s": Figure(value=fmean(burst), n=n) if burst else absent(why),
        **_percentiles("itl_burst", burst, n, why, (50,)),
    }


def gaps(turn: TurnFacts) -> list[Gap] | None:
    """Return the gaps of a turn in order; None where its times were not recorded, empty where it emitted once."""
    columns, first = turn.turn.steps, turn.turn.first_ns
    if first is None or turn.steps is None:
        return None
    if not columns:
        return []
    if "end_ns" not in columns:
        return None
    blocks = [(end, kept) for end, kept in zip(columns["end_ns"], columns["kept"], strict=True) if kept]
    if not turn.turn.prefill_emits:
        blocks = blocks[1:]
    times = [first, *(end for end, _ in blocks)]
    return [((now - before) / 1e9, kept) for (before, now), (_, kept) in zip(pairwise(times), blocks, strict=True)]


def percentile(ordered: Sequence[float], level: float) -> float:
    """Return a percentile of sorted values, with linear interpolation between ranks.

    The same as `statistics.quantiles(..., method="inclusive")`. Raises ValueError without any value.
    """
    if not ordered:
        raise ValueError("a percentile needs at least one value")
    place = (len(ordered) - 1) * level / 100
    below = math.floor(place)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    return low + (high - low) * (place - below)


def _first_token(turns: Sequence[TurnFacts], nothing: str) -> dict[str, Figure]:
    names = {"ttft_s": 50, "ttft_p90_s": 90, "ttft_p99_s": 99}
    times = sorted(turn.turn.first_ns / 1e9 for turn in turns if turn.turn.first_ns is not None)
    n = len({turn.sample for turn in turns if turn.turn.first_ns is not None})
    if not times:
        return {name: absent(unrecorded(turns, nothing)) for name in names}
    return {name: Figure(value=percentile(times, level), n=n) for name, level in names.items()}


def _percentiles(name: str, ordered: Sequence[float], n: int, why: str, levels: Sequence[int]) -> dict[str, Figure]:
    return {
        f"{name}_p{level}_s": Figure(value=percentile(ordered, level), n=n) if ordered else absent(why)
        for level in levels
    }
