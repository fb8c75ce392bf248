"""What a comparison comes to, as plain data."""

from dataclasses import dataclass, field
from typing import Literal

from draftboard.results import Interval

__all__ = ["Change", "Check", "Outcome", "Report"]

Outcome = Literal["pass", "fail", "not comparable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One figure before and after. `ratio` is after over before, turned so that above 1 is better."""

    figure: str
    """Its name as a reader should see it, how it was pooled included."""
    before: float
    after: float
    ratio: float
    interval: Interval | None
    """Of the ratio, widened by the noise floor."""
    p: float | None = None
    noise_floor: float | None = None
    """In log scale; None where it is not known."""
    n: int | None = None
    """Paired samples, or those that the stored figures rest on."""
    rounds: int | None = None
    decision: Literal["faster", "same", "slower"] = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One method."""

    method: str
    outcome: Outcome
    gated: bool = True
    """False: shown, but no rule is applied to its speed."""
    speed: Change | None = None
    domains: dict[str, Change] = field(default_factory=dict)
    acceptance: Change | None = None
    output: tuple[str, str] = ("", "")
    """Before and after."""
    reasons: tuple[str, ...] = ()
    """Why it failed, or cannot be compared."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole comparison."""

    before: str
    after: str
    rules: dict[str, str]
    """The gate's rules, ready to be shown."""
    checks: tuple[Check, ...]
    refused: tuple[str, ...] = ()
    """Conditions that differ; nothing was compared then."""
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 where a method fails, 2 where one (or everything) cannot be compared and none fails, else 0."""
        outcomes = {check.outcome for check in self.checks}
        if "fail" in outcomes:
            return 1
        return 2 if self.refused or "not comparable" in outcomes or not outcomes else 0
