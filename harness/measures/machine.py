"""What a method takes of the machine: peak memory and energy (suites-and-scoring 7.5)."""

from collections.abc import Callable, Sequence

from draftboard.measures.pooling import IMPORTED, NO_ANSWER, UNRECORDED, absent
from draftboard.records import Cell
from draftboard.results import Figure

__all__ = ["machine_figures"]

_SHORTEST_S = 1.0
"""Counters tick too coarsely for less."""


def machine_figures(cells: Sequence[Cell], baseline: Sequence[Cell], nothing: str = "") -> dict[str, Figure]:
    """Return peaks over the cells that ended well, their differences from the baseline's, and energy."""
    good = [cell for cell in cells if cell.status == "ok"]
    why = _why(good, nothing)
    figures: dict[str, Figure] = {}
    kinds: dict[str, Callable[[Cell], int | None]] = {
        "rss": lambda cell: cell.peak_rss_bytes,
        "device": lambda cell: cell.peak_device_bytes,
    }
    for kind, read in kinds.items():
        mine = _peak(good, read, why)
        theirs = _peak([cell for cell in baseline if cell.status == "ok"], read, "not recorded of the baseline")
        figures[f"peak_{kind}_bytes"] = mine
        if mine.value is None or theirs.value is None:
            figures[f"peak_{kind}_over_baseline_bytes"] = absent(mine.reason or theirs.reason, mine.n or 0)
        else:
            figures[f"peak_{kind}_over_baseline_bytes"] = Figure(value=mine.value - theirs.value, n=mine.n)
    return figures | _energy(good, why)


def _energy(cells: Sequence[Cell], why: str) -> dict[str, Figure]:
    """Joules per kept token and mean watts: sums over the cells that have a counter's reading."""
    names = ("energy_j_per_token", "mean_power_w")
    counted = [cell for cell in cells if cell.energy_j is not None]
    n = len({cell.sample for cell in counted})
    seconds = sum(turn.end_ns for cell in counted for turn in cell.turns) / 1e9
    tokens = sum(turn.n_tokens for cell in counted for turn in cell.turns)
    joules = sum(cell.energy_j or 0.0 for cell in counted)
    if not counted or seconds < _SHORTEST_S or not tokens:
        short = f"under {_SHORTEST_S:g} s of generation" if seconds < _SHORTEST_S else "no tokens"
        return {name: absent(short if counted else why, n) for name in names}
    return {name: Figure(value=joules / below, n=n) for name, below in zip(names, (tokens, seconds), strict=True)}


def _peak(cells: Sequence[Cell], read: Callable[[Cell], int | None], why: str) -> Figure:
    known = {cell.sample: None for cell in cells if read(cell) is not None}
    peaks = [peak for cell in cells if (peak := read(cell)) is not None]
    return Figure(value=float(max(peaks)), n=len(known)) if peaks else absent(why)


def _why(cells: Sequence[Cell], nothing: str) -> str:
    if not cells:
        return nothing or NO_ANSWER
    imported = any(turn.tokens is not None for cell in cells for turn in cell.turns)
    return IMPORTED if imported else UNRECORDED
