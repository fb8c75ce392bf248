"""Answer files as Spec-Bench's evaluation writes them, one row a question (suites-and-scoring 2.5 and 10.1).

A row keeps what its file says, checked for form but not for sense: what a method counts oddly (F9 of 2.7) is a
warning that names the habit, because the figures of the file rest on it and cannot be put right from outside.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import msgspec

from draftboard.errors import UserError
from draftboard.foreign.reading import ForeignFile, last_of_each, listed, plain, read_rows, unsurrogated

__all__ = [
    "IS_BASELINE",
    "PREFILL_EMITS",
    "AnswerFile",
    "AnswerRow",
    "AnswerTurn",
    "Choice",
    "MethodAnswers",
    "by_method",
    "cut",
    "read_answers",
]

PREFILL_EMITS = "prefill_emits"
"""Field of a choice that our own exports add: tokens of each turn's prefill, which stand before its steps."""

IS_BASELINE = "is_baseline"
"""Field of a row that our own exports add: whether its method is the one that the others are compared with."""

_ERROR = "ERROR"
_MOST = 10**9
"""More tokens, steps or seconds than this were never measured in one turn."""
_MOST_ROUNDS = 1000
_NAMED = 5


class _ChoiceShape(TypedDict):
    turns: list[str]
    new_tokens: list[int | float | None]
    wall_time: list[float | None]
    decoding_steps: NotRequired[list[int | None] | None]
    accept_lengths: NotRequired[list[int | float] | None]
    prefill_emits: NotRequired[list[int] | None]


class _RowShape(TypedDict):
    question_id: int | str
    choices: list[_ChoiceShape]
    category: NotRequired[str | None]
    model_id: NotRequired[str | None]
    is_baseline: NotRequired[bool | None]


