"""Reading and writing results as a file: our own document, and rows of numbers that were measured elsewhere.

Two forms are read. A *document* is what `leaderboard.json` holds: a whole `Results`, so that a rendered board
can be rendered again. *Rows* are one flat record per method or per sample, as JSON lines or under `rows` in a
JSON object; `draftboard.results_rows` turns them into figures. `docs/results-file.md` shows both.

A foreign file may hold what strict JSON may not: a bare NaN is read as a missing value. What is written is
strict.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from draftboard.errors import UserError
from draftboard.foreign.reading import inner_mark, packed
from draftboard.results import SCHEMA, DomainResult, Figure, Group, MethodResult, Results
from draftboard.results_rows import RowFile, results_from_rows

__all__ = ["FORMAT", "document", "encode", "finite", "read_results"]

FORMAT = "draftboard-results"
_BLANK = "\0 \t\r"
"""What stands between lines besides their ends; NUL is what a crash leaves behind."""
_NOT_A_NUMBER = "not a number"
_ADVICE = "see docs/results-file.md for the forms that can be read"


def read_results(*paths: Path) -> Results:
    """Read result files of either form into one `Results`.

    Rows of all row files are taken together, so that one method per file works; documents stay groups of
    their own. Raises UserError with file and line for whatever cannot be read.
    """
    groups: list[Group] = []
    title = ""
    row_files: list[RowFile] = []
    for path in paths:
        content = _read(path)
        if isinstance(content, RowFile):
            row_files.append(content)
        else:
            groups += content.groups
            title = title or content.title
    if row_files:
        groups += results_from_rows(row_files)
    return Results(groups=tuple(groups), title=title) if title else Results(groups=tuple(groups))


def document(results: Results) -> dict[str, Any]:
    """Return a `Results` as plain JSON data: a figure that is not finite becomes null, with its reason."""
    builtins = msgspec.to_builtins(_cleaned(results))
    return {"format": FORMAT, "schema": builtins.pop("schema"), **finite(builtins)}


def encode(data: dict[str, Any]) -> bytes:
    """Return strict JSON in UTF-8, the same bytes for the same data, with a line end."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=1)
    # A lone surrogate cannot be written as UTF-8; its \\u escape is valid JSON and reads back as the same
    # text.
    return (text + "\n").encode("utf-8", errors="backslashreplace")


def finite(value: Any) -> Any:
    """Return JSON data with every NaN and infinity as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value


def _read(path: Path) -> RowFile | Results:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if packing := packed(raw):
        raise UserError(f"is {packing}", where=str(path), advice="unpack it and name the file that comes out")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UserError("is not UTF-8", where=f"{path}:{line}", advice="save the file as UTF-8") from error
    if not text.strip(_BLANK + "\n"):
        raise UserError("is empty", where=str(path), advice=_ADVICE)
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return _read_lines(path, text)
    return _read_document(path, text)


def _read_lines(path: Path, text: str) -> RowFile:
    # Only "\n" ends a line: JSON strings may hold U+2028 and its like, which str.splitlines would cut at.
    lines = text.split("\n")
    rows: list[tuple[int, object]] = []
    problems: list[str] = []
    notes: list[str] = []
    for number, line in enumerate((line.strip(_BLANK) for line in lines), start=1):
        if not line:
            continue
        try:
            rows.append((number, json.loads(line)))
        except (ValueError, RecursionError) as error:
            if number == len(lines) and rows and not inner_mark(error):
                notes.append(f"{path.name}: line {number} is unfinished and was dropped")
            else:
                problems.append(f"{path}:{number}: {_explain(error)}")
    if problems:
        raise UserError("is not valid JSON lines", where=str(path), problems=tuple(problems), advice=_ADVICE)
    return RowFile(path=path, rows=tuple(rows), notes=tuple(notes))


def _read_document(path: Path, text: str) -> RowFile | Results:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        what = f"is not valid JSON: {_explain(error)}"
        raise UserError(what, where=f"{path}:{line}", advice=_ADVICE) from error
    if isinstance(content, dict) and "rows" in content:
        rows = content.pop("rows")
        if not isinstance(rows, list):
            raise UserError("`rows` is not a list", where=str(path), advice=_ADVICE)
        return RowFile(path=path, rows=tuple(enumerate(rows, start=1)), defaults=content, counted="row")
    if isinstance(content, list):
        return RowFile(path=path, rows=tuple(enumerate(content, start=1)), counted="row")
    if isinstance(content, dict) and "groups" in content:
        return _from_document(path, content)
    raise UserError("holds neither `rows` nor `groups`", where=str(path), advice=_ADVICE)


def _from_document(path: Path, content: dict[str, Any]) -> Results:
    schema = content.get("schema", SCHEMA)
    if not isinstance(schema, int) or isinstance(schema, bool):
        raise UserError(f"`schema` is not an integer: {schema!r}", where=str(path), advice=_ADVICE)
    if schema > SCHEMA:
        raise UserError(
            f"was written by a newer draftboard (schema {schema}, known up to {SCHEMA})",
            where=str(path),
            advice="upgrade with `pip install --upgrade draftboard`",
        )
    try:
        return _cleaned(msgspec.convert(content, Results))
    except msgspec.ValidationError as error:
        raise UserError(f"is not a results document: {error}", where=str(path), advice=_ADVICE) from error
    except RecursionError as error:
        raise UserError("is not a results document: nested too deeply", where=str(path), advice=_ADVICE) from error


def _explain(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return inner_mark(error) or f"{error.msg} at column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _cleaned(results: Results) -> Results:
    return replace(results, groups=tuple(_clean_group(group) for group in results.groups))


def _clean_group(group: Group) -> Group:
    return replace(group, methods=tuple(_clean_method(method) for method in group.methods))


def _clean_method(method: MethodResult) -> MethodResult:
    domains: dict[str, DomainResult] = {
        name: replace(domain, figures=_clean_figures(domain.figures), positions=_clean_places(domain.positions))
        for name, domain in method.domains.items()
    }
    return replace(
        method,
        domains=domains,
        overall=_clean_figures(method.overall),
        settings=finite(method.settings),
        positions=_clean_places(method.positions),
    )


def _clean_figures(figures: dict[str, Figure]) -> dict[str, Figure]:
    return {name: _clean_figure(figure) for name, figure in figures.items()}


def _clean_places(places: dict[str, tuple[Figure, ...]]) -> dict[str, tuple[Figure, ...]]:
    return {name: tuple(_clean_figure(figure) for figure in figures) for name, figures in places.items()}


def _clean_figure(figure: Figure) -> Figure:
    if figure.value is not None and not math.isfinite(figure.value):
        return replace(figure, value=None, reason=figure.reason or _NOT_A_NUMBER, interval=None)
    ends: Sequence[float] = (figure.interval.low, figure.interval.high) if figure.interval else ()
    return figure if all(math.isfinite(end) for end in ends) else replace(figure, interval=None)
