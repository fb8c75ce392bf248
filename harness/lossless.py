"""Is the output the same as plain decoding's? Token ids in, one verdict per turn out, nothing dropped.

Text inequality alone proves nothing: where the target's two best scores nearly tie, rounding picks, and a
correct method may differ. So each first difference is judged by the target's own scores at that place. Equal
text on a few samples proves little either: what is missing on one side is counted and fails the verdict.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Generic, Literal, TypeVar

__all__ = [
    "ChiSquare",
    "Comparison",
    "Margin",
    "Outcome",
    "Precision",
    "Turn",
    "TurnComparison",
    "Verdict",
    "chi_square",
    "compare",
]

K = TypeVar("K", bound=Hashable)

Outcome = Literal["identical", "near-tie", "mismatch", "different", "length", "not-comparable", "missing"]
"""How a turn compares.

`different`: they differ, and the scores at that place were not recorded. `length`: one is the beginning of
the other, a harness bug. `not-comparable`: the two had different prompts. `missing`: one side has no such
turn.
"""

Precision = Literal["exact", "half"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The kept token ids of one turn."""

    token_ids: Sequence[int]
    top2_gap: Sequence[float] | None = None
    """Of the reference: best minus second-best score of the target at each place."""
    prompt: str = ""
    """Anything that is equal exactly when the prompts' ids are, such as their hash; empty when not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """The target's scores at a first difference: by how much each side's token is below the best."""

    reference: float
    method: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnComparison(Generic[K]):
    """One turn's outcome; where both sides stand, `place` is the first difference, counted from 0."""

    key: K
    turn: int
    outcome: Outcome
    place: int | None = None
    reference_token: int | None = None
    """None where the reference had ended."""
    method_token: int | None = None
    gap: float | None = None
    """What the outcome was judged by; None when not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the outputs pass as lossless; `reason` is empty only when they do."""

    passed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Generic[K]):
    """All turns of both sides, in the reference's order; turns that only the method has come last."""

    turns: tuple[TurnComparison[K], ...]
    tie_limit: float

    @property
    def counts(self) -> dict[Outcome, int]:
        """How many turns had each outcome that occurred."""
        return dict(Counter(turn.outcome for turn in self.turns))

    @property
    def compared(self) -> int:
        """How many turns both sides have, under the same prompt."""
        return sum(turn.outcome not in ("not-comparable", "missing") for turn in self.turns)

    @property
    def output(self) -> str:
        """`identical`, `tie-divergent` or `different` for the turns compared; empty if there are none."""
        outcomes = {turn.outcome for turn in self.turns} - {"not-comparable", "missing"}
        if not outcomes:
            return ""
        if outcomes == {"identical"}:
            return "identical"
        return "tie-divergent" if outcomes <= {"identical", "near-tie"} else "different"

    def verdict(self, precision: Precision) -> Verdict:
        """Judge the whole: `exact` allows no difference, `half` allows near-ties.

        Missing turns, and differences whose scores were not recorded, pass in neither.
        """
        faults: dict[Outcome, str] = {
            "mismatch": "differ by more than a rounding tie",
            "different": "differ, and the scores there were not recorded",
            "length": "differ in length alone",
            "missing": "are missing on one side",
        }
        if precision == "exact":
            faults["near-tie"] = "differ at a near-tie"
        counts = self.counts
        found = [f"{counts[outcome]} turns {words}" for outcome, words in faults.items() if outcome in counts]
        if not self.compared:
            found.append("no turn could be compared")
        return Verdict(passed=not found, reason="; ".join(found))


