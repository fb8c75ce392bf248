"""A stored run as tables of its cells and turns, a method each, and what all methods of it share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from draftboard.measures import Cells, Pairing, Pairs, Turns, pair_up
from draftboard.plan import BASELINE
from draftboard.records import Cell
from draftboard.scored import domain_labels
from draftboard.store import StoredRun

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MethodTables", "Part", "RunTables", "unsplit_times"]

_UNSPLIT = "the device was not synchronised within steps: run with --profile"


def unsplit_times(run: StoredRun) -> str:
    """Return why the parts of a step's time are not known, empty where they are."""
    device = str((run.plan.get("resolved") or {}).get("device") or "")
    return _UNSPLIT if device.startswith("cuda") and not run.plan.get("profile") else ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MethodTables:
    """One method's cells and turns."""

    records: Sequence[Cell]
    cells: Cells
    turns: Turns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """One method on some timed samples, with the baseline beside it."""

    cells: Cells
    turns: Turns
    pairs: Pairs
    baseline_cells: Cells
    baseline_turns: Turns
    missing: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunTables:
    """What all methods of a run share."""

    run: StoredRun
    imported: bool
    labels: dict[str, str]
    """Sample key → domain."""
    names: tuple[str, ...]
    """Sample keys; tables hold each one's place here."""
    domains: "dict[str, NDArray[np.bool_]]"
    """By place, which samples are of each domain."""
    timed: "NDArray[np.bool_]"
    """By place, whether speed and acceptance are measured on the sample."""
    baseline: str | None
    methods: dict[str, MethodTables]
    """By label, of the plan's methods and the baseline."""
    wanted: "NDArray[np.int64]"
    """Sample and round (as `_keys` makes them) of the timed cells that a complete method has."""
    width: int
    rounds: int
    """Rounds that were run, in part or whole."""
    unsplit: str
    """Why the parts of a step's time are not true; empty where they are."""
    known: "dict[bytes, tuple[Cells, Turns]]" = field(default_factory=dict)
    """The baseline on the samples asked for, for every method asks for the same."""

    @classmethod
    def of(cls, run: StoredRun) -> "RunTables":
        """Read every cell and turn once."""
        import numpy as np

        baseline = run.plan.get("baseline", BASELINE)
        labels = domain_labels(run.samples)
        names = tuple(labels)
        places = {key: place for place, key in enumerate(names)}
        timed_keys = {record.key for record in run.samples if record.timed}
        timed = np.array([key in timed_keys for key in names], bool)
        records: dict[str | None, list[Cell]] = {table["label"]: [] for table in run.plan["methods"]} | {baseline: []}
        for cell in run.cells:
            if cell.method in records and cell.sample in labels:
                records[cell.method].append(cell)
        methods = {
            str(label): MethodTables(
                records=cells, cells=Cells.of(cells, places), turns=Turns.of_cells(cells, places, names)
            )
            for label, cells in records.items()
        }
        repeats = int(run.plan["repeats"])
        rounds = 1 + max((cell.repeat for cell in run.cells), default=0)
        width = max(rounds, repeats)
        plain = methods[str(baseline)].cells
        if "imported" in run.plan and len(plain):
            # The union of all files' questions is nobody's suite; what the baseline answers is what can be compared.
            wanted = np.unique(_keys(plain.take(timed[plain.sample]), width))
        else:
            wanted = (np.flatnonzero(timed)[:, None] * width + np.arange(repeats)).ravel()
        return cls(
            run=run,
            imported="imported" in run.plan,
            labels=labels,
            names=names,
            domains={
                domain: np.array([label == domain for label in labels.values()], bool)
                for domain in dict.fromkeys(labels.values())
            },
            timed=timed,
            baseline=baseline,
            methods=methods,
            wanted=wanted,
            width=width,
            rounds=rounds,
            unsplit=unsplit_times(run),
        )

    @property
    def plain(self) -> MethodTables:
        """The baseline's tables; empty where it did not run."""
        return self.methods[str(self.baseline)]

    @property
    def no_pair(self) -> str:
        """Why a method without pairs has none."""
        if len(self.plain.cells):
            return "no sample could be paired with the baseline"
        model = str(self.run.plan["model"] or "")
        return f"no {self.baseline or BASELINE} run" + (f" for {model}" if model else "")

    def pairing(self, label: str) -> Pairing:
        """Pair a method's turns with the baseline's."""
        return pair_up(self.plain.turns, self.methods[label].turns)

    def part(self, label: str, pairs: Pairs, inside: "NDArray[np.bool_]") -> Part:
        """Return what there is of the method on the timed ones of these samples."""
        chosen = inside & self.timed
        mine, (base_cells, base_turns) = self.methods[label], self._plain_on(chosen)
        cells = mine.cells.take(chosen[mine.cells.sample])
        return Part(
            cells=cells,
            turns=mine.turns.take(chosen[mine.turns.sample]),
            pairs=pairs.take(chosen[pairs.method.sample]),
            baseline_cells=base_cells,
            baseline_turns=base_turns,
            missing=self._missing(cells, chosen),
        )

    def _plain_on(self, chosen: "NDArray[np.bool_]") -> tuple[Cells, Turns]:
        key, plain = chosen.tobytes(), self.plain
        if key not in self.known:
            cells = plain.cells.take(chosen[plain.cells.sample])
            self.known[key] = cells, plain.turns.take(chosen[plain.turns.sample])
        return self.known[key]

    def _missing(self, cells: Cells, chosen: "NDArray[np.bool_]") -> str:
        """Say what keeps a method from being ranked; skipped prompts are skipped in every method and do not count."""
        import numpy as np

        wanted = self.wanted[chosen[self.wanted // self.width]]
        failed = int(cells.failed.sum())
        if failed:
            return f"{failed} of {max(len(wanted), len(cells))} cells failed"
        lacking = len(wanted) - int(np.isin(wanted, _keys(cells, self.width)).sum())
        if lacking:
            verb = "are not in the imported file" if self.imported else "have not run"
            return f"{lacking} of {len(wanted)} cells {verb}"
        return ""


def _keys(cells: Cells, width: int) -> "NDArray[np.int64]":
    """Return sample and round of each cell as one number."""
    return cells.sample * width + cells.repeat
