"""Faults in what a user asked for by name or handed over as a file."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["SuiteError", "suggestion"]


_SHOWN = 500
"""Problems in one message. A file of the wrong kind has one for every line, which no one reads to the end."""


class SuiteError(Exception):
    """A suite that cannot be loaded. `problems` holds every fault found, each with file and line."""

    def __init__(self, what: str, *, problems: tuple[str, ...] = (), advice: str = "") -> None:
        self.problems = problems
        shown = [*problems[:_SHOWN], *([f"and {len(problems) - _SHOWN:,} more"] if len(problems) > _SHOWN else [])]
        super().__init__("\n".join([what, *(f"  {problem}" for problem in shown), *([advice] if advice else [])]))


def suggestion(name: str, known: Iterable[str]) -> str:
    """What to print after an unknown name: the nearest known name, if one is near, and the whole list."""
    names = list(known)
    near = get_close_matches(name.lower(), names, n=1)
    listed = "known: " + ", ".join(names)
    return f"did you mean {near[0]}? ({listed})" if near else listed
