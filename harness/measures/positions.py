"""Acceptance by place in the draft (suites-and-scoring 7.2).

Denominators count only steps that drafted that far: where draft lengths adapt, far places are drafted in easy text
only, and a rate that ignores this rises with the place. For trees a place is a depth of the accepted path.
"""

from draftboard.measures.acceptance import CUT_UNKNOWN
from draftboard.measures.columns import Listed, Turns
from draftboard.measures.pooling import IMPORTED, absent
from draftboard.results import Figure
from draftboard.statistics import Floats

__all__ = ["DRAFT_UNKNOWN", "positions"]

DRAFT_UNKNOWN = "over all steps: how far each drafted was not recorded"


def positions(turns: Listed) -> dict[str, tuple[Figure, ...]]:
    """Return rates by place, index k - 1 for place k, under the name of each; empty if nothing was drafted.

    `joint` J_k = #(a >= k) / #(d >= k), `conditional` C_k = #(a >= k) / #(a >= k - 1 and d >= k), and `vllm` over all
    drafting steps, with a before the cut. `all_steps` is #(r >= k) / S with r after the cut: they add up to accepted
    tokens per step, and so to the acceptance length less one where no cut fell inside a draft.

    Of imported turns only r is known: there a cut step reaches no further than it was kept, so that what follows the
    end is neither hit nor miss, and vLLM's rate cannot be given. Where draft lengths were not recorded either, only
    joint rates and those over all steps can.
    """
    import numpy as np

    table = Turns.of(turns)
    raw = not table.imported.any()
    survived, accepted, reached = _reaches(table)
    known = bool(np.isfinite(reached).all())
    note, cut = "" if known else DRAFT_UNKNOWN, "" if raw else CUT_UNKNOWN
    a, d, r = np.sort(accepted), np.sort(reached), np.sort(survived)
    # Accepted at k - 1 or beyond, and drafted as far as k.
    tried = np.sort(np.minimum(accepted + 1, reached))
    places = range(1, int((d if known else a).max(initial=0)) + 1)
    drafting = _at_least(d, 1)
    return {
        "joint": tuple(_rate(_at_least(a, k), _at_least(d, k), note) for k in places),
        "conditional": tuple(
            _rate(_at_least(a, k), _at_least(tried, k)) if known else absent(IMPORTED) for k in places
        ),
        "all_steps": tuple(_rate(_at_least(r, k), len(r), cut) for k in places),
        "vllm": tuple(_rate(_at_least(a, k), drafting) if raw else absent(IMPORTED) for k in places),
    }


def _reaches(turns: Turns) -> tuple[Floats, Floats, Floats]:
    """Return of each step how far its draft survived the cut, was accepted, and reached; infinity where unknown."""
    import numpy as np

    steps = turns.steps
    imported = turns.imported[steps.owners]
    survived = np.minimum(steps.accepted, steps.kept)
    reached = np.where(np.isnan(steps.drafted), np.inf, steps.drafted)
    cut = imported & (steps.kept <= survived)
    return (
        survived,
        np.where(imported, survived, steps.accepted),
        np.where(cut, np.minimum(reached, steps.kept), reached),
    )


def _at_least(ordered: Floats, place: int) -> int:
    import numpy as np

    return len(ordered) - int(np.searchsorted(ordered, place))


def _rate(hits: int, tries: int, note: str = "") -> Figure:
    if not tries:
        return absent("no step came that far")
    return Figure(value=hits / tries, n=tries, signature=note)
