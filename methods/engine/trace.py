"""The record of one turn: what each step drafted, kept and took. Every metric is a function of it. Free of torch.

Conventions (suites-and-scoring 7.1): the prefill emits the first token and is no step; a step emits its accepted
drafts and the bonus; what end-of-sequence or the limit cut away is in `accepted` but not in `kept`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Generation", "Judged", "Trace"]

Judged = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""A draft and what came of it: its tokens and parents, node 0 being the root, and the accepted nodes in order from the
root on."""


@dataclass(slots=True)
class Trace:
    """Steps of one turn in compact columns; index s is step s. Times are nanoseconds of one monotonic clock."""

    drafted: array[int] = field(default_factory=lambda: array("i"))
    """Length of the longest drafted path."""
    nodes: array[int] = field(default_factory=lambda: array("i"))
    """Drafted tokens in all (equal to `drafted` for chains)."""
    accepted: array[int] = field(default_factory=lambda: array("i"))
    """Drafted tokens that the verifier took, before any cut."""
    kept: array[int] = field(default_factory=lambda: array("i"))
    """Tokens that became output: accepted plus bonus, after the cut."""
    draft_ns: array[int] = field(default_factory=lambda: array("q"))
    verify_ns: array[int] = field(default_factory=lambda: array("q"))
    other_ns: array[int] = field(default_factory=lambda: array("q"))
    end_ns: array[int] = field(default_factory=lambda: array("q"))
    """When the step's tokens were available, counted from the start of the turn."""
    signals: dict[str, array[float]] = field(default_factory=dict)
    """What the drafter knew when it drafted (match length, entropy, arm …); NaN where it said nothing."""
    judged: list[Judged] = field(default_factory=list)
    """The draft of every step, where `decode` was asked to keep them. These are the engine's own lists."""

    def __len__(self) -> int:
        return len(self.nodes)

    def step(
        self,
        *,
        drafted: int,
        nodes: int,
        accepted: int,
        kept: int,
        draft_ns: int,
        verify_ns: int,
        other_ns: int,
        end_ns: int,
        signals: dict[str, float] | None,
    ) -> None:
        """Append one step."""
        self.drafted.append(drafted)
        self.nodes.append(nodes)
        self.accepted.append(accepted)
        self.kept.append(kept)
        self.draft_ns.append(draft_ns)
        self.verify_ns.append(verify_ns)
        self.other_ns.append(other_ns)
        self.end_ns.append(end_ns)
        if signals:
            for name, value in signals.items():
                self.signal(name).append(value)
        count = len(self.nodes)
        for column in self.signals.values():
            if len(column) < count:
                column.append(float("nan"))

    def signal(self, name: str) -> array[float]:
        """Return the column of that signal, filled with NaN for the steps before it first appeared."""
        if name not in self.signals:
            self.signals[name] = array("f", [float("nan")] * (len(self.nodes) - 1))
        return self.signals[name]

    def columns(self) -> dict[str, Any]:
        """Return plain lists for JSON: NaN becomes None."""
        plain: dict[str, Any] = {
            name: getattr(self, name).tolist()
            for name in ("drafted", "nodes", "accepted", "kept", "draft_ns", "verify_ns", "other_ns", "end_ns")
        }
        if self.signals:
            plain["signals"] = {
                name: [None if value != value else round(value, 5) for value in column]
                for name, column in self.signals.items()
            }
        return plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What one turn produced. Times are nanoseconds of one monotonic clock, counted from the request's start."""

    token_ids: list[int]
    """Kept ids, the end-of-sequence id included."""
    finish: str
    """`eos`, `stop`, `length` or `window`."""
    prompt_tokens: int
    prefill_ns: int
    first_ns: int
    """First token available to the caller."""
    end_ns: int
    cpu_ns: int
    """Process CPU time from start to end."""
    first_cpu_ns: int
    """Process CPU time from start to the first token."""
    trace: Trace
