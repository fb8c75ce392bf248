"""Where the time of a step goes, and what speedup its parts predict (suites-and-scoring 7.4).

The identity: decode speedup = τ × t_AR / (t_draft + t_verify + t_other), with t_AR the baseline's own step time per
token on the same turns. Leaving parts out gives the ceilings.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from draftboard.measures.estimate import numbers, of_sums
from draftboard.measures.pairing import Pair
from draftboard.measures.pooling import absent, pooled, unrecorded
from draftboard.measures.speed import NO_PAIR
from draftboard.measures.turns import StepSums, TurnFacts
from draftboard.results import Figure
from draftboard.statistics import Floats, Statistic

__all__ = ["cost_figures", "forecast", "share_figures"]

_NO_STEP = "no step after the prefill"


def share_figures(turns: Sequence[TurnFacts], *, nothing: str = "", unsplit: str = "") -> dict[str, Figure]:
    """Return the mean milliseconds of a step, of drafting, verifying and the rest in it, and their shares of it.

    `unsplit`: why the parts of a step are not true, where they are not.
    """
    parts: dict[str, Callable[[StepSums], int | None]] = {
        "draft": lambda s: s.draft_ns,
        "verify": lambda s: s.verify_ns,
        "other": lambda s: s.other_ns,
    }

    def per_step(part: Callable[[StepSums], int | None]) -> Figure:
        return pooled(turns, _ratio(part, lambda s: s.count), zero=_NO_STEP, nothing=nothing, scale=1e-6)

    whole = {"step_ms": per_step(lambda s: s.total_ns)}
    if unsplit:
        return whole | {f"{name}_{kind}": absent(unsplit) for kind in ("ms", "share") for name in parts}
    times = {f"{name}_ms": per_step(part) for name, part in parts.items()}
    shares = {
        f"{name}_share": pooled(turns, _ratio(part, lambda s: s.total_ns), zero=_NO_STEP, nothing=nothing)
        for name, part in parts.items()
    }
    return whole | times | shares


def cost_figures(pairs: Sequence[Pair], *, nothing: str = NO_PAIR, unsplit: str = "") -> dict[str, Figure]:
    """Return the predicted decode speedup, its ceilings, and the costs c and v relative to the baseline's token."""
    arms: list[list[StepSums]] = [[], []]
    samples: list[str] = []
    rounds: list[int] = []
    for pair in pairs:
        for base_turn, own_turn in zip(pair.baseline, pair.method, strict=True):
            base, own = base_turn.steps, own_turn.steps
            if base and own and base.total_ns is not None and own.total_ns is not None:
                arms[0].append(base)
                arms[1].append(own)
                samples.append(pair.sample)
                rounds.append(base_turn.repeat)
    turns = [turn for pair in pairs for turn in pair.method]
    why = (unrecorded(turns) if pairs else nothing) if not samples else _NO_STEP
    n = len(set(samples))

    def column(arm: int, read: Callable[[StepSums], int | None]) -> list[int]:
        return [read(steps) or 0 for steps in arms[arm]]

    base_ns, base_kept = column(0, lambda s: s.total_ns), column(0, lambda s: s.kept)
    kept, count, drafted = column(1, lambda s: s.kept), column(1, lambda s: s.count), column(1, lambda s: s.drafted)
    draft, verify = column(1, lambda s: s.draft_ns), column(1, lambda s: s.verify_ns)
    spent = column(1, lambda s: s.total_ns)
    undrafted = [all_of - part for all_of, part in zip(spent, draft, strict=True)]
    worked = list(map(sum, zip(draft, verify, strict=True)))

    def over(columns: tuple[list[int], list[int], list[int], list[int]], zero: str = "") -> Figure:
        a, b, c, d = map(sum, columns)
        if c * d <= 0:
            return absent(zero or why, n)
        statistic = Statistic(
            samples=samples, rounds=rounds, columns=[numbers(column) for column in columns], formula=_products
        )
        return of_sums(a * b / (c * d), n, statistic)

    # Per step and per token cancel: τ × t_AR / t_step = (kept / steps) × (base_ns / base_kept) / (ns / steps).
    figures = {
        "predicted_decode_speedup": over((kept, base_ns, base_kept, spent)),
        "ceiling_no_draft": over((kept, base_ns, base_kept, undrafted)),
        "ceiling_no_overhead": over((kept, base_ns, base_kept, worked)),
        "relative_draft_cost": over(
            (draft, base_kept, drafted, base_ns), "nothing was drafted" if sum(base_ns) else ""
        ),
        "relative_verify_cost": over((verify, base_kept, count, base_ns)),
    }
    if unsplit:
        whole = figures["predicted_decode_speedup"]
        return {name: absent(unsplit) for name in figures} | {"predicted_decode_speedup": whole}
    return figures


def _products(sums: Sequence[Floats]) -> Floats:
    return sums[0] * sums[1] / (sums[2] * sums[3])


def forecast(turns: Sequence[TurnFacts], curve: Mapping[str, Any] | None, nothing: str = "") -> Figure:
    """Return tokens per cost that the measured curve promises for these drafts: no drafting cost, no overhead."""
    if not turns:
        return absent(nothing or unrecorded(turns))
    if not curve:
        return absent("no cost curve in this run")
    from draftboard.methods.engine.cost import CostCurve

    cost = CostCurve(rows=tuple(curve["rows"]), cost=tuple(curve["cost"]))

    def read(turn: TurnFacts) -> tuple[float, float] | None:
        if turn.steps is None or turn.steps.nodes is None:
            return None
        sizes = Counter(turn.turn.steps.get("nodes", ()))
        return turn.steps.kept, sum(cost.at(nodes + 1) * count for nodes, count in sizes.items())

    return pooled(turns, read, zero=_NO_STEP, nothing=nothing)


def _ratio(
    top: Callable[[StepSums], int | None], bottom: Callable[[StepSums], int | None]
) -> Callable[[TurnFacts], tuple[float, float] | None]:
    def read(turn: TurnFacts) -> tuple[float, float] | None:
        if turn.steps is None:
            return None
        above, below = top(turn.steps), bottom(turn.steps)
        return None if above is None or below is None else (above, below)

    return read
