"""One thing that the doctor looked at: what was read, how it stands, and what to change."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Group", "Sign", "State", "fine", "missing"]

State = Literal["fine", "note", "unreliable", "n/a"]
"""`unreliable` stands in the way of measurements; `note` is worth knowing and does not; `n/a` could not be read."""

Group = Literal["machine", "clocks", "curve", "noise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """A reading with its judgement."""

    name: str
    group: Group
    state: State
    told: str
    """The reading in words; the reason where there is none (`n/a`)."""
    value: float | None = None
    """The reading as a number, where it is one."""
    unit: str = ""
    advice: str = ""
    """One sentence that says what to change; empty only where nothing is to be changed."""


def fine(name: str, group: Group, told: str, value: float | None = None, unit: str = "") -> Sign:
    """Return a sign that gives no reason to change anything."""
    return Sign(name=name, group=group, state="fine", told=told, value=value, unit=unit)


def missing(name: str, group: Group, reason: str) -> Sign:
    """Return a sign that could not be read, with the reason."""
    return Sign(name=name, group=group, state="n/a", told=reason)
