"""Acceptance by place in the draft (suites-and-scoring 7.2).

Denominators count only steps that drafted that far: where draft lengths adapt, far places are drafted in easy text
only, and a rate that ignores this rises with the place. For trees a place is a depth of the accepted path.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from draftboard.measures.acceptance import CUT_UNKNOWN
from draftboard.measures.pooling import IMPORTED, absent
from draftboard.measures.turns import TurnFacts, step_columns
from draftboard.results import Figure

__all__ = ["DRAFT_UNKNOWN", "positions"]

DRAFT_UNKNOWN = "over all steps: how far each drafted was not recorded"

Reach = tuple[int, float]
"""How far a step's draft was accepted, and how far it reached; infinity where that was not recorded."""


def positions(turns: Iterable[TurnFacts]) -> dict[str, tuple[Figure, ...]]:
    """Return rates by place, index k - 1 for place k, under the name of each; empty if nothing was drafted.

    `joint` J_k = #(a >= k) / #(d >= k), `conditional` C_k = #(a >= k) / #(a >= k - 1 and d >= k), and `vllm` over all
    drafting steps, with a before the cut. `all_steps` is #(r >= k) / S with r after the cut: they add up to accepted
    tokens per step, and so to the acceptance length less one where no cut fell inside a draft.

    Of imported turns only r is known: there a cut step reaches no further than it was kept, so that what follows the
    end is neither hit nor miss, and vLLM's rate cannot be given. Where draft lengths were not recorded either, only
    joint rates and those over all steps can.
    """
    steps: Counter[Reach] = Counter()
    survived: Counter[int] = Counter()
    raw = True
    for turn in turns:
        steps.update(_reaches(turn))
        survived.update(_survived(turn))
        raw = raw and not turn.imported
    known = all(reach < math.inf for _, reach in steps)
    depth = max((int(reach) if known else accepted for accepted, reach in steps), default=0)
    places = range(1, depth + 1)
    return {
        "joint": tuple(_joint(steps, k, "" if known else DRAFT_UNKNOWN) for k in places),
        "conditional": tuple(_conditional(steps, k) if known else absent(IMPORTED) for k in places),
        "all_steps": tuple(_rate(_at_least(survived, k), survived.total(), "" if raw else CUT_UNKNOWN) for k in places),
        "vllm": tuple(_vllm(steps, k) if raw else absent(IMPORTED) for k in places),
    }


def _reaches(turn: TurnFacts) -> Iterable[Reach]:
    columns = step_columns(turn.turn)
    if columns is None:
        return ()
    accepted: Sequence[int] = columns["accepted"]
    kept: Sequence[int] = columns["kept"]
    drafted: Sequence[float] = columns.get("drafted", [math.inf] * len(kept))
    if not turn.imported:
        return zip(accepted, drafted, strict=True)
    survived = list(map(min, accepted, kept))
    return ((r, min(d, k) if k <= r else d) for r, d, k in zip(survived, drafted, kept, strict=True))


def _survived(turn: TurnFacts) -> Iterable[int]:
    columns = step_columns(turn.turn)
    return () if columns is None else map(min, columns["accepted"], columns["kept"])


def _at_least(counts: Counter[int], place: int) -> int:
    return sum(count for length, count in counts.items() if length >= place)


def _joint(steps: Counter[Reach], place: int, note: str) -> Figure:
    hits = sum(count for (accepted, _), count in steps.items() if accepted >= place)
    tries = sum(count for (_, reach), count in steps.items() if reach >= place)
    return _rate(hits, tries, note)


def _conditional(steps: Counter[Reach], place: int) -> Figure:
    hits = sum(count for (accepted, _), count in steps.items() if accepted >= place)
    tries = sum(count for (accepted, reach), count in steps.items() if accepted >= place - 1 and reach >= place)
    return _rate(hits, tries, "")


def _vllm(steps: Counter[Reach], place: int) -> Figure:
    hits = sum(count for (accepted, _), count in steps.items() if accepted >= place)
    tries = sum(count for (_, reach), count in steps.items() if reach >= 1)
    return _rate(hits, tries, "")


def _rate(hits: int, tries: int, note: str) -> Figure:
    if not tries:
        return absent("no step came that far")
    return Figure(value=hits / tries, n=tries, signature=note)
