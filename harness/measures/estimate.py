"""Figures that know how they come from sums over samples, so that resampling can make them again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from draftboard.results import Figure
from draftboard.statistics import Floats, Over, Statistic, chained

__all__ = [
    "Estimate",
    "figure_of",
    "joined",
    "mean_over_domains",
    "numbers",
    "of_means",
    "of_sums",
    "pooled_over",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimate(Figure):
    """A figure with its statistic. It equals the figure that it is without."""

    statistic: Statistic

    def __eq__(self, other: object) -> bool:
        return figure_of(self) == (figure_of(other) if isinstance(other, Estimate) else other)

    __hash__ = Figure.__hash__


def figure_of(figure: Figure) -> Figure:
    """Return the plain figure, ready to be stored."""
    if not isinstance(figure, Estimate):
        return figure
    return Figure(**{field.name: getattr(figure, field.name) for field in fields(Figure)})


def numbers(values: Sequence[float] | Floats) -> Floats:
    """Return the numbers as a column: an eighth of the memory of a list of them."""
    import numpy as np

    return np.array(values, np.float64)


def of_sums(value: float, n: int, statistic: Statistic) -> Estimate:
    """Return the figure of that value and what it comes from."""
    return Estimate(value=value, n=n, statistic=statistic)


def of_means(value: float, samples: Sequence[str], values: Sequence[float] | Floats) -> Estimate:
    """Return the plain mean of one value a sample."""
    from draftboard.statistics import ratio

    statistic = Statistic(samples=samples, columns=[numbers(values), numbers([1.0] * len(values))], formula=ratio())
    return Estimate(value=value, n=len(samples), statistic=statistic)


def joined(parts: Sequence[Figure], over: Over) -> Statistic | None:
    """Return the statistic of figures of several domains; None where one of them has none."""
    known = [part.statistic for part in parts if isinstance(part, Estimate)]
    if not known or len(known) < len(parts):
        return None
    import numpy as np

    rounds = [part.rounds for part in known if part.rounds is not None]
    return Statistic(
        samples=chained(part.samples for part in known),
        columns=[
            np.concatenate([np.asarray(part.columns[index], np.float64) for part in known])
            for index in range(len(known[0].columns))
        ],
        formula=known[0].formula,
        rounds=np.concatenate(rounds) if len(rounds) == len(known) else None,
        over=over,
    )


def mean_over_domains(value: float, n: int, parts: Sequence[Figure], over: Over) -> Figure:
    """Return a mean of the domains' figures, with what it comes from where every one of them has that."""
    statistic = joined(parts, over)
    return Figure(value=value, n=n) if statistic is None else Estimate(value=value, n=n, statistic=statistic)


def pooled_over(domains: Sequence[Mapping[str, Figure]]) -> dict[str, Figure] | None:
    """Return the figures over all samples of these domains, from the domains' own sums.

    None where some figure of some domain has no sums, or was computed in another way than in the others.
    """
    import numpy as np

    found: dict[str, Figure] = {}
    for name, first in domains[0].items():
        parts = [figures[name] for figures in domains]
        statistic = joined(parts, "pool")
        if statistic is None or len({part.signature for part in parts}) > 1:
            return None
        value = float(statistic.formula([np.asarray(column).sum() for column in statistic.columns]))
        n = sum(part.n or 0 for part in parts)
        found[name] = Estimate(value=value, n=n, signature=first.signature, statistic=statistic)
    return found
