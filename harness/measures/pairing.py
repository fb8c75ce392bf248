"""Which turns of two arms may be held against each other (suites-and-scoring 8.1): those with one prompt in both.

A turn that follows differing answers has another prompt; it and what comes after it leave paired figures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from draftboard.measures.columns import Listed, Turns, distinct, shared_tables
from draftboard.records import Turn
from draftboard.statistics import Coded, Floats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Matches", "Pairing", "Pairs", "Side", "matches", "pair_up", "wall"]

Side = tuple[Floats, Floats]
"""Seconds and tokens of one arm's turns; NaN where they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Two arms' turns side by side: those at one place had the same prompt. Those of one sample stand together."""

    baseline: Turns
    method: Turns
    rounds: Floats
    """Of each turn, the rounds that its sample was paired in."""

    def __len__(self) -> int:
        """Return the number of samples."""
        return self.method.n

    def take(self, rows: "NDArray[np.bool_]") -> "Pairs":
        """Return these turns alone."""
        return Pairs(baseline=self.baseline.take(rows), method=self.method.take(rows), rounds=self.rounds[rows])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matches:
    """What pairs of turns add: over their samples' rounds, the means of both arms."""

    samples: Coded
    repeat: "NDArray[np.int64]"
    parts: tuple[Floats, Floats, Floats, Floats]
    """The baseline's seconds and tokens, then the method's, each divided by the number of rounds."""

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def n(self) -> int:
        """Number of samples."""
        return distinct(self.samples.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The samples that can be paired, and what cannot."""

    pairs: Pairs
    turns: int
    """Turns that both arms have."""
    diverged: dict[str, int]
    """By sample, how many of them had different prompts."""
    alone: tuple[str, ...]
    """Samples that only the method has answers to."""


def pair_up(baseline: Listed, method: Listed) -> Pairing:
    """Pair the arms by sample and round, over the turns from the first on that were asked with the same prompt."""
    import numpy as np

    theirs, mine = shared_tables(baseline, method)
    width = 1 + max(int(arm.repeat.max(initial=0)) for arm in (theirs, mine))
    depth = 1 + max(int(_places(arm).max(initial=0)) for arm in (theirs, mine))
    base_keys, own_keys = ((arm.sample * width + arm.repeat) * depth + _places(arm) for arm in (theirs, mine))
    common, base_rows, own_rows = np.intersect1d(base_keys, own_keys, assume_unique=True, return_indices=True)
    cells = common // depth
    shared = _shared(cells, theirs.records[base_rows].tolist(), mine.records[own_rows].tolist())
    diverged = np.bincount(mine.sample[own_rows[~shared]])
    base_rows, own_rows, paired = base_rows[shared], own_rows[shared], np.unique(cells[shared])
    alone = np.setdiff1d(mine.sample, theirs.sample)
    return Pairing(
        pairs=Pairs(
            baseline=theirs.take(base_rows),
            method=mine.take(own_rows),
            rounds=np.bincount(paired // width, minlength=len(mine.names))[mine.sample[own_rows]] / 1.0,
        ),
        turns=len(common),
        diverged={mine.names[place]: int(diverged[place]) for place in np.flatnonzero(diverged).tolist()},
        alone=tuple(mine.names[place] for place in alone.tolist()),
    )


def wall(turns: Turns) -> Side:
    """Return end-to-end seconds and tokens of turns; NaN where no time was measured."""
    import numpy as np

    return np.where(turns.seconds != 0, turns.seconds, np.nan), turns.tokens


def matches(pairs: Pairs, baseline: Side, method: Side) -> Matches:
    """Return what every pair of turns adds to the sums of both arms; one that either side does not know leaves both."""
    import numpy as np

    columns = (*baseline, *method)
    known = ~np.any([np.isnan(column) for column in columns], axis=0)
    parts = [(column / pairs.rounds)[known] for column in columns]
    return Matches(
        samples=Coded(pairs.method.names, pairs.method.sample[known]),
        repeat=pairs.baseline.repeat[known],
        parts=(parts[0], parts[1], parts[2], parts[3]),
    )


def _places(turns: Turns) -> "NDArray[np.int64]":
    """Return each turn's place in its conversation: how many of its sample and round stand before it."""
    import numpy as np

    cells = turns.sample * (int(turns.repeat.max(initial=0)) + 1) + turns.repeat
    order = np.argsort(cells, kind="stable")
    found = np.empty(len(cells), np.int64)
    found[order] = _since_begin(cells[order], np.ones(len(cells), np.int64)) - 1
    return found


def _since_begin(cells: "NDArray[np.int64]", counts: "NDArray[np.int64]") -> "NDArray[np.int64]":
    """Return the sums of counts up to each row, from the first row of its cell on; equal cells stand together."""
    import numpy as np

    begins = np.flatnonzero(np.diff(cells, prepend=-1) != 0)
    before = np.cumsum(counts) - counts
    return before + counts - np.repeat(before[begins], np.diff(begins, append=len(cells)))


def _shared(cells: "NDArray[np.int64]", first: Sequence[Turn], second: Sequence[Turn]) -> "NDArray[np.bool_]":
    """Return which turns, all from each cell's first on, were asked with the same prompt in both arms."""
    import numpy as np

    pairs = list(zip(first, second, strict=True))
    known = np.array([bool(a.prompt_sha256 and b.prompt_sha256) for a, b in pairs], bool)
    equal = np.array([a.prompt_sha256 == b.prompt_sha256 for a, b in pairs], bool)
    differ = np.array([a.text != b.text for a, b in pairs], np.int64)
    # An imported turn's prompt is not known, but it holds the answers before it.
    same = np.where(known, equal, _since_begin(cells, differ) - differ == 0)
    return np.asarray(_since_begin(cells, 1 - same) == 0)
