"""Question files: one JSON object a line, as Spec-Bench and many others write them, read without surprises.

A file with faults is refused as a whole, with every fault named: half a suite would give figures that look whole.
"""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from draftboard.suites.errors import suggestion
from draftboard.suites.fields import Question, check_question, identifier
from draftboard.suites.hub import PREFIX, hub_place, hub_rows
from draftboard.suites.request import Request
from draftboard.suites.rows import Fields, RowFile, checked, parse_rows, read_rows
from draftboard.suites.sample import Suite

__all__ = ["QuestionFile", "load", "load_jsonl", "parse_questions", "questions_of", "read_questions"]

_FORMS = tuple((key, turns) for key in ("question_id", "id") for turns in ("turns", "prompt", "messages"))
_ROWS_OF_ANOTHER_KIND = 20
"""So many rows without the columns of a question file are no slips."""

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

    A data set of the hub, `hf://OWNER/NAME[@REVISION]`, may take the place of a file. Raises `SuiteError` with every
    fault of the file.
    """
    if path.startswith(PREFIX):
        offline = "Without a network use --suite jsonl@PATH with a file of your own."
        file = questions_of(hub_rows(hub_place(path), suite="jsonl", offline=offline))
    else:
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
    return questions_of(read_rows(path), categories=categories)


def parse_questions(data: bytes, name: str, *, categories: Collection[str] | None = None) -> QuestionFile:
    """Check the bytes of a question file; `name` is what problems are reported under.

    Raises `SuiteError` with every fault found, each as `name:line: what`.
    """
    return questions_of(parse_rows(data, name), categories=categories)


def questions_of(file: RowFile, *, categories: Collection[str] | None = None) -> QuestionFile:
    """The questions in the rows of a file. Raises `SuiteError` with every fault found."""

    def question(row: Fields) -> Question | None:
        found, problems = check_question(row.fields, row.line)
        row.problems.extend(problems)
        question_id = identifier(row.fields)[0]
        if question_id is not None:
            row.once("question_id", question_id)
        if categories is not None:
            row.problems.extend(_check_category(row.fields.get("category"), categories))
        return found

    forms = _FORMS if len(file.rows) >= _ROWS_OF_ANOTHER_KIND else ()
    questions = tuple(found for found in checked(file, question, forms=forms, advice=_FORM) if found is not None)
    dropped = sum(found.answers_dropped for found in questions)
    notes = [f"{dropped} assistant messages are not used: each method gives its own answers"] if dropped else []
    return QuestionFile(name=file.name, questions=questions, sha256=file.sha256, notes=(*file.notes, *notes))


def _check_category(category: object, categories: Collection[str]) -> list[str]:
    if category is None:
        return ["no `category`"]
    if isinstance(category, str) and category not in categories:
        return [f"unknown category {category!r}; {suggestion(category, categories)}"]
    return []
