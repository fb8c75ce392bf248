"""What a method takes of the machine: peak memory and energy (suites-and-scoring 7.5)."""

from collections.abc import Sequence

from draftboard.measures.columns import Cells, distinct
from draftboard.measures.pooling import IMPORTED, NO_ANSWER, UNRECORDED, absent
from draftboard.records import Cell
from draftboard.results import Figure
from draftboard.statistics import Floats

__all__ = ["machine_figures"]

_SHORTEST_S = 1.0
"""Counters tick too coarsely for less."""


def machine_figures(
    cells: Cells | Sequence[Cell], baseline: Cells | Sequence[Cell], nothing: str = ""
) -> dict[str, Figure]:
    """Return peaks over the cells that ended well, their differences from the baseline's, and energy."""
    mine, theirs = Cells.of(cells), Cells.of(baseline)
    good, others = mine.take(mine.ok), theirs.take(theirs.ok)
    why = _why(good, nothing)
    figures: dict[str, Figure] = {}
    for kind in ("rss", "device"):
        name = f"peak_{kind}_bytes"
        own = _peak(good, getattr(good, name), why)
        base = _peak(others, getattr(others, name), "not recorded of the baseline")
        figures[name] = own
        if own.value is None or base.value is None:
            over = absent(own.reason or base.reason, own.n or 0)
        else:
            over = Figure(value=own.value - base.value, n=own.n)
        figures[f"peak_{kind}_over_baseline_bytes"] = over
    return figures | _energy(good, why)


def _energy(cells: Cells, why: str) -> dict[str, Figure]:
    """Joules per kept token and mean watts: sums over the cells that have a counter's reading."""
    import numpy as np

    names = ("energy_j_per_token", "mean_power_w")
    counted = cells.take(~np.isnan(cells.energy_j))
    n = distinct(counted.sample)
    seconds, tokens = float(counted.end_ns.sum()) / 1e9, int(counted.tokens.sum())
    joules = sum(counted.energy_j.tolist())
    if not len(counted) or seconds < _SHORTEST_S or not tokens:
        short = f"under {_SHORTEST_S:g} s of generation" if seconds < _SHORTEST_S else "no tokens"
        return {name: absent(short if len(counted) else why, n) for name in names}
    return {name: Figure(value=joules / below, n=n) for name, below in zip(names, (tokens, seconds), strict=True)}


def _peak(cells: Cells, readings: Floats, why: str) -> Figure:
    import numpy as np

    known = ~np.isnan(readings)
    if not known.any():
        return absent(why)
    return Figure(value=float(readings[known].max()), n=distinct(cells.sample[known]))


def _why(cells: Cells, nothing: str) -> str:
    if not len(cells):
        return nothing or NO_ANSWER
    return IMPORTED if cells.imported.any() else UNRECORDED
