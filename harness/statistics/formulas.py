"""Figures as functions of sums over samples: what resampling makes again thousands of times.

A `Statistic` holds what each sample adds to each sum, and the formula. Its value on all samples is the figure's value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, overload

from draftboard.statistics.draws import Floats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Coded", "Formula", "Over", "Statistic", "both", "chained", "geometric", "pool_ratio", "ratio"]

Formula = Callable[[Sequence[Floats]], Floats]
"""Arrays of sums of one shape, one a column → values of that shape; not finite where a resample has no value."""

Over = Literal["pool", "geometric", "mean", "weighted"]
"""Across domains: sums of all samples, or the domains' own values as geometric, plain or sample-weighted mean."""


class Coded(Sequence[str]):
    """Samples of many rows, each as its place among names that many statistics share."""

    __slots__ = ("names", "places")

    def __init__(self, names: Sequence[str], places: NDArray[np.int64]) -> None:
        self.names, self.places = names, places

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Coded: ...
    def __getitem__(self, index: int | slice) -> str | Coded:
        if isinstance(index, slice):
            return Coded(self.names, self.places[index])
        return self.names[int(self.places[index])]

    def __iter__(self) -> Iterator[str]:
        return map(self.names.__getitem__, self.places.tolist())


def chained(parts: Iterable[Sequence[str]]) -> Sequence[str]:
    """Return the samples of several statistics' rows, one after the other."""
    import numpy as np

    found = list(parts)
    coded = [part for part in found if isinstance(part, Coded)]
    if len(coded) == len(found) and len({id(part.names) for part in coded}) == 1:
        return Coded(coded[0].names, np.concatenate([part.places for part in coded]))
    return [sample for part in found for sample in part]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statistic:
    """One figure: rows of what a sample (in a round) adds to its sums, and what becomes of the sums."""

    samples: Sequence[str]
    """The sample of each row. A sample without rows adds nothing."""
    columns: Sequence[Sequence[float] | Floats]
    """Each as long as `samples`."""
    formula: Formula
    rounds: Sequence[int] | NDArray[np.int64] | None = None
    """The round of each row; None where a row is a sample of all rounds, and rounds can then not be drawn."""
    over: Over = "pool"


def ratio(scale: float = 1.0) -> Formula:
    """Return the formula Σ first / Σ second × scale."""

    def formula(sums: Sequence[Floats]) -> Floats:
        return sums[0] / sums[1] * scale

    return formula


def pool_ratio(sums: Sequence[Floats]) -> Floats:
    """Return S_pool from the sums of the baseline's seconds and tokens and the method's seconds and tokens."""
    return (sums[0] / sums[1]) / (sums[2] / sums[3])


def geometric(sums: Sequence[Floats]) -> Floats:
    """Return the geometric mean from the sums of logarithms and of ones."""
    import numpy as np

    found: Floats = np.exp(sums[0] / sums[1])
    return found


def both(first: Statistic, second: Statistic, compare: Callable[[Floats, Floats], Floats]) -> Statistic:
    """Return the comparison of two statistics on the same resamples, such as a ratio or a difference.

    `compare` takes their values. Both must be taken across domains alike.
    """
    import numpy as np

    split, count = len(first.columns), len(second.columns)
    zeros, others = np.zeros(len(first.samples)), np.zeros(len(second.samples))
    rounds = None if first.rounds is None or second.rounds is None else np.concatenate([first.rounds, second.rounds])
    return Statistic(
        samples=chained((first.samples, second.samples)),
        columns=[
            *(np.concatenate([np.asarray(column, np.float64), others]) for column in first.columns),
            *(np.concatenate([zeros, np.asarray(column, np.float64)]) for column in second.columns),
        ],
        formula=lambda sums: compare(first.formula(sums[:split]), second.formula(sums[split : split + count])),
        rounds=rounds,
        over=first.over,
    )
