"""The static automaton of a corpus as an artifact: made once by `draftboard prepare samd`, bound to a vocabulary."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any

from draftboard.methods.artifact import Workshop, read_artifact, write_artifact
from draftboard.methods.errors import MethodError
from draftboard.methods.samd.static import StaticAutomaton

__all__ = ["KIND", "check_corpus", "load_corpus", "prepare_corpus"]

KIND = "samd-static"
_FILE = "automaton.safetensors"


def prepare_corpus(workshop: Workshop) -> dict[str, Any]:
    """Build the automaton over all documents and write the artifact; return its record."""
    start = monotonic()
    documents = [document for document in workshop.documents if document]
    if not documents:
        raise MethodError("the corpus holds no text")
    tokens = sum(map(len, documents))
    workshop.say(f"building the automaton of {len(documents)} documents, {tokens} tokens")
    automaton = StaticAutomaton.build(documents, eos=workshop.eos_id, vocab_size=workshop.vocab_size)
    record = {
        "kind": KIND,
        "method": "samd",
        "vocabulary_sha256": workshop.vocabulary_sha256,
        "documents": len(documents),
        "tokens": tokens,
        "states": automaton.states,
        "duration_s": round(monotonic() - start, 3),
        **workshop.provenance,
    }
    write_artifact(workshop.out, record, lambda folder: automaton.save(folder / _FILE))
    return record


def check_corpus(folder: Path, vocabulary_sha256: str, target: str) -> None:
    """Raise MethodError unless the artifact is there, whole, and was made with the target's token table."""
    record = read_artifact(folder, KIND)
    if record.get("vocabulary_sha256") != vocabulary_sha256:
        raise MethodError(
            f"{folder}: the static automaton was made for {record.get('target', 'another model')}, whose token table "
            f"differs from that of {target}; run draftboard prepare samd --model {target}"
        )
    # A damaged file would fail every cell of the run; it is read once a process, so that this costs nothing.
    load_corpus(folder)


def load_corpus(folder: Path) -> StaticAutomaton:
    """Load the automaton; the same unchanged folder is read once a process."""
    path = folder / _FILE
    try:
        return _load(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise MethodError(f"{path} cannot be read: {error.strerror or error}") from error


@lru_cache(maxsize=2)
def _load(path: Path, changed_ns: int) -> StaticAutomaton:
    return StaticAutomaton.load(path)
