"""From estimates to figures with intervals, noise floors and ties: the last step of analysis.

All methods and domains of a run are resampled at once, so that what is compared is compared on the same draws.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from draftboard.measures import Estimate, Pairs, Turns, figure_of
from draftboard.measures.pooling import absent
from draftboard.results import DomainResult, Figure, MethodResult
from draftboard.statistics import (
    ONE_ROUND,
    Sampling,
    Statistic,
    both,
    interval_of,
    p_value,
    pooled_drift,
    widened,
)

__all__ = ["floor_figure", "mean_floor", "with_certainty"]

_RANKED = "speedup"
_OVERALL = ""
_FLOOR = "noise_floor"
_Key = tuple[str, str, str]
"""Method, domain (`_OVERALL` for none) and metric; of two methods' ratio, both and `_OVERALL`."""


def floor_figure(pairs: Pairs, rounds: int, nothing: str = "") -> Figure:
    """Return the noise floor of one method on one domain (suites-and-scoring 8.4), in log scale.

    The largest |ln S_pool| between two rounds of either arm, over the paired samples that have all `rounds`.
    """
    if rounds < 2:
        return absent(ONE_ROUND, len(pairs))
    import numpy as np

    width = int(pairs.method.repeat.max(initial=0)) + 1
    cells = np.unique(pairs.method.sample * width + pairs.method.repeat)
    whole = pairs.take(np.bincount(cells // width, minlength=len(pairs.method.names))[pairs.method.sample] == rounds)
    drifts = [drift for arm in (whole.baseline, whole.method) if (drift := _drift(arm)) is not None]
    if len(drifts) < 2:
        return absent(nothing or "no sample has every round in both arms", len(whole))
    return Figure(value=max(drifts), n=len(whole))


def _drift(turns: Turns) -> float | None:
    """Return the drift between the rounds of these turns; None without any, or where one has no time or tokens."""
    cells: dict[int, list[tuple[float, float]]] = {}
    for number, *cell in zip(turns.repeat.tolist(), turns.seconds.tolist(), turns.tokens.tolist(), strict=True):
        cells.setdefault(number, []).append((cell[0], cell[1]))
    if not cells or any(min(map(sum, zip(*rows, strict=True))) <= 0 for rows in cells.values()):
        return None
    return pooled_drift(list(cells.values()))


def mean_floor(floors: Sequence[Figure]) -> Figure:
    """Return the noise floor of a geometric mean over domains: the mean of theirs, of those that have one."""
    known = [floor for floor in floors if floor.value is not None]
    if not known:
        return floors[0] if floors else absent("no domains")
    n = sum(floor.n or 0 for floor in known)
    return Figure(value=math.fsum(floor.value or 0.0 for floor in known) / len(known), n=n)


def with_certainty(
    methods: Sequence[MethodResult], strata: Mapping[str, str], sampling: Sampling
) -> tuple[MethodResult, ...]:
    """Return the methods with intervals in place of statistics, and with whom each is tied.

    `strata`: the domain of every sample. Speedups are widened by the noise floor beside them.
    """
    from draftboard.statistics import replicates

    estimates = {
        (method.method, name, metric): figure
        for method in methods
        for name, figures in _tables(method).items()
        for metric, figure in figures.items()
        if isinstance(figure, Estimate)
    }
    ratios = _ratios(methods)
    wanted: dict[_Key, Statistic] = {key: estimate.statistic for key, estimate in estimates.items()} | ratios
    floors = {
        (method.method, name): figures[_FLOOR].value or 0.0
        for method in methods
        for name, figures in _tables(method).items()
        if _FLOOR in figures
    }
    done: dict[_Key, Figure] = {}
    tied: dict[str, set[str]] = {method.method: set() for method in methods}
    for key, found in replicates(wanted, strata, sampling):
        interval = interval_of(found, sampling.level)
        if key in ratios:
            one, other, _ = key
            floor = max(floors.get((label, _OVERALL), 0.0) for label in (one, other))
            if interval is not None and widened(interval, floor).low <= 1 <= widened(interval, floor).high:
                tied[one].add(other)
                tied[other].add(one)
            continue
        method, name, metric = key
        figure = figure_of(estimates[key])
        if metric.startswith("speedup"):
            floor = floors.get((method, name), 0.0)
            done[key] = replace(
                figure,
                interval=interval and widened(interval, floor),
                p=p_value(found, 1.0, floor) if metric == _RANKED else None,
            )
        else:
            done[key] = replace(figure, interval=interval)
    return tuple(
        replace(
            method,
            overall=_plain(method.overall, method.method, _OVERALL, done),
            domains={
                name: replace(domain, figures=_plain(domain.figures, method.method, name, done))
                for name, domain in method.domains.items()
            },
            tied_with=tuple(sorted(tied[method.method])),
        )
        for method in methods
    )


def _tables(method: MethodResult) -> dict[str, dict[str, Figure]]:
    domains: dict[str, DomainResult] = method.domains
    return {_OVERALL: method.overall, **{name: domain.figures for name, domain in domains.items()}}


def _ratios(methods: Sequence[MethodResult]) -> dict[_Key, Statistic]:
    """Return the ratio of every two methods' overall speedups, key (one, other, "")."""
    known = {
        method.method: figure.statistic
        for method in methods
        if isinstance(figure := method.overall.get(_RANKED), Estimate)
    }
    return {
        (one, other, ""): both(known[one], known[other], lambda a, b: a / b)
        for one, other in combinations(sorted(known), 2)
    }


def _plain(figures: Mapping[str, Figure], method: str, name: str, done: Mapping[_Key, Figure]) -> dict[str, Figure]:
    return {metric: done.get((method, name, metric)) or figure_of(figure) for metric, figure in figures.items()}
