"""Words for counts and lists of names, so that every print says them alike."""

import json
from collections.abc import Iterable

__all__ = ["counted", "named"]

_SEPARATORS = frozenset(",;\"'")


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `1 sample`, `1,319 samples`; `plural` where an s behind the noun does not make it."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def named(names: Iterable[str]) -> str:
    """Return names with commas between them; one that holds a comma or the like itself stands in quotation marks."""
    return ", ".join(json.dumps(name, ensure_ascii=False) if _needs_marks(name) else name for name in names)


def _needs_marks(name: str) -> bool:
    return not name or name != name.strip() or not _SEPARATORS.isdisjoint(name)
