"""Data files of every form as rows that a loader checks field by field.

A loader says what it makes of one row; every fault of the file, of its text as of its fields, is collected and told
in one error with file and line, because half a suite would give figures that look whole.

    file = read_rows(path, what="MMLU file", files=("test.jsonl", "test.parquet"))
    samples = checked(file, sample, forms=(("question", "choices", "answer"),))

    def sample(row: Fields) -> Sample:
        question = row.text("question")
        ...
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from draftboard.suites.errors import SuiteError, printable
from draftboard.suites.parsing import Fault, Parsed, Row, parse

__all__ = ["Fields", "Row", "RowFile", "checked", "kind_of", "parse_rows", "read_rows"]

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFile:
    """What a data file holds, before a loader has looked at the fields."""

    name: str
    """File name without its folders."""
    shown: str
    """The path as the user gave it: what problems are reported under."""
    rows: tuple[Row, ...]
    faults: tuple[Fault, ...] = ()
    """Lines that are no rows; `checked` tells them beside its own."""
    numbered: str = ""
    """What stands before a number in messages: empty for lines, `row ` where there are none."""
    sha256: str
    """Of the file's bytes, unpacked if it was gzip."""
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all fields, in the order of their first use."""
        return tuple(dict.fromkeys(key for row in self.rows for key in row.fields))

    def place(self, line: int) -> str:
        """`file:line` as problems begin with."""
        return f"{self.shown}:{self.numbered}{line}"


def read_rows(
    path: str | Path, *, what: str = "question file", files: Sequence[str] = (), headless: Sequence[str] = ()
) -> RowFile:
    """Read `.jsonl`, `.ndjson` (also packed as `.gz`), `.json`, `.parquet`, `.csv` or `.tsv`; else JSON lines.

    In a folder the first of `files` that is there is read. `headless` names the columns of comma-separated values
    without a first line of names. Raises `SuiteError` for what cannot be read at all, with the names that were tried
    in a folder; faults of single lines are kept for `checked`.
    """
    file = _file(path, what, files)
    try:
        data = file.read_bytes()
    except FileNotFoundError as error:
        raise SuiteError(f"{path}: there is no such file", advice="Check the part after the @.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SuiteError(f"{path}: cannot be read ({reason})") from error
    shown = str(path) if file == Path(path) else str(Path(path) / file.relative_to(_home(path)))
    return parse_rows(data, shown, headless=headless)


def parse_rows(data: bytes, name: str, *, headless: Sequence[str] = ()) -> RowFile:
    """The rows in the bytes of a file called `name`. Raises `SuiteError` as `read_rows` does."""
    parsed: Parsed = parse(data, name, headless=headless)
    if not parsed.rows and not parsed.faults:
        blank = "no questions" if parsed.data.strip(b" \t\r\n\xef\xbb\xbf") else "no questions, only blank lines"
        raise SuiteError(f"{name}: {blank if data else 'the file is empty'}")
    return RowFile(
        name=re.split(r"[/\\]", name)[-1],
        shown=name,
        rows=parsed.rows,
        faults=parsed.faults,
        numbered=parsed.numbered,
        sha256=sha256(parsed.data).hexdigest(),
    )


class Fields:
    """One row under check. Every reader returns a stand-in and keeps the problem if the field is not as asked."""

    def __init__(self, row: Row, position: int, used: dict[tuple[str, str], int], unit: str = "line") -> None:
        self.line = row.line
        self.position = position
        """Number of the row, counted from 0 and without blank lines: the same in every form of one data set."""
        self.fields: Mapping[str, object] = row.fields
        self.problems: list[str] = []
        self._used = used
        self._unit = unit

    def has(self, key: str) -> bool:
        """Whether the field is there and not null."""
        return self.fields.get(key) is not None

    def inside(self, fields: Mapping[str, object]) -> "Fields":
        """Readers for an object within the row; their problems are the row's."""
        inner = Fields(Row(line=self.line, fields=fields), self.position, self._used, self._unit)
        inner.problems = self.problems
        return inner

    def problem(self, what: str) -> None:
        """Keep a problem of this row; what is made of the row is then not used."""
        self.problems.append(what)

    def text(self, *keys: str, default: str | None = None) -> str:
        """The first of the fields `keys` that is given, as a text that is not blank; `default` if none is given."""
        key = self._given(keys)
        value = self.fields.get(key)
        if value is None and default is not None:
            return default
        if self._missing(key, keys):
            return ""
        if not isinstance(value, str):
            self.problem(f"`{key}` is {kind_of(value)}; it must be a string")
            return ""
        if not value.strip():
            self.problem(f"`{key}` is blank")
            return ""
        return value

    def texts(self, *keys: str, count: int | None = None, alone: bool = False, blanks: bool = False) -> tuple[str, ...]:
        """The first of the fields that is given, as a list of texts that are not blank: `count` of them, or any.

        With `alone` a single string stands for a list of one; with `blanks` blank entries are left out in silence.
        """
        key = self._given(keys)
        if self._missing(key, keys):
            return ()
        value = self.fields[key]
        values = [value] if alone and isinstance(value, str) else value
        if not isinstance(values, list | tuple):
            self.problem(f"`{key}` is {kind_of(value)}; it must be a list of strings")
            return ()
        found = []
        for place, item in enumerate(values, 1):
            if not isinstance(item, str):
                self.problem(f"entry {place} of `{key}` is {kind_of(item)}; it must be a string")
            elif item.strip():
                found.append(item)
            elif not blanks:
                self.problem(f"entry {place} of `{key}` is blank")
        if not values or (blanks and not any(found)):
            self.problem(f"`{key}` is empty")
        elif count not in (None, len(values)):
            self.problem(f"`{key}` has {len(values)} entries; it must have {count}")
        return tuple(found)

    def integer(self, key: str, *, low: int | None = None, high: int | None = None) -> int:
        """A whole number from `low` to `high`; digits in a string count, as comma-separated values hold them."""
        if self._missing(key, (key,)):
            return low or 0
        value = self.fields[key]
        if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.problem(f"`{key}` is {kind_of(value)}; it must be an integer")
        elif (low is not None and value < low) or (high is not None and value > high):
            self.problem(f"`{key}` is {value}; it must be {_range(low, high)}")
        else:
            return value
        return low or 0

    def identifier(self, key: str, default: str | None = None) -> str:
        """The row's id, an integer or a text, which no other row may have; `default` where the field is not given."""
        value = self.fields.get(key)
        if value is None and default is not None:
            value = default
        elif self._missing(key, (key,)):
            return ""
        if isinstance(value, bool) or not isinstance(value, int | str):
            self.problem(f"`{key}` is {kind_of(value)}; it must be an integer or a string")
            return ""
        if isinstance(value, str) and not value.strip():
            self.problem(f"`{key}` is blank")
            return ""
        self.once(key, str(value))
        return str(value)

    def once(self, key: str, value: str) -> None:
        """Keep a problem if an earlier row has this `value` too; it counts as used even if this row is faulty."""
        earlier = self._used.setdefault((key, value), self.line)
        if earlier != self.line:
            self.problem(f"{key} {printable(value)} is already used on {self._unit} {earlier}")

    def _given(self, keys: Sequence[str]) -> str:
        return next((key for key in keys if self.fields.get(key) is not None), keys[0])

    def _missing(self, key: str, keys: Sequence[str]) -> bool:
        if self.fields.get(key) is not None:
            return False
        others = "".join(f" (nor `{other}`)" for other in keys[1:])
        self.problem(f"`{key}` is null" if key in self.fields else f"no `{key}`{others}")
        return True


