"""From outputs and the target's scores to one conclusion a method. Free of torch."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf

from draftboard.audit.report import Difference, Evidence, MethodAudit, Verdict
from draftboard.lossless import Comparison, Margin, Turn, TurnComparison, compare

__all__ = ["Key", "Place", "audit_outputs", "differing"]

Key = tuple[str, int]
"""Sample and round."""
Place = tuple[Key, int]
"""… and turn."""


def differing(
    reference: Mapping[Key, Sequence[Turn]], method: Mapping[Key, Sequence[Turn]]
) -> list[TurnComparison[Key]]:
    """Return the turns that have a first difference in a token, under equal prompts: those worth a forward."""
    return [turn for turn in compare(reference, method, tie_limit=0).turns if _has_place(turn)]


def audit_outputs(
    label: str,
    reference: Mapping[Key, Sequence[Turn]],
    method: Mapping[Key, Sequence[Turn]],
    *,
    limit: float,
    exact: bool = False,
    lossless: bool = True,
    domains: Mapping[str, str] | None = None,
    evidence: Mapping[Place, Evidence] | None = None,
    stored: Mapping[Place, Evidence] | None = None,
    float32: Mapping[Place, Evidence] | None = None,
    failed: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> MethodAudit:
    """Judge one method's turns by the target's scores: those of `evidence`, else `stored`, else the reference's gaps.

    A difference is a near-tie where both tokens are within `limit` of the best. With `exact` ties fail too. `domains`
    name each sample's domain; `failed` are reasons not to pass beside the outputs. Raises ValueError for a limit that
    is negative or not a number.
    """
    seen = {**(stored or {}), **(evidence or {})}
    margins = {
        place: Margin(reference=_far(e.baseline_below), method=_far(e.method_below)) for place, e in seen.items()
    }
    comparison = compare(reference, method, tie_limit=limit, margins=margins)
    named = domains or {}
    by_domain: dict[str, Counter[str]] = {}
    for turn in comparison.turns:
        by_domain.setdefault(named.get(turn.key[0], ""), Counter())[turn.outcome] += 1
    found = comparison.verdict("exact" if exact else "half")
    reasons = [*([found.reason] if found.reason else []), *failed]
    differences = tuple(
        _difference(turn, reference, named, evidence or {}, stored or {}, float32 or {})
        for turn in comparison.turns
        if _has_place(turn) or turn.outcome == "length"
    )
    return MethodAudit(
        method=label,
        lossless=lossless,
        verdict=_verdict(comparison),
        passed=not reasons,
        reason="; ".join(reasons),
        counts={str(outcome): count for outcome, count in comparison.counts.items()},
        domains={name: dict(counts) for name, counts in by_domain.items()},
        differences=differences,
        notes=tuple(notes),
    )


def _verdict(comparison: Comparison[Key]) -> Verdict:
    counts = comparison.counts
    if not comparison.compared:
        return "not compared"
    if "mismatch" in counts:
        return "mismatch"
    if "length" in counts:
        return "length"
    if "different" in counts:
        return "unjudged"
    return "tie-divergent" if "near-tie" in counts else "identical"


def _difference(
    turn: TurnComparison[Key],
    reference: Mapping[Key, Sequence[Turn]],
    domains: Mapping[str, str],
    evidence: Mapping[Place, Evidence],
    stored: Mapping[Place, Evidence],
    float32: Mapping[Place, Evidence],
) -> Difference:
    at = (turn.key, turn.turn)
    ours = reference[turn.key][turn.turn].token_ids
    place = turn.place or 0
    looked = evidence.get(at)
    said = looked or stored.get(at)
    again = float32.get(at)
    tokens = (turn.reference_token, turn.method_token)
    return Difference(
        sample=turn.key[0],
        repeat=turn.key[1],
        turn=turn.turn,
        domain=domains.get(turn.key[0], ""),
        outcome=turn.outcome,
        place=place,
        baseline_token=turn.reference_token,
        method_token=turn.method_token,
        shared=place / len(ours) if ours else 1.0,
        gap=said.gap if said else turn.gap,
        margin=said.margin if said else None,
        baseline_below=said.baseline_below if said else None,
        method_below=said.method_below if said else None,
        baseline_rank=said.baseline_rank if said else None,
        method_rank=said.method_rank if said else None,
        judged_by="model" if looked else "stored" if said or turn.gap is not None else "",
        sides_with=said.sides_with(*tokens) if said else "",
        float32_sides_with=again.sides_with(*tokens) if again else "",
    )


def _has_place(turn: TurnComparison[Key]) -> bool:
    return turn.outcome in ("near-tie", "mismatch", "different")


def _far(below: float | None) -> float:
    return inf if below is None else below
