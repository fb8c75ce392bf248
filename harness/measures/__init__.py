"""Figures as pure functions of recorded turns: no model, no files, no state. `draftboard.analysis` assembles them.

A module a subject: what was accepted, by place too, how fast, how long to wait, where the time went, what the machine
gave, how Spec-Bench's script would count, what the scorers said. Definitions: docs/metrics.md.
"""

from draftboard.measures.acceptance import acceptance_figures
from draftboard.measures.columns import Cells, Turns, distinct
from draftboard.measures.estimate import Estimate, figure_of, pooled_over
from draftboard.measures.latency import latency_figures
from draftboard.measures.machine import machine_figures
from draftboard.measures.pairing import Pairing, Pairs, pair_up
from draftboard.measures.positions import positions
from draftboard.measures.quality import (
    difference_figures,
    quality_figures,
    score_counts,
    skipped_quality,
    truncated_rate,
)
from draftboard.measures.shares import cost_figures, forecast, share_figures
from draftboard.measures.spec_bench import SpecBenchSpeed, SpeedRow, spec_bench_figures, spec_bench_speed
from draftboard.measures.speed import gap_between, over_domains, rates, sample_weighted, speedups
from draftboard.measures.turns import TurnFacts, facts

__all__ = [
    "Cells",
    "Estimate",
    "Pairing",
    "Pairs",
    "SpecBenchSpeed",
    "SpeedRow",
    "TurnFacts",
    "Turns",
    "acceptance_figures",
    "cost_figures",
    "difference_figures",
    "distinct",
    "facts",
    "figure_of",
    "forecast",
    "gap_between",
    "latency_figures",
    "machine_figures",
    "over_domains",
    "pair_up",
    "pooled_over",
    "positions",
    "quality_figures",
    "rates",
    "sample_weighted",
    "score_counts",
    "share_figures",
    "skipped_quality",
    "spec_bench_figures",
    "spec_bench_speed",
    "speedups",
    "truncated_rate",
]
