"""Whose rows a file holds, where its fields tell: so that no suite takes another's file for its own.

Some suites have columns of the same names (`question`, `answer`) that mean different things, and a question file of one
benchmark may pass for one of another. A loader that took them would give figures under a wrong name without a word.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from draftboard.suites.errors import SuiteError
from draftboard.suites.parsing import Row
from draftboard.suites.rows import RowFile

__all__ = ["SPEED_FIELDS", "refuse_other"]

SPEED_FIELDS = ("sub_category", "source", "src_id", "difficulty", "multiturn")
"""Fields of SPEED-Bench's rows that no other question file has together."""

_LETTERS = ("A", "B", "C", "D")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What the rows of one suite's files have and others have not."""

    suite: str
    sign: str
    """What `holds` looks for, in words."""
    holds: Callable[[Mapping[str, object]], bool]


def refuse_other(file: RowFile, suite: str) -> None:
    """Raise `SuiteError` if more than half of the rows bear the signs of another suite than `suite`."""
    found = _kind(file)
    if found is None or found.suite == suite:
        return
    if found.suite == _QA_REFERENCES:
        what, advice = "answers to qa questions of spec_bench", f"Use --suite spec_bench --qa-references {file.shown}"
    else:
        what, advice = f"rows of {found.suite}", f"Use --suite {found.suite}@{file.shown}"
    raise SuiteError(
        f"{file.shown}: these look like {what}, not like rows of {suite}",
        problems=(f"found: {found.sign}",),
        advice=f"{advice}, or name a file of {suite}.",
    )


def _kind(file: RowFile) -> _Kind | None:
    return next((kind for kind in _KINDS if 2 * sum(map(_test(kind), file.rows)) > len(file.rows)), None)


def _test(kind: _Kind) -> Callable[[Row], bool]:
    return lambda row: kind.holds(row.fields)


def _has(*keys: str) -> Callable[[Mapping[str, object]], bool]:
    return lambda fields: all(fields.get(key) is not None for key in keys)


def _is_mmlu(fields: Mapping[str, object]) -> bool:
    lettered = sum(fields.get(letter) is not None for letter in _LETTERS) >= len(_LETTERS) - 1
    asked = fields.get("question") is not None or fields.get("input") is not None
    return asked and (isinstance(fields.get("choices"), list | Mapping) or lettered)


def _is_gsm8k(fields: Mapping[str, object]) -> bool:
    answer = fields.get("answer")
    return "question" in fields and isinstance(answer, str) and "####" in answer


def _is_nq_open(fields: Mapping[str, object]) -> bool:
    return "question" in fields and any(isinstance(fields.get(key), list) for key in ("answers", "answer"))


def _is_ntrex(fields: Mapping[str, object]) -> bool:
    both = fields.get("translation")
    return _has("de", "en")(both if isinstance(both, Mapping) else fields)


def _is_scitldr(fields: Mapping[str, object]) -> bool:
    return _has("document", "references")(fields) or all(isinstance(fields.get(k), list) for k in ("source", "target"))


def _is_speed_bench(fields: Mapping[str, object]) -> bool:
    asked = "turns" in fields or "messages" in fields
    return asked and sum(fields.get(key) is not None for key in SPEED_FIELDS) > 1


def _is_spec_bench(fields: Mapping[str, object]) -> bool:
    number = fields.get("question_id")
    numbered = isinstance(number, int) and not isinstance(number, bool)
    return numbered and isinstance(fields.get("turns"), list) and not any(key in fields for key in SPEED_FIELDS)


_QA_REFERENCES = "answers"

_KINDS = (
    _Kind(suite="humaneval", sign="`entry_point` and `test`", holds=_has("task_id", "prompt", "entry_point", "test")),
    _Kind(suite="mmlu", sign="a question with options to choose from", holds=_is_mmlu),
    _Kind(suite="gsm8k", sign="an `answer` that is a worked solution with its value behind ####", holds=_is_gsm8k),
    _Kind(suite=_QA_REFERENCES, sign="`question_id` and `answers` without turns", holds=_has("question_id", "answers")),
    _Kind(suite="nq_open", sign="a `question` with a list of accepted answers", holds=_is_nq_open),
    _Kind(suite="ntrex_de_en", sign="`de` and `en`", holds=_is_ntrex),
    _Kind(suite="scitldr", sign="a document with a list of summaries", holds=_is_scitldr),
    _Kind(suite="speed_bench", sign="fields of SPEED-Bench (sub_category, source, src_id, …)", holds=_is_speed_bench),
    _Kind(
        suite="spec_bench",
        sign="whole numbers for ids and none of SPEED-Bench's fields (sub_category, source, src_id, …)",
        holds=_is_spec_bench,
    ),
)
"""The first that fits counts: answers by question id also look like those of nq_open."""
