"""Speed from rows that were measured elsewhere: tokens and seconds of rows, pooled and sample by sample.

Definitions are those of suites-and-scoring 8.2. Where only a rate is known, a row counts as one token. A method that
lacks a question of the baseline has no speedup: over the others alone it would speak of an easier workload.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from draftboard.results import Figure

__all__ = [
    "Arms",
    "Missing",
    "Number",
    "Row",
    "has_speed",
    "lacking",
    "per_sample",
    "pooled",
    "pooled_speedup",
    "sample_count",
    "sample_speedups",
    "speedups",
    "unpaired",
    "why_no_speed",
]

_EQUAL_ROWS = "rows give tokens/s without token counts: each counts as equally many tokens"
_OF_SAMPLES = ("speedup_gm", "speedup_mor", "speedup_rom")


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A value that the file names and does not give."""

    reason: str


Number = float | Missing | None
"""None: not mentioned at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What one row says of one method, on one sample where it names one."""

    method: str
    sample: str | None
    part: tuple[str, ...]
    """Turn and repeat, which belong to the same sample."""
    domain: str
    tokens: Number
    seconds: Number
    rate: Number
    steps: tuple[float, ...] | None
    acceptance: Number
    speedup: Number
    speedups: Mapping[str, Number]
    about: Mapping[str, Any]
    settings_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """What the methods of a group are compared with."""

    baseline: str
    baseline_rows: list[Row]
    absent: str
    notes: dict[str, None]
    where: str = ""
    """Model and hardware, for a reason."""


def speedups(rows: list[Row], base: list[Row], absent: str, arms: Arms) -> dict[str, Figure]:
    """Return every speedup of these rows, or why there is none; nothing where they do not speak of speed."""
    why = lacking(rows, base, arms)
    if why:
        return {name: Figure(value=None, reason=why) for name in ("speedup", *_OF_SAMPLES)}
    pool = pooled_speedup(rows, base, absent, arms)
    return {**({"speedup": pool} if pool else {}), **sample_speedups(rows, base)}


def pooled_speedup(rows: list[Row], base: list[Row], absent: str, arms: Arms) -> Figure | None:
    """Return S_pool of these rows against the baseline's, or None where the rows say nothing about speed."""
    mine, theirs = [row for row in rows if has_speed(row)], [row for row in base if has_speed(row)]
    if not mine:
        return None
    if not theirs:
        return Figure(value=None, reason=f"{arms.baseline} run{arms.where} has no speed" if base else absent)
    if _named(mine) and _named(theirs):
        have, wanted = _answered(mine), _answered(theirs)
        shared = have.keys() & wanted.keys()
        if not shared and have and wanted:
            return Figure(value=None, reason=f"no sample in common with {arms.baseline}")
        if shared:
            mine = [row for row in mine if (row.domain, row.sample) in shared]
            theirs = [row for row in theirs if (row.domain, row.sample) in shared]
    pool, base_pool = pooled(mine, arms.notes), pooled(theirs, arms.notes)
    if not pool:
        return Figure(value=None, reason=why_no_speed(mine))
    if not base_pool:
        return Figure(value=None, reason=f"{arms.baseline} run{arms.where}: {why_no_speed(theirs)}")
    return Figure(value=(base_pool[1] / base_pool[0]) / (pool[1] / pool[0]), n=sample_count(mine))


def lacking(rows: list[Row], base: list[Row], arms: Arms) -> str:
    """Say how many of the baseline's questions, or turns of them, these rows have no speed for; empty for none.

    Empty as well where rows name no questions, or none in common: those have reasons of their own.
    """
    mine, theirs = [row for row in rows if has_speed(row)], [row for row in base if has_speed(row)]
    if not (_named(mine) and _named(theirs)):
        return ""
    have, wanted = _answered(mine), _answered(theirs)
    without = sum(key not in have or _lacks_turn(have[key], turns) for key, turns in wanted.items())
    if not without or not have.keys() & wanted.keys():
        return ""
    return f"no speed for {without} of {len(wanted)} questions of {arms.baseline}"


