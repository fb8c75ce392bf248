"""A run written as Spec-Bench answer files, one per method, for its own scripts to read (suites-and-scoring 10.1).

An entry of `accept_lengths` is what the sequence grew by: the prefill's token as an entry of its own, then every step.
Which entry is the prefill's, and whether a row is the baseline's, stands in fields that the original does not know, so
that importing is exact.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from draftboard.errors import UserError
from draftboard.foreign.answers import IS_BASELINE, PREFILL_EMITS
from draftboard.foreign.folders import file_names, write_files
from draftboard.plan import BASELINE
from draftboard.records import Cell, SampleRecord, Turn
from draftboard.store import StoredRun

__all__ = ["Exported", "entries", "export_spec_bench", "good_cells", "question_ids", "write_all"]

_LARGEST = 2**53
"""Whole-number ids beyond this do not survive JSON in every language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The files written and what is to be told of them."""

    paths: tuple[Path, ...]
    notes: tuple[str, ...]


def export_spec_bench(run: StoredRun, out: Path) -> Exported:
    """Write `<label>.jsonl` of every method into folder `out`: rows in ascending order of ids, failed cells left out.

    Raises UserError when nothing in the run ended without error, something is at `out`, or it cannot be written.
    """
    labels = [str(table["label"]) for table in run.plan["methods"]]
    names = file_names(labels)
    ids, notes = question_ids(run.samples)
    order = sorted(run.samples, key=lambda sample: (isinstance(ids[sample.key], str), ids[sample.key]))
    stamp = _stamp(run)
    baseline = run.plan.get("baseline", BASELINE)
    contents: dict[str, bytes] = {}
    for label in labels:
        cells = good_cells(run, label)
        left = sum(cell.method == label for cell in run.cells) - sum(len(found) for found in cells.values())
        if left:
            notes.append(f"{label}: {left} cell(s) that failed, were skipped or measure no decoding are left out")
        rows = [
            _row(
                label,
                ids[sample.key],
                sample,
                cells[sample.key],
                stamp,
                is_baseline=label == baseline if baseline else None,
            )
            for sample in order
            if sample.key in cells
        ]
        bare = sum(not turn.steps for found in cells.values() for cell in found for turn in cell.turns)
        if bare:
            notes.append(f"{label}: {bare} turn(s) without recorded steps have no accept_lengths")
        if rows:
            contents[f"{names[label]}.jsonl"] = b"".join(rows)
        else:
            notes.append(f"{label}: no cell ended without error, so there is no file")
    return write_all(run, out, contents, notes)


def write_all(run: StoredRun, out: Path, contents: Mapping[str, bytes], notes: Iterable[str]) -> Exported:
    """Make folder `out` with the files of an export, by their paths inside it; whole or not at all.

    Raises UserError if there are none, because no cell of the run is good, and if something is at `out` already.
    """
    if not contents:
        raise UserError("no cell of this run ended without error", where=str(run.path))
    write_files(out, contents)
    return Exported(paths=tuple(out / name for name in contents), notes=tuple(notes))


def good_cells(run: StoredRun, label: str) -> dict[str, list[Cell]]:
    """Return a method's cells that ended without error and measure decoding, in order of rounds, by sample."""
    found: dict[str, list[Cell]] = {}
    untimed = {sample.key for sample in run.samples if not sample.timed}
    for cell in sorted(run.cells, key=lambda cell: cell.repeat):
        if cell.method == label and cell.status == "ok" and cell.turns and cell.sample not in untimed:
            found.setdefault(cell.sample, []).append(cell)
    return found


def entries(turn: Turn) -> list[int]:
    """Return what the sequence grew by, the prefill's token first; steps that kept nothing are dropped."""
    return [1] * turn.prefill_emits + [kept for kept in turn.steps.get("kept", ()) if kept]


def question_ids(samples: Sequence[SampleRecord]) -> tuple[dict[str, int | str], list[str]]:
    """Return each sample's id in a file: whole numbers as in Spec-Bench, or else text for all, which is told."""
    several = len({sample.suite for sample in samples}) > 1
    plain = [sample.sample_id for sample in samples]
    if all(_is_whole(text) for text in plain) and len(set(plain)) == len(plain):
        return {sample.key: int(sample.sample_id) for sample in samples}, []
    note = "question ids are text, since the run's are not whole numbers of their own; some tools expect numbers"
    return {sample.key: sample.key if several else sample.sample_id for sample in samples}, [note]


def _is_whole(text: str) -> bool:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_LARGEST))):
        return False
    return str(int(text)) == text and int(text) < _LARGEST


def _row(
    label: str,
    question: int | str,
    sample: SampleRecord,
    cells: Iterable[Cell],
    stamp: float,
    *,
    is_baseline: bool | None,
) -> bytes:
    """`is_baseline` is None where the run has no baseline."""
    row: dict[str, Any] = {
        "question_id": question,
        "category": sample.category,
        "answer_id": sha256(f"{label}\0{sample.key}".encode()).hexdigest()[:22],
        "model_id": label,
        "choices": [_choice(cell) for cell in cells],
        "tstamp": stamp,
    }
    if is_baseline is not None:
        row[IS_BASELINE] = is_baseline
    return (json.dumps(row, allow_nan=False) + "\n").encode("ascii")


def _choice(cell: Cell) -> dict[str, Any]:
    pieces = [entries(turn) for turn in cell.turns]
    choice: dict[str, Any] = {
        "index": cell.repeat,
        "turns": [turn.text for turn in cell.turns],
        "decoding_steps": [len(piece) for piece in pieces],
        "new_tokens": [turn.n_tokens for turn in cell.turns],
        "wall_time": [turn.end_ns / 1e9 for turn in cell.turns],
        "accept_lengths": [entry for piece in pieces for entry in piece],
        PREFILL_EMITS: [turn.prefill_emits for turn in cell.turns],
    }
    if not all(turn.steps or turn.prefill_emits for turn in cell.turns):
        del choice["accept_lengths"], choice["decoding_steps"], choice[PREFILL_EMITS]
    return choice


def _stamp(run: StoredRun) -> float:
    """When the run's machine was recorded: the same for every export of a run."""
    load = run.environment.get("load")
    time = load.get("time_s") if isinstance(load, dict) else None
    return float(time) if isinstance(time, int | float) else 0.0