def checked(
    file: RowFile,
    make: Callable[[Fields], _Made],
    *,
    forms: Sequence[Sequence[str]] = (),
    advice: str = "",
    plural: str = "questions",
) -> tuple[_Made, ...]:
    """What `make` returns for each row, in order.

    `forms` are the sets of fields that rows may have: where the file has the columns of none of them, it is refused
    by naming the columns found and expected. Raises `SuiteError` with every problem, in the order of the lines.
    """
    problems = [(fault.line, fault.what) for fault in file.faults]
    if forms and file.rows and not any(set(form) <= set(file.columns) for form in forms):
        expected = " or ".join(", ".join(form) for form in forms)
        found = ", ".join(printable(name) for name in file.columns)
        raise SuiteError(
            f"{file.shown}: not the columns expected",
            problems=(f"found: {found}", f"expected: {expected}", *_placed(file, problems)),
            advice=advice,
        )
    made: list[_Made] = []
    used: dict[tuple[str, str], int] = {}
    for position, row in enumerate(file.rows):
        fields = Fields(row, position, used, file.numbered.strip() or "line")
        one = make(fields)
        if fields.problems:
            problems.extend((row.line, what) for what in fields.problems)
        else:
            made.append(one)
    if problems:
        many = f"{len(problems)} problems" if len(problems) > 1 else "1 problem"
        what = f"{file.shown}: {many}; no {plural} were used"
        raise SuiteError(what, problems=tuple(_placed(file, problems)), advice=advice)
    return tuple(made)


def kind_of(value: object) -> str:
    """What a value is, in words for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list | tuple):
        return "a list"
    return "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def _placed(file: RowFile, problems: Sequence[tuple[int, str]]) -> list[str]:
    return [f"{file.place(line)}: {what}" for line, what in sorted(problems, key=lambda problem: problem[0])]


def _home(path: str | Path) -> Path:
    return Path(path).expanduser() if str(path).startswith("~/") else Path(path)


def _file(path: str | Path, what: str, files: Sequence[str]) -> Path:
    place = _home(path)
    try:
        if not place.is_dir():
            return place
        found = next((place / name for name in files if (place / name).is_file()), None)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SuiteError(f"{path}: cannot be read ({reason})") from error
    if found is not None:
        return found
    if not files:
        raise SuiteError(f"{path}: this is a directory, not a {what}", advice="Name the file inside it.")
    raise SuiteError(
        f"{path}: this directory holds no {what}",
        problems=tuple(f"tried: {name}" for name in files),
        advice="Name the file itself after the @.",
    )


def _range(low: int | None, high: int | None) -> str:
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"from {low} to {high}"