def unpaired(rows: list[Row], base: list[Row]) -> int:
    """Return how many questions of these rows the baseline has no speed for, where both name theirs."""
    mine, theirs = [row for row in rows if has_speed(row)], [row for row in base if has_speed(row)]
    if not (mine and theirs and _named(mine) and _named(theirs)):
        return 0
    wanted = _answered(theirs)
    return len(_answered(mine).keys() - wanted.keys()) if wanted else 0


def _named(rows: list[Row]) -> bool:
    return all(row.sample is not None for row in rows)


def _answered(rows: list[Row]) -> dict[tuple[str, str | None], set[str]]:
    """Return the turns of each question that have time and at least one token."""
    found: dict[tuple[str, str | None], set[str]] = {}
    for row in rows:
        pace = _pace(row)
        if pace and pace[0] > 0:
            found.setdefault((row.domain, row.sample), set()).add(row.part[0])
    return found


def _lacks_turn(mine: set[str], theirs: set[str]) -> bool:
    """Whether a turn is missing; a row that names no turn speaks of them all."""
    return "" not in mine | theirs and not theirs <= mine


def sample_speedups(rows: list[Row], base: list[Row]) -> dict[str, Figure]:
    """Return S_gm, S_mor and S_rom over the samples that both have; nothing where rows name no samples in common."""
    if any(row.sample is None for row in (*rows, *base) if has_speed(row)):
        return {}
    mine, theirs = per_sample(rows), per_sample(base)
    both = [(theirs[key], mine[key]) for key in mine if key in theirs and min(*mine[key], *theirs[key]) > 0]
    each = [(x_s / x_n, y_s / y_n) for (x_n, x_s), (y_n, y_s) in both]
    if not each:
        return {}
    values = (
        math.exp(fmean(math.log(x / y) for x, y in each)),
        fmean(x / y for x, y in each),
        fmean(1 / y for _, y in each) / fmean(1 / x for x, _ in each),
    )
    return {name: Figure(value=value, n=len(each)) for name, value in zip(_OF_SAMPLES, values, strict=True)}


def has_speed(row: Row) -> bool:
    """Whether the row speaks of speed at all."""
    return row.rate is not None or (row.tokens is not None and row.seconds is not None)


def _pace(row: Row) -> tuple[float, float] | None:
    """Return tokens and seconds of a row; where only a rate is known, of one token."""
    if isinstance(row.tokens, float) and isinstance(row.seconds, float):
        return row.tokens, row.seconds
    return (1.0, 1.0 / row.rate) if isinstance(row.rate, float) else None


def pooled(rows: list[Row], notes: dict[str, None]) -> tuple[float, float] | None:
    """Return total tokens and total seconds, or None where no row has both."""
    paces = [pace for row in rows if (pace := _pace(row)) and pace[0] > 0]
    if not paces:
        return None
    counted = all(isinstance(row.tokens, float) and isinstance(row.seconds, float) for row in rows)
    if not counted and len(paces) > 1:
        notes[_EQUAL_ROWS] = None
        return float(len(paces)), math.fsum(seconds / tokens for tokens, seconds in paces)
    return math.fsum(tokens for tokens, _ in paces), math.fsum(seconds for _, seconds in paces)


def per_sample(rows: list[Row]) -> dict[object, tuple[float, float]]:
    """Return the tokens and seconds of each sample; a row without one is a sample of its own."""
    sums: dict[object, tuple[float, float]] = {}
    for index, row in enumerate(rows):
        pace = _pace(row)
        if pace:
            tokens, seconds = sums.get((row.domain, row.sample or index), (0.0, 0.0))
            sums[row.domain, row.sample or index] = (tokens + pace[0], seconds + pace[1])
    return sums


def why_no_speed(rows: list[Row]) -> str:
    """Return the reason of the first value that is missing."""
    for row in rows:
        for number in (row.tokens, row.seconds, row.rate):
            if isinstance(number, Missing):
                return number.reason
    return "no tokens"


def sample_count(rows: list[Row]) -> int | None:
    """Return how many samples rows are about, where they say."""
    samples = {(row.domain, row.sample) for row in rows}
    return len(samples) if rows and all(row.sample is not None for row in rows) else None
