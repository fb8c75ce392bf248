"""GSM8K: word problems of elementary school whose answers are numbers."""

import re

from draftboard.suites.download import Published
from draftboard.suites.request import Request
from draftboard.suites.rows import Fields
from draftboard.suites.sample import Sample, Suite
from draftboard.suites.source import Source, load_source
from draftboard.suites.wordings import GSM8K

__all__ = ["SOURCE", "load"]

SOURCE = Source(
    what="GSM8K file",
    files=("test.jsonl", "gsm8k_test.jsonl", "main/test-00000-of-00001.parquet", "test-00000-of-00001.parquet"),
    published=Published(
        url=(
            "https://raw.githubusercontent.com/openai/grade-school-math/"
            "3101c7d5072418e28b9008a6636bde82a006892c/grade_school_math/data/test.jsonl"
        ),
        file="test.jsonl",
        version="3730d312f6e3",
        sha256="3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14",
    ),
    rows=1319,
    forms=(("question", "answer"),),
    licence="MIT",
    config="main",
)


def load(request: Request) -> Suite:
    """The suite `gsm8k[@PATH]` from `test.jsonl`, or rows with the same two fields. Raises `SuiteError`.

    An answer is a worked solution whose value follows `####`, or the value alone.
    """

    def sample(row: Fields) -> Sample:
        question, answer = row.text("question"), row.text("answer")
        if answer and not re.search(r"[0-9]", answer.rpartition("####")[2]):
            row.problem(
                "`answer` holds no number after its last ####" if "####" in answer else "`answer` has no number"
            )
        return Sample(
            sample_id=row.identifier("id", f"gsm8k-{row.position}"),
            suite=request.name,
            domain=request.name,
            category=request.name,
            turns=(GSM8K.format(question=question.strip()),),
            references=((answer,),),
            scorer="last_number",
            max_new_tokens=512,
        )

    return load_source(request, SOURCE, sample)
