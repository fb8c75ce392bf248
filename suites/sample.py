"""The one shape that every suite yields, whatever file it came from.

A runner that knows `Sample` and `Suite` can run any of them, and a scorer needs nothing else to score an
answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from draftboard.suites.errors import SuiteError

__all__ = ["SCORERS", "Sample", "Suite", "limited"]

SCORERS = ("bleu", "rouge", "last_number", "letter", "qa")
"""The names that `Sample.scorer` may take beside None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One conversation of a suite. Raises `SuiteError` if it has no turns or references for other turns."""

    sample_id: str
    suite: str
    domain: str
    """The column of a table that this sample counts in."""
    category: str
    """The raw category of the file; several may form one domain."""
    turns: tuple[str, ...]
    """User messages in order, exactly as stored; at least one."""
    system: str | None = None
    references: tuple[tuple[str, ...], ...] = ()
    """Per turn the alternatives, any of which is right. A turn without a reference has an empty tuple; a
    sample without any may also leave the whole field empty."""
    scorer: str | None = None
    """One of `SCORERS`; None means unscored, even where references exist (notes for a judge)."""
    language: str | None = None
    """ISO 639 code of the language that the answer should be in; decides the tokenizer of BLEU."""
    options: tuple[str, ...] = ()
    """Texts of the options A, B, … of a letter question."""
    meta: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.turns:
            raise SuiteError(f"sample {self.sample_id} of suite {self.suite} has no turns")
        if self.references and len(self.references) != len(self.turns):
            raise SuiteError(
                f"sample {self.sample_id} of suite {self.suite} has {len(self.turns)} turns, "
                f"but references for {len(self.references)}"
            )
        if self.scorer is not None and self.scorer not in SCORERS:
            raise SuiteError(f"sample {self.sample_id} of suite {self.suite} has the unknown scorer {self.scorer}")

    def references_of(self, turn: int) -> tuple[str, ...]:
        """The alternatives for the answer to `turn` (counted from 0); empty if there is none."""
        return self.references[turn] if self.references else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Samples in a stable order and where they came from.

    Raises `SuiteError` if there are none or if an id occurs twice.
    """

    name: str
    """As the user named it, without the path: `spec_bench`, `jsonl`, …"""
    samples: tuple[Sample, ...]
    content_hash: str
    """sha256 (hex) of the bytes that the samples were read from; the same for every part of one suite."""
    source: str
    """File name without its folders, so that a stored run names no home path."""
    licence: str = "unknown"
    wording_version: int = 1
    """Raised whenever this loader words its prompts differently."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures has to know, such as a file that differs from the published one."""

    def __post_init__(self) -> None:
        if not self.samples:
            raise SuiteError(f"suite {self.name} ({self.source}) has no samples")
        seen: set[str] = set()
        for sample in self.samples:
            if sample.sample_id in seen:
                raise SuiteError(f"suite {self.name} ({self.source}) has two samples with the id {sample.sample_id}")
            seen.add(sample.sample_id)

    @property
    def domains(self) -> tuple[str, ...]:
        """Domains in the order of their first sample."""
        return tuple(self.counts)

    @property
    def counts(self) -> dict[str, int]:
        """Samples per domain, in the order of `domains`."""
        counts: dict[str, int] = {}
        for sample in self.samples:
            counts[sample.domain] = counts.get(sample.domain, 0) + 1
        return counts


def limited(suite: Suite, limit: int, seed: int) -> Suite:
    """The suite with at most `limit` samples per domain, in the suite's own order.

    Samples are ranked by sha256 of `"{seed}:{sample_id}"` (hex). Within a domain the raw categories take
    turns, each giving its next best ranked sample; the category that holds the best ranked sample begins. A
    smaller limit therefore always chooses a subset of a larger one, and the choice depends on nothing but
    ids, categories and seed. Raises `SuiteError` if `limit` is below 1.
    """
    if limit < 1:
        raise SuiteError(f"a limit of {limit} samples per domain leaves nothing to run", advice="Use 1 or more.")
    ranked = sorted(suite.samples, key=lambda sample: sha256(f"{seed}:{sample.sample_id}".encode()).hexdigest())
    domains: dict[str, dict[str, list[str]]] = {}
    for sample in ranked:
        domains.setdefault(sample.domain, {}).setdefault(sample.category, []).append(sample.sample_id)
    chosen: set[str] = set()
    for categories in domains.values():
        chosen.update(_round_robin(list(categories.values()))[:limit])
    return replace(suite, samples=tuple(sample for sample in suite.samples if sample.sample_id in chosen))


def _round_robin(queues: list[list[str]]) -> list[str]:
    longest = max(len(queue) for queue in queues)
    return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]
