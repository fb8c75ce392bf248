"""How large a draft should be: the most expected tokens for what the target's forward costs.

Both estimators start from a prior, learn from every verdict of the sample, and are as fresh as their drafter.
The prior counts were set once from the acceptance of retrieval drafts on chat text; they weigh as much as a handful
of observations, so a sample's own behaviour soon decides.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from draftboard.methods.engine.cost import CostCurve

__all__ = ["MatchEstimate", "RankEstimate", "best_chain", "best_tree"]

MAX_NODES = 63
"""Largest draft that `auto` considers, the root not counted."""

_FAINT = 0.015
"""A node less likely than this never pays and is not looked at."""

_EDGES = (1, 2, 3, 4, 6, 9, 14, 22)
"""Match lengths at which a bucket begins."""
_PRIOR = (0.12, 0.30, 0.48, 0.60, 0.70, 0.80, 0.86, 0.92)
_WEIGHT = 4.0


class MatchEstimate:
    """Chance that the token after an earlier occurrence comes again, by the length of the match.

    A drafted chain lengthens its own match: its k-th token rests on a match of m + k - 1.
    """

    __slots__ = ("_hits", "_seen")

    def __init__(self) -> None:
        self._hits = [p * _WEIGHT for p in _PRIOR]
        self._seen = [_WEIGHT] * len(_PRIOR)

    def chance(self, match: int) -> float:
        """Return P(next token agrees | match length); 0 for no match."""
        if match < 1:
            return 0.0
        bucket = bisect_right(_EDGES, match) - 1
        return self._hits[bucket] / self._seen[bucket]

    def learn(self, match: int, predicted: Sequence[int], emitted: Sequence[int]) -> None:
        """Compare a prediction with what the target wrote, whether or not it was drafted."""
        for offset, (guess, truth) in enumerate(zip(predicted, emitted, strict=False)):
            bucket = bisect_right(_EDGES, match + offset) - 1
            self._seen[bucket] += 1
            if guess != truth:
                return
            self._hits[bucket] += 1


def best_chain(estimate: MatchEstimate, match: int, longest: int, curve: CostCurve) -> tuple[int, float]:
    """Return (drafted tokens, expected emitted tokens) of the chain with the most tokens per cost; (0, 1.0) = none."""
    chance, expected = 1.0, 1.0
    best, best_expected, best_rate = 0, 1.0, 1.0 / curve.at(1)
    for drafted in range(1, min(longest, MAX_NODES) + 1):
        chance *= estimate.chance(match + drafted - 1)
        if chance < _FAINT:
            break
        expected += chance
        rate = expected / curve.at(1 + drafted)
        if rate > best_rate:
            best, best_expected, best_rate = drafted, expected, rate
    return best, best_expected


class RankEstimate:
    """Chance that the successor of rank r in a table row is the right one."""

    __slots__ = ("_hits", "_seen")

    def __init__(self, width: int) -> None:
        prior = (0.36, 0.12, 0.07, 0.045, 0.03, 0.025, 0.02, 0.015)
        self._hits = [6.0 * (prior[rank] if rank < len(prior) else 0.01) for rank in range(width)]
        self._seen = 6.0

    def chances(self) -> list[float]:
        """Return P(rank is right) for every rank."""
        return [hits / self._seen for hits in self._hits]

    def learn(self, rank: int | None) -> None:
        """Count one row that was known: the rank of the token that came, None if it was not in the row."""
        self._seen += 1
        if rank is not None and rank < len(self._hits):
            self._hits[rank] += 1


def best_tree(root: int, row: Callable[[int], Sequence[int] | None], chances: Sequence[float], *, nodes: int,
              depth: int, curve: CostCurve) -> tuple[list[int], list[int], float]:
    """Grow a tree best-first by path probability and stop at the size with the most tokens per cost.

    `row(token)`: its successors by rank, or None when unknown. `nodes`, `depth`: at most this many drafted nodes and
    levels. Returns (tokens, parents, expected emitted tokens); the root alone when no draft pays.
    """
    tokens, parents, depths = [root], [-1], [0]
    expected, best, best_expected, best_rate = 1.0, 1, 1.0, 1.0 / curve.at(1)
    heap: list[tuple[float, int, int, int]] = []
    order = 0

    def open_children(node: int, chance: float) -> int:
        count = order
        successors = row(tokens[node])
        if successors is not None and depths[node] < depth:
            for token, share in zip(successors, chances, strict=False):
                heappush(heap, (-chance * share, count, node, token))
                count += 1
        return count

    order = open_children(0, 1.0)
    while heap and len(tokens) <= min(nodes, MAX_NODES):
        negative, _, parent, token = heappop(heap)
        if negative > -_FAINT:
            break
        node = len(tokens)
        tokens.append(token)
        parents.append(parent)
        depths.append(depths[parent] + 1)
        expected -= negative
        rate = expected / curve.at(node + 1)
        if rate > best_rate:
            best, best_expected, best_rate = node + 1, expected, rate
        order = open_children(node, -negative)
    return tokens[:best], parents[:best], best_expected
