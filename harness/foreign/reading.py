"""Files that other programs wrote, read by one rule (suites-and-scoring 10): what a crash left is told and skipped.

Other writers append without care: lines end in CR LF, in NUL bytes after a power cut, or not at all. So blank lines
and NUL bytes are skipped, an unreadable *last* line is a torn one and skipped with a note, and any other unreadable
line is an error with file and line, for it would be missing in the middle of somebody's figures.
"""

import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from draftboard.errors import UserError

__all__ = [
    "ForeignFile",
    "inner_mark",
    "last_of_each",
    "listed",
    "packed",
    "plain",
    "read_bytes",
    "read_document",
    "read_rows",
    "shown_name",
    "unsurrogated",
]

T = TypeVar("T")

_BOM = b"\xef\xbb\xbf"
_PACKED = {
    b"\x1f\x8b": "gzip-compressed",
    b"BZh": "bzip2-compressed",
    b"\xfd7zXZ\0": "xz-compressed",
    b"\x28\xb5\x2f\xfd": "zstd-compressed",
    b"PK\x03\x04": "a zip archive",
}
"""What compressed files begin with; none of them begins a text that any reader here takes."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BLANK = b" \t\r\0"
_LISTED = 30
_DEEPEST = 32
"""Levels of lists and objects in what is kept of unknown fields; a deeper one would put its readers at risk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFile:
    """The JSON values of a file, each with the line it stands on, and what was skipped."""

    path: Path
    sha256: str
    rows: tuple[tuple[int, Any], ...]
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's name without its folders, so that a stored run names no home path."""
        return shown_name(self.path)

    def place(self, line: int) -> str:
        """Return where a row stands, for a message."""
        return f"{self.path}:{line}"


def read_bytes(path: Path) -> bytes:
    """Return a file's bytes. Raises UserError for a folder, a missing, unreadable or packed file, and UTF-16 text."""
    if path.is_dir():
        raise UserError("is a folder, not a file", where=str(path), advice="Name the file inside it.")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    if packing := packed(data):
        raise UserError(f"is {packing}", where=str(path), advice="Unpack it and name the file that comes out.")
    if data.startswith(_UTF16):
        raise UserError("is UTF-16 text, not UTF-8", where=str(path), advice="Save the file as UTF-8.")
    return data


def packed(data: bytes) -> str:
    """Say how a file is compressed, by its first bytes; empty for one that is not."""
    return next((name for start, name in _PACKED.items() if data.startswith(start)), "")


def inner_mark(error: Exception) -> str:
    """Say that a JSON error stands at a byte-order mark, which joined files have in their middle; else empty."""
    if isinstance(error, json.JSONDecodeError) and error.doc[error.pos : error.pos + 1] == "\ufeff":
        return f"a byte-order mark (U+FEFF) in the middle of the file, at column {error.colno}; delete it"
    return ""


def read_rows(path: Path, *, parse: Callable[[str], Any] = json.loads) -> ForeignFile:
    """Read JSON lines, or lines of another form that `parse` reads or refuses with ValueError.

    Raises UserError that names every broken inner line, and for a file without any row.
    """
    data, name = read_bytes(path), shown_name(path)
    lines = data.removeprefix(_BOM).split(b"\n")
    notes: list[str] = []
    problems: list[str] = []
    rows: list[tuple[int, Any]] = []
    filled = [(number, line.strip(_BLANK)) for number, line in enumerate(lines, start=1)]
    filled = [(number, line) for number, line in filled if line]
    zeros = sum(line.count(b"\0") for line in lines) - sum(line.count(b"\0") for _, line in filled)
    if zeros:
        notes.append(f"{name}: skipped {zeros} NUL bytes, which a crash leaves behind")
    for number, line in filled:
        try:
            rows.append((number, parse(line.decode("utf-8"))))
        except (ValueError, RecursionError) as error:
            if number == filled[-1][0] and len(filled) > 1 and not inner_mark(error):
                notes.append(f"{name}: line {number} is unfinished ({_explain(error)}) and was skipped")
            else:
                problems.append(f"{path}:{number}: {_explain(error)}")
    if problems:
        raise UserError(
            f"{len(problems)} line(s) that are not JSON",
            where=str(path),
            problems=listed(problems),
            advice="Each line has to be one JSON object; delete or restore the lines named.",
        )
    if not rows:
        raise UserError("is empty" if not data else "holds no row, only blank lines", where=str(path))
    return ForeignFile(path=path, sha256=sha256(data).hexdigest(), rows=tuple(rows), notes=tuple(notes))


def read_document(path: Path) -> ForeignFile:
    """Read a file that is one JSON value, however many lines it takes; its row stands on line 1.

    Raises UserError for what is not UTF-8 or not JSON.
    """
    data = read_bytes(path)
    content = data.removeprefix(_BOM).strip(_BLANK + b"\n")
    if not content:
        raise UserError("is empty", where=str(path))
    notes = (f"{shown_name(path)}: skipped NUL bytes, which a crash leaves behind",) if b"\0" in data else ()
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        raise UserError(f"is not a JSON document: {_explain(error)}", where=f"{path}:{line}") from error
    return ForeignFile(path=path, sha256=sha256(data).hexdigest(), rows=((1, value),), notes=notes)


def listed(problems: Sequence[str]) -> tuple[str, ...]:
    """Return the problems to be told: a file of another form has one in every line, and the first ones say it all."""
    rest = len(problems) - _LISTED
    return (*problems[:_LISTED], *([f"and {rest} more"] if rest > 0 else []))


def last_of_each(items: Iterable[T], key: Callable[[T], Hashable]) -> tuple[list[T], int]:
    """Return the last item of each key, in order of the keys' first appearance, and how many others there were."""
    kept: dict[Hashable, T] = {}
    total = 0
    for item in items:
        kept[key(item)] = item
        total += 1
    return list(kept.values()), total - len(kept)


def shown_name(path: Path) -> str:
    """Return a file's name as text that can be stored: what of it is no UTF-8 becomes U+FFFD."""
    return unsurrogated(path.name)


def unsurrogated(text: str) -> str:
    """Return the text with half surrogate pairs replaced by U+FFFD: they have no place in a UTF-8 file."""
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def plain(value: Any, levels: int = _DEEPEST) -> Any:
    """Return JSON data that strict JSON can hold: NaN and infinities as None, half surrogates and depths replaced."""
    if isinstance(value, str):
        return unsurrogated(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping | list):
        if not levels:
            return "(nested too deeply)"
        if isinstance(value, list):
            return [plain(inner, levels - 1) for inner in value]
        return {unsurrogated(str(key)): plain(inner, levels - 1) for key, inner in value.items()}
    return value


def _explain(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8: byte {error.start + 1} is 0x{error.object[error.start]:02X}"
    if isinstance(error, json.JSONDecodeError):
        return inner_mark(error) or f"not valid JSON: {error.msg} at column {error.colno}"
    return "nested too deeply" if isinstance(error, RecursionError) else f"not valid JSON: {error}"
