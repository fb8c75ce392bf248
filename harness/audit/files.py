"""Outputs that stand in two files instead of a run: one JSON object a line, matched by question id."""

from math import isfinite
from pathlib import Path

import msgspec

from draftboard.audit.conclusions import Key, audit_outputs
from draftboard.audit.report import Limit, Report
from draftboard.audit.run import check_limit
from draftboard.errors import UserError
from draftboard.files import read_lines
from draftboard.lossless import Turn

__all__ = ["audit_files"]


class _Turn(msgspec.Struct, frozen=True):
    token_ids: list[int]
    top2_gap: list[float | None] | None = None


class _Row(msgspec.Struct, frozen=True):
    question_id: int | str
    turns: list[_Turn]
    category: str | None = None


def audit_files(reference: Path, method: Path, *, theta: float | None, exact: bool = False) -> Report:
    """Compare a method's file of outputs with plain decoding's, which may hold `top2_gap` of every place.

    Raises UserError for a file that is not of that form, with all its faults, and without a limit: there is no model
    to measure it with.
    """
    if theta is None:
        raise UserError("two files of outputs need --theta: there is no model to measure it with")
    if faults := check_limit(theta):
        raise UserError(faults[0])
    notes: list[str] = []
    ours, domains = _read(reference, notes)
    theirs, _ = _read(method, notes)
    found = audit_outputs(method.stem, ours, theirs, limit=theta, exact=exact, domains=domains)
    if found.verdict == "not compared":
        raise UserError("no turn of the two files could be compared", where=f"{reference}, {method}")
    return Report(
        model="",
        dtype="",
        baseline=reference.stem,
        exact=exact,
        limit=Limit(value=theta, source="given"),
        methods=(found,),
        notes=tuple(notes),
    )


def _read(path: Path, notes: list[str]) -> tuple[dict[Key, list[Turn]], dict[str, str]]:
    lines = read_lines(path)
    notes += lines.warnings
    found: dict[Key, list[Turn]] = {}
    domains: dict[str, str] = {}
    problems: list[str] = []
    for number, text in lines:
        try:
            row = msgspec.json.decode(text, type=_Row)
        except msgspec.ValidationError as error:
            problems.append(f"{path}:{number}: {error}")
            continue
        name = str(row.question_id)
        if (name, 0) in found:
            problems.append(f"{path}:{number}: question_id {name} stands twice")
        found[name, 0] = [
            Turn(
                token_ids=turn.token_ids,
                top2_gap=None if turn.top2_gap is None else [_gap(value) for value in turn.top2_gap],
            )
            for turn in row.turns
        ]
        domains[name] = row.category or ""
    if problems:
        raise UserError(f"{len(problems)} broken line(s)", where=str(path), problems=tuple(problems))
    if not found:
        raise UserError("holds no outputs", where=str(path))
    return found, domains


def _gap(value: float | None) -> float:
    # Not a number is how a gap that is not known is told to the comparison.
    return float("nan") if value is None or not isfinite(value) else value