_KNOWN = frozenset(_RowShape.__annotations__)
_KNOWN_CHOICE = frozenset(_ChoiceShape.__annotations__) | {"index"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTurn:
    """One turn of a row."""

    text: str
    new_tokens: int
    wall_time_s: float
    entries: tuple[int, ...] | None
    """Tokens of each entry of `accept_lengths` that belongs to this turn; None where the file does not tell."""
    prefill_emits: int = 0
    """How many tokens at the start of `entries` came from the prefill; 0 unless the file says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One answer to a question; more than one are repeats. `failure` says why its numbers mean nothing."""

    turns: tuple[AnswerTurn, ...]
    accept_lengths: tuple[int, ...] = ()
    """As they stand in the file, over all turns."""
    failure: str = ""
    numbers: bool = True
    """False where a token count or a time is missing."""
    oddities: tuple[str, ...] = ()
    """Habits that its counts show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """One line of an answer file."""

    model_id: str
    question_id: str
    whole: bool
    """Whether the id is a whole number in the file."""
    category: str
    choices: tuple[Choice, ...]
    indices: tuple[int, ...] = (0,)
    """The number that each choice bears; where the file has none that tell them apart, its place."""
    is_baseline: bool | None = None
    """What the row says of its method's part; None unless an export of ours says something."""
    meta: dict[str, Any] = field(default_factory=dict)
    """Fields that Spec-Bench's form does not have, its time stamp and its answer id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFile:
    """All rows of a file, doubled ones included, in its order."""

    file: ForeignFile
    rows: tuple[AnswerRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodAnswers:
    """The rows of one method, the last of each question."""

    label: str
    rows: dict[str, AnswerRow]
    """By question id."""
    duplicates: int
    notes: tuple[str, ...]

    def rounds(self, row: AnswerRow) -> tuple[int, ...]:
        """Return the round of each choice of a row: its number, if the method's numbers begin at 0 as Spec-Bench's do.

        A round that failed leaves a gap in the numbers of its question, and the others keep theirs.
        """
        counted = min(min(other.indices) for other in self.rows.values()) == 0
        return row.indices if counted else tuple(range(len(row.choices)))

    @property
    def marks(self) -> frozenset[bool | None]:
        """What the rows say of the method's being the baseline; more than one entry if they disagree."""
        return frozenset(row.is_baseline for row in self.rows.values())

    @property
    def failed(self) -> int:
        """Answers that failed, all repeats counted."""
        return sum(bool(choice.failure) for row in self.rows.values() for choice in row.choices)

    @property
    def is_plain(self) -> bool:
        """Whether every step of every answer gave one token, which is what plain decoding is."""
        choices = [choice for row in self.rows.values() for choice in row.choices if not choice.failure]
        turns = [turn for choice in choices for turn in choice.turns]
        return any(turn.entries for turn in turns) and all(
            turn.entries is not None and set(turn.entries) <= {1} for turn in turns
        )


def read_answers(path: Path) -> AnswerFile:
    """Read an answer file. Raises UserError that names every row that is not of the form, with file and line."""
    file = read_rows(path)
    rows: list[AnswerRow] = []
    problems: list[str] = []
    for line, value in file.rows:
        try:
            rows.append(_row(value, stem=unsurrogated(path.stem)))
        except (msgspec.ValidationError, ValueError) as error:
            problems.append(f"{file.place(line)}: {error}")
    if problems:
        raise UserError(
            f"{len(problems)} row(s) that are not answers as Spec-Bench writes them",
            where=str(path),
            problems=listed(problems),
            advice="docs/import-export.md shows a row with all fields that are needed.",
        )
    return AnswerFile(file=file, rows=tuple(rows))


def by_method(files: Iterable[AnswerFile]) -> list[MethodAnswers]:
    """Return the answers of each method (model id) in order of appearance.

    A method's rows may come from several files, if no two of them answer the same question. Raises UserError if two do.
    """
    found: dict[str, dict[Path, list[AnswerRow]]] = {}
    for answers in files:
        for row in answers.rows:
            found.setdefault(row.model_id, {}).setdefault(answers.file.path, []).append(row)
    return [_method(label, parts) for label, parts in found.items()]


def _method(label: str, parts: Mapping[Path, list[AnswerRow]]) -> MethodAnswers:
    rows: dict[str, AnswerRow] = {}
    origin: dict[str, Path] = {}
    duplicates = 0
    clashes: list[str] = []
    for path, mine in parts.items():
        last, doubled = last_of_each(mine, lambda row: row.question_id)
        duplicates += doubled
        for row in last:
            other = origin.setdefault(row.question_id, path)
            if other != path:
                clashes.append(f"question {row.question_id}: in {other} and in {path}")
            rows[row.question_id] = row
    if clashes:
        raise UserError(
            f"several files answer the same questions as {label}",
            problems=tuple(clashes[:_NAMED]),
            advice="Import them into separate runs, or give the methods different `model_id`s.",
        )
    notes = [f"{label}: {duplicates} doubled row(s); the last of each question counts"] if duplicates else []
    counts: dict[str, int] = {}
    for row in rows.values():
        for oddity in dict.fromkeys(text for choice in row.choices for text in choice.oddities):
            counts[oddity] = counts.get(oddity, 0) + 1
    notes += [f"{label}: {count} of {len(rows)} rows: {text}" for text, count in counts.items()]
    return MethodAnswers(label=label, rows=rows, duplicates=duplicates, notes=tuple(notes))


def _row(value: object, *, stem: str) -> AnswerRow:
    if not isinstance(value, dict):
        raise ValueError("a row has to be an object")
    shape = msgspec.convert(value, _RowShape)
    label = " ".join(unsurrogated(shape.get("model_id") or "").split()) or stem
    question = shape["question_id"]
    if not shape["choices"]:
        raise ValueError("`choices` is empty")
    choices = tuple(_choice(choice) for choice in shape["choices"])
    turns = {len(choice.turns) for choice in choices}
    if len(turns) > 1:
        raise ValueError("its choices have different numbers of turns")
    meta = {key: plain(inner) for key, inner in value.items() if key not in _KNOWN}
    extra = [
        {key: plain(inner) for key, inner in choice.items() if key not in _KNOWN_CHOICE} for choice in value["choices"]
    ]
    return AnswerRow(
        model_id=label,
        question_id=unsurrogated(str(question)),
        whole=isinstance(question, int),
        category=unsurrogated(shape.get("category") or ""),
        choices=choices,
        is_baseline=shape.get("is_baseline"),
        indices=_indices([choice.get("index") for choice in value["choices"]]),
        meta={**meta, "choices": extra} if any(extra) else meta,
    )


def _indices(given: Sequence[object]) -> tuple[int, ...]:
    whole = [index for index in given if isinstance(index, int) and not isinstance(index, bool)]
    usable = len(set(whole)) == len(given) and all(0 <= index < _MOST_ROUNDS for index in whole)
    return tuple(whole) if usable else tuple(range(len(given)))


def _choice(shape: _ChoiceShape) -> Choice:
    texts = [unsurrogated(text) for text in shape["turns"]]
    if not texts:
        raise ValueError("`turns` is empty")
    steps = shape.get("decoding_steps")
    emits = shape.get("prefill_emits")
    for name, column in (
        ("new_tokens", shape["new_tokens"]),
        ("wall_time", shape["wall_time"]),
        ("decoding_steps", steps),
        (PREFILL_EMITS, emits),
    ):
        if column is not None and len(column) != len(texts):
            raise ValueError(f"`{name}` has {len(column)} entries for {len(texts)} turns")
    tokens = [_count(value, "new_tokens") for value in shape["new_tokens"]]
    seconds = [_seconds(value) for value in shape["wall_time"]]
    numbers = None not in tokens and None not in seconds
    failure = "" if numbers else "numbers are missing"
    if _ERROR in texts:
        failure = "the answer is ERROR, beside the numbers of the turn before"
    counts = [count or 0 for count in tokens]
    entries = _entries(shape.get("accept_lengths"))
    pieces, oddities = cut(entries, steps, counts)
    turns = tuple(
        AnswerTurn(
            text=text,
            new_tokens=count,
            wall_time_s=time or 0.0,
            entries=piece,
            prefill_emits=emit if piece else 0,
        )
        for text, count, time, piece, emit in zip(
            texts, counts, seconds, pieces, emits or [0] * len(texts), strict=True
        )
    )
    if not failure:
        for turn in turns:
            _check_prefill(turn)
    return Choice(
        turns=turns,
        accept_lengths=tuple(entries or ()),
        failure=failure,
        numbers=numbers,
        oddities=() if failure else tuple(oddities),
    )


def _check_prefill(turn: AnswerTurn) -> None:
    if turn.prefill_emits not in (0, 1):
        raise ValueError(f"`{PREFILL_EMITS}` has to be 0 or 1, not {turn.prefill_emits}")
    if turn.prefill_emits and turn.entries and turn.entries[0] != 1:
        raise ValueError(f"`{PREFILL_EMITS}` is 1, but the turn's first entry is {turn.entries[0]}")


def cut(
    entries: Sequence[int] | None, steps: Sequence[int | None] | None, tokens: Sequence[int]
) -> tuple[list[tuple[int, ...] | None], list[str]]:
    """Cut the flat `accept_lengths` of a row into its turns, by `decoding_steps` or else by the token counts.

    Returns the pieces (None each, where the file has no way to tell) and the oddities met.
    """
    if entries is None:
        return [None] * len(tokens), ["no accept_lengths, so no acceptance figures"]
    oddities: list[str] = []
    if sum(entries) != sum(tokens):
        oddities.append(
            "accept_lengths do not add up to new_tokens (known of methods that trim what follows the end token in one "
            "of the two counts only)"
        )
    known = [step for step in steps or () if step is not None]
    if steps is not None and sum(known) != len(entries):
        oddities.append(
            "decoding_steps are not as many as accept_lengths (known of Recycling, which counts one step less when an "
            "answer ends by the end token)"
        )
    by_steps = _by_counts(entries, known[:-1]) if len(known) == len(tokens) else None
    by_tokens = _by_sums(entries, tokens)
    if by_steps is not None and [sum(piece) for piece in by_steps] == list(tokens):
        return list(by_steps), oddities
    if by_tokens is not None:
        return list(by_tokens), oddities
    if by_steps is not None:
        return list(by_steps), oddities
    if len(tokens) == 1:
        return [tuple(entries)], oddities
    return [None] * len(tokens), [*oddities, "accept_lengths cannot be cut into turns, so no acceptance figures"]


def _by_counts(entries: Sequence[int], counts: Sequence[int]) -> list[tuple[int, ...]] | None:
    """Cut after these numbers of entries; the rest is the last piece."""
    if any(count < 0 for count in counts) or sum(counts) > len(entries):
        return None
    pieces, start = [], 0
    for count in counts:
        pieces.append(tuple(entries[start : start + count]))
        start += count
    return [*pieces, tuple(entries[start:])]


def _by_sums(entries: Sequence[int], sums: Sequence[int]) -> list[tuple[int, ...]] | None:
    """Cut so that the pieces add up to these sums; None where no such cut is."""
    pieces, start = [], 0
    for wanted in sums[:-1]:
        end, total = start, 0
        while end < len(entries) and total < wanted:
            total += entries[end]
            end += 1
        if total != wanted:
            return None
        pieces.append(tuple(entries[start:end]))
        start = end
    pieces.append(tuple(entries[start:]))
    return pieces if sum(pieces[-1]) == sums[-1] else None


def _entries(values: Sequence[int | float] | None) -> list[int] | None:
    if values is None:
        return None
    found = [_count(value, "accept_lengths") for value in values]
    if None in found:
        raise ValueError("`accept_lengths` holds a number that is not finite")
    return [entry for entry in found if entry is not None]


def _count(value: int | float | None, name: str) -> int | None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if value != int(value) or not 0 <= value <= _MOST:
        raise ValueError(f"`{name}` has to hold whole numbers from 0 to {_MOST:,}, not {value!r}"[:200])
    return int(value)


def _seconds(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    if not 0 <= value <= _MOST:
        raise ValueError(f"`wall_time` has to hold seconds from 0 on, not {value!r}"[:200])
    return value
