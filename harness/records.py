"""What a run keeps on disk, as plain records. One line of `generations.jsonl` is one `Cell`."""

from dataclasses import dataclass, field
from typing import Any, Literal

from draftboard.scoring import Scores
from draftboard.suites import Sample

__all__ = ["SCHEMA", "Cell", "Divergence", "SampleRecord", "ScoreRecord", "Status", "Turn", "sample_record"]

SCHEMA = 1

Status = Literal["ok", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One user message and what was written. Times are nanoseconds from the request's start."""

    prompt_tokens: int
    prompt_sha256: str
    """Of the prompt's token ids: turns with different prompts are never paired."""
    token_ids: list[int]
    """Kept ids, the end-of-sequence id included. Empty in an imported turn, where only their number is known."""
    text: str
    """Without special tokens, cut before a stop text, stripped."""
    finish: str
    prefill_ns: int | None
    first_ns: int | None
    end_ns: int
    cpu_ns: int | None
    first_cpu_ns: int | None
    """These and the times above are None in an imported turn whose file does not say them."""
    steps: dict[str, Any] = field(default_factory=dict)
    """Columns of the trace: drafted, nodes, accepted, kept, draft_ns, verify_ns, other_ns, end_ns, signals. An imported
    turn may have `accepted` and `kept` alone."""
    tokens: int | None = None
    """Number of kept tokens of an imported turn; None where `token_ids` holds them."""
    prefill_emits: int = 1
    """Tokens that the prefill forward itself produced; they belong to no step."""
    text_tokens: int | None = None
    """Tokens that the tokenizer makes of `text`, its special ones included: only for tables that count as Spec-Bench
    counts its baseline."""

    @property
    def n_tokens(self) -> int:
        """Number of kept tokens."""
        return len(self.token_ids) if self.tokens is None else self.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One method on one sample in one round: the unit of work, of resume and of pairing."""

    method: str
    """The label."""
    sample: str
    """suite/sample_id."""
    repeat: int = 0
    status: Status = "ok"
    reason: str = ""
    """Why it failed or was skipped."""
    turns: list[Turn] = field(default_factory=list)
    load_1min: float | None = None
    """Load average of the machine just before the cell."""
    peak_rss_bytes: int | None = None
    """Largest resident set of the process during the cell, where the system can count it anew."""
    peak_device_bytes: int | None = None
    """Largest allocation on the target's CUDA device during the cell."""
    energy_j: float | None = None
    """What the machine's energy counter took during the cell, everything else on the machine included."""
    schema: int = SCHEMA

    @property
    def key(self) -> tuple[str, str, int]:
        """Identity within the run."""
        return self.method, self.sample, self.repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRecord:
    """A sample as it was asked, with what scoring needs, so that a stored run can be scored without its suite."""

    key: str
    suite: str
    sample_id: str
    domain: str
    category: str
    turns: list[str]
    system: str | None = None
    references: list[list[str]] = field(default_factory=list)
    scorer: str | None = None
    language: str | None = None
    options: list[str] = field(default_factory=list)
    group: str | None = None
    context: str = ""
    timed: bool = True
    """False: counts for quality only."""
    examples_dropped: int = 0
    """Examples of a raw prompt that the model's window has no room for."""
    prompt_tokens: int = 0
    """Of the first turn."""
    prompt_sha256: str = ""
    """Of the first turn's rendered text."""
    schema: int = SCHEMA


def sample_record(suite: str, sample: Sample) -> SampleRecord:
    """Return what a suite says of a sample; what the target makes of it is left open."""
    return SampleRecord(
        key=f"{suite}/{sample.sample_id}",
        suite=suite,
        sample_id=sample.sample_id,
        domain=sample.domain,
        category=sample.category,
        turns=list(sample.turns),
        system=sample.system,
        references=[list(sample.references_of(turn)) for turn in range(len(sample.turns))],
        scorer=sample.scorer,
        language=sample.language,
        options=list(sample.options),
        group=sample.group,
        context=sample.context,
        timed=sample.timed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Where a method's text first left the baseline's, and what the target thinks of both tokens there."""

    method: str
    sample: str
    repeat: int
    turn: int
    place: int
    baseline_token: int
    method_token: int
    gap: float
    """Best minus second-best logit of the target."""
    baseline_below_best: float
    method_below_best: float
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRecord:
    """What one scorer says of one method on one domain in one round."""

    method: str
    domain: str
    repeat: int
    scores: Scores
    answers_sha256: str = ""
    """Of everything that the scorer was given, so that scores of other answers are not taken for theirs."""
    kept: str = ""
    """Why these are the scores of an earlier call: what kept the last one from making them anew."""
    schema: int = SCHEMA
