"""The arithmetic of Spec-Bench's own speed script, for comparison with published tables only (suites-and-scoring 2.6).

It counts a method's tokens as its loop did and the baseline's by tokenising the text again, less one a turn; it takes
plain means over rows and matches none. So a baseline against itself comes out a little above 1, and rows that only
one side has count all the same. 2.7 has what that does to a figure.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from draftboard.measures.columns import Listed, Turns, shared_tables
from draftboard.measures.pooling import absent
from draftboard.results import Figure
from draftboard.statistics import Floats

__all__ = ["OVERALL", "TASKS", "SpecBenchSpeed", "SpeedRow", "spec_bench_figures", "spec_bench_speed", "speed_of"]

_CONVERSATION = frozenset(("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"))
TASKS = ("mt_bench", "translation", "summarization", "qa", "math_reasoning", "rag")
OVERALL = "overall"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRow:
    """One question's answer; the lists have one entry a turn, but for `accept_lengths`, which runs over all turns."""

    category: str
    new_tokens: Sequence[int]
    wall_time_s: Sequence[float]
    text_tokens: Sequence[int] | None = None
    """What the tokenizer makes of each turn's text, special tokens included. Only a baseline's are used."""
    accept_lengths: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecBenchSpeed:
    """The script's four numbers; nan where it would print nan, and where a row has no time."""

    tokens_per_s: float
    baseline_tokens_per_s: float
    speedup: float
    mean_accepted: float


def spec_bench_speed(method_rows: Iterable[SpeedRow], baseline_rows: Iterable[SpeedRow]) -> dict[str, SpecBenchSpeed]:
    """Return the script's numbers for each of its tasks and `overall`, where every row counts whatever its category."""
    mine, theirs = list(method_rows), list(baseline_rows)
    found = {
        task: speed_of([row for row in mine if _is_of(row, task)], [row for row in theirs if _is_of(row, task)])
        for task in TASKS
    }
    return {**found, OVERALL: speed_of(mine, theirs)}


def speed_of(method_rows: Sequence[SpeedRow], baseline_rows: Sequence[SpeedRow]) -> SpecBenchSpeed:
    """Return the script's numbers for these rows, whatever their category."""
    own = _mean([_rate(sum(row.new_tokens), row) for row in method_rows])
    base = _mean([_baseline_rate(row) for row in baseline_rows])
    entries = [entry for row in method_rows for entry in row.accept_lengths]
    return SpecBenchSpeed(
        tokens_per_s=own,
        baseline_tokens_per_s=base,
        speedup=own / base if base else math.nan,
        mean_accepted=_mean(entries),
    )


def spec_bench_figures(own: Listed, baseline: Listed, nothing: str = "") -> dict[str, Figure]:
    """Return `speedup_specbench` and `tokens_per_s_specbench`: of several rounds the mean of each round's number."""
    mine, theirs = shared_tables(own, baseline)
    if not len(mine):
        return {name: absent(nothing or "no rows") for name in ("speedup_specbench", "tokens_per_s_specbench")}
    rate = fmean(_by_round(mine, mine.tokens).values())
    return {
        "speedup_specbench": _speedup(mine, theirs),
        "tokens_per_s_specbench": absent(_NO_TIME, mine.n) if math.isnan(rate) else Figure(value=rate, n=mine.n),
    }


_NO_TIME = "a row without time"


def _speedup(mine: Turns, theirs: Turns) -> Figure:
    import numpy as np

    if not len(theirs):
        return absent("no row of the baseline", mine.n)
    if np.isnan(theirs.text_tokens).any():
        return absent("the baseline's texts were not tokenised again", mine.n)
    rates, plain = _by_round(mine, mine.tokens), _by_round(theirs, theirs.text_tokens - 1)
    value = fmean(rate / base if (base := plain.get(number, math.nan)) else math.nan for number, rate in rates.items())
    if math.isnan(value):
        return absent(f"{_NO_TIME}, or a round without the baseline", mine.n)
    rows, others = (set(zip(arm.sample.tolist(), arm.repeat.tolist(), strict=True)) for arm in (mine, theirs))
    note = f"rows are not matched: {len(rows)} against {len(others)} of the baseline" if rows != others else ""
    return Figure(value=value, n=mine.n, signature=note)


def _by_round(turns: Turns, tokens: Floats) -> dict[int, float]:
    """Return by round the mean over samples of their tokens per second, all turns together, nan as there."""
    import numpy as np

    found = {}
    for number in np.unique(turns.repeat).tolist():
        inside = turns.repeat == number
        places = turns.sample[inside]
        rows = np.flatnonzero(np.bincount(places))
        seconds = np.bincount(places, turns.seconds[inside])[rows]
        timed = seconds > 0
        rates = np.bincount(places, tokens[inside])[rows][timed] / seconds[timed]
        found[number] = fmean(rates.tolist()) if timed.all() else math.nan
    return found


def _is_of(row: SpeedRow, task: str) -> bool:
    return row.category in _CONVERSATION if task == "mt_bench" else row.category == task


def _baseline_rate(row: SpeedRow) -> float:
    return math.nan if row.text_tokens is None else _rate(sum(count - 1 for count in row.text_tokens), row)


def _rate(tokens: int, row: SpeedRow) -> float:
    seconds = sum(row.wall_time_s)
    return tokens / seconds if seconds > 0 else math.nan


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan
