"""The bundled suite: our own short texts in every domain of Spec-Bench and SPEED-Bench.

It makes the first run work without a download and shows how a method behaves on each kind of prompt. It is no
benchmark: a handful of samples per domain cannot rank methods.
"""

from importlib.resources import files

from draftboard.suites.errors import SuiteError
from draftboard.suites.jsonl import parse_questions
from draftboard.suites.request import Request
from draftboard.suites.sample import Suite

__all__ = ["load", "load_mini"]

_FILE = "mini.jsonl"


def load(request: Request) -> Suite:
    """The loader that the registry calls."""
    return load_mini()


def load_mini() -> Suite:
    """The bundled suite `mini`; domains are named after the suite and the column they mirror."""
    data = files("draftboard.suites").joinpath("data", _FILE).read_bytes()
    read = parse_questions(data, _FILE)
    samples = []
    for question in read.questions:
        domain = question.meta.get("domain")
        if not isinstance(domain, str):
            raise SuiteError(f"{_FILE}:{question.line}: no `domain`")
        category = question.category or domain.rpartition("/")[2]
        samples.append(question.as_sample(suite="mini", domain=domain, category=category))
    return Suite(
        name="mini",
        samples=tuple(samples),
        content_hash=read.sha256,
        source=_FILE,
        licence="Apache-2.0",
        notes=read.notes,
    )
