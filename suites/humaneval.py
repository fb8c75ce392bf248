"""HumanEval: functions of a few lines, given by signature and docstring and checked by tests.

Scoring runs what a model wrote. Whether that may happen is the run's to say; a suite only brings the tests.
"""

from draftboard.suites.download import Published
from draftboard.suites.request import Request
from draftboard.suites.rows import Fields
from draftboard.suites.sample import Sample, Suite
from draftboard.suites.source import Source, load_source
from draftboard.suites.wordings import HUMANEVAL

__all__ = ["SOURCE", "load"]

SOURCE = Source(
    what="HumanEval file",
    files=("HumanEval.jsonl", "HumanEval.jsonl.gz", "data/HumanEval.jsonl.gz"),
    published=Published(
        url=(
            "https://raw.githubusercontent.com/openai/human-eval/"
            "6d43fb980f9fee3c892a914eda09951f772ad10d/data/HumanEval.jsonl.gz"
        ),
        file="HumanEval.jsonl",
        version="1d49078ba3e2",
        sha256="1d49078ba3e2b196b9344535bef34a43021f038fad9561d6ee7c53450609a6a2",
    ),
    rows=164,
    forms=(("task_id", "prompt", "entry_point", "test"),),
    licence="MIT",
    config="openai_humaneval",
)


def load(request: Request) -> Suite:
    """The suite `humaneval[@PATH]`: the published fields, of which the model's own solution is not used.

    A sample's `context` is the head of the function as published, and its only reference the program that checks
    it: the row's tests and the call that runs them on the function. Raises `SuiteError`.
    """

    def sample(row: Fields) -> Sample:
        prompt, entry, test = row.text("prompt"), row.text("entry_point"), row.text("test")
        if entry and not entry.isidentifier():
            row.problem(f"`entry_point` is {entry!r}, which names no function")
        elif entry and prompt and f"def {entry}(" not in prompt:
            row.problem(f"`prompt` has no function {entry}")
        if test and "def check(" not in test:
            row.problem("`test` has no function check")
        return Sample(
            sample_id=row.identifier("task_id"),
            suite=request.name,
            domain=request.name,
            category=request.name,
            turns=(HUMANEVAL.format(code=prompt if prompt.endswith("\n") else f"{prompt}\n"),),
            references=((f"{test}\ncheck({entry})",),),
            scorer="pass_at_1",
            context=prompt,
            max_new_tokens=512,
        )

    return load_source(request, SOURCE, sample)
