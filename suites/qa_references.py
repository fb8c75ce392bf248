"""Answers for Spec-Bench's qa questions, which its own file has none for, from a file beside it.

Such a file covers part of the questions. The others stay unscored, because counting them as wrong would say more
about the file than about a method.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace

from draftboard.suites.errors import suggestion
from draftboard.suites.fields import Question
from draftboard.suites.jsonl import QuestionFile
from draftboard.suites.rows import Fields, checked, read_rows

__all__ = ["QaReferences", "read_qa_references"]

_CATEGORY = "qa"
_ADVICE = (
    'Each line is one object like {"question_id": 321, "question": "…", "answers": ["…"]}, '
    "for qa questions of the suite; `question` may be left out."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QaReferences:
    """Answers by question id, and where they are from."""

    answers: Mapping[str, tuple[str, ...]]
    origin: str

    def added_to(self, question: Question) -> Question:
        """The question with its answers, if the file has some."""
        found = self.answers.get(question.question_id)
        return question if found is None else replace(question, references=(found,))


def read_qa_references(path: str, questions: QuestionFile) -> QaReferences:
    """Read and check a file of answers against the questions that it is for.

    Raises `SuiteError` with every fault as `file:line: what`: ids that are not there, no qa question, already
    answered or doubled, a `question` that is another one than the suite's, and fields of the wrong type.
    """
    by_id = {question.question_id: question for question in questions.questions}

    def entry(row: Fields) -> tuple[str, tuple[str, ...]]:
        question_id = row.identifier("question_id")
        answers = row.texts("answers", alone=True)
        said = row.text("question", default="")
        question = by_id.get(question_id)
        if question is None:
            if question_id:
                near = "" if question_id.isdigit() else f"; {suggestion(question_id, by_id)}"
                row.problem(f"{questions.name} has no question {question_id}{near}")
        elif question.category != _CATEGORY:
            row.problem(f"question {question_id} is of category {question.category}, not {_CATEGORY}")
        elif question.has_references:
            row.problem(f"question {question_id} has references in {questions.name} already")
        elif said and _plain(said) != _plain(question.turns[0]):
            row.problem(f"question {question_id} of {questions.name} is another one: {question.turns[0][:80]!r}")
        return question_id, answers

    file = read_rows(path, what="file of qa references")
    answers = dict(checked(file, entry, forms=(("question_id", "answers"),), advice=_ADVICE, plural="answers"))
    return QaReferences(answers=answers, origin=f"{file.name} (sha256 {file.sha256[:12]}…)")


def _plain(text: str) -> str:
    """NFKC, lower case, every run of other characters than letters and digits one blank."""
    return re.sub(r"[\W_]+", " ", unicodedata.normalize("NFKC", text).lower()).strip()
