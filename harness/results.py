"""What a run came to, as plain data: the only thing that leaderboards see.

A `Results` holds groups; only the methods of one group may share a ranking, because they ran on the same target,
dtype, hardware, suite, sampling and limits. Every number is a `Figure`: a value with its n, or the reason why there
is none. No renderer invents a number, and no figure here is rounded.
"""

from dataclasses import dataclass, field

__all__ = ["SCHEMA", "DomainResult", "Figure", "Group", "Interval", "MethodResult", "Results"]

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
    """Samples that the value rests on; None where a foreign file does not say."""
    reason: str = ""
    signature: str = ""
    """How a quality score was computed (sacrebleu signature and the like)."""
    interval: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainResult:
    """One method on one domain. `figures` is keyed by metric name (see `draftboard.metrics`)."""

    domain: str
    figures: dict[str, Figure] = field(default_factory=dict)
    samples: int | None = None
    """Samples that ended without error."""
    failed: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodResult:
    """One method over all domains of its group."""

    method: str
    """The label shown in tables."""
    domains: dict[str, DomainResult] = field(default_factory=dict)
    overall: dict[str, Figure] = field(default_factory=dict)
    output: str = ""
    """`identical`, `tie-divergent`, `different`, `lossy`; empty when not compared with the baseline."""
    lossless: bool | None = None
    """What the method claims; None where unknown."""
    settings: dict[str, object] = field(default_factory=dict)
    reference: str = ""
    """The paper."""
    notes: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that one rendering shows."""

    groups: tuple[Group, ...]
    schema: int = SCHEMA
    title: str = "Speculative decoding leaderboard"
