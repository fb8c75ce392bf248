"""Whether draws follow known probabilities, and what several such tests say together."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf
from typing import TypeVar

from draftboard.lossless import chi_square

__all__ = ["LEVEL", "Fit", "fit", "holm", "variation"]

T = TypeVar("T", bound=Hashable)

LEVEL = 0.001
"""Chance with which a right method fails."""
_EXPECTED = 5
"""Fewer expected draws of an outcome than this make chi-square's distribution another one (Cochran 1954)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Pearson's test of draws against probabilities, rare outcomes taken together."""

    statistic: float
    """Infinite when something was drawn that cannot be."""
    degrees: int
    p_value: float


def fit(counts: Mapping[T, int], probabilities: Mapping[T, float], *, most: int = 50) -> Fit:
    """Test counts of draws against probabilities that add up to 1.

    The `most` likeliest outcomes count for themselves where five draws of them are expected; the others form one
    outcome. Which these are does not depend on what was drawn. Where that leaves one outcome, its count is tested by
    the exact binomial distribution. Raises ValueError without draws.
    """
    draws = sum(counts.values())
    if draws <= 0:
        raise ValueError("a test needs draws")
    likely = sorted(probabilities, key=lambda outcome: -probabilities[outcome])[:most]
    own = [outcome for outcome in likely if draws * probabilities[outcome] >= _EXPECTED] or likely[:1]
    seen, chances = [counts.get(outcome, 0) for outcome in own], [probabilities[outcome] for outcome in own]
    other, left = draws - sum(seen), max(0.0, 1 - fsum(chances))
    if left < 1e-9:
        if other:
            return Fit(statistic=inf, degrees=len(own), p_value=0.0)
        left = 0.0
    if draws * left >= _EXPECTED:
        seen, chances = [*seen, other], [*chances, left]
    elif len(own) > 1:
        seen[-1] += other
        chances[-1] += left
    else:
        return _binomial(seen[0], draws, chances[0])
    total = fsum(chances)
    if len(seen) < 2:
        return _binomial(seen[0], draws, chances[0])
    found = chi_square(seen, [chance / total for chance in chances])
    return Fit(statistic=found.statistic, degrees=found.degrees, p_value=found.p_value)


def _binomial(count: int, draws: int, chance: float) -> Fit:
    from scipy.stats import binomtest

    chance = min(1.0, chance)
    expected = draws * chance
    spread = expected * (1 - chance)
    statistic = (count - expected) ** 2 / spread if spread > 0 else (0.0 if count == draws else inf)
    return Fit(statistic=statistic, degrees=1, p_value=float(binomtest(count, draws, chance).pvalue))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for there being several (Holm 1979), in the given order.

    The i-th smallest of m is multiplied by m - i, counted from 0, made no smaller than the one before it, and cut at 1.
    """
    found = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - rank)))
        found[index] = largest
    return found


def variation(counts: Mapping[T, int], probabilities: Mapping[T, float]) -> float:
    """Return the total variation between the draws' shares and the probabilities: half the summed differences."""
    draws = sum(counts.values())
    outcomes = {*counts, *probabilities}
    return fsum(abs(counts.get(o, 0) / draws - probabilities.get(o, 0.0)) for o in outcomes) / 2
