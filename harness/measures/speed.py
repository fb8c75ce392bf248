"""Rates of one arm and speedups of two (suites-and-scoring 7.3 and 8.2).

With x and y the baseline's and the method's seconds per kept token on a sample: S_pool is the ratio of the pooled
values, S_time that of the total times, S_gm the geometric mean of x/y, S_mor its arithmetic mean, S_rom the ratio of
the mean rates. Swapping the arms inverts all but S_mor.
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, geometric_mean

from draftboard.measures.columns import Listed, Turns
from draftboard.measures.estimate import mean_over_domains, numbers, of_sums
from draftboard.measures.pairing import Matches, Pairs, Side, matches, wall
from draftboard.measures.pooling import NO_DECODE, absent, decode_pooled, mean_of_samples, pooled, unrecorded
from draftboard.results import Figure
from draftboard.statistics import Coded, Floats, Formula, Over, Statistic, geometric, pool_ratio, ratio

__all__ = ["GAP", "NO_PAIR", "gap_between", "over_domains", "rates", "sample_weighted", "speedups"]

NO_PAIR = "no sample could be paired with the baseline"
GAP = 0.05
"""S_pool and S_gm further apart than this are worth a word: a few long answers then decide."""

_NO_TIME = "no time or no tokens to divide by"


def rates(turns: Listed, nothing: str = "") -> dict[str, Figure]:
    """Return tokens per second of one arm, in all ways of counting but Spec-Bench's."""
    t = Turns.of(turns)
    speed = t.tokens, t.seconds
    return {
        "tokens_per_s": pooled(t, speed, zero=_NO_TIME, nothing=nothing),
        "decode_tokens_per_s": decode_pooled(t, t.decode, nothing),
        "prefill_tokens_per_s": pooled(t, (t.prompt_tokens, t.prefill_ns / 1e9), zero=_NO_TIME, nothing=nothing),
        "tokens_per_s_mean_of_samples": mean_of_samples(t, speed, zero=_NO_TIME, nothing=nothing),
    }


def speedups(pairs: Pairs, *, missing: str = "", nothing: str = NO_PAIR) -> dict[str, Figure]:
    """Return every speedup over the paired samples.

    `missing`: why the method may not be compared at all, such as failed cells. `nothing`: the reason where there is
    no pair.
    """
    if missing or not len(pairs):
        return {name: absent(missing or nothing, len(pairs)) for name in _SPEEDUPS}
    found = matches(pairs, wall(pairs.baseline), wall(pairs.method))
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


def _cpu(turns: Turns) -> Side:
    return turns.cpu_ns / 1e9, turns.tokens


def _decode(turns: Turns) -> Side:
    tokens, seconds = turns.decode
    return seconds, tokens


def _of(pairs: Pairs, read: Callable[[Turns], Side]) -> Figure:
    """Return S_pool of what `read` gives of turns."""
    found = matches(pairs, read(pairs.baseline), read(pairs.method))
    if len(found):
        return _pool(found)
    arms = (pairs.baseline, pairs.method)
    if read is _decode and any(arm.ends_at_once.any() for arm in arms):
        return absent(NO_DECODE)
    return absent(unrecorded(next((arm for arm in arms if arm.imported.any()), pairs.method)))


def _pool(found: Matches) -> Figure:
    base_s, base_n, own_s, own_n = (sum(part.tolist()) for part in found.parts)
    if min(base_s, base_n, own_s, own_n) <= 0:
        return absent(_NO_TIME, found.n)
    return of_sums((base_s / base_n) / (own_s / own_n), found.n, _statistic(found, (0, 1, 2, 3), pool_ratio))


def _time(found: Matches) -> Figure:
    base, own = (sum(found.parts[place].tolist()) for place in (0, 2))
    if min(base, own) <= 0:
        return absent(_NO_TIME, found.n)
    return of_sums(base / own, found.n, _statistic(found, (0, 2), ratio()))


def _statistic(found: Matches, parts: Sequence[int], formula: Formula) -> Statistic:
    return Statistic(
        samples=found.samples, rounds=found.repeat, columns=[found.parts[part] for part in parts], formula=formula
    )


def _of_samples(found: Matches) -> dict[str, Figure]:
    """Return the means over samples of what each one's seconds per token come to."""
    import numpy as np

    names = ("speedup_gm", "speedup_mor", "speedup_rom")
    sums = [np.bincount(found.samples.places, part) for part in found.parts]
    places = np.flatnonzero(np.min(sums, axis=0) > 0)
    if not len(places):
        return {name: absent(_NO_TIME) for name in names}
    base_s, base_n, own_s, own_n = (column[places] for column in sums)
    x, y = base_s / base_n, own_s / own_n
    ratios, ones = x / y, np.ones(len(places))
    logs = numbers(list(map(math.log, ratios.tolist())))
    own, base = 1 / y, 1 / x

    def mean(values: Floats) -> float:
        return fmean(values.tolist())

    def figure(value: float, columns: list[Floats], formula: Formula) -> Figure:
        samples = Coded(found.samples.names, places)
        return of_sums(value, len(places), Statistic(samples=samples, columns=columns, formula=formula))

    return {
        "speedup_gm": figure(math.exp(mean(logs)), [logs, ones], geometric),
        "speedup_mor": figure(mean(ratios), [ratios, ones], ratio()),
        "speedup_rom": figure(mean(own) / mean(base), [own, base], ratio()),
    }
