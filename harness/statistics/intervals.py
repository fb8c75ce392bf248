"""From resampled values to an interval and a p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from draftboard.results import Interval
from draftboard.statistics.draws import Floats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FEW", "Replicates", "interval_of", "p_value", "widened"]

FEW = 30
"""Below so many samples percentiles are corrected for bias and skew (BCa)."""

_NORMAL = NormalDist()
_EQUAL = 1e-12
"""Relative difference of values that rounding alone can make."""
_UNDEFINED = 0.05
"""A larger share of resamples without a value leaves no honest interval."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replicates:
    """What a statistic came to on all samples, on each resample, and with each sample left out."""

    value: float
    values: Floats
    n: int
    """Samples that add to it."""
    smallest: int
    """The same in the domain that has the fewest of them."""
    left_out: Sequence[Floats] = ()
    """Values without one sample each, an array a domain; empty where nobody needs them."""


def interval_of(found: Replicates, level: float) -> Interval | None:
    """Return the bootstrap interval: percentiles, corrected (BCa) below `FEW` samples.

    None where a domain has fewer than two samples, for drawing one sample again and again shows no spread, or where
    too many resamples have no value.
    """
    import numpy as np

    values = _defined(found)
    if values is None:
        return None
    if _same(values, found.value).all():
        return Interval(low=found.value, high=found.value, level=level)
    tail = (1 - level) / 2
    tails = _corrected(values, found, tail) if found.n < FEW else (tail, 1 - tail)
    low, high = np.quantile(values, tails)
    return Interval(low=float(low), high=float(high), level=level)


def p_value(found: Replicates, null: float, floor: float = 0.0) -> float | None:
    """Return the two-sided p-value of `null` that goes with the interval of `interval_of`, never 0.

    `floor`: the noise floor (in log scale) by which values towards `null` are moved first. None where no interval can
    be given.
    """
    import numpy as np

    values = _defined(found)
    if values is None:
        return None
    if abs(found.value - null) <= _EQUAL * abs(null):
        return 1.0
    over = found.value > null
    moved = values * math.exp(-floor if over else floor) if floor else values
    beyond = int(np.count_nonzero(((moved < null) if over else (moved > null)) | _same(moved, null)))
    share = (1 + beyond) / (1 + len(moved))
    if found.n < FEW:
        below = _uncorrected(values, found, share if over else 1 - share)
        # The least that so many resamples can tell.
        share = max(1 / (1 + len(moved)), below if over else 1 - below)
    return float(min(1.0, 2 * share))


def widened(interval: Interval, floor: float) -> Interval:
    """Return the interval of a ratio, wider by the noise floor in log scale on both sides.

    One of exactly 1 without any spread stays: that is an arm against itself, which has no noise.
    """
    if interval.low == interval.high == 1:
        return interval
    return Interval(low=interval.low * math.exp(-floor), high=interval.high * math.exp(floor), level=interval.level)


def _defined(found: Replicates) -> Floats | None:
    """Return the resampled values that there are; None where they carry no interval."""
    import numpy as np

    if found.smallest < 2 or not math.isfinite(found.value):
        return None
    finite = np.isfinite(found.values)
    if finite.all():
        return found.values
    return found.values[finite] if finite.mean() >= 1 - _UNDEFINED else None


def _same(values: Floats, value: float) -> NDArray[np.bool_]:
    return abs(values - value) <= _EQUAL * abs(value)


def _corrected(values: Floats, found: Replicates, tail: float) -> tuple[float, float]:
    """Return the levels of BCa (Efron 1987); plain ones where the resamples say nothing of bias or skew."""
    known = _bias_and_skew(values, found)
    if known is None:
        return tail, 1 - tail
    bias, skew = known
    levels = []
    for normal in (_NORMAL.inv_cdf(tail), _NORMAL.inv_cdf(1 - tail)):
        moved = bias + normal
        bottom = 1 - skew * moved
        if bottom <= 0:
            return tail, 1 - tail
        levels.append(_NORMAL.cdf(bias + moved / bottom))
    return levels[0], levels[1]


def _uncorrected(values: Floats, found: Replicates, level: float) -> float:
    """Return the tail whose level by BCa is `level`: what `_corrected` undone comes to."""
    known = _bias_and_skew(values, found)
    if known is None or not 0 < level < 1:
        return level
    bias, skew = known
    moved = _NORMAL.inv_cdf(level) - bias
    bottom = 1 + skew * moved
    if bottom <= 0:
        return 0.0 if moved < 0 else 1.0
    return _NORMAL.cdf(moved / bottom - bias)


def _bias_and_skew(values: Floats, found: Replicates) -> tuple[float, float] | None:
    """Return bias correction and acceleration; None where the resamples say nothing of one of them."""
    import numpy as np

    equal = _same(values, found.value)
    share = (np.count_nonzero((values < found.value) & ~equal) + np.count_nonzero(equal) / 2) / len(values)
    skew = _acceleration(found.left_out)
    if not 0 < share < 1 or skew is None:
        return None
    return _NORMAL.inv_cdf(share), skew


def _acceleration(left_out: Sequence[Floats]) -> float | None:
    """Return the acceleration from values with one sample left out, of one or several domains."""
    import numpy as np

    cubes = squares = 0.0
    for values in left_out:
        if not np.isfinite(values).all():
            return None
        n = len(values)
        influence = (n - 1) * (values.mean() - values)
        cubes += float((influence**3).sum()) / n**3
        squares += float((influence**2).sum()) / n**2
    return cubes / (6 * squares**1.5) if squares > 0 else None
