"""What a forward over n rows costs on this machine, relative to one row: the curve that drafts are sized to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter_ns
from typing import TYPE_CHECKING

from draftboard.methods.engine.tree import TokenTree

if TYPE_CHECKING:
    from draftboard.methods.engine.loop import Target

__all__ = ["FLAT", "CostCurve", "measure_cost"]

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostCurve:
    """Relative cost of a target forward at some row counts; linear in between and beyond."""

    rows: tuple[int, ...]
    cost: tuple[float, ...]
    """Same length as `rows`; the cost of one row is 1.0."""
    one_row_s: float = 0.0
    """Seconds of a one-row forward when the curve was measured; 0 where it was not."""
    table: tuple[float, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        if len(self.rows) != len(self.cost) or not self.rows or self.rows[0] != 1:
            raise ValueError("a cost curve needs one cost a row count, starting at one row")
        table = tuple(self._between(n) for n in range(1, self.rows[-1] + 1))
        object.__setattr__(self, "table", (0.0, *table))

    def rising(self) -> CostCurve:
        """Return the nearest curve, in least squares, that never falls, one row again costing 1.

        A forward over more rows costs no less; where a measurement says so, the machine was disturbed, and drafts sized
        to the dip would be too long.
        """
        from scipy.optimize import isotonic_regression

        if all(low <= high for low, high in pairwise(self.cost)):
            return self
        level = isotonic_regression(self.cost).x
        return CostCurve(rows=self.rows, cost=tuple(float(cost / level[0]) for cost in level), one_row_s=self.one_row_s)

    def at(self, rows: int) -> float:
        """Return the relative cost of a forward over `rows` rows."""
        return self.table[rows] if rows < len(self.table) else self._between(rows)

    def _between(self, rows: int) -> float:
        index = bisect_left(self.rows, rows)
        if index < len(self.rows) and self.rows[index] == rows:
            return self.cost[index]
        if len(self.rows) == 1:
            return self.cost[0]
        right = min(index, len(self.rows) - 1)
        low, high = self.rows[right - 1], self.rows[right]
        slope = (self.cost[right] - self.cost[right - 1]) / (high - low)
        return self.cost[right - 1] + slope * (rows - low)


FLAT = CostCurve(rows=(1, 64), cost=(1.0, 1.0))
"""Rows are free: what a memory-bound accelerator comes close to for short drafts."""


def measure_cost(
    target: Target,
    *,
    prefix: int = 200,
    sizes: Sequence[int] = SIZES,
    repeats: int = 4,
    token: int = 1,
    clock: Callable[[], int] = perf_counter_ns,
) -> CostCurve:
    """Time forwards over chains of `sizes` rows behind `prefix` cached tokens.

    Sizes are interleaved and each keeps its fastest of `repeats`, so that a passing load on the machine does not bend
    the curve. A window too small for prefix and draft shortens the prefix, then the draft.
    """
    import torch

    with torch.inference_mode():
        target.reserve(prefix + max(sizes))
        target.prefill([token])
        prefix = max(1, min(prefix, target.room + 1 - max(sizes)))
        target.prefill([token] * prefix)
        sizes = [size for size in sizes if size <= target.room]
        if not sizes:
            return FLAT
        best = dict.fromkeys(sizes, 0)
        for _ in range(repeats):
            for size in sizes:
                tree = TokenTree([token] * size)
                target.synchronize()
                start = clock()
                target.forward(tree).best()
                target.synchronize()
                took = clock() - start
                best[size] = min(best[size] or took, took)
    one = max(best[sizes[0]], 1)
    return CostCurve(rows=tuple(sizes), cost=tuple(round(best[size] / one, 4) for size in sizes), one_row_s=one / 1e9)
