"""SciTLDR: abstracts of papers, each with several summaries of one sentence."""

from draftboard.suites.download import Published
from draftboard.suites.request import Request
from draftboard.suites.rows import Fields
from draftboard.suites.sample import Sample, Suite
from draftboard.suites.source import Source, load_source
from draftboard.suites.wordings import SCITLDR, SCITLDR_UNTITLED

__all__ = ["SOURCE", "load"]

SOURCE = Source(
    what="SciTLDR file",
    files=("scitldr_a_test_120.jsonl", "test.jsonl", "SciTLDR-A/test.jsonl", "SciTLDR-Data/SciTLDR-A/test.jsonl"),
    published=Published(
        url=(
            "https://raw.githubusercontent.com/allenai/scitldr/"
            "5ccad9c00a60ad75c9e04abf7f27d0f53f983b20/SciTLDR-Data/SciTLDR-A/test.jsonl"
        ),
        file="test.jsonl",
        version="5ccad9c00a60",
    ),
    rows=618,
    forms=(("document", "references"), ("source", "target")),
    licence="Apache-2.0",
    config="Abstract",
)


def load(request: Request) -> Suite:
    """The suite `scitldr[@PATH]`. Raises `SuiteError`.

    A row has `document` and `references`, or, as published, `source` and `target`: the sentences of the abstract
    and its summaries. Copies on the hub have no `title`; their prompts are without.
    """
    papers: dict[str, int] = {}

    def sample(row: Fields) -> Sample:
        document, references = _texts(row)
        title = _one_line(row.text("title", default=""))
        wording = SCITLDR if title else SCITLDR_UNTITLED
        return Sample(
            sample_id=_sample_id(row, papers),
            suite=request.name,
            domain=request.name,
            category=request.name,
            turns=(wording.format(title=title, document=document),),
            references=(references,),
            scorer="rouge",
            max_new_tokens=96,
        )

    return load_source(request, SOURCE, sample)


def _texts(row: Fields) -> tuple[str, tuple[str, ...]]:
    """Abstract and summaries. Published sentences hold line ends, and now and then one is blank."""
    if row.has("document") or not row.has("source"):
        return row.text("document"), row.texts("references", alone=True)
    parts = [row.texts(key, alone=True, blanks=True) for key in ("source", "target")]
    return _one_line(" ".join(parts[0])), tuple(_one_line(summary) for summary in parts[1])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _sample_id(row: Fields, papers: dict[str, int]) -> str:
    """The row's `id`, else its paper's; a paper's second row is told from its first."""
    paper = row.fields.get("paper_id")
    if row.has("id") or not isinstance(paper, str) or not paper.strip():
        return row.identifier("id", f"scitldr-{row.position}")
    papers[paper] = papers.get(paper, 0) + 1
    return paper if papers[paper] == 1 else f"{paper}-{papers[paper]}"
