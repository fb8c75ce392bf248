"""What a forward over several rows costs, and whether the measured curve can be believed."""

from dataclasses import dataclass
from math import inf

from draftboard.doctor.sign import Sign, fine
from draftboard.methods.engine.cost import CostCurve

__all__ = ["FALL", "Fall", "curve_sign", "deepest_fall"]

FALL = 0.1
"""More rows are more work. A cost that lies further than this below that of fewer rows is not the machine's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fall:
    """The deepest fall of a cost curve: `rows` cost less than `fewer` rows by `depth`, a part of the larger cost."""

    fewer: int
    rows: int
    depth: float


def deepest_fall(curve: CostCurve) -> Fall | None:
    """Return the deepest fall against the dearest smaller row count; None where the curve never falls."""
    worst: Fall | None = None
    dearest, at = -inf, 0
    for rows, cost in zip(curve.rows, curve.cost, strict=True):
        if cost > dearest:
            dearest, at = cost, rows
        elif cost < dearest:
            depth = 1 - cost / dearest
            if worst is None or depth > worst.depth:
                worst = Fall(fewer=at, rows=rows, depth=depth)
    return worst


def curve_sign(curve: CostCurve, again: CostCurve | None = None) -> Sign:
    """Judge a curve: disturbed where it falls by more than a tenth as rows grow.

    `again` is a second measurement. A fall at the same place in both is how the machine's kernels are made (some serve
    two rows worse than four), which is worth a word and disturbs nothing.
    """
    fall = deepest_fall(curve)
    top = f"{curve.rows[-1]} rows cost {curve.cost[-1]:.2f} times one"
    if fall is None or fall.depth <= FALL:
        return fine("cost curve", "curve", top, curve.cost[-1], "times")
    told = f"{fall.rows} rows cost {fall.depth:.0%} less than {fall.fewer}"
    second = deepest_fall(again) if again is not None else None
    if second is not None and (second.fewer, second.rows) == (fall.fewer, fall.rows) and second.depth > FALL:
        return Sign(
            name="cost curve",
            group="curve",
            state="note",
            told=f"{told}, and did when measured again",
            value=curve.cost[-1],
            unit="times",
            advice=f"Prefer drafts of {fall.rows} rows to {fall.fewer}: these kernels serve them better.",
        )
    return Sign(
        name="cost curve",
        group="curve",
        state="unreliable",
        told=f"disturbed: {told}",
        value=curve.cost[-1],
        unit="times",
        advice="Quieten the machine and measure again: drafts would be sized to a curve that other work has bent.",
    )
