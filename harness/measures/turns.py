"""Turns with the sums of their steps: what every measure is a function of.

A turn's step columns may be missing, in whole or in part, where it was imported from a file that does not say them.
A sum that needs a missing column is None, and so is every figure that rests on it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from draftboard.records import Cell, Turn

__all__ = ["StepSums", "TurnFacts", "facts", "step_columns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSums:
    """Sums over the steps of one turn (suites-and-scoring 7.1 and 7.2)."""

    count: int
    kept: int
    entries: int
    """Steps that kept anything."""
    accepted: int
    """Drafted tokens that survived the cut: min(accepted, kept) of each step."""
    accepted_raw: int | None
    """Drafted tokens that the verifier took, before the cut."""
    drafted: int | None
    """Lengths of the longest drafted paths."""
    drafting: int | None
    """Steps that drafted at all."""
    nodes: int | None
    draft_ns: int | None
    verify_ns: int | None
    other_ns: int | None

    @property
    def total_ns(self) -> int | None:
        """Time of the steps with all their parts."""
        if self.draft_ns is None or self.verify_ns is None or self.other_ns is None:
            return None
        return self.draft_ns + self.verify_ns + self.other_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """A turn, the cell that it belongs to, and the sums of its steps."""

    sample: str
    repeat: int
    turn: Turn
    steps: StepSums | None
    """None where the steps were not recorded."""

    tokens: int = field(init=False)
    """Kept tokens."""
    seconds: float = field(init=False)
    """End-to-end time."""
    first_tokens: int | None = field(init=False)
    """Tokens of the first emission: the prefill's own, or the first step's where the prefill gave none."""
    decode: tuple[int, float] | None = field(init=False)
    """Tokens after the first emission and the seconds after it; None where there are none or a time is missing."""

    def __post_init__(self) -> None:
        # Dozens of figures read these of every turn.
        turn = self.turn
        tokens = turn.n_tokens
        first, decode = self._first(), None
        if first is not None and turn.first_ns is not None and tokens > first:
            decode = tokens - first, (turn.end_ns - turn.first_ns) / 1e9
        object.__setattr__(self, "tokens", tokens)
        object.__setattr__(self, "seconds", turn.end_ns / 1e9)
        object.__setattr__(self, "first_tokens", first)
        object.__setattr__(self, "decode", decode)

    def _first(self) -> int | None:
        if self.turn.prefill_emits:
            return self.turn.prefill_emits
        if self.steps is None:
            return None
        return next((kept for kept in self.turn.steps.get("kept", ()) if kept), 0)

    @property
    def imported(self) -> bool:
        """Whether the turn was measured elsewhere; its steps' `accepted` then counts what was kept, as far as known."""
        return self.turn.tokens is not None

    @property
    def ends_at_once(self) -> bool:
        """Whether the turn is known to end with its first emission, so that it has no decode time."""
        return self.first_tokens is not None and self.turn.first_ns is not None and self.tokens <= self.first_tokens


def facts(cells: Iterable[Cell]) -> list[TurnFacts]:
    """Return every turn of the cells that ended well."""
    return [
        TurnFacts(sample=cell.sample, repeat=cell.repeat, turn=turn, steps=_sums(turn))
        for cell in cells
        if cell.status == "ok"
        for turn in cell.turns
    ]


def step_columns(turn: Turn) -> dict[str, Any] | None:
    """Return the turn's columns; None where steps were not recorded although there must have been some."""
    if turn.steps:
        return turn.steps
    if turn.n_tokens > turn.prefill_emits:
        return None
    return {name: [] for name in ("drafted", "nodes", "accepted", "kept", *_TIMES, "end_ns")}


_TIMES = ("draft_ns", "verify_ns", "other_ns")


def _sums(turn: Turn) -> StepSums | None:
    columns = step_columns(turn)
    if columns is None:
        return None
    accepted: Sequence[int] = columns["accepted"]
    kept: Sequence[int] = columns["kept"]
    drafted: Sequence[int] | None = columns.get("drafted")
    return StepSums(
        count=len(kept),
        kept=sum(kept),
        entries=sum(map(bool, kept)),
        accepted=sum(map(min, accepted, kept)),
        accepted_raw=sum(accepted) if turn.tokens is None else None,
        drafted=None if drafted is None else sum(drafted),
        drafting=None if drafted is None else sum(map(bool, drafted)),
        nodes=_sum(columns, "nodes"),
        draft_ns=_sum(columns, "draft_ns"),
        verify_ns=_sum(columns, "verify_ns"),
        other_ns=_sum(columns, "other_ns"),
    )


def _sum(columns: dict[str, Any], name: str) -> int | None:
    return sum(columns[name]) if name in columns else None
