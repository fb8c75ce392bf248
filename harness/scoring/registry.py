"""Which scorers there are. Own ones register here at import; a user's come by decorator or entry point."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib.metadata import entry_points
from types import MappingProxyType

from draftboard.errors import UserError
from draftboard.scoring.records import Answer, Scores, Value

__all__ = ["ENTRY_POINTS", "SCORERS", "Scorer", "load_plugins", "register_scorer", "score"]

ENTRY_POINTS = "draftboard.metrics"

Scorer = Callable[[Sequence[Answer]], Scores]

_FUNCTIONS: dict[str, Scorer] = {}
_ABOUT: dict[str, str] = {}

SCORERS: Mapping[str, str] = MappingProxyType(_ABOUT)
"""Scorer name → what it does, in one line. `load_plugins` adds those of installed packages."""


def register_scorer(name: str, *, about: str = "") -> Callable[[Scorer], Scorer]:
    """Make a function from answers to `Scores` known by name; `about` defaults to its docstring's first line.

    Raises UserError if the name belongs to another function.
    """

    def add(function: Scorer) -> Scorer:
        known = _FUNCTIONS.get(name)
        if known is not None and _origin(known) != _origin(function):
            raise UserError(f"a scorer named {name!r} exists already", advice="register yours under another name")
        _FUNCTIONS[name] = function
        _ABOUT[name] = about or (function.__doc__ or "").strip().split("\n")[0]
        return function

    return add


def _origin(function: Scorer) -> tuple[object, object]:
    return getattr(function, "__module__", None), getattr(function, "__qualname__", function)


def load_plugins() -> None:
    """Register the scorers of installed packages (entry points `draftboard.metrics`) that are not known yet.

    An entry point is a scorer function, registered under the entry point's name, or a module that registers
    its own.
    """
    for point in entry_points(group=ENTRY_POINTS):
        if point.name in _FUNCTIONS:
            continue
        try:
            loaded = point.load()
        except (ImportError, AttributeError) as error:
            raise UserError(
                f"the scorer {point.name!r} cannot be loaded: {error}",
                where=f"entry point {point.value} of group {ENTRY_POINTS}",
                advice="repair or uninstall the package that brings it",
            ) from error
        if callable(loaded) and point.name not in _FUNCTIONS:
            register_scorer(point.name)(loaded)


def score(answers: Sequence[Answer], scorer: str) -> Scores:
    """Score answers by the scorer of that name.

    Raises UserError for an unknown name. A value that is not a finite number (of a plug-in) becomes None with
    the reason, so that every result can be written as strict JSON.
    """
    if scorer not in _FUNCTIONS:
        load_plugins()
    function = _FUNCTIONS.get(scorer)
    if function is None:
        near = get_close_matches(scorer, _FUNCTIONS, n=1)
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise UserError(
            f"there is no scorer named {scorer!r}",
            advice=f"{meant}known scorers: {', '.join(sorted(_FUNCTIONS))}",
        )
    scores = function(answers)
    return replace(
        scores,
        values={name: _finite(value) for name, value in scores.values.items()},
        extras={name: _finite(value) for name, value in scores.extras.items()},
        per_sample={
            name: {key: number for key, number in column.items() if math.isfinite(number)}
            for name, column in scores.per_sample.items()
        },
    )


def _finite(value: Value) -> Value:
    if value.value is None or math.isfinite(value.value):
        return value
    return replace(value, value=None, reason=f"the scorer gave {value.value}, which is not a finite number")
