"""Rates of one arm and speedups of two (suites-and-scoring 7.3 and 8.2).

With x and y the baseline's and the method's seconds per kept token on a sample: S_pool is the ratio of the pooled
values, S_time that of the total times, S_gm the geometric mean of x/y, S_mor its arithmetic mean, S_rom the ratio of
the mean rates. Swapping the arms inverts all but S_mor.
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, geometric_mean

from draftboard.measures.estimate import compact, mean_over_domains, numbers, of_sums
from draftboard.measures.pairing import Match, Pair, Side, matches, wall
from draftboard.measures.pooling import NO_DECODE, absent, decode_pooled, mean_of_samples, pooled, unrecorded
from draftboard.measures.turns import TurnFacts
from draftboard.results import Figure
from draftboard.statistics import Formula, Over, Statistic, geometric, pool_ratio, ratio

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
    found = matches(pairs, wall)
    return {
        "speedup": _pool(found),
        "speedup_decode": _of(pairs, _decode),
        "speedup_cpu": _of(pairs, _cpu),
        "speedup_time": _time(found),
        **_of_samples(found),
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


def over_domains(
    figures: Sequence[Figure],
    mean: Callable[[list[float]], float] = geometric_mean,
    over: Over = "geometric",
) -> Figure:
    """Return the mean over domains, and only if every domain has a value. `over` names what `mean` is."""
    values = [figure.value for figure in figures if figure.value is not None]
    n = sum(figure.n or 0 for figure in figures)
    if len(values) < len(figures) or not values:
        why = next((figure.reason for figure in figures if figure.value is None), "no domains")
        return absent(f"{len(values)} of {len(figures)} domains: {why}", n)
    return mean_over_domains(mean(values), n, figures, over)


def sample_weighted(figures: Sequence[Figure]) -> Figure:
    """Return the mean over domains, each weighted by the samples its value rests on."""
    weights = [figure.n or 0 for figure in figures]
    return over_domains(
        figures, lambda values: sum(map(math.prod, zip(values, weights, strict=True))) / sum(weights), "weighted"
    )


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
    found = matches(pairs, read)
    if found:
        return _pool(found)
    turns = [turn for pair in pairs for turn in (*pair.baseline, *pair.method)]
    ended = read is _decode and any(turn.ends_at_once for turn in turns)
    return absent(NO_DECODE if ended else unrecorded(turns))


def _pool(found: Sequence[Match]) -> Figure:
    base_s, base_n, own_s, own_n = (sum(match.parts[i] for match in found) for i in range(4))
    n = len({match.sample for match in found})
    if min(base_s, base_n, own_s, own_n) <= 0:
        return absent(_NO_TIME, n)
    return of_sums((base_s / base_n) / (own_s / own_n), n, _statistic(found, (0, 1, 2, 3), pool_ratio))


def _time(found: Sequence[Match]) -> Figure:
    base, own = (sum(match.parts[i] for match in found) for i in (0, 2))
    n = len({match.sample for match in found})
    return of_sums(base / own, n, _statistic(found, (0, 2), ratio())) if min(base, own) > 0 else absent(_NO_TIME, n)


def _statistic(found: Sequence[Match], parts: Sequence[int], formula: Formula) -> Statistic:
    return Statistic(
        samples=[match.sample for match in found],
        rounds=compact([match.repeat for match in found]),
        columns=[numbers([match.parts[part] for match in found]) for part in parts],
        formula=formula,
    )


def _of_samples(found: Sequence[Match]) -> dict[str, Figure]:
    """Return the means over samples of what each one's seconds per token come to."""
    sums: dict[str, list[float]] = {}
    for match in found:
        mine = sums.setdefault(match.sample, [0.0] * 4)
        for index, part in enumerate(match.parts):
            mine[index] += part
    each = {sample: (b / n, s / m) for sample, (b, n, s, m) in sums.items() if min(b, n, s, m) > 0}
    names = ("speedup_gm", "speedup_mor", "speedup_rom")
    if not each:
        return {name: absent(_NO_TIME) for name in names}
    samples, ones = list(each), [1.0] * len(each)
    logs = [math.log(x / y) for x, y in each.values()]
    ratios = [x / y for x, y in each.values()]
    own, base = [1 / y for _, y in each.values()], [1 / x for x, _ in each.values()]

    def figure(value: float, columns: list[list[float]], formula: Formula) -> Figure:
        return of_sums(
            value,
            len(samples),
            Statistic(samples=samples, columns=[numbers(column) for column in columns], formula=formula),
        )

    return {
        "speedup_gm": figure(math.exp(fmean(logs)), [logs, ones], geometric),
        "speedup_mor": figure(fmean(ratios), [ratios, ones], ratio()),
        "speedup_rom": figure(fmean(own) / fmean(base), [own, base], ratio()),
    }
