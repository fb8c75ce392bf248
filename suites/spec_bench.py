"""Spec-Bench: 480 prompts in six domains, the suite that most papers on speculative decoding report.

The benchmark's text is not shipped: it quotes third parties under several licences. It is read from the
user's copy of `question.jsonl` or fetched once from the benchmark's own repository, at a pinned commit and
hash.
"""

import threading
import urllib.error
import urllib.request
from hashlib import sha256
from http.client import HTTPException
from os import environ, getpid
from pathlib import Path

from draftboard.suites.errors import SuiteError
from draftboard.suites.fields import Question
from draftboard.suites.jsonl import QuestionFile, read_questions
from draftboard.suites.request import Request
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
_OFFLINE = f"Get {URL} on another machine and use --suite spec_bench@PATH/{_FILE}"


def load(request: Request) -> Suite:
    """The loader that the registry calls."""
    return load_spec_bench(request.path)


def load_spec_bench(path: str | None = None) -> Suite:
    """The suite `spec_bench`, from a file, from a folder that holds `question.jsonl`, or else by download.

    A domain with references in every row is scored by its own scorer; `qa` has none in the published file and
    stays unscored, and the mt_bench references are notes for a judge. Raises `SuiteError`.
    """
    file = download_spec_bench(default_cache()) if path is None else _inside(path)
    domain_of = {category: domain for domain, categories in DOMAINS.items() for category in categories}
    read = read_questions(file, categories=domain_of)
    samples = []
    for question in read.questions:
        category = question.category or ""
        domain = domain_of[category]
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
    )


def default_cache() -> Path:
    """The folder for downloaded suites: `$DRAFTBOARD_CACHE/suites`, else below the user's cache folder."""
    own = environ.get("DRAFTBOARD_CACHE")
    if own:
        return Path(own) / "suites"
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "draftboard" / "suites"


def download_spec_bench(
    cache_dir: Path, *, url: str = URL, expected_sha256: str = SHA256, timeout_s: float = 10.0
) -> Path:
    """The published `question.jsonl` below `cache_dir`; fetched unless it is there with the expected hash.

    Raises `SuiteError` after at most about `timeout_s` seconds when it cannot be had; the message names the
    way without a network.
    """
    target = cache_dir / "spec_bench" / expected_sha256[:12] / _FILE
    try:
        if target.is_file() and sha256(target.read_bytes()).hexdigest() == expected_sha256:
            return target
    except OSError as error:
        raise SuiteError(f"{target}: cannot be read ({error.strerror})", advice=_OFFLINE) from error
    data = _fetch(url, timeout_s)
    found = sha256(data).hexdigest()
    if found != expected_sha256:
        raise SuiteError(
            f"spec_bench: {url} gave other bytes than published (sha256 {found}, expected {expected_sha256})",
            advice=_OFFLINE,
        )
    partial = target.with_name(f"{_FILE}.{getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(target)
    except OSError as error:
        raise SuiteError(f"{target}: cannot be written ({error.strerror})", advice=_OFFLINE) from error
    return target


def _fetch(url: str, timeout_s: float) -> bytes:
    # The socket's own timeout covers neither name resolution nor a server that sends a byte now and then.
    outcome: list[bytes | str] = []

    def get() -> None:
        try:
            with urllib.request.urlopen(url, timeout=timeout_s) as response:
                outcome.append(response.read())
        except urllib.error.HTTPError as error:
            with error:
                outcome.append(f"HTTP status {error.code}")
        except (OSError, HTTPException, ValueError) as error:
            outcome.append(str(getattr(error, "reason", error)) or type(error).__name__)

    worker = threading.Thread(target=get, name="draftboard-download", daemon=True)
    worker.start()
    worker.join(timeout_s)
    result = outcome[0] if outcome else f"no answer within {timeout_s:g} s"
    if isinstance(result, str):
        raise SuiteError(f"spec_bench: {url} is not reachable ({result})", advice=_OFFLINE)
    return result


def _inside(path: str) -> Path:
    folder = Path(path).expanduser() if path.startswith("~/") else Path(path)
    if not folder.is_dir():
        return folder
    if not (folder / _FILE).exists():
        raise SuiteError(f"{path}: this directory holds no {_FILE}", advice=f"Use spec_bench@PATH/{_FILE}")
    return folder / _FILE


def _scorer(domain: str, question: Question) -> str | None:
    return _SCORERS.get(domain) if question.has_references else None


def _difference(read: QuestionFile) -> list[str]:
    if read.sha256 == SHA256:
        return []
    return [
        f"{read.name} is not the published Spec-Bench file ({len(read.questions)} questions, sha256 "
        f"{read.sha256[:12]}…): figures are not comparable with published ones"
    ]
