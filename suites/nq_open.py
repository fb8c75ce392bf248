"""NQ-open: short factual questions that people typed into a search engine, with every answer that counts."""

from draftboard.suites.download import Published
from draftboard.suites.request import Request
from draftboard.suites.rows import Fields
from draftboard.suites.sample import Sample, Suite
from draftboard.suites.source import Source, load_source
from draftboard.suites.wordings import NQ_OPEN

__all__ = ["SOURCE", "load"]

SOURCE = Source(
    what="NQ-open file",
    files=("nq_open_dev_300.jsonl", "NQ-open.dev.jsonl", "nq_open/NQ-open.dev.jsonl"),
    published=Published(
        url=(
            "https://raw.githubusercontent.com/google-research-datasets/natural-questions/"
            "fb26a3073b1fe636c97302890a27b491d6530130/nq_open/NQ-open.dev.jsonl"
        ),
        file="NQ-open.dev.jsonl",
        version="fb26a3073b1f",
    ),
    rows=3610,
    forms=(("question", "answers"), ("question", "answer")),
    licence="CC BY-SA 3.0",
    split="validation",
    config="nq_open",
)


def load(request: Request) -> Suite:
    """The suite `nq_open[@PATH]`: a question and the list of its answers a row. Raises `SuiteError`."""

    def sample(row: Fields) -> Sample:
        return Sample(
            sample_id=row.identifier("id", f"nq-dev-{row.position}"),
            suite=request.name,
            domain=request.name,
            category=request.name,
            turns=(NQ_OPEN.format(question=_as_question(row.text("question"))),),
            references=(row.texts("answers", "answer", alone=True),),
            scorer="qa",
            max_new_tokens=64,
        )

    return load_source(request, SOURCE, sample)


def _as_question(text: str) -> str:
    """With a capital and a question mark: the published questions are typed without."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith("?") else "?")
