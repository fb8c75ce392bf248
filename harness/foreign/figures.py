"""Aggregates of other tools as figures: numbers that may be text, missing or not finite, never guessed at."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import quantiles
from typing import Any

from draftboard.results import Figure, Group, MethodResult

__all__ = ["base_name", "figure", "grouped", "is_secret", "labelled", "number", "percentile", "scalar"]

_SECRET = re.compile(r"token(?!s|iz)|key|secret|passw|credential|auth|cookie|bearer", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"\b(hf_|sk-|ghp_|glpat-|xox[bap]-|AKIA|eyJ)[\w-]{8,}|://[^/\s]*@")
_MASK = re.compile(r"^\W*(redacted|masked|hidden|none|null)?\W*$", re.IGNORECASE)
_LONGEST = 200


def number(value: object) -> float | None:
    """Return a number that may be written as text; None for anything else. It may be NaN or infinite."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return None


def figure(value: object, *, scale: float = 1.0, n: int | None = None, signature: str = "") -> Figure:
    """Return the figure of a value of a foreign file, or say why there is none."""
    found = number(value)
    if found is None:
        reason = "no value" if value is None else "not a number"
        return Figure(value=None, n=n, reason=reason)
    if not math.isfinite(found):
        return Figure(value=None, n=n, reason="not a number" if math.isnan(found) else "not a finite number")
    return Figure(value=found * scale, n=n, signature=signature)


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile from 1 to 99, with linear interpolation between ranks. Raises ValueError without values."""
    if len(values) == 1:
        return values[0]
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def scalar(value: object) -> str | None:
    """Return a plain value as text for a condition; None for what is nested, empty, masked or looks like a secret."""
    if isinstance(value, bool) or value is None or not isinstance(value, int | float | str):
        return None if not isinstance(value, bool) else str(value).lower()
    text = " ".join(str(value).split())
    return None if _MASK.match(text) or _SECRET_VALUE.search(text) else text[:_LONGEST]


def is_secret(name: str) -> bool:
    """Whether a setting of this name may hold a secret; counts of tokens and tokenizers are none."""
    return bool(_SECRET.search(name))


def base_name(text: str) -> str:
    """Return the last part of a path, or a hub's OWNER/NAME as it is, so that no home folder is kept."""
    looks_like_id = re.fullmatch(r"[\w.-]+/[\w.-]+", text) and not text.startswith((".", "~"))
    return text if looks_like_id else re.split(r"[/\\]", text.rstrip("/\\"))[-1]


def labelled(paths: Iterable[Path]) -> dict[Path, str]:
    """Return a label for each path: its last part, with as many folders before it as it takes to tell them apart."""
    found = list(dict.fromkeys(paths))
    labels: dict[Path, str] = {}
    for path in found:
        parts = path.absolute().parts[1:] or (str(path),)
        for depth in range(1, len(parts) + 1):
            label = "/".join(parts[-depth:])
            if all(other == path or "/".join(other.absolute().parts[-depth:]) != label for other in found):
                break
        labels[path] = label
    return labels


def grouped(
    parts: Iterable[tuple[Mapping[str, Any], MethodResult]], *, notes: Iterable[str] = (), source: str
) -> tuple[Group, ...]:
    """Return a group for each set of conditions, in order of appearance; equal labels in one are numbered.

    `model`, `hardware`, `suite` and `baseline` of the conditions become the group's own.
    """
    groups: dict[tuple[tuple[str, str], ...], list[MethodResult]] = {}
    for conditions, method in parts:
        key = tuple((name, str(value)) for name, value in conditions.items())
        mine = groups.setdefault(key, [])
        taken = {other.method for other in mine}
        label, count = method.method, 1
        while label in taken:
            count += 1
            label = f"{method.method} #{count}"
        mine.append(method if count == 1 else replace(method, method=label))
    told = tuple(notes)
    result = []
    for key, methods in groups.items():
        shared = dict(key)
        own = {name: shared.pop(name, "") for name in ("model", "hardware", "suite", "baseline")}
        result.append(
            Group(
                model=own["model"],
                hardware=own["hardware"],
                suite=own["suite"],
                baseline=own["baseline"],
                conditions={**shared, "source": source},
                domains=tuple(dict.fromkeys(domain for method in methods for domain in method.domains)),
                methods=tuple(methods),
                notes=told,
            )
        )
    return tuple(result)
