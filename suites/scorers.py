"""Which names a sample's `scorer` may have. The scorers themselves live elsewhere; here are only their names.

A question file may name a scorer that an installed package brings, so the names of its entry points count without
being imported, and whoever registers a scorer by hand leaves its name here.
"""

from functools import cache

__all__ = ["GROUP", "SCORERS", "add_scorer_name", "is_scorer", "scorer_names"]

SCORERS = ("bleu", "rouge", "last_number", "letter", "qa", "pass_at_1")
"""The built-in names."""

GROUP = "draftboard.metrics"
"""The entry-point group of scorers. The name of an entry point is the scorer's."""

# A decorator in somebody else's file has no other place to leave its name.
_added: dict[str, None] = {}


def add_scorer_name(name: str) -> None:
    """Let samples name this scorer."""
    _added[name] = None


def scorer_names() -> tuple[str, ...]:
    """All names: the built-in ones, then those of others in alphabetical order. Imports no plugin."""
    others = {*_installed(), *_added} - set(SCORERS)
    return (*SCORERS, *sorted(others))


def is_scorer(name: str) -> bool:
    """Whether a sample may name this scorer."""
    return name in SCORERS or name in _added or name in _installed()


@cache
def _installed() -> tuple[str, ...]:
    """Names of the group; reading the metadata of every installed package takes too long to do for each sample."""
    from importlib.metadata import entry_points  # slow to import

    return tuple(point.name for point in entry_points(group=GROUP))
