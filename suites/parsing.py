"""Bytes of a data file to rows: JSON lines, a JSON list, comma- or tab-separated values, Parquet.

Lines end at LF and nowhere else, because texts may hold U+2028 or U+0085, at which Python's own splitter breaks.
A fault of one line is kept beside the rows instead of raised, so that all faults of a file are told in one go; what
spoils the whole file raises `SuiteError`.
"""

import csv
import gzip
import json
import math
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from draftboard.suites.errors import SuiteError, printable

__all__ = ["Fault", "Parsed", "Row", "decoded", "parse"]

_BOM = b"\xef\xbb\xbf"
# UTF-32 first: its little-endian mark begins with that of UTF-16.
_OTHER_BOMS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_PACKED = {
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "gzip data inside gzip data",
    b"\x28\xb5\x2f\xfd": "zstd data",
    b"\xfd7zXZ\0": "xz data",
    b"BZh": "bzip2 data",
}
# The first character of a text in a wider encoding that has no mark.
_NO_MARK = re.compile(rb"[\x20-\x7e]\0|\0(\0\0)?[\[{]")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_BLANKS = " \t\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One object of a data file."""

    line: int
    """Where it begins: line of a text file, number of the row in Parquet; from 1."""
    fields: Mapping[str, object] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong with one line."""

    line: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """Rows in the order of the file, and the lines that are none."""

    rows: tuple[Row, ...]
    faults: tuple[Fault, ...] = ()
    data: bytes
    """What the rows were read from: the file's bytes, unpacked if it was gzip."""
    numbered: str = ""
    """What stands before a number in messages: empty for lines of text, `row ` in Parquet."""


def parse(data: bytes, name: str, *, headless: Sequence[str] = ()) -> Parsed:
    """Read the bytes of the file `name`; its ending decides the form, JSON lines where it says nothing.

    `headless` names the columns of comma-separated values that come without a first line of names: it is taken to
    be missing if no cell of the first line equals the first of these names. gzip and Parquet are known by their
    first bytes, whatever the name. Raises `SuiteError`.
    """
    ending = name.lower().removesuffix(".gz").rpartition(".")[2]
    if data.startswith(b"\x1f\x8b"):
        data = _unpacked(data, name)
    _check_kind(data, name)
    if data.startswith(b"PAR1") or ending == "parquet":
        return _parquet(data, name)
    if ending in ("csv", "tsv"):
        return _separated(data, name, "\t" if ending == "tsv" else ",", headless)
    text = data.removeprefix(_BOM)
    if ending == "json" and text.lstrip().startswith(b"["):
        return _json_list(data, name)
    _check_json_lines(text, name)
    return _json_lines(data)


def decoded(data: bytes, name: str) -> str:
    """The bytes of a whole file as text. Raises `SuiteError` with the line of a byte that is NUL or no UTF-8."""
    content = data.removeprefix(_BOM)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"{name}:{line}: not UTF-8: 0x{content[error.start]:02X}"
        raise SuiteError(f"{name}: cannot be read", problems=(problem,), advice="Save the file as UTF-8.") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        problem = f"{name}:{line}: NUL bytes ({text.count(chr(0))}); the file was not written to its end"
        raise SuiteError(f"{name}: cannot be read", problems=(problem,), advice="Fetch the file again.")
    return text


def _unpacked(data: bytes, name: str) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise SuiteError(f"{name}: not complete gzip data ({error})", advice="Fetch the file again.") from error


