"""Faults in what a user asked for by name or handed over as a file."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["SuiteError", "printable", "suggestion"]


_SHOWN = 500
"""Problems in one message. A file of the wrong kind has one for every line, which no one reads to the end."""


_NAMES = 60
"""Known names in one message. A file has as many ids as questions."""


class SuiteError(Exception):
    """A suite that cannot be loaded. `problems` holds every fault found, each with file and line."""

    def __init__(self, what: str, *, problems: tuple[str, ...] = (), advice: str = "") -> None:
        self.problems = problems
        shown = [*problems[:_SHOWN], *([f"and {len(problems) - _SHOWN:,} more"] if len(problems) > _SHOWN else [])]
        super().__init__("\n".join([what, *(f"  {problem}" for problem in shown), *([advice] if advice else [])]))


def suggestion(name: str, known: Iterable[str]) -> str:
    """What to print after an unknown name: the nearest known name, if one is near, and the list of them."""
    names = list(known)
    near = get_close_matches(name.lower(), names, n=1)
    more = f" and {len(names) - _NAMES:,} more" if len(names) > _NAMES else ""
    listed = "known: " + ", ".join(map(printable, names[:_NAMES])) + more
    return f"did you mean {printable(near[0])}? ({listed})" if near else listed


def printable(text: str) -> str:
    """`text` with what no terminal can write, or would obey, as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
