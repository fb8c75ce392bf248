"""Whether a measured cost curve can be believed."""

from draftboard.curves import FALL, deepest_fall
from draftboard.doctor.sign import Sign, fine
from draftboard.methods.engine.cost import CostCurve

__all__ = ["curve_sign", "falls"]


def falls(curve: CostCurve) -> bool:
    """Whether it falls by more than the machine's own costs do."""
    fall = deepest_fall(curve.rows, curve.cost)
    return fall is not None and fall.depth > FALL


def curve_sign(curve: CostCurve, again: CostCurve | None = None) -> Sign:
    """Judge a curve: disturbed where it falls by more than a tenth as rows grow.

    `again` is a second measurement. A fall at the same place in both is how the machine's kernels are made (some serve
    two rows worse than four), which is worth a word and disturbs nothing.
    """
    fall = deepest_fall(curve.rows, curve.cost)
    top = f"{curve.rows[-1]} rows cost {curve.cost[-1]:.2f} times one"
    if fall is None or fall.depth <= FALL:
        return fine("cost curve", "curve", top, curve.cost[-1], "times")
    second = deepest_fall(again.rows, again.cost) if again is not None else None
    repeated = second is not None and (second.fewer, second.rows) == (fall.fewer, fall.rows) and second.depth > FALL
    told = f"{fall.rows} rows cost {fall.depth:.0%} less than {fall.fewer}"
    return Sign(
        name="cost curve",
        group="curve",
        state="note" if repeated else "unreliable",
        told=f"{told}, and did when measured again" if repeated else f"disturbed: {told}",
        value=curve.cost[-1],
        unit="times",
        advice=(
            f"Prefer drafts of {fall.rows} rows to {fall.fewer}: these kernels serve them better."
            if repeated
            else "Quieten the machine and measure again: drafts would be sized to a curve that other work has bent."
        ),
    )