def _check_kind(data: bytes, name: str) -> None:
    """Refuse what is no data file of ours at all."""
    for start, kind in _PACKED.items():
        if data.startswith(start):
            raise SuiteError(f"{name}: {kind}, not the rows themselves", advice="Unpack it first.")
    for mark, encoding in _OTHER_BOMS.items():
        if data.startswith(mark):
            raise SuiteError(f"{name}: the text is {encoding}, not UTF-8", advice="Save the file as UTF-8.")
    if _NO_MARK.match(data):
        raise SuiteError(f"{name}: the text looks like UTF-16 or UTF-32", advice="Save the file as UTF-8.")
    if data.startswith(b"version https://git-lfs"):
        raise SuiteError(f"{name}: a Git LFS pointer, not the data itself", advice="Run git lfs pull where it is from.")
    if data[:200].lstrip().lower().startswith((b"<!doctype html", b"<html")):
        raise SuiteError(f"{name}: a web page, not a data file", advice="Fetch the raw file instead of its page.")
    if b"\r" in data and b"\n" not in data and data.rstrip(b"\r \t").count(b"\r") and not data.startswith(b"PAR1"):
        raise SuiteError(f"{name}: lines end in CR alone", advice="Save the file with LF or CR LF line ends.")


def _check_json_lines(text: bytes, name: str) -> None:
    """Refuse one JSON value over the whole file, which line by line would be one fault after the other."""
    start = text.lstrip()
    if not start.startswith((b"[", b"{")) or b"\n" not in start.rstrip():
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(value, list):
        raise SuiteError(
            f"{name}: one JSON list, not one object a line", advice="Write one object a line, or name the file .json"
        )
    raise SuiteError(f"{name}: one JSON object over several lines", advice="Write one object a line.")


def _json_lines(data: bytes) -> Parsed:
    rows: list[Row] = []
    faults: list[Fault] = []
    for number, line in enumerate(data.removeprefix(_BOM).split(b"\n"), 1):
        if not line.strip(b" \t\r"):
            continue
        record, more = _parse_line(line)
        if record is not None:
            rows.append(Row(line=number, fields=record))
        faults.extend(Fault(line=number, what=what) for what in more)
    return Parsed(rows=tuple(rows), faults=tuple(faults), data=data)


def _parse_line(line: bytes) -> tuple[dict[str, object] | None, list[str]]:
    """The object on a line, None if there is none, and what is wrong with its text."""
    content = line.rstrip(b"\0")
    if len(content) < len(line):
        kept = "only" if not content.strip() else "ends in"
        return None, [f"{kept} NUL bytes ({len(line) - len(content)}); the file was not written to its end"]
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return None, [f"not UTF-8: byte {error.start + 1} of the line is 0x{line[error.start]:02X}"]
    return _parse_object(text, "a line")


def _parse_object(text: str, what: str) -> tuple[dict[str, object] | None, list[str]]:
    try:
        value = _DECODER.decode(text)
        if not isinstance(value, dict):
            return None, [f"not an object: {what} must be of the form {{…}}"]
        faults = _lone_surrogates(value) if _SURROGATE.search(text) else []
    except json.JSONDecodeError as error:
        return None, [f"not valid JSON: {error.msg}, column {error.colno}"]
    except ValueError as error:
        return None, [f"not valid JSON: {error}"]
    except RecursionError:
        return None, ["nested too deeply"]
    return value, faults


def _json_list(data: bytes, name: str) -> Parsed:
    """The objects of one list, each with the line that it begins on."""
    text = decoded(data, name)
    lenient = json.JSONDecoder()
    rows: list[Row] = []
    faults: list[Fault] = []
    at, line, counted = _past_blanks(text, text.index("[") + 1), 1, 0
    more = text[at : at + 1] != "]"
    try:
        while more:
            line, counted = line + text.count("\n", counted, at), at
            end = lenient.raw_decode(text, at)[1]
            record, found = _parse_object(text[at:end], "an entry of the list")
            if record is not None:
                rows.append(Row(line=line, fields=record))
            faults.extend(Fault(line=line, what=what) for what in found)
            at = _past_blanks(text, end)
            more = text[at : at + 1] == ","
            at = _past_blanks(text, at + 1) if more else at
        if text[at : at + 1] != "]":
            raise json.JSONDecodeError("Expecting ',' or ']'", text, at)
        rest = _past_blanks(text, at + 1)
        if rest < len(text):
            raise json.JSONDecodeError("Extra data", text, rest)
    except json.JSONDecodeError as error:
        faults.append(Fault(line=error.lineno, what=f"not valid JSON: {error.msg}, column {error.colno}"))
    except ValueError as error:
        faults.append(Fault(line=line, what=f"not valid JSON: {error}"))
    except RecursionError:
        faults.append(Fault(line=line, what="nested too deeply"))
    return Parsed(rows=tuple(rows), faults=tuple(faults), data=data)


