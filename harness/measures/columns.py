"""Turns and cells as columns: what dozens of figures need of every turn is read off it once, and added up as arrays.

NaN stands for what was not recorded; every sum and figure that rests on it is then unknown too. Whole numbers are kept
as float64, which is exact up to 2^53: a hundred days in nanoseconds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from draftboard.measures.turns import TurnFacts
from draftboard.records import Cell, Turn
from draftboard.statistics import Coded, Floats

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]
    Truth = NDArray[np.bool_]
    Rows = Whole | Truth

__all__ = ["Cells", "Listed", "Steps", "Turns", "distinct", "shared_tables"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """The steps of turns, one after the other."""

    owners: "Whole"
    """The turn's place in its table."""
    drafted: Floats
    nodes: Floats
    accepted: Floats
    kept: Floats
    end_ns: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Turns:
    """Turns that ended well, a column each for what figures read; as in `TurnFacts` and `StepSums`."""

    names: Sequence[str]
    """Keys of samples; tables that are held against each other share it."""
    sample: "Whole"
    """Each turn's sample, as its place in `names`."""
    repeat: "Whole"
    records: "NDArray[np.object_]"
    """The turns themselves."""
    steps: Steps
    imported: "Truth"
    stepped: "Truth"
    """Whether the steps are on record."""
    ends_known: "Truth"
    """Whether the times of the steps' ends are."""
    ended: "Truth"
    """Whether the answer closes with an end-of-sequence id."""
    emits: Floats
    prompt_tokens: Floats
    text_tokens: Floats
    tokens: Floats
    prefill_ns: Floats
    first_ns: Floats
    end_ns: Floats
    cpu_ns: Floats
    first_tokens: Floats
    count: Floats
    kept: Floats
    entries: Floats
    accepted: Floats
    accepted_raw: Floats
    drafted: Floats
    drafting: Floats
    nodes: Floats
    draft_ns: Floats
    verify_ns: Floats
    other_ns: Floats

    @classmethod
    def of(cls, turns: "Listed") -> "Turns":
        """Return the table of these turns; itself if it is one."""
        return turns if isinstance(turns, Turns) else shared_tables(turns)[0]

    @classmethod
    def of_cells(cls, cells: Iterable[Cell], places: Mapping[str, int], names: Sequence[str]) -> "Turns":
        """Return the turns of the cells that ended well. `places` are those of `names`."""
        good = [cell for cell in cells if cell.status == "ok"]
        return _table(
            names,
            [places[cell.sample] for cell in good for _ in cell.turns],
            [cell.repeat for cell in good for _ in cell.turns],
            [turn for cell in good for turn in cell.turns],
        )

    def __len__(self) -> int:
        return len(self.sample)

    @property
    def samples(self) -> Coded:
        """The turns' samples by name."""
        return Coded(self.names, self.sample)

    @property
    def n(self) -> int:
        """Number of samples."""
        return distinct(self.sample)

    @property
    def seconds(self) -> Floats:
        """End-to-end time."""
        return self.end_ns / 1e9

    @property
    def total_ns(self) -> Floats:
        """Time of the steps with all their parts."""
        return self.draft_ns + self.verify_ns + self.other_ns

    @property
    def decode(self) -> tuple[Floats, Floats]:
        """Tokens after the first emission and the seconds after it."""
        import numpy as np

        some = (self.tokens > self.first_tokens) & ~np.isnan(self.first_ns)
        tokens = np.where(some, self.tokens - self.first_tokens, np.nan)
        return tokens, np.where(some, (self.end_ns - self.first_ns) / 1e9, np.nan)

    @property
    def ends_at_once(self) -> "Truth":
        """Which turns are known to end with their first emission."""
        import numpy as np

        return np.asarray((self.tokens <= self.first_tokens) & ~np.isnan(self.first_ns))

    @property
    def prefill_unknown(self) -> "Truth":
        """Which turns' entries may hold the prefill's token: an imported file rarely says."""
        import numpy as np

        return np.asarray(self.imported & (self.emits == 0))

    def take(self, rows: "Rows") -> "Turns":
        """Return these rows as a table: their places, or which of all."""
        import numpy as np

        places = np.flatnonzero(rows) if rows.dtype == bool else rows
        count = np.bincount(self.steps.owners, minlength=len(self))
        begins = np.cumsum(count) - count
        taken = count[places]
        owners = np.repeat(np.arange(len(places)), taken)
        inner = np.arange(len(owners)) - np.repeat(np.cumsum(taken) - taken, taken)
        at = np.repeat(begins[places], taken) + inner
        steps = {name: getattr(self.steps, name)[at] for name in _STEPS}
        return replace(
            self,
            steps=Steps(owners=owners, **steps),
            **{name: getattr(self, name)[places] for name in _COLUMNS},
        )


