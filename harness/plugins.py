"""Options that several commands share, and loading the plug-ins that one of them names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

__all__ = ["TRACE_PAGES", "AsJson", "Plugins", "load_plugins"]

Plugins = Annotated[
    tuple[Path, ...],
    Parameter(name="--plugin", negative=(), help="A Python file that registers methods, suites or scorers."),
]
TRACE_PAGES = 200
"""Traced samples that get a page each unless another number is asked for."""
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print one JSON document on stdout.")]


def load_plugins(plugins: Sequence[Path]) -> None:
    """Run the files, each of which registers methods, suites or scorers.

    Raises MethodError for one that cannot be loaded or registers nothing.
    """
    if plugins:
        from draftboard.methods import load_plugin
        from draftboard.suites import suite_names
        from draftboard.suites.scorers import scorer_names

        for path in plugins:
            load_plugin(path, others=lambda: len(suite_names()) + len(scorer_names()))
