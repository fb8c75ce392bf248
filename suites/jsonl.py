"""Question files: one JSON object a line, as Spec-Bench and many others write them, read without surprises.

Lines end at LF and nowhere else, because questions may hold U+2028 or U+0085, at which Python's own splitter
breaks. A file with faults is refused as a whole, with every fault named: half a suite would give figures that
look whole.
"""

import json
import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from draftboard.suites.errors import SuiteError, suggestion
from draftboard.suites.fields import Question, check_question, identifier
from draftboard.suites.request import Request
from draftboard.suites.sample import Suite

__all__ = ["QuestionFile", "load", "load_jsonl", "parse_questions", "read_questions"]

_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_FORM = (
    'Each line is one object like {"question_id": 1, "category": "qa", "turns": ["…"], "reference": ["…"]}; '
    "docs/suites.md lists all fields."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFile:
    """A question file without faults."""

    name: str
    """File name without its folders."""
    questions: tuple[Question, ...]
    """In the order of the file; at least one; ids are unique."""
    sha256: str
    notes: tuple[str, ...]


def load(request: Request) -> Suite:
    """The loader that the registry calls."""
    return load_jsonl(request.path or "")


def load_jsonl(path: str) -> Suite:
    """The suite `jsonl@PATH`: a line's category (or else `default`) is its domain, its scorer is as given.

    Raises `SuiteError` with every fault of the file.
    """
    file = read_questions(path)
    samples = []
    for question in file.questions:
        domain = question.category or "default"
        samples.append(question.as_sample(suite="jsonl", domain=domain, category=domain))
    return Suite(
        name="jsonl",
        samples=tuple(samples),
        content_hash=file.sha256,
        source=file.name,
        licence="the file's own",
        notes=file.notes,
    )


def read_questions(path: str | Path, *, categories: Collection[str] | None = None) -> QuestionFile:
    """Read and check a question file; `categories`, if given, are the only ones allowed.

    Raises `SuiteError` with every fault found, each as `file:line: what`.
    """
    file = Path(path)
    if str(path).startswith("~/"):
        file = file.expanduser()
    if file.is_dir():
        raise SuiteError(f"{path}: this is a directory, not a question file", advice="Name the file inside it.")
    try:
        data = file.read_bytes()
    except FileNotFoundError as error:
        raise SuiteError(f"{path}: there is no such file", advice="Check the part after the @.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SuiteError(f"{path}: cannot be read ({reason})") from error
    return parse_questions(data, str(path), categories=categories)


def parse_questions(data: bytes, name: str, *, categories: Collection[str] | None = None) -> QuestionFile:
    """Check the bytes of a question file; `name` is what problems are reported under.

    Raises `SuiteError` with every fault found, each as `name:line: what`.
    """
    if data.startswith(_UTF16_BOMS):
        raise SuiteError(f"{name}: the text is UTF-16, not UTF-8", advice="Save the file as UTF-8.")
    questions: list[Question] = []
    problems: list[str] = []
    first_use: dict[str, int] = {}
    for number, line in enumerate(data.removeprefix(_BOM).split(b"\n"), 1):
        if not line.strip(b" \t\r"):
            continue
        record, faults = _parse_line(line)
        if record is not None:
            question, more = check_question(record, number)
            faults.extend(more)
            question_id = identifier(record)[0]
            earlier = first_use.setdefault(question_id, number) if question_id is not None else number
            if earlier != number:
                faults.append(f"question_id {_printable(str(question_id))} is already used on line {earlier}")
            if categories is not None:
                faults.extend(_check_category(record.get("category"), categories))
            if question is not None:
                questions.append(question)
        problems.extend(f"{name}:{number}: {fault}" for fault in faults)
    if problems:
        many = f"{len(problems)} problems" if len(problems) > 1 else "1 problem"
        raise SuiteError(f"{name}: {many}; no question was used", problems=tuple(problems), advice=_FORM)
    if not questions:
        raise SuiteError(f"{name}: the file is empty" if not data else f"{name}: no questions, only blank lines")
    dropped = sum(question.answers_dropped for question in questions)
    notes = [f"{dropped} assistant messages are not used: each method gives its own answers"] if dropped else []
    return QuestionFile(
        name=re.split(r"[/\\]", name)[-1],
        questions=tuple(questions),
        sha256=sha256(data).hexdigest(),
        notes=tuple(notes),
    )


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
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant, parse_float=_finite)
        if not isinstance(value, dict):
            return None, ["not an object: a line must be of the form {…}"]
        faults = _lone_surrogates(value) if _SURROGATE.search(text) else []
    except json.JSONDecodeError as error:
        return None, [f"not valid JSON: {error.msg}, column {error.colno}"]
    except ValueError as error:
        return None, [f"not valid JSON: {error}"]
    except RecursionError:
        return None, ["nested too deeply"]
    return value, faults


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


def _lone_surrogates(record: dict[str, object]) -> list[str]:
    faults = []
    for key, value in record.items():
        try:
            json.dumps({key: value}, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            code = ord(error.object[error.start])
            faults.append(f"`{_printable(key)}` holds half a surrogate pair (U+{code:04X}), which is no character")
    return faults


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _check_category(category: object, categories: Collection[str]) -> list[str]:
    if category is None:
        return ["no `category`"]
    if isinstance(category, str) and category not in categories:
        return [f"unknown category {category!r}; {suggestion(category, categories)}"]
    return []