Listed = Turns | Sequence[TurnFacts]
"""Turns in either form: figures take both."""

_STEPS = ("drafted", "nodes", "accepted", "kept", "end_ns")
_COLUMNS = tuple(field.name for field in fields(Turns) if field.name not in ("names", "steps"))


def shared_tables(*arms: Listed) -> tuple[Turns, ...]:
    """Return a table of each, with names that they share; those that are tables already must share theirs."""
    done = [arm for arm in arms if isinstance(arm, Turns)]
    if len(done) == len(arms):
        return tuple(done)
    lists = [arm for arm in arms if not isinstance(arm, Turns)]
    if done:
        raise ValueError("tables and lists of turns have no names in common")
    places: dict[str, int] = {}
    coded = [[places.setdefault(turn.sample, len(places)) for turn in turns] for turns in lists]
    names = tuple(places)
    return tuple(
        _table(names, codes, [turn.repeat for turn in turns], [turn.turn for turn in turns])
        for codes, turns in zip(coded, lists, strict=True)
    )


def distinct(places: "Whole") -> int:
    """Return how many different places there are."""
    import numpy as np

    return int(np.count_nonzero(np.bincount(places)))


def _table(names: Sequence[str], sample: Sequence[int], repeat: Sequence[int], turns: Sequence[Turn]) -> Turns:
    import numpy as np

    records = np.empty(len(turns), object)
    records[:] = turns
    columns = [turn.steps for turn in turns]
    recorded = np.array([bool(each) for each in columns], bool)
    tokens = _numbers([len(turn.token_ids) if turn.tokens is None else turn.tokens for turn in turns])
    emits = _numbers([turn.prefill_emits for turn in turns])
    stepped = recorded | (tokens <= emits)
    lengths = np.array([len(each["kept"]) if each else 0 for each in columns], np.int64)
    owners = np.repeat(np.arange(len(turns)), lengths)
    shapes = {tuple(each) for each in columns}
    known: dict[str, Truth] = {}
    flat: dict[str, Floats] = {}
    for name in (*_STEPS, "draft_ns", "verify_ns", "other_ns"):
        flat[name], there = _flat(columns, shapes, name, len(owners))
        known[name] = stepped & (there | ~recorded)

    def total(values: Floats, there: "Truth") -> Floats:
        return np.where(there, np.bincount(owners, values, minlength=len(turns)), np.nan)

    kept, accepted = flat["kept"], flat["accepted"]
    imported = np.array([turn.tokens is not None for turn in turns], bool)
    return Turns(
        names=names,
        sample=np.array(sample, np.int64),
        repeat=np.array(repeat, np.int64),
        records=records,
        steps=Steps(owners=owners, **{name: flat[name] for name in _STEPS}),
        imported=imported,
        stepped=stepped,
        ends_known=known["end_ns"],
        ended=np.array([turn.finish == "eos" for turn in turns], bool),
        emits=emits,
        prompt_tokens=_numbers([turn.prompt_tokens for turn in turns]),
        text_tokens=_numbers([turn.text_tokens for turn in turns]),
        tokens=tokens,
        prefill_ns=_numbers([turn.prefill_ns for turn in turns]),
        first_ns=_numbers([turn.first_ns for turn in turns]),
        end_ns=_numbers([turn.end_ns for turn in turns]),
        cpu_ns=_numbers([turn.cpu_ns for turn in turns]),
        first_tokens=_first(emits, stepped, owners, kept),
        count=np.where(stepped, lengths, np.nan),
        kept=total(kept, stepped),
        entries=total(1.0 * (kept != 0), stepped),
        accepted=total(np.minimum(accepted, kept), stepped),
        accepted_raw=total(accepted, stepped & ~imported),
        drafted=total(flat["drafted"], known["drafted"]),
        drafting=total(1.0 * (flat["drafted"] != 0), known["drafted"]),
        nodes=total(flat["nodes"], known["nodes"]),
        draft_ns=total(flat["draft_ns"], known["draft_ns"]),
        verify_ns=total(flat["verify_ns"], known["verify_ns"]),
        other_ns=total(flat["other_ns"], known["other_ns"]),
    )


