"""What a run came to, as plain data: the only thing that leaderboards see.

A `Results` holds groups; only the methods of one group may share a ranking, because they ran on the same target,
dtype, hardware, suite, sampling and limits. Every number is a `Figure`: a value with its n, or the reason why there
is none. No renderer invents a number, and no figure here is rounded.
"""

from dataclasses import dataclass, field

__all__ = ["SCHEMA", "DomainResult", "Figure", "Group", "Interval", "MethodResult", "Results", "Verdict"]

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval of a figure; `level` is a fraction such as 0.95."""

    low: float
    high: float
    level: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number with the count it rests on. `value` is None when there is none; `reason` then says why."""

    value: float | None
    n: int | None = None
    """Samples that the value rests on; None where a foreign file does not say. Of a figure by position: its
    denominator."""
    reason: str = ""
    signature: str = ""
    """How it was computed where the name does not say all: sacrebleu's signature, or what could not be told apart."""
    interval: Interval | None = None
    p: float | None = None
    """Two-sided p-value of a difference that this figure states; None where no test was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a run can be rested on, with each reason why not."""

    valid: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainResult:
    """One method on one domain. `figures` is keyed by metric name (see `draftboard.metrics`)."""

    domain: str
    figures: dict[str, Figure] = field(default_factory=dict)
    samples: int | None = None
    """Samples that ended without error."""
    failed: int = 0
    skipped: int = 0
    positions: dict[str, tuple[Figure, ...]] = field(default_factory=dict)
    """Acceptance by place in the draft; index k - 1 is place k. `joint`: accepted at k or beyond, over steps that
    drafted that far; `conditional`: over those of them that accepted place k - 1; `vllm`: over all steps that drafted;
    `all_steps`: kept at k or beyond, over all steps.
    Empty where nothing was drafted."""
    diverged_turns: int = 0
    """Turns, all rounds counted, whose prompt differs from the baseline's: in no paired figure."""
    score_counts: dict[str, int] = field(default_factory=dict)
    """What the scorers counted, all rounds added: `answers`, `failed`, `empty`, `unparsed`, `rule:...`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodResult:
    """One method over all domains of its group."""

    method: str
    """The label shown in tables."""
    domains: dict[str, DomainResult] = field(default_factory=dict)
    overall: dict[str, Figure] = field(default_factory=dict)
    output: str = ""
    """`identical`, `tie-divergent`, `different`, `lossy`; of an imported run, where only text is known, `text-equal` or
    `text-different`; empty when not compared with the baseline."""
    lossless: bool | None = None
    """What the method claims; None where unknown."""
    settings: dict[str, object] = field(default_factory=dict)
    reference: str = ""
    """The paper."""
    notes: tuple[str, ...] = ()
    positions: dict[str, tuple[Figure, ...]] = field(default_factory=dict)
    """As in `DomainResult`, over all timed domains."""
    diverged_turns: int = 0
    """As in `DomainResult`, over all domains."""
    tied_with: tuple[str, ...] = ()
    """Methods of the group whose speedup over this one (or this one's over them) cannot be told from 1."""
    artifact: dict[str, object] = field(default_factory=dict)
    """Provenance of what the method had to make beforehand: kind, target, settings, data, duration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Methods that may be compared. `conditions` names everything they share, ready to be shown."""

    model: str
    hardware: str
    suite: str
    baseline: str = "autoregressive"
    conditions: dict[str, str] = field(default_factory=dict)
    """For example dtype, suite hash, sampling, max_new_tokens, threads, versions."""
    domains: tuple[str, ...] = ()
    methods: tuple[MethodResult, ...] = ()
    notes: tuple[str, ...] = ()
    verdict: Verdict | None = None
    """None where nobody judged, as with rows of numbers from elsewhere."""
    environment: dict[str, object] = field(default_factory=dict)
    """The record of hardware and software that the run was made under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that one rendering shows."""

    groups: tuple[Group, ...]
    schema: int = SCHEMA
    title: str = "Speculative decoding leaderboard"
