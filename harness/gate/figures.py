"""Changes of one figure, with their intervals: from paired cells, or from two stored figures.

Of paired cells the change is that of the *speedup* (each side's method over its own baseline, both measured
interleaved, so that a slower machine cancels out) or of the *time* per token itself. One resample of samples serves
all four arms.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np

from draftboard.gate.report import Change
from draftboard.results import Figure, Interval
from draftboard.statistics import (
    Formula,
    Sampling,
    Statistic,
    decide,
    geometric,
    interval_of,
    p_value,
    pool_ratio,
    replicates,
    widened,
)
from draftboard.statistics.draws import Floats
from draftboard.statistics.formulas import Over

__all__ = ["Row", "acceptance_change", "cell_change", "stored_change"]

Row = tuple[str, int, tuple[float, ...]]
"""A paired cell: its sample and round, then what it adds to each sum."""


def cell_change(
    rows: Sequence[Row], domains: Mapping[str, str], *, figure: str, tolerance: float, sampling: Sampling
) -> Change:
    """Compare speed over paired cells.

    `rows`: seconds and tokens of the method before and after, and for a speedup those of the baseline before and
    after behind them. Per domain pooled, then the geometric mean over domains; where a domain has one sample the
    geometric mean over samples, which needs no second one.
    """
    names = {domains[sample] for sample, _, _ in rows}
    single = min(len({s for s, _, _ in rows if domains[s] == name}) for name in names) < 2 and len(names) > 1
    before, after = (_level(rows, domains, side, single) for side in (0, 1))
    strata = {sample: "" if single else domains[sample] for sample, _, _ in rows}
    statistic = _of_samples(rows) if single else _of_domains(rows)
    ((_, found),) = replicates({"": statistic}, strata, sampling)
    floor = _floor(rows, domains, single)
    interval = interval_of(found, sampling.level)
    if interval is not None:
        interval = widened(interval, floor or 0.0)
    way = "geometric mean over samples" if single else ("geometric mean over domains" if len(names) > 1 else "pooled")
    return Change(
        figure=f"{figure} ({way})",
        before=before,
        after=after,
        ratio=found.value,
        interval=interval,
        p=p_value(found, 1.0, floor or 0.0),
        noise_floor=floor,
        n=len({sample for sample, _, _ in rows}),
        rounds=len({number for _, number, _ in rows}),
        decision=decide(found.value, interval, tolerance),
    )


def acceptance_change(
    rows: Sequence[Row], domains: Mapping[str, str], *, tolerance: float, sampling: Sampling
) -> Change:
    """Compare acceptance lengths, pooled over steps; `rows` hold kept tokens and steps, before and after."""
    sums = [math.fsum(row[2][column] for row in rows) for column in range(4)]
    statistic = _statistic(rows, lambda s: (s[2] / s[3]) / (s[0] / s[1]), over="pool")
    ((_, found),) = replicates({"": statistic}, {sample: domains[sample] for sample, _, _ in rows}, sampling)
    interval = interval_of(found, sampling.level)
    return Change(
        figure="acceptance length (pooled over steps)",
        before=sums[0] / sums[1],
        after=sums[2] / sums[3],
        ratio=found.value,
        interval=interval,
        p=p_value(found, 1.0),
        n=len({sample for sample, _, _ in rows}),
        rounds=len({number for _, number, _ in rows}),
        decision=decide(found.value, interval, tolerance),
    )


def stored_change(
    name: str, old: Mapping[str, Figure], new: Mapping[str, Figure], *, tolerance: float
) -> Change | None:
    """Compare a figure of two sides by their stored intervals; None where one has no value.

    The interval of the ratio comes from both intervals in log scale, by the method of variance estimates recovery
    (Zou and Donner, 2008). Without both intervals there is none.
    """
    before, after = old.get(name), new.get(name)
    if before is None or after is None or before.value is None or after.value is None:
        return None
    if min(before.value, after.value) <= 0:
        return None
    ratio = after.value / before.value
    interval = None
    ends = (before.interval, after.interval)
    if ends[0] is not None and ends[1] is not None and min(ends[0].low, ends[1].low) > 0:
        low = math.hypot(math.log(after.value / ends[1].low), math.log(ends[0].high / before.value))
        high = math.hypot(math.log(ends[1].high / after.value), math.log(before.value / ends[0].low))
        level = min(ends[0].level, ends[1].level)
        interval = Interval(low=ratio * math.exp(-low), high=ratio * math.exp(high), level=level)
    counts = [figure.n for figure in (before, after) if figure.n is not None]
    return Change(
        figure=name,
        before=before.value,
        after=after.value,
        ratio=ratio,
        interval=interval,
        n=min(counts) if counts else None,
        decision=decide(ratio, interval, tolerance),
    )


def _of_domains(rows: Sequence[Row]) -> Statistic:
    return _statistic(rows, _ratio, over="geometric")


def _statistic(rows: Sequence[Row], formula: Formula, *, over: Over) -> Statistic:
    return Statistic(
        samples=[sample for sample, _, _ in rows],
        rounds=[number for _, number, _ in rows],
        columns=list(np.array([row[2] for row in rows]).T),
        formula=formula,
        over=over,
    )


def _of_samples(rows: Sequence[Row]) -> Statistic:
    each = _added(rows, str)
    logs = [math.log(float(_ratio([np.asarray(value) for value in parts]))) for parts in each.values()]
    return Statistic(samples=list(each), columns=[logs, [1.0] * len(logs)], formula=geometric)


def _ratio(sums: Sequence[Floats]) -> Floats:
    """Speed after over speed before, of a speedup where the baseline's sums follow."""
    change = pool_ratio(sums[:4])
    return change if len(sums) == 4 else change / pool_ratio(sums[4:])


def _level(rows: Sequence[Row], domains: Mapping[str, str], side: int, single: bool) -> float:
    """Return the figure of one side as it stands: a speedup, or tokens per second."""
    start = 2 * side
    values = []
    for parts in _added(rows, lambda sample: sample if single else domains[sample]).values():
        pace = parts[start + 1] / parts[start]
        values.append(pace if len(parts) == 4 else pace * parts[4 + start] / parts[4 + start + 1])
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _added(rows: Sequence[Row], key: Callable[[str], str]) -> dict[str, list[float]]:
    """Return the sums of the rows' parts for each key of a sample."""
    found: dict[str, list[float]] = {}
    for sample, _, parts in rows:
        sums = found.setdefault(key(sample), [0.0] * len(parts))
        for index, value in enumerate(parts):
            sums[index] += value
    return found


def _floor(rows: Sequence[Row], domains: Mapping[str, str], single: bool) -> float | None:
    """Return how far two rounds of one side lie apart at most, in log scale; None with one round.

    Over the samples that have every round: what differs between others is which samples they hold.
    """
    numbers = sorted({number for _, number, _ in rows})
    held: dict[str, int] = {}
    for sample, _, _ in rows:
        held[sample] = held.get(sample, 0) + 1
    by_round = {
        number: [row for row in rows if row[1] == number and held[row[0]] == len(numbers)] for number in numbers
    }
    if len(numbers) < 2 or not by_round[numbers[0]]:
        return None
    levels = [[math.log(_level(by_round[number], domains, side, single)) for number in numbers] for side in (0, 1)]
    return max(abs(one - other) for side in levels for one, other in combinations(side, 2))
