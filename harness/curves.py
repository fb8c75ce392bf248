"""Cost curves as runs keep them: whether one was disturbed, and an earlier run's for a run that has to draft alike.

A curve is measured anew by every run, and on a busy machine differs from one run to the next; so do the drafts that
`budget=auto` sizes to it. Two runs that are compared had better share one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from draftboard.errors import UserError
from draftboard.store import read_run

__all__ = ["FALL", "Fall", "KnownCurve", "deepest_fall", "known_curve"]

FALL = 0.1
"""More rows are more work. A cost that lies further than this below that of fewer rows is not the machine's own."""

_ADVICE = "Name a run of this model on this machine, or leave --curve out to measure anew."


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """The deepest fall of a cost curve: `rows` cost less than `fewer` rows by `depth`, a part of the larger cost."""

    fewer: int
    rows: int
    depth: float


def deepest_fall(rows: Sequence[int], cost: Sequence[float]) -> Fall | None:
    """Return the deepest fall against the dearest smaller row count; None where the curve never falls."""
    worst: Fall | None = None
    dearest, at = 0.0, 0
    for count, price in zip(rows, cost, strict=True):
        if price >= dearest:
            dearest, at = price, count
            continue
        depth = 1 - price / dearest if dearest else 0.0
        if depth > (worst.depth if worst else 0.0):
            worst = Fall(fewer=at, rows=count, depth=depth)
    return worst


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCurve:
    """A measured curve and what it was measured on."""

    curve: dict[str, Any]
    """As environment.json has it, with the name of the run it is from."""
    where: str
    measured_on: dict[str, str]
    measured: dict[str, Any] = field(default_factory=dict)
    """What that run's methods measured, by label; such as the cost of a head."""

    def check(self, here: dict[str, str]) -> None:
        """Raise UserError if it was measured on something else than `here`, by the same names."""
        differing = tuple(
            f"{name}: there {self.measured_on.get(name) or 'not said'}, here {value}"
            for name, value in here.items()
            if self.measured_on.get(name) != value
        )
        if differing:
            raise UserError(
                "its cost curve is of another target or machine", where=self.where, problems=differing, advice=_ADVICE
            )


def known_curve(path: Path) -> KnownCurve:
    """Return the curve of a run's folder. Raises UserError for what is no run, or one that measured none."""
    run = read_run(path)
    curve = run.environment.get("cost_curve")
    if not curve:
        raise UserError("has no cost curve", where=str(path), advice=_ADVICE)
    return KnownCurve(
        curve={**{name: curve[name] for name in ("rows", "cost", "one_row_s")}, "taken_from": path.resolve().name},
        where=str(path),
        measured_on={
            "model": str(run.plan.get("model_fingerprint") or ""),
            "dtype": str((run.plan.get("resolved") or {}).get("dtype") or ""),
            "hardware": str(run.environment.get("hardware") or ""),
        },
        measured=dict(run.environment.get("measured") or {}),
    )