def compare(
    reference: Mapping[K, Sequence[Turn]],
    method: Mapping[K, Sequence[Turn]],
    *,
    tie_limit: float,
    margins: Mapping[tuple[K, int], Margin] | None = None,
) -> Comparison[K]:
    """Compare a method's turns with plain decoding's, matched by key.

    A first difference is a near-tie when the reference's gap there is at most `tie_limit`. That presumes that
    the method took the second-best token; `margins`, by (key, turn), say where both tokens really lie and
    take precedence over gaps: a near-tie then needs both within the limit.

    A turn after a differing one has another prompt and is not compared, unless both sides give `prompt`,
    which then decides.

    Raises ValueError for a limit that is negative or not a number.
    """
    if not tie_limit >= 0:
        raise ValueError(f"tie_limit must be 0 or more, not {tie_limit}")
    known = margins or {}
    turns: list[TurnComparison[K]] = []
    for key in (*reference, *(key for key in method if key not in reference)):
        diverged = False
        pairs = zip_longest(reference.get(key, ()), method.get(key, ()))
        for index, (ours, theirs) in enumerate(pairs):
            if ours is None or theirs is None:
                result = TurnComparison(key=key, turn=index, outcome="missing")
            elif _prompts_differ(ours, theirs, diverged):
                result = TurnComparison(key=key, turn=index, outcome="not-comparable")
            else:
                result = _compare_turn(key, index, ours, theirs, tie_limit, known.get((key, index)))
            diverged = diverged or result.outcome != "identical"
            turns.append(result)
    return Comparison(turns=tuple(turns), tie_limit=tie_limit)


def _prompts_differ(reference: Turn, method: Turn, diverged: bool) -> bool:
    if reference.prompt and method.prompt:
        return reference.prompt != method.prompt
    return diverged


def _compare_turn(
    key: K, index: int, reference: Turn, method: Turn, tie_limit: float, margin: Margin | None
) -> TurnComparison[K]:
    ours, theirs = reference.token_ids, method.token_ids
    shared = min(len(ours), len(theirs))
    place = next((i for i in range(shared) if ours[i] != theirs[i]), shared)
    if place == shared:
        if len(ours) == len(theirs):
            return TurnComparison(key=key, turn=index, outcome="identical")
        return TurnComparison(
            key=key,
            turn=index,
            outcome="length",
            place=place,
            reference_token=ours[place] if place < len(ours) else None,
            method_token=theirs[place] if place < len(theirs) else None,
        )
    gap: float | None = None
    if margin is not None:
        gap = max(margin.reference, margin.method)
    elif reference.top2_gap is not None and place < len(reference.top2_gap):
        gap = reference.top2_gap[place]
    outcome: Outcome
    if gap is None or math.isnan(gap):
        outcome, gap = "different", None
    else:
        outcome = "near-tie" if gap <= tie_limit else "mismatch"
    return TurnComparison(
        key=key,
        turn=index,
        outcome=outcome,
        place=place,
        reference_token=ours[place],
        method_token=theirs[place],
        gap=gap,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiSquare:
    """Pearson's test of counts against probabilities."""

    statistic: float
    """Infinite when something was drawn that has probability 0."""
    degrees: int
    limit: float
    p_value: float
    passed: bool


def chi_square(counts: Sequence[int], probabilities: Sequence[float], *, level: float = 0.001) -> ChiSquare:
    """Test whether counts of draws fit the probabilities: up to the limit that chance exceeds at `level`.

    Raises ValueError for lists that do not match, negative counts, no draws, probabilities that do not add up
    to 1, fewer than two possible outcomes, or a level outside (0, 1).
    """
    if len(counts) != len(probabilities):
        raise ValueError(f"{len(counts)} counts but {len(probabilities)} probabilities")
    if any(count < 0 for count in counts) or sum(counts) <= 0:
        raise ValueError("counts must be 0 or more, and not all 0")
    if not all(p >= 0 for p in probabilities) or not math.isclose(math.fsum(probabilities), 1, abs_tol=1e-6):
        raise ValueError("probabilities must be 0 or more and add up to 1")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    possible = [(count, p) for count, p in zip(counts, probabilities, strict=True) if p > 0]
    if len(possible) < 2:
        raise ValueError("a test needs at least two outcomes with a probability above 0")
    from scipy.stats import chi2

    draws = sum(counts)
    statistic = math.fsum((count - draws * p) ** 2 / (draws * p) for count, p in possible)
    if sum(count for count, _ in possible) != draws:
        statistic = math.inf
    degrees = len(possible) - 1
    limit = float(chi2.ppf(1 - level, degrees))
    return ChiSquare(
        statistic=statistic,
        degrees=degrees,
        limit=limit,
        p_value=float(chi2.sf(statistic, degrees)),
        passed=statistic <= limit,
    )
