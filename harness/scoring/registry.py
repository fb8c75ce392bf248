"""Which scorers there are. Own ones register here at import; a user's come by decorator or entry point."""

import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from draftboard.errors import UserError
from draftboard.scoring.records import Answer, Scores, Value
from draftboard.scoring.sandbox import RunCode
from draftboard.suites.scorers import add_scorer_name

__all__ = ["ENTRY_POINTS", "SCORERS", "Scorer", "load_plugins", "register_scorer", "runs_code", "score"]

ENTRY_POINTS = "draftboard.metrics"

Scorer = Callable[..., Scores]
"""A function of a sequence of `Answer`s; one that runs code takes `run_code` by name too."""

F = TypeVar("F", bound=Scorer)

_FUNCTIONS: dict[str, Scorer] = {}
_ABOUT: dict[str, str] = {}
_RUN_CODE: set[str] = set()

SCORERS: Mapping[str, str] = MappingProxyType(_ABOUT)
"""Scorer name → what it does, in one line. `load_plugins` adds those of installed packages."""


def register_scorer(name: str, *, about: str = "", runs_code: bool = False) -> Callable[[F], F]:
    """Make a function from answers to `Scores` known by name; `about` defaults to its docstring's first line.

    One that `runs_code` is called with `run_code` and must run nothing when that is False. Raises UserError if the name
    belongs to another function or is blank.
    """
    if not isinstance(name, str) or not name.strip():
        raise UserError(f"{name!r} is no name for a scorer", advice='give it a name: @register_scorer("brevity")')

    def add(function: F) -> F:
        known = _FUNCTIONS.get(name)
        if known is not None and _origin(known) != _origin(function):
            raise UserError(f"a scorer named {name!r} exists already", advice="register yours under another name")
        _FUNCTIONS[name] = function
        add_scorer_name(name)
        _ABOUT[name] = about or (function.__doc__ or "").strip().split("\n")[0]
        (_RUN_CODE.add if runs_code else _RUN_CODE.discard)(name)
        return function

    return add


def runs_code(scorer: str) -> bool:
    """Whether the scorer of that name runs what a model wrote."""
    return scorer in _RUN_CODE


def _origin(function: Scorer) -> tuple[object, object]:
    return getattr(function, "__module__", None), getattr(function, "__qualname__", function)


def load_plugins() -> None:
    """Register the scorers of installed packages (entry points `draftboard.metrics`) that are not known yet.

    An entry point is a scorer function, registered under the entry point's name, or a module that registers
    its own.
    """
    for point in entry_points(group=ENTRY_POINTS):
        if point.name not in _FUNCTIONS:
            _load(point)


def _load(point: EntryPoint) -> None:
    try:
        loaded = point.load()
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(
            f"the scorer {point.name!r} cannot be loaded: {type(error).__name__}: {error}",
            where=f"entry point {point.value} of group {ENTRY_POINTS}",
            advice="repair or uninstall the package that brings it",
        ) from error
    if callable(loaded) and point.name not in _FUNCTIONS:
        register_scorer(point.name)(loaded)


def _function(scorer: str) -> Scorer:
    if scorer not in _FUNCTIONS:
        # The one asked for first: what other packages bring may be broken and is of no concern.
        for point in entry_points(group=ENTRY_POINTS):
            if point.name == scorer:
                _load(point)
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
    return function


def score(answers: Sequence[Answer], scorer: str, *, run_code: RunCode = False) -> Scores:
    """Score answers by the scorer of that name. Code answers are run only with `run_code`.

    Raises UserError for an unknown name, for a plug-in that fails or returns something else than `Scores`, and where
    code cannot be run as asked for. A value that is not a finite number (of a plug-in) becomes None with the reason, so
    that every result can be written as strict JSON.
    """
    function = _function(scorer)
    given = {"run_code": run_code} if scorer in _RUN_CODE else {}
    if str(getattr(function, "__module__", "")).startswith("draftboard.scoring."):
        return function(answers, **given)
    scores = _of_plugin(function, scorer, answers, given)
    return replace(
        scores,
        values={name: _finite(value) for name, value in scores.values.items()},
        extras={name: _finite(value) for name, value in scores.extras.items()},
        per_sample={
            name: {key: number for key, number in column.items() if math.isfinite(number)}
            for name, column in scores.per_sample.items()
        },
    )


def _of_plugin(function: Scorer, scorer: str, answers: Sequence[Answer], given: dict[str, Any]) -> Scores:
    advice = "repair or uninstall what brings this scorer"
    try:
        scores: object = function(answers, **given)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise UserError(
            f"the scorer {scorer!r} failed: {type(error).__name__}: {error}",
            where=f"{Path(last.filename).name}:{last.lineno}",
            advice=advice,
        ) from error
    if not isinstance(scores, Scores):
        raise UserError(f"the scorer {scorer!r} returned {type(scores).__name__}, not Scores", advice=advice)
    try:
        return msgspec.convert(msgspec.to_builtins(scores), Scores)
    except (TypeError, msgspec.ValidationError) as error:
        raise UserError(f"the scorer {scorer!r} returned Scores of wrong types: {error}", advice=advice) from error


def _finite(value: Value) -> Value:
    if value.value is None or math.isfinite(value.value):
        return value
    return replace(value, value=None, reason=f"the scorer gave {value.value}, which is not a finite number")
