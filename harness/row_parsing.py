"""What one record of a row file says, checked: warm-up or measured, the figures, and what is shown beside them.

A value that a record names and does not give (null, NaN, nothing in it) is a missing value with a reason; a value of
another kind is an error.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from draftboard.row_speeds import Missing, Number, Row, has_speed

__all__ = ["is_warm_up", "parse_row", "text_of"]

_FIGURES = ("new_tokens and wall_time_s", "tokens_per_s", "tokens_per_step", "acceptance_length", "speedup")
_REASONABLE = 1e-50, 1e50
"""Ratios and sums of numbers in between stay far inside the floats; what lies beyond was never measured."""
_DEEPEST = 32
"""Levels of lists and objects in settings; every reader of a deeper one would be at risk."""
_NO_SPEEDUP = Missing(reason="`speedup` is stated for no domain")
_WARM_UP = "warmup"
_MEASURED = ("measured", "measure", "timed")


def is_warm_up(record: Mapping[str, Any], file: Mapping[str, Any]) -> bool:
    """Whether a record is of a warm-up, by its own `phase` or `warmup` in any spelling, else by those of its file.

    Raises ValueError for another phase, and for what contradicts itself. A number under `warmup` of a file counts runs
    and marks nothing.
    """
    own = _marked(record, record)
    if own is not None:
        return own
    return bool(_marked(file, {name: value for name, value in file.items() if isinstance(value, bool)}))


def _marked(record: Mapping[str, Any], marks: Mapping[str, Any]) -> bool | None:
    """Return what the record says of being a warm-up; None where it says nothing."""
    phase = _folded(text_of(record, "phase"))
    if phase and phase not in (_WARM_UP, *_MEASURED):
        known = ", ".join((_WARM_UP, *_MEASURED))
        raise ValueError(f"`phase` is {record['phase']!r}; known are {known}, in any spelling, or no phase at all")
    marked = [value for name, value in marks.items() if _folded(name) == _WARM_UP and value is not None]
    if not all(isinstance(mark, bool) for mark in marked):
        raise ValueError("`warmup` has to be true or false")
    says = {*marked, *([phase == _WARM_UP] if phase else [])}
    if len(says) > 1:
        raise ValueError("`phase` and `warmup` contradict each other")
    return says.pop() if says else None


def parse_row(record: Mapping[str, Any]) -> Row:
    """Return what a record says of its method. Raises ValueError for what cannot be used."""
    method = text_of(record, "method")
    if not method.strip():
        raise ValueError("`method` is missing")
    sample = _name(record, "question_id") if "question_id" in record else _name(record, "sample_id")
    speedup = record.get("speedup")
    by_domain = speedup if isinstance(speedup, dict) else {}
    acceptance = "acceptance_length" if "acceptance_length" in record else "mean_acceptance_length"
    row = Row(
        method=method,
        sample=sample,
        part=tuple(str(record.get(name, "")) for name in ("turn", "repeat")),
        domain=text_of(record, "category") or text_of(record, "domain"),
        tokens=_number(record, "new_tokens", zero=True),
        seconds=_number(record, "wall_time_s"),
        rate=_number(record, "tokens_per_s"),
        steps=_steps(record),
        acceptance=_number(record, acceptance),
        speedup=None if isinstance(speedup, dict) else _number(record, "speedup"),
        speedups={name: _number(by_domain, name) for name in by_domain},
        about={name: record[name] for name in ("reference", "output", "lossless", "settings") if name in record},
        settings_id=_name(record, "settings_id") or "",
    )
    given = (row.steps, row.acceptance, row.speedup)
    if not has_speed(row) and all(value is None for value in given) and "speedup" not in record:
        raise ValueError(f"no figure; expected one of {', '.join(_FIGURES)}")
    _check_about(row.about)
    return replace(row, speedup=_NO_SPEEDUP) if speedup == {} and not has_speed(row) else row


def text_of(record: Mapping[str, Any], name: str) -> str:
    """Return a text of the record, empty where there is none. Raises ValueError for what is no text."""
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"`{name}` has to be text")
    return value


def _folded(name: str) -> str:
    """Return a word without case, blanks, and all kinds of dashes."""
    return "".join(character for character in name.casefold() if character.isalnum())


def _name(record: Mapping[str, Any], name: str) -> str | None:
    value = record.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise ValueError(f"`{name}` has to be text or a whole number")
    return None if value is None else str(value)


def _check_about(about: Mapping[str, Any]) -> None:
    kinds = {"reference": str, "output": str, "lossless": bool | None, "settings": dict}
    for name, value in about.items():
        if not isinstance(value, kinds[name]):
            raise ValueError(f"`{name}` has the wrong type")
    if not _shallow(about.get("settings"), _DEEPEST):
        raise ValueError("`settings` is nested too deeply")


def _shallow(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_shallow(item, levels - 1) for item in inner)


def _number(record: Mapping[str, Any], name: str, *, zero: bool = False) -> Number:
    if name not in record:
        return None
    value = record[name]
    if value is None:
        return Missing(reason="no value")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"`{name}` has to be a number")
    try:
        number = float(value)
    except OverflowError:
        return Missing(reason="not a finite number")
    if not math.isfinite(number):
        return Missing(reason="not a number" if math.isnan(number) else "not a finite number")
    if number < 0 or (number == 0 and not zero):
        raise ValueError(f"`{name}` has to be {'0 or more' if zero else 'above 0'}")
    if number and not _REASONABLE[0] <= number <= _REASONABLE[1]:
        return Missing(reason=f"too {'large' if number > 1 else 'small'} to have been measured")
    return number


def _steps(record: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Return the tokens of each step: none where the record names them and does not say any."""
    if "tokens_per_step" not in record:
        return None
    steps = record["tokens_per_step"]
    if steps is None or (isinstance(steps, float) and math.isnan(steps)):
        return ()
    if not isinstance(steps, list) or not all(_is_count(k) for k in steps):
        raise ValueError("`tokens_per_step` has to be a list of whole numbers")
    return tuple(float(k) for k in steps)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _REASONABLE[1]
