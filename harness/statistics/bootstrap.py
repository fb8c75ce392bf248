"""The paired bootstrap, stratified by domain: all statistics of a run on the same resamples (suites-and-scoring 8.3).

A domain's samples are drawn with replacement, all arms, turns and rounds of a drawn sample together. Every distinct
column of a domain is summed once, whoever asks for it, so that the same data give the same bits in every figure.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from draftboard.statistics.draws import Floats, Sampling, resampled_sums
from draftboard.statistics.formulas import Coded, Statistic
from draftboard.statistics.intervals import FEW, Replicates

__all__ = ["replicates"]

K = TypeVar("K", bound=Hashable)


def replicates(
    statistics: Mapping[K, Statistic], strata: Mapping[str, str], sampling: Sampling
) -> Iterator[tuple[K, Replicates]]:
    """Yield what every statistic comes to on the resamples; those of one domain as soon as it is drawn.

    `strata`: the domain of every sample that can be drawn, whether or not a statistic has it. A statistic takes the
    samples that it has rows of; one without any, or with a sample that no domain has, raises ValueError. So does a
    round beyond those that are drawn.
    """
    members: dict[str, list[str]] = {}
    for sample in sorted(strata):
        members.setdefault(strata[sample], []).append(sample)
    index = _Index.of(members)
    rounds = sampling.round_counts()
    parts = {
        key: {rows.name: rows for rows in index.of_samples(statistic.samples)} for key, statistic in statistics.items()
    }
    open_ones = {key: _Across(left=len(found)) for key, found in parts.items()}
    for name in sorted(members):
        wanted = {key: found[name] for key, found in parts.items() if name in found}
        if not wanted:
            continue
        table = _Table(samples=len(members[name]), rounds=rounds)
        spans = {key: table.add(statistics[key], rows) for key, rows in wanted.items()}
        table.draw(sampling, name)
        for key, span in spans.items():
            across = open_ones[key]
            across.take(statistics[key], table, span)
            if not across.left:
                yield key, across.done(statistics[key])
                del open_ones[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Index:
    """Where every sample stands: a number for each, and by that number its domain and its place there."""

    numbers: dict[str, int]
    names: list[str]
    domains: NDArray[np.int64]
    places: NDArray[np.int64]
    known: "dict[bytes, list[_Rows]]" = field(default_factory=dict)
    named: "dict[int, tuple[Sequence[str], NDArray[np.int64]]]" = field(default_factory=dict)
    """Names that statistics share, each known by its identity and so kept, and the numbers of the samples named."""

    @classmethod
    def of(cls, members: Mapping[str, Sequence[str]]) -> "_Index":
        sizes = [len(samples) for samples in members.values()]
        return cls(
            numbers={sample: number for number, sample in enumerate(chain.from_iterable(members.values()))},
            names=list(members),
            domains=np.repeat(np.arange(len(sizes)), sizes),
            places=np.concatenate([np.arange(size) for size in sizes] or [np.arange(0)]),
        )

    def of_samples(self, samples: Sequence[str]) -> "list[_Rows]":
        """Return where these samples are, domain by domain; raises ValueError for none and for unknown ones.

        Many figures rest on the same samples, so what was found is kept.
        """
        numbers = self._shared(samples.names)[samples.places] if isinstance(samples, Coded) else self._numbers(samples)
        key = numbers.tobytes()
        if key not in self.known:
            self.known[key] = self._find(numbers, samples)
        return self.known[key]

    def _shared(self, names: Sequence[str]) -> NDArray[np.int64]:
        if id(names) not in self.named:
            self.named[id(names)] = names, self._numbers(names)
        return self.named[id(names)][1]

    def _numbers(self, samples: Sequence[str]) -> NDArray[np.int64]:
        return np.fromiter(map(self.numbers.get, samples, repeat(-1)), np.int64, len(samples))

    def _find(self, numbers: NDArray[np.int64], samples: Sequence[str]) -> "list[_Rows]":
        if not len(numbers):
            raise ValueError("no samples")
        if numbers.min() < 0:
            unknown = sorted({sample for sample in samples if sample not in self.numbers})
            raise ValueError(f"samples of no domain: {', '.join(unknown[:5])}")
        domain, place = self.domains[numbers], self.places[numbers]
        found = []
        for number in np.flatnonzero(np.bincount(domain)).tolist():
            inside = np.flatnonzero(domain == number)
            places = place[inside]
            found.append(_Rows(name=self.names[number], inside=inside, places=places, present=np.unique(places)))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Which rows of a statistic are of one domain, where their samples stand there, and each such place once."""

    name: str
    inside: NDArray[np.int64]
    places: NDArray[np.int64]
    present: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """Where a statistic's sums are in a table: with rounds drawn, one column a round each."""

    columns: list[list[int]]
    present: NDArray[np.int64]
    """Places of the samples that the statistic has."""


