"""Where the time of a step goes, and what speedup its parts predict (suites-and-scoring 7.4).

The identity: decode speedup = τ × t_AR / (t_draft + t_verify + t_other), with t_AR the baseline's own step time per
token on the same turns. Leaving parts out gives the ceilings.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from draftboard.measures.columns import Listed, Turns, distinct
from draftboard.measures.estimate import of_sums
from draftboard.measures.pairing import Pairs
from draftboard.measures.pooling import absent, pooled, unrecorded
from draftboard.measures.speed import NO_PAIR
from draftboard.results import Figure
from draftboard.statistics import Coded, Floats, Statistic

__all__ = ["cost_figures", "forecast", "share_figures"]

_NO_STEP = "no step after the prefill"


def share_figures(turns: Listed, *, nothing: str = "", unsplit: str = "") -> dict[str, Figure]:
    """Return the mean milliseconds of a step, of drafting, verifying and the rest in it, and their shares of it.

    `unsplit`: why the parts of a step are not true, where they are not.
    """
    table = Turns.of(turns)
    parts = {"draft": table.draft_ns, "verify": table.verify_ns, "other": table.other_ns}

    def per_step(part: Floats) -> Figure:
        return pooled(table, (part, table.count), zero=_NO_STEP, nothing=nothing, scale=1e-6)

    whole = {"step_ms": per_step(table.total_ns)}
    if unsplit:
        return whole | {f"{name}_{kind}": absent(unsplit) for kind in ("ms", "share") for name in parts}
    times = {f"{name}_ms": per_step(part) for name, part in parts.items()}
    shares = {
        f"{name}_share": pooled(table, (part, table.total_ns), zero=_NO_STEP, nothing=nothing)
        for name, part in parts.items()
    }
    return whole | times | shares


def cost_figures(pairs: Pairs, *, nothing: str = NO_PAIR, unsplit: str = "") -> dict[str, Figure]:
    """Return the predicted decode speedup, its ceilings, and the costs c and v relative to the baseline's token."""
    import numpy as np

    base, own = pairs.baseline, pairs.method
    some = ~(np.isnan(base.total_ns) | np.isnan(own.total_ns))
    samples = Coded(own.names, own.sample[some])
    rounds = base.repeat[some]
    why = _NO_STEP if len(samples) else (unrecorded(own) if len(pairs) else nothing)
    n = distinct(samples.places)
    base_ns, base_kept = base.total_ns[some], base.kept[some]
    kept, count, drafted = own.kept[some], own.count[some], np.nan_to_num(own.drafted[some])
    draft, verify, spent = own.draft_ns[some], own.verify_ns[some], own.total_ns[some]
    undrafted, worked = spent - draft, draft + verify

    def over(columns: tuple[Floats, Floats, Floats, Floats], zero: str = "") -> Figure:
        a, b, c, d = (int(column.sum()) for column in columns)
        if c * d <= 0:
            return absent(zero or why, n)
        statistic = Statistic(samples=samples, rounds=rounds, columns=columns, formula=_products)
        return of_sums(a * b / (c * d), n, statistic)

    # Per step and per token cancel: τ × t_AR / t_step = (kept / steps) × (base_ns / base_kept) / (ns / steps).
    figures = {
        "predicted_decode_speedup": over((kept, base_ns, base_kept, spent)),
        "ceiling_no_draft": over((kept, base_ns, base_kept, undrafted)),
        "ceiling_no_overhead": over((kept, base_ns, base_kept, worked)),
        "relative_draft_cost": over(
            (draft, base_kept, drafted, base_ns), "nothing was drafted" if base_ns.sum() else ""
        ),
        "relative_verify_cost": over((verify, base_kept, count, base_ns)),
    }
    if unsplit:
        whole = figures["predicted_decode_speedup"]
        return {name: absent(unsplit) for name in figures} | {"predicted_decode_speedup": whole}
    return figures


def _products(sums: Sequence[Floats]) -> Floats:
    return sums[0] * sums[1] / (sums[2] * sums[3])


def forecast(turns: Listed, curve: Mapping[str, Any] | None, nothing: str = "") -> Figure:
    """Return tokens per cost that the measured curve promises for these drafts: no drafting cost, no overhead."""
    import numpy as np

    table = Turns.of(turns)
    if not len(table):
        return absent(nothing or unrecorded(table))
    if not curve:
        return absent("no cost curve in this run")
    from draftboard.methods.engine.cost import CostCurve

    cost = CostCurve(rows=tuple(curve["rows"]), cost=tuple(curve["cost"]))
    nodes = np.nan_to_num(table.steps.nodes)
    sizes, which = np.unique(nodes, return_inverse=True)
    costs = np.array([cost.at(int(size) + 1) for size in sizes.tolist()], np.float64)[which]
    spent = np.bincount(table.steps.owners, costs, minlength=len(table))
    return pooled(table, (table.kept, np.where(np.isnan(table.nodes), np.nan, spent)), zero=_NO_STEP, nothing=nothing)
