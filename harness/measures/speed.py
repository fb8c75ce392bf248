"""Rates of one arm and speedups of two (suites-and-scoring 7.3 and 8.2).

With x and y the baseline's and the method's seconds per kept token on a sample: S_pool is the ratio of the pooled
values, S_time that of the total times, S_gm the geometric mean of x/y, S_mor its arithmetic mean, S_rom the ratio of
the mean rates. Swapping the arms inverts all but S_mor.
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, geometric_mean

from draftboard.measures.pairing import Pair, Side, Totals, totals, wall
from draftboard.measures.pooling import NO_DECODE, absent, decode_pooled, mean_of_samples, pooled, unrecorded
from draftboard.measures.turns import TurnFacts
from draftboard.results import Figure

__all__ = ["GAP", "NO_PAIR", "gap_between", "over_domains", "rates", "sample_weighted", "speedups"]

NO_PAIR = "no sample could be paired with the baseline"
GAP = 0.05
"""S_pool and S_gm further apart than this are worth a word: a few long answers then decide."""

_NO_TIME = "no time or no tokens to divide by"


def rates(turns: Sequence[TurnFacts], nothing: str = "") -> dict[str, Figure]:
    """Return tokens per second of one arm, in all ways of counting but Spec-Bench's."""
    return {
        "tokens_per_s": pooled(turns, _rate, zero=_NO_TIME, nothing=nothing),
        "decode_tokens_per_s": decode_pooled(turns, lambda tokens, seconds: (tokens, seconds), nothing),
        "prefill_tokens_per_s": pooled(turns, _prefill, zero=_NO_TIME, nothing=nothing),
        "tokens_per_s_mean_of_samples": mean_of_samples(turns, _rate, zero=_NO_TIME, nothing=nothing),
    }


def speedups(pairs: Sequence[Pair], *, missing: str = "", nothing: str = NO_PAIR) -> dict[str, Figure]:
    """Return every speedup over the paired samples.

    `missing`: why the method may not be compared at all, such as failed cells. `nothing`: the reason where there is
    no pair.
    """
    if missing or not pairs:
        return {name: absent(missing or nothing, len(pairs)) for name in _SPEEDUPS}
    both = totals(pairs, wall)
    each = [(base[0] / base[1], own[0] / own[1]) for base, own in both if min(*base, *own) > 0]
    return {
        "speedup": _compared(both, _pool),
        "speedup_decode": _of(pairs, _decode),
        "speedup_cpu": _of(pairs, _cpu),
        "speedup_time": _compared(both, _time),
        "speedup_gm": _mean(each, lambda: math.exp(fmean(math.log(x / y) for x, y in each))),
        "speedup_mor": _mean(each, lambda: fmean(x / y for x, y in each)),
        "speedup_rom": _mean(each, lambda: fmean(1 / y for _, y in each) / fmean(1 / x for x, _ in each)),
    }


_SPEEDUPS = (
    "speedup",
    "speedup_decode",
    "speedup_cpu",
    "speedup_time",
    "speedup_gm",
    "speedup_mor",
    "speedup_rom",
)


def over_domains(figures: Sequence[Figure], mean: Callable[[list[float]], float] = geometric_mean) -> Figure:
    """Return the mean over domains, and only if every domain has a value."""
    values = [figure.value for figure in figures if figure.value is not None]
    n = sum(figure.n or 0 for figure in figures)
    if len(values) < len(figures) or not values:
        why = next((figure.reason for figure in figures if figure.value is None), "no domains")
        return absent(f"{len(values)} of {len(figures)} domains: {why}", n)
    return Figure(value=mean(values), n=n)


def sample_weighted(figures: Sequence[Figure]) -> Figure:
    """Return the mean over domains, each weighted by the samples its value rests on."""
    weights = [figure.n or 0 for figure in figures]
    return over_domains(figures, lambda values: sum(map(math.prod, zip(values, weights, strict=True))) / sum(weights))


def gap_between(pool: Figure, samples: Figure) -> bool:
    """Whether S_pool and S_gm are more than `GAP` apart."""
    if pool.value is None or samples.value is None:
        return False
    return max(pool.value, samples.value) > (1 + GAP) * min(pool.value, samples.value)


def _rate(turn: TurnFacts) -> Side:
    return turn.tokens, turn.seconds


def _prefill(turn: TurnFacts) -> Side | None:
    return None if turn.turn.prefill_ns is None else (turn.turn.prompt_tokens, turn.turn.prefill_ns / 1e9)


def _cpu(turn: TurnFacts) -> Side | None:
    return None if turn.turn.cpu_ns is None else (turn.turn.cpu_ns / 1e9, turn.tokens)


def _decode(turn: TurnFacts) -> Side | None:
    return None if turn.decode is None else (turn.decode[1], turn.decode[0])


def _of(pairs: Sequence[Pair], read: Callable[[TurnFacts], Side | None]) -> Figure:
    """Return S_pool of what `read` gives of a turn."""
    found = totals(pairs, read)
    if found:
        return _compared(found, _pool)
    turns = [turn for pair in pairs for turn in (*pair.baseline, *pair.method)]
    ended = read is _decode and any(turn.ends_at_once for turn in turns)
    return absent(NO_DECODE if ended else unrecorded(turns))


def _compared(both: Sequence[Totals], compare: Callable[[Side, Side], float | None]) -> Figure:
    """Compare the sums of both arms' seconds and tokens."""
    base, own = ((sum(pair[arm][0] for pair in both), sum(pair[arm][1] for pair in both)) for arm in (0, 1))
    value = compare(base, own)
    return absent(_NO_TIME, len(both)) if value is None else Figure(value=value, n=len(both))


def _pool(base: Side, own: Side) -> float | None:
    return (base[0] / base[1]) / (own[0] / own[1]) if min(*base, *own) > 0 else None


def _time(base: Side, own: Side) -> float | None:
    return base[0] / own[0] if min(base[0], own[0]) > 0 else None


def _mean(each: Sequence[tuple[float, float]], mean: Callable[[], float]) -> Figure:
    return Figure(value=mean(), n=len(each)) if each else absent(_NO_TIME)