@dataclass(slots=True, kw_only=True)
class _Table:
    """The distinct columns of one domain and their sums over the resamples."""

    samples: int
    rounds: NDArray[np.int64] | None
    columns: list[Floats] = field(default_factory=list)
    known: dict[bytes, int] = field(default_factory=dict)
    sums: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def add(self, statistic: Statistic, rows: _Rows) -> _Span:
        drawn: Sequence[NDArray[np.bool_] | slice] = [slice(None)]
        if self.rounds is not None and statistic.rounds is not None:
            numbers = np.asarray(statistic.rounds, np.int64)[rows.inside]
            if numbers.max() >= self.rounds.shape[1]:
                raise ValueError(f"round {numbers.max()} of a run of {self.rounds.shape[1]} rounds")
            drawn = [np.equal(numbers, number) for number in range(self.rounds.shape[1])]
        columns = [np.asarray(column, np.float64)[rows.inside] for column in statistic.columns]
        return _Span(
            columns=[[self._add(rows.places[some], column[some]) for some in drawn] for column in columns],
            present=rows.present,
        )

    def _add(self, places: NDArray[np.int64], values: Floats) -> int:
        column = np.asarray(np.bincount(places, weights=values, minlength=self.samples), np.float64)
        key = column.tobytes()
        if key not in self.known:
            self.known[key] = len(self.columns)
            self.columns.append(column)
        return self.known[key]

    def draw(self, sampling: Sampling, name: str) -> None:
        """Sum all columns over the domain's resamples.

        They are put into an order of their own first, so that no sum depends on the order of the methods.
        """
        order = sorted(range(len(self.columns)), key=lambda index: self.columns[index].tobytes())
        sums = resampled_sums(np.stack([self.columns[index] for index in order], axis=1), sampling, name)
        self.sums = np.empty_like(sums.T)
        self.sums[order] = sums.T

    def resampled(self, span: _Span) -> list[Floats]:
        """Return the statistic's sums over each resample."""
        if self.rounds is None:
            return [self.sums[column[0]] for column in span.columns]
        weights = self.rounds.T / 1.0
        return [
            self.sums[column[0]] if len(column) == 1 else np.einsum("rb,rb->b", weights, self.sums[column])
            for column in span.columns
        ]

    def whole(self, span: _Span) -> list[Floats]:
        """Return what every sample of the statistic adds to its sums."""
        return [np.sum([self.columns[index][span.present] for index in column], axis=0) for column in span.columns]


@dataclass(slots=True, kw_only=True)
class _Across:
    """A statistic on its way through the domains."""

    left: int
    sums: list[Floats] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)
    """By domain, where it is a mean over domains."""
    rows: list[list[Floats]] = field(default_factory=list)
    """By domain, what each sample adds."""

    def take(self, statistic: Statistic, table: _Table, span: _Span) -> None:
        """Add a domain."""
        self.left -= 1
        self.rows.append(table.whole(span))
        sums = table.resampled(span)
        if statistic.over != "pool":
            self.values.append(_formula(statistic, sums))
        elif self.sums:
            self.sums = [one + other for one, other in zip(self.sums, sums, strict=True)]
        else:
            self.sums = sums

    def done(self, statistic: Statistic) -> Replicates:
        """Return what it came to."""
        counts = [len(rows[0]) for rows in self.rows]
        totals = [[column.sum() for column in rows] for rows in self.rows]
        few = sum(counts) < FEW
        if statistic.over == "pool":
            whole = [sum(column) for column in zip(*totals, strict=True)]
            value = _formula(statistic, [np.asarray(total) for total in whole])
            values = _formula(statistic, self.sums)
            left_out = [
                _formula(statistic, [total - column for total, column in zip(whole, rows, strict=True)])
                for rows in (self.rows if few else ())
            ]
        else:
            each = [_formula(statistic, [np.asarray(total) for total in domain]) for domain in totals]
            value, values = _mean(statistic, each, counts), _mean(statistic, self.values, counts)
            left_out = [
                _mean(
                    statistic,
                    [
                        _formula(statistic, [total - column for total, column in zip(totals[place], rows, strict=True)])
                        if place == index
                        else other
                        for index, other in enumerate(each)
                    ],
                    counts,
                )
                for place, rows in enumerate(self.rows if few else ())
            ]
        return Replicates(value=float(value), values=values, n=sum(counts), smallest=min(counts), left_out=left_out)


def _formula(statistic: Statistic, sums: Sequence[Floats]) -> Floats:
    with np.errstate(all="ignore"):
        return np.asarray(statistic.formula(sums), np.float64)


def _mean(statistic: Statistic, values: Sequence[Floats], counts: Sequence[int]) -> Floats:
    with np.errstate(all="ignore"):
        if statistic.over == "geometric":
            return np.asarray(np.exp(sum(np.log(value) for value in values) / len(values)))
        weights = counts if statistic.over == "weighted" else [1] * len(values)
        return np.asarray(sum(w * value for w, value in zip(weights, values, strict=True)) / sum(weights))
