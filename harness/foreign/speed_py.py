"""What Spec-Bench's own speed script prints for two answer files, with what it does not say (suites-and-scoring 2.6).

The script reads every line as it stands: doubled rows count as often as they stand, `ERROR` rows count, and rows that
only one file has count all the same. Its numbers are given as it gives them; beside them stands what the same
arithmetic gives on the rows that both files have, the last of each question, without failed ones.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from draftboard.foreign.answers import AnswerFile, AnswerRow, read_answers
from draftboard.measures.spec_bench import OVERALL, TASKS, SpecBenchSpeed, SpeedRow, speed_of
from draftboard.results_file import finite
from draftboard.suites.spec_bench import DOMAINS

__all__ = ["SpeedPy", "TaskSpeed", "speed_py"]

CountTokens = Callable[[str], int]
_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpeed:
    """One task of the script, or `overall`."""

    original: SpecBenchSpeed
    """Its four numbers as it gives them; nan for a task without rows."""
    matched: SpecBenchSpeed
    """The same arithmetic on the matched rows."""
    pooled_speedup: float
    """Of the matched rows: seconds per token, totals over totals, both sides counted by `new_tokens` (S_pool)."""
    rows: tuple[int, int, int]
    """Rows of the method and of the baseline as the script counts them, and matched ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedPy:
    """Every task by name, and what is wrong with the files."""

    tasks: dict[str, TaskSpeed]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON data, nan as null."""
        return {
            "tasks": {
                name: {
                    "rows": dict(zip(("method", "baseline", "matched"), task.rows, strict=True)),
                    "original": finite(asdict(task.original)),
                    "matched": finite({**asdict(task.matched), "pooled_speedup": task.pooled_speedup}),
                }
                for name, task in self.tasks.items()
            },
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """One file: its rows as the script sees them, and the last good one of each question."""

    file: AnswerFile
    rows: tuple[SpeedRow, ...]
    last: Mapping[str, SpeedRow]


def speed_py(method: Path, baseline: Path, count_tokens: CountTokens) -> SpeedPy:
    """Compare two answer files. `count_tokens` is the length of the tokenizer's `input_ids` of a text.

    Raises UserError for files that are not answer files.
    """
    mine, theirs = _side(method, None), _side(baseline, count_tokens)
    shared = [question for question in mine.last if question in theirs.last]
    pairs = [(mine.last[question], theirs.last[question]) for question in shared]
    tasks = {name: _task(name, mine.rows, theirs.rows, pairs) for name in (*TASKS, OVERALL)}
    return SpeedPy(tasks=tasks, notes=(*_notes(mine), *_notes(theirs), *_unmatched(mine, theirs, len(shared))))


def _side(path: Path, count_tokens: CountTokens | None) -> _Side:
    file = read_answers(path)
    texts = dict.fromkeys(turn.text for row in file.rows for turn in row.choices[0].turns)
    counts = {text: count_tokens(text) for text in texts} if count_tokens is not None else {}
    made = [(row, _speed_row(row, counts)) for row in file.rows if row.choices[0].numbers]
    return _Side(
        file=file,
        rows=tuple(speed for _, speed in made),
        last={row.question_id: speed for row, speed in made if not row.choices[0].failure},
    )


def _speed_row(row: AnswerRow, counts: Mapping[str, int]) -> SpeedRow:
    choice = row.choices[0]
    return SpeedRow(
        category=row.category,
        new_tokens=[turn.new_tokens for turn in choice.turns],
        wall_time_s=[turn.wall_time_s for turn in choice.turns],
        text_tokens=[counts[turn.text] for turn in choice.turns] if counts else None,
        accept_lengths=choice.accept_lengths,
    )


def _task(
    name: str, mine: Sequence[SpeedRow], theirs: Sequence[SpeedRow], pairs: Sequence[tuple[SpeedRow, SpeedRow]]
) -> TaskSpeed:
    def inside(row: SpeedRow) -> bool:
        return name == OVERALL or row.category in DOMAINS[name]

    own, base = [row for row in mine if inside(row)], [row for row in theirs if inside(row)]
    both = [pair for pair in pairs if inside(pair[0])]
    return TaskSpeed(
        original=speed_of(own, base),
        matched=speed_of([pair[0] for pair in both], [pair[1] for pair in both]),
        pooled_speedup=_pooled(both),
        rows=(len(own), len(base), len(both)),
    )


def _pooled(pairs: Sequence[tuple[SpeedRow, SpeedRow]]) -> float:
    own, base = ([pair[side] for pair in pairs] for side in (0, 1))
    own_s, base_s = (sum(sum(row.wall_time_s) for row in rows) for rows in (own, base))
    own_n, base_n = (sum(sum(row.new_tokens) for row in rows) for rows in (own, base))
    return (base_s / base_n) / (own_s / own_n) if own_s and base_s and own_n and base_n else math.nan


def _notes(side: _Side) -> list[str]:
    name, rows = side.file.file.name, side.file.rows
    notes = [*side.file.file.notes]
    doubled = len(rows) - len({row.question_id for row in rows})
    errors = sum(bool(row.choices[0].failure) and row.choices[0].numbers for row in rows)
    bare = sum(not row.choices[0].numbers for row in rows)
    still = sum(not sum(row.wall_time_s) for row in side.rows)
    models = dict.fromkeys(row.model_id for row in rows)
    if len(models) > 1:
        notes.append(f"{name}: rows of {len(models)} models ({', '.join(models)}), which the script takes together")
    if doubled:
        notes.append(f"{name}: {doubled} doubled row(s), which the script counts as often as they stand")
    if errors:
        notes.append(f"{name}: {errors} row(s) with ERROR and the numbers of the turn before, which the script counts")
    if bare:
        notes.append(f"{name}: {bare} row(s) without numbers, at which the script stops; left out here")
    if still:
        notes.append(f"{name}: {still} row(s) without time, at which the script stops")
    return notes


def _unmatched(mine: _Side, theirs: _Side, shared: int) -> list[str]:
    notes = []
    for side, other in ((mine, theirs), (theirs, mine)):
        alone = [question for question in side.last if question not in other.last]
        if alone:
            some = ", ".join([*alone[:_NAMED], *(["…"] if len(alone) > _NAMED else [])])
            notes.append(
                f"{side.file.file.name}: {len(alone)} question(s) without a good row in {other.file.file.name} "
                f"({some}); the script counts them, the matched numbers rest on {shared}"
            )
    return notes
