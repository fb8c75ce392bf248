"""The one shape that every suite yields, whatever file it came from.

A runner that knows `Sample` and `Suite` can run any of them, and a scorer needs nothing else to score an
answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from draftboard.suites.errors import SuiteError
from draftboard.suites.scorers import is_scorer

__all__ = ["Raw", "Sample", "Suite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """A prompt that is continued as it stands, without a chat template: header, examples and turn, a blank line apart.

    Examples are dropped from the end, one at a time, until prompt and budget fit the model's window.
    """

    header: str = ""
    examples: tuple[str, ...] = ()


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
    """One of `scorer_names()`; None means unscored, even where references exist (notes for a judge)."""
    language: str | None = None
    """ISO 639 code of the language that the answer should be in; decides the tokenizer of BLEU."""
    options: tuple[str, ...] = ()
    """Texts of the options A, B, … of a letter question."""
    group: str | None = None
    """A class between domain and category that accuracies are given for too, such as MMLU's `stem`."""
    context: str = ""
    """What a code answer continues: the head of the function, imports included."""
    max_new_tokens: int | None = None
    """The suite's own longest output of a turn; a run's smaller limit goes before it. None leaves it to the run."""
    stop: tuple[str, ...] = ()
    """Texts that end a turn, beside those of the run."""
    raw: Raw | None = None
    """Given for prompts that no chat template may touch; such a sample has one turn."""
    choices: tuple[str, ...] = ()
    """Given where nothing is written: the answer is the likeliest of these continuations of the prompt, and only
    the baseline is asked, since a draft has no part in it."""
    timed: bool = True
    """False keeps the sample out of every speed and acceptance figure: a few tokens measure no decoding."""
    meta: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.turns:
            raise SuiteError(f"sample {self.sample_id} of suite {self.suite} has no turns")
        if self.references and len(self.references) != len(self.turns):
            raise SuiteError(
                f"sample {self.sample_id} of suite {self.suite} has {len(self.turns)} turns, "
                f"but references for {len(self.references)}"
            )
        if self.raw is not None and (len(self.turns) > 1 or self.system is not None):
            raise SuiteError(f"sample {self.sample_id} of suite {self.suite}: a raw prompt has one turn and no system")
        if self.scorer is not None and not is_scorer(self.scorer):
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
    """What a reader of the figures has to know, such as a file that differs from the published one; `all_notes` has
    more."""
    answers_from: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Domain → where references come from that the suite's own file lacks. They may be for some of its samples only."""

    def __post_init__(self) -> None:
        if not self.samples:
            raise SuiteError(f"suite {self.name} ({self.source}) has no samples")
        seen: set[str] = set()
        for sample in self.samples:
            if sample.sample_id in seen:
                raise SuiteError(f"suite {self.name} ({self.source}) has two samples with the id {sample.sample_id}")
            seen.add(sample.sample_id)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """`notes`, and for each domain of `answers_from` how many of the samples chosen are scored."""
        told = []
        for domain, origin in self.answers_from.items():
            inside = [sample for sample in self.samples if sample.domain == domain]
            scored = sum(sample.scorer is not None for sample in inside)
            rest = len(inside) - scored
            left = f"; the other {rest} {'is' if rest == 1 else 'are'} left out of the score" if rest else ""
            if inside:
                asked = f"{len(inside)} {'question asked is' if len(inside) == 1 else 'questions asked are'} scored"
                told.append(f"{domain}: {scored} of {asked}, with answers from {origin} where the suite has none{left}")
        return (*self.notes, *told)

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
