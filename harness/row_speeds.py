"""Speed from rows that were measured elsewhere: tokens and seconds of rows, pooled and sample by sample.

Definitions are those of suites-and-scoring 8.2. Where only a rate is known, a row counts as one token.
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
    "per_sample",
    "pooled",
    "pooled_speedup",
    "sample_count",
    "sample_speedups",
    "why_no_speed",
]

_EQUAL_ROWS = "rows give tokens/s without token counts: each counts as equally many tokens"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """What the methods of a group are compared with."""

    baseline: str
    baseline_rows: list[Row]
    absent: str
    notes: dict[str, None]


def pooled_speedup(rows: list[Row], base: list[Row], absent: str, arms: Arms) -> Figure | None:
    """Return S_pool of these rows against the baseline's, or None where the rows say nothing about speed."""
    mine, theirs = [row for row in rows if has_speed(row)], [row for row in base if has_speed(row)]
    if not mine:
        return None
    if not theirs:
        return Figure(value=None, reason=absent)
    if all(row.sample is not None for row in [*mine, *theirs]):
        shared = {row.sample for row in mine if _pace(row)} & {row.sample for row in theirs if _pace(row)}
        if not shared:
            silent = next((side for side in (mine, theirs) if not any(_pace(row) for row in side)), None)
            common = f"no sample in common with {arms.baseline}"
            return Figure(value=None, reason=why_no_speed(silent) if silent else common)
        mine = [row for row in mine if row.sample in shared]
        theirs = [row for row in theirs if row.sample in shared]
    pool, base_pool = pooled(mine, arms.notes), pooled(theirs, arms.notes)
    if not pool or not base_pool:
        return Figure(value=None, reason=why_no_speed(theirs if pool else mine))
    return Figure(value=(base_pool[1] / base_pool[0]) / (pool[1] / pool[0]), n=sample_count(mine))


def sample_speedups(rows: list[Row], base: list[Row]) -> dict[str, Figure]:
    """Return S_gm, S_mor and S_rom over the samples that both have; nothing where rows name no samples in common."""
    if any(row.sample is None for row in (*rows, *base) if has_speed(row)):
        return {}
    mine, theirs = per_sample(rows), per_sample(base)
    both = [(theirs[key], mine[key]) for key in mine if key in theirs and min(*mine[key], *theirs[key]) > 0]
    each = [(x_s / x_n, y_s / y_n) for (x_n, x_s), (y_n, y_s) in both]
    if not each:
        return {}
    values = {
        "speedup_gm": math.exp(fmean(math.log(x / y) for x, y in each)),
        "speedup_mor": fmean(x / y for x, y in each),
        "speedup_rom": fmean(1 / y for _, y in each) / fmean(1 / x for x, _ in each),
    }
    return {name: Figure(value=value, n=len(each)) for name, value in values.items()}


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