def _past_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!a} stands twice in one object")
    return result


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_no_constant, parse_float=_finite)


def _lone_surrogates(record: Mapping[str, object]) -> list[str]:
    faults = []
    for key, value in record.items():
        try:
            json.dumps({key: value}, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            code = ord(error.object[error.start])
            faults.append(f"`{printable(key)}` holds half a surrogate pair (U+{code:04X}), which is no character")
    return faults


def _separated(data: bytes, name: str, delimiter: str, headless: Sequence[str]) -> Parsed:
    """Comma- or tab-separated values. An empty cell is a field that the row does not have.

    A `.csv` whose first line holds semicolons and no comma is split at those, as spreadsheets write it where the
    comma is the decimal sign.
    """
    text = decoded(data, name)
    first = text.partition("\n")[0]
    if delimiter == "," and "," not in first and ";" in first:
        delimiter = ";"
    rows: list[Row] = []
    faults: list[Fault] = []
    columns: list[str] = []
    for line, cells in _records(text, delimiter, faults):
        if not columns:
            names = [cell.strip() for cell in cells]
            if not headless or headless[0].lower() in (cell.lower() for cell in names):
                columns = names
                faults.extend(Fault(line=line, what=what) for what in _wrong_header(names))
                continue
            columns = list(headless)
        if len(cells) != len(columns):
            faults.append(Fault(line=line, what=f"{len(cells)} cells, but {len(columns)} columns"))
        else:
            rows.append(Row(line=line, fields={key: cell for key, cell in zip(columns, cells, strict=True) if cell}))
    return Parsed(rows=tuple(rows), faults=tuple(faults), data=data)


def _records(text: str, delimiter: str, faults: list[Fault]) -> Iterator[tuple[int, list[str]]]:
    """The line that each record begins on and its cells; blank lines are left out."""
    reader = csv.reader((f"{line}\n" for line in text.split("\n")), delimiter=delimiter, strict=True)
    with _any_cell_length():
        while True:
            begin = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                # After a stray quotation mark nothing tells where the next record begins.
                faults.append(Fault(line=begin, what=f"not valid comma-separated values: {error}"))
                return
            if any(cell.strip() for cell in cells):
                yield begin, cells


@contextmanager
def _any_cell_length() -> Iterator[None]:
    # The library's own limit, 128 KiB, is shorter than a long document.
    before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _wrong_header(names: list[str]) -> list[str]:
    twice = sorted({name for name in names if name and names.count(name) > 1})
    return [f"the column {name!r} stands twice" for name in twice]


def _parquet(data: bytes, name: str) -> Parsed:
    """Rows as pyarrow itself reads them; what other libraries left in the file's metadata plays no part."""
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data)).read()
        records = table.replace_schema_metadata(None).to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise SuiteError(f"{name}: no readable Parquet file ({reason})", advice="Fetch the file again.") from error
    # A row would keep the last of them without a word.
    twice = sorted({column for column in table.column_names if table.column_names.count(column) > 1})
    if twice:
        raise SuiteError(f"{name}: columns of the same name", problems=tuple(f"{column!r} twice" for column in twice))
    rows = tuple(Row(line=number, fields=record) for number, record in enumerate(records, 1))
    return Parsed(rows=rows, data=data, numbered="row ")
