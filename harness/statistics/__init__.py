"""How sure a figure is: resampling, noise between rounds, and what can be told from it (suites-and-scoring 8).

Numbers in, intervals, p-values and decisions out; `draftboard.analysis` and the gate bring the numbers.
"""

from typing import TYPE_CHECKING, Any

from draftboard.statistics.accuracy import mcnemar
from draftboard.statistics.arms import (
    ONE_ROUND,
    Arm,
    Comparison,
    Decision,
    compare_arms,
    decide,
    noise_floor,
    pooled_drift,
)
from draftboard.statistics.draws import (
    LEVEL,
    MANY,
    RESAMPLES,
    RESAMPLES_OF_MANY,
    ROUNDS_DRAWN,
    Floats,
    Sampling,
    resamples_for,
)
from draftboard.statistics.formulas import Coded, Formula, Over, Statistic, both, chained, geometric, pool_ratio, ratio
from draftboard.statistics.intervals import Replicates, interval_of, p_value, widened

if TYPE_CHECKING:
    from draftboard.statistics.bootstrap import replicates

__all__ = [
    "LEVEL",
    "MANY",
    "ONE_ROUND",
    "RESAMPLES",
    "RESAMPLES_OF_MANY",
    "ROUNDS_DRAWN",
    "Arm",
    "Coded",
    "Comparison",
    "Decision",
    "Floats",
    "Formula",
    "Over",
    "Replicates",
    "Sampling",
    "Statistic",
    "both",
    "chained",
    "compare_arms",
    "decide",
    "geometric",
    "interval_of",
    "mcnemar",
    "noise_floor",
    "p_value",
    "pool_ratio",
    "pooled_drift",
    "ratio",
    "replicates",
    "resamples_for",
    "widened",
]


def __getattr__(name: str) -> Any:
    """Import what needs numpy when it is asked for."""
    if name != "replicates":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from draftboard.statistics.bootstrap import replicates

    return replicates
