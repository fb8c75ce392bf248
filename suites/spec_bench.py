"""Spec-Bench: 480 prompts in six domains, the suite that most papers on speculative decoding report.

The benchmark's text is not shipped: it quotes third parties under several licences. It is read from the
user's copy of `question.jsonl` or fetched once from the benchmark's own repository, at a pinned commit and
hash.
"""

from pathlib import Path

from draftboard.suites.download import Published, default_cache, download
from draftboard.suites.fields import Question
from draftboard.suites.hub import PREFIX, hub_place, hub_rows
from draftboard.suites.jsonl import QuestionFile, questions_of
from draftboard.suites.kinds import refuse_other
from draftboard.suites.qa_references import read_qa_references
from draftboard.suites.request import Request
from draftboard.suites.rows import RowFile, read_rows
from draftboard.suites.sample import Suite

__all__ = ["COMMIT", "DOMAINS", "SHA256", "URL", "download_spec_bench", "load", "load_spec_bench"]

COMMIT = "fd2c1cd7d2201ef71db4c5f4e455008f017967bf"
SHA256 = "4b6d33e79484f9841c487ee87d1cf6aa8c6066f61d5d482ff09e5a007fafdf04"
URL = f"https://raw.githubusercontent.com/hemingkx/Spec-Bench/{COMMIT}/data/spec_bench/question.jsonl"

DOMAINS: dict[str, tuple[str, ...]] = {
    "mt_bench": (
        "writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities",
    ),
    "translation": ("translation",),
    "summarization": ("summarization",),
    "qa": ("qa",),
    "math_reasoning": ("math_reasoning",),
    "rag": ("rag",),
}  # fmt: skip
"""Raw categories of each domain. `math` belongs to mt_bench; only `math_reasoning` is a domain of its own."""

_SCORERS = {
    "translation": "bleu",
    "summarization": "rouge",
    "qa": "qa",
    "math_reasoning": "last_number",
    "rag": "qa",
}
_FILE = "question.jsonl"


def load(request: Request) -> Suite:
    """The loader that the registry calls."""
    return load_spec_bench(request.path, request.settings.qa_references)


def load_spec_bench(path: str | None = None, qa_references: str | None = None) -> Suite:
    """The suite `spec_bench`, from a file, from a folder that holds `question.jsonl`, or else by download.

    A domain with references in every row is scored by its own scorer; `qa` has none in the published file and
    stays unscored but for the rows that the file `qa_references` has answers for. The mt_bench references are notes
    for a judge. The content hash is that of the prompts' file alone. Raises `SuiteError`.
    """
    domain_of = {category: domain for domain, categories in DOMAINS.items() for category in categories}
    file = _rows(path)
    refuse_other(file, "spec_bench")
    read = questions_of(file, categories=domain_of)
    answers = None if qa_references is None else read_qa_references(qa_references, read)
    samples = []
    for question in read.questions:
        category = question.category or ""
        domain = domain_of[category]
        if answers is not None:
            question = answers.added_to(question)
        samples.append(
            question.as_sample(
                suite="spec_bench",
                domain=domain,
                category=category,
                scorer=_scorer(domain, question),
                language="en" if domain == "translation" else None,
            )
        )
    return Suite(
        name="spec_bench",
        samples=tuple(samples),
        content_hash=read.sha256,
        source=read.name,
        licence="Apache-2.0 (the texts it quotes keep their own)",
        notes=(*read.notes, *_difference(read)),
        answers_from={"qa": answers.origin} if answers is not None else {},
    )


def download_spec_bench(
    cache_dir: Path, *, url: str = URL, expected_sha256: str = SHA256, timeout_s: float = 10.0
) -> Path:
    """The published `question.jsonl` below `cache_dir`; fetched unless it is there with the expected hash.

    Raises `SuiteError` after at most about `timeout_s` seconds when it cannot be had; the message names the
    way without a network.
    """
    published = Published(url=url, file=_FILE, version=expected_sha256[:12], sha256=expected_sha256)
    return download(published, suite="spec_bench", cache_dir=cache_dir, timeout_s=timeout_s)


def _rows(path: str | None) -> RowFile:
    if path is None:
        return read_rows(download_spec_bench(default_cache()))
    if path.startswith(PREFIX):
        offline = Published(url=URL, file=_FILE, version=SHA256[:12]).offline("spec_bench")
        return hub_rows(hub_place(path), suite="spec_bench", offline=offline)
    return read_rows(path, what=_FILE, files=(_FILE, f"data/spec_bench/{_FILE}"))


def _scorer(domain: str, question: Question) -> str | None:
    return _SCORERS.get(domain) if question.has_references else None


def _difference(read: QuestionFile) -> list[str]:
    if read.sha256 == SHA256:
        return []
    return [
        f"{read.name} is not the published Spec-Bench file ({len(read.questions)} questions, sha256 "
        f"{read.sha256[:12]}…): figures are not comparable with published ones"
    ]
