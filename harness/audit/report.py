"""What an audit found, as plain records: one document, `audit.json` in the run's folder."""

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

__all__ = ["SCHEMA", "Difference", "Evidence", "Limit", "MethodAudit", "Report", "SamplingAudit", "document"]

SCHEMA = 1

Verdict = Literal["identical", "tie-divergent", "mismatch", "length", "unjudged", "not compared"]
"""The worst that a method's turns came to. `length`: one output is the beginning of the other. `unjudged`: outputs
differ, and the target's scores there are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """Up to which difference of logits two tokens count as tied (theta; suites-and-scoring 9.2)."""

    value: float
    source: Literal["measured", "given", "default"]
    """`measured` on the machine that audited, `given` by the user, `default` of the number format."""
    positions: int = 0
    """Positions that it was measured over."""
    percentile: float | None = None
    """99.9th percentile of |logit difference| between cached decoding and one full forward; the limit is twice that,
    but at least the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one full forward of the target says at a first difference. Logits; None where one is infinite."""

    best: int | None
    """The token that the target likes best; None where only a stored judgement is at hand."""
    gap: float | None
    """Best minus second best."""
    baseline_below: float | None
    """Best minus the baseline's token."""
    method_below: float | None
    baseline_rank: int | None = None
    """1 for the best; tokens of equal score share a rank."""
    method_rank: int | None = None

    @property
    def margin(self) -> float | None:
        """Score of the baseline's token less that of the method's."""
        if self.baseline_below is None or self.method_below is None:
            return None
        return self.method_below - self.baseline_below

    def sides_with(self, baseline: int | None, method: int | None) -> Literal["baseline", "method", "neither", ""]:
        """Whose token the target's best is; empty where that is not known."""
        if self.best is None:
            return ""
        return "baseline" if self.best == baseline else "method" if self.best == method else "neither"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A turn whose outputs differ. Places and turns are counted from 0."""

    sample: str
    repeat: int
    turn: int
    domain: str
    outcome: str
    """near-tie, mismatch, length, or different where it could not be judged."""
    place: int
    baseline_token: int | None
    """None where the output had ended."""
    method_token: int | None
    shared: float
    """Common prefix as a share of the baseline's output."""
    gap: float | None = None
    """Best minus second-best logit of the target there."""
    margin: float | None = None
    """Logit of the baseline's token less that of the method's."""
    baseline_below: float | None = None
    """Best logit less that of the baseline's token."""
    method_below: float | None = None
    baseline_rank: int | None = None
    method_rank: int | None = None
    judged_by: Literal["model", "stored", ""] = ""
    """`model`: looked at in this audit; `stored`: as the run wrote it down."""
    sides_with: Literal["baseline", "method", "neither", ""] = ""
    """Whose token the target's best is, in the run's number format …"""
    float32_sides_with: Literal["baseline", "method", "neither", ""] = ""
    """… and in float32; empty where it was not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodAudit:
    """One method against the baseline."""

    method: str
    lossless: bool
    """Whether it claims to be."""
    verdict: Verdict
    passed: bool
    reason: str = ""
    """Why it does not pass."""
    counts: dict[str, int] = field(default_factory=dict)
    """Turns by outcome."""
    domains: dict[str, dict[str, int]] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def faulty(self) -> bool:
        """Whether it breaks its own claim."""
        return self.lossless and not self.passed


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyCheck:
    """Total variation of the first two tokens' joint distribution from the exact one, on a toy vocabulary."""

    methods: tuple[str, ...]
    """Those with this verifier."""
    draft: str
    """How the toy drafts were made."""
    lossless: bool
    draws: int
    variation: float
    plain: tuple[float, float]
    """The same of two batches of plain decoding."""
    p_value: float
    """Chi-square of the draws against the exact distribution."""
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCheck:
    """The first token that a step writes, behind one prompt, against the target's own probabilities."""

    sample: str
    statistic: float | None
    """None for infinite: a token was drawn that the target cannot choose."""
    degrees: int
    p_value: float
    adjusted: float
    """After Holm, over the prompts of the method."""
    drafted: int
    """Draws whose step had a draft."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCheck:
    """One method on the run's own model."""

    method: str
    lossless: bool
    draws: int
    """A prompt."""
    prompts: tuple[PromptCheck, ...] = ()
    passed: bool | None = None
    """None where it could not be checked; then `reason` says why."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck:
    """Speculative sampling whose draft model is the target: everything has to be accepted."""

    where: str
    drafted: int
    accepted: int
    allowed: float
    """Share of rejections that rounding may cause."""
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingAudit:
    """The checks of sampling (suites-and-scoring 9.3)."""

    temperature: float
    top_p: float
    top_k: int
    level: float
    """Chance with which a right method fails one of these tests."""
    toy: tuple[ToyCheck, ...]
    model: tuple[ModelCheck, ...] = ()
    itself: tuple[SelfCheck, ...] = ()
    skipped: str = ""
    """Why the model was not asked."""

    @property
    def faults(self) -> tuple[str, ...]:
        """What failed of methods that claim to be lossless, a line each."""
        return (
            *(
                f"{', '.join(c.methods)}: {c.draft}: total variation {c.variation:.4f}, plain decoding "
                f"{c.plain[0]:.4f} and {c.plain[1]:.4f}; p = {c.p_value:.2g}"
                for c in self.toy
                if c.lossless and not c.passed
            ),
            *(
                f"{c.method}: on {p.sample} its tokens do not follow the target's probabilities (p = {p.adjusted:.2g})"
                for c in self.model
                if c.lossless and c.passed is False
                for p in c.prompts
                if p.adjusted <= self.level
            ),
            *(
                f"draft = target ({c.where}): {c.accepted} of {c.drafted} drafted tokens accepted"
                for c in self.itself
                if not c.passed
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole audit."""

    model: str
    dtype: str
    baseline: str
    exact: bool
    """Whether ties fail too."""
    limit: Limit | None
    """None where nothing was compared token by token."""
    methods: tuple[MethodAudit, ...]
    sampling: SamplingAudit | None = None
    notes: tuple[str, ...] = ()
    schema: int = SCHEMA

    @property
    def passed(self) -> bool:
        """Whether every method keeps its claim."""
        return not any(m.faulty for m in self.methods) and not (self.sampling and self.sampling.faults)


def document(report: Report) -> dict[str, Any]:
    """Return the report as plain JSON data."""
    plain: dict[str, Any] = msgspec.to_builtins(report)
    return {"format": "draftboard-audit", "passed": report.passed, **plain}