def _numbers(values: Sequence[float | None]) -> Floats:
    """Return the numbers as a column, NaN for None."""
    import numpy as np

    return np.array(values, np.float64)


def _flat(
    columns: Sequence[dict[str, Any]], shapes: Iterable[tuple[str, ...]], name: str, length: int
) -> "tuple[Floats, Truth]":
    """Return one column of all steps, and which turns have it. `shapes`: the names that some turn has."""
    import numpy as np

    there = np.ones(len(columns), bool)
    parts: Iterable[Sequence[float]] = map(itemgetter(name), columns)
    if not all(name in shape for shape in shapes):
        there = np.array([name in each for each in columns], bool)
        pairs = zip(columns, there, strict=True)
        parts = (each[name] if has else [np.nan] * len(each["kept"]) for each, has in pairs if each)
    return np.fromiter(chain.from_iterable(parts), np.float64, length), there


def _first(emits: Floats, stepped: "Truth", owners: "Whole", kept: Floats) -> Floats:
    """Return the tokens of each first emission: the prefill's own, or those of the first step that kept any."""
    import numpy as np

    found = np.where(stepped, 0.0, np.nan)
    some = np.flatnonzero(kept != 0)
    turns, places = np.unique(owners[some], return_index=True)
    found[turns] = kept[some[places]]
    return np.where(emits != 0, emits, found)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Cells of any status, a column each for what figures read."""

    sample: "Whole"
    repeat: "Whole"
    records: "NDArray[np.object_]"
    ok: "Truth"
    failed: "Truth"
    skipped: "Truth"
    imported: "Truth"
    peak_rss_bytes: Floats
    peak_device_bytes: Floats
    energy_j: Floats
    end_ns: Floats
    """Of all turns, as `tokens`; NaN without a reading of energy."""
    tokens: Floats

    @classmethod
    def of(cls, cells: "Cells | Sequence[Cell]", places: Mapping[str, int] | None = None) -> "Cells":
        """Return the table of these cells; itself if it is one. `places`: of each sample; made up without it."""
        import numpy as np

        if isinstance(cells, Cells):
            return cells
        known = places if places is not None else {key: at for at, key in enumerate({c.sample: 0 for c in cells})}
        records = np.empty(len(cells), object)
        records[:] = cells
        status = [cell.status for cell in cells]
        return cls(
            sample=np.array([known[cell.sample] for cell in cells], np.int64),
            repeat=np.array([cell.repeat for cell in cells], np.int64),
            records=records,
            ok=np.array([each == "ok" for each in status], bool),
            failed=np.array([each == "failed" for each in status], bool),
            skipped=np.array([each == "skipped" for each in status], bool),
            imported=np.array([any(turn.tokens is not None for turn in cell.turns) for cell in cells], bool),
            peak_rss_bytes=_numbers([cell.peak_rss_bytes for cell in cells]),
            peak_device_bytes=_numbers([cell.peak_device_bytes for cell in cells]),
            energy_j=_numbers([cell.energy_j for cell in cells]),
            end_ns=_summed(cells, lambda turn: turn.end_ns),
            tokens=_summed(cells, lambda turn: turn.n_tokens),
        )

    def __len__(self) -> int:
        return len(self.sample)

    def take(self, rows: "Rows") -> "Cells":
        """Return these rows as a table."""
        return Cells(**{name: getattr(self, name)[rows] for name in _CELLS})


def _summed(cells: Sequence[Cell], read: Callable[[Turn], int]) -> Floats:
    return _numbers([None if cell.energy_j is None else sum(map(read, cell.turns)) for cell in cells])


_CELLS = tuple(field.name for field in fields(Cells))
