"""What a run keeps on disk, as plain records. One line of `generations.jsonl` is one `Cell`."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from draftboard.scoring import Scores
from draftboard.suites import Sample

__all__ = [
    "SCHEMA",
    "Cell",
    "Divergence",
    "SampleRecord",
    "ScoreRecord",
    "Status",
    "TraceRecord",
    "TracedStep",
    "TracedTurn",
    "Turn",
    "sample_record",
]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedStep:
    """One draft and what came of it. Node 0 is the root: the last token that was kept before the step."""

    tokens: list[int]
    """Id of every node."""
    parents: list[int]
    """Of every node, -1 for the root; a parent stands before its child."""
    texts: list[str]
    """Text of every node behind its parents. Empty where only a later node completes the character."""
    path: list[int]
    """Accepted nodes in order, the root first."""
    kept: int
    """Tokens that became output: accepted plus bonus, after the cut by an end or a limit."""
    draft_ns: int
    verify_ns: int
    other_ns: int
    special: dict[int, str] = field(default_factory=dict)
    """Names of the nodes that are special tokens, which have no text."""

    def __post_init__(self) -> None:
        nodes = range(len(self.tokens))
        if not len(self.parents) == len(self.texts) == len(nodes) > 0:
            raise ValueError("a step needs one parent and one text a node, and at least the root")
        if self.parents[0] != -1 or any(not 0 <= self.parents[node] < node for node in nodes[1:]):
            raise ValueError("the parents of a step's draft form no tree")
        if self.path[:1] != [0] or any(node not in nodes for node in self.path):
            raise ValueError("a step's path starts at the root and stays in the draft")
        if any(self.parents[node] != before for before, node in pairwise(self.path)):
            raise ValueError("a step's path leaves the draft")
        if not 0 <= self.kept <= len(self.path):
            raise ValueError("a step keeps at most its accepted tokens and one more")

    @property
    def accepted(self) -> int:
        """Drafted tokens that the target took, before any cut."""
        return len(self.path) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedTurn:
    """What one turn was asked with and wrote, token by token."""

    prompt: str
    """As rendered: what the target read."""
    pieces: list[str]
    """Text of every kept token; joined they are the decoded answer, before it is cut at a stop text and stripped. A
    token that only begins a character has an empty piece, and the token that completes it has the character."""
    special: dict[int, str] = field(default_factory=dict)
    """Names of the kept tokens that have no text because they are special, by place."""
    steps: list[TracedStep] = field(default_factory=list)
    prefill_emits: int = 1
    """Kept tokens before the first step's."""

    def __post_init__(self) -> None:
        if self.prefill_emits + sum(step.kept for step in self.steps) != len(self.pieces):
            raise ValueError("the steps of a turn keep another number of tokens than it has pieces")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRecord:
    """How one cell of the first round came about. One line of `traces.jsonl`; cells that ended badly have none."""

    method: str
    sample: str
    turns: list[TracedTurn]
    schema: int = SCHEMA
