"""How large a draft should be: the most expected tokens for what the target's forward costs.

Both estimators start from a prior, learn from every verdict of the sample, and are as fresh as their drafter.
The priors were read off SmolLM2-135M on 24 Spec-Bench prompts; they weigh as much as a handful of observations, so a
sample's own behaviour soon decides.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count

from draftboard.methods.engine.cost import CostCurve
from draftboard.methods.engine.tree import TokenTree

__all__ = ["MatchEstimate", "RankEstimate", "best_chain", "best_tree", "merged"]

MAX_NODES = 63
"""Largest draft that `auto` considers, the root not counted."""

_FAINT = 0.015
"""A node less likely than this never pays and is not looked at."""

_EDGES = (1, 2, 3, 4, 6, 9, 14, 22)
"""Match lengths at which a bucket begins."""
_PRIOR = (0.20, 0.45, 0.57, 0.68, 0.78, 0.85, 0.90, 0.95)
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


def best_chain(
    root: int, found: Sequence[int], estimate: MatchEstimate, match: int, *, longest: int, curve: CostCurve
) -> TokenTree:
    """Return the chain of the first tokens of `found` with the most expected tokens per cost."""
    chances = [1.0]
    for drafted in range(1, min(len(found), longest, MAX_NODES) + 1):
        chance = chances[-1] * estimate.chance(match + drafted - 1)
        if chance < _FAINT:
            break
        chances.append(chance)
    size = _best_size(chances, curve)
    return TokenTree([root, *found[: size - 1]], chances=chances[:size])


def _best_size(chances: Sequence[float], curve: CostCurve) -> int:
    """Return how many of the nodes, likeliest first and the root among them, give the most tokens per cost."""
    expected, best, best_rate = 0.0, 1, 0.0
    for size, chance in enumerate(chances, 1):
        expected += chance
        rate = expected / curve.at(size)
        if rate > best_rate:
            best, best_rate = size, rate
    return best


class RankEstimate:
    """Chance that the successor of rank r in a table row is the right one."""

    __slots__ = ("_hits", "_seen")

    def __init__(self, width: int) -> None:
        prior = (0.38, 0.10, 0.04, 0.03, 0.02, 0.02, 0.02, 0.02)
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


def best_tree(
    root: int,
    row: Callable[[int], Sequence[int] | None],
    shares: Sequence[float],
    *,
    nodes: int,
    depth: int,
    curve: CostCurve,
) -> TokenTree:
    """Grow a tree best-first by path probability and cut it to the size with the most tokens per cost.

    `row(token)`: its successors by rank, or None when unknown; `shares`: P(rank is right). `nodes`, `depth`: at most
    this many drafted nodes and levels. The root alone is returned when no draft pays.
    """
    tokens, parents, depths, chances = [root], [-1], [0], [1.0]
    heap: list[tuple[float, int, int, int]] = []
    pushed = count()

    def open_children(node: int) -> None:
        successors = row(tokens[node])
        if successors is not None and depths[node] < depth:
            for token, share in zip(successors, shares, strict=False):
                heappush(heap, (-chances[node] * share, next(pushed), node, token))

    open_children(0)
    while heap and len(tokens) <= min(nodes, MAX_NODES):
        negative, _, parent, token = heappop(heap)
        if negative > -_FAINT:
            break
        tokens.append(token)
        parents.append(parent)
        depths.append(depths[parent] + 1)
        chances.append(-negative)
        open_children(len(tokens) - 1)
    size = _best_size(chances, curve)
    return TokenTree(tokens[:size], parents[:size], chances=chances[:size])


def merged(first: TokenTree, second: TokenTree, *, nodes: int, curve: CostCurve) -> TokenTree:
    """Unite two drafts behind the same root and cut the union to the size with the most tokens per cost.

    Both must say how likely their nodes are. A node that both propose keeps the larger chance, so that a parent is
    never less likely than its child and the likeliest nodes always form a tree.
    """
    tokens, parents, chances = [first.token_list[0]], [-1], [1.0]
    place: dict[tuple[int, int], int] = {}
    for tree in (first, second):
        moved = [0]
        for node in range(1, len(tree)):
            key = moved[tree.parent_list[node]], tree.token_list[node]
            chance = (tree.chances or ())[node]
            if key not in place:
                place[key] = len(tokens)
                tokens.append(key[1])
                parents.append(key[0])
                chances.append(chance)
            else:
                chances[place[key]] = max(chances[place[key]], chance)
            moved.append(place[key])
    order = sorted(range(len(tokens)), key=lambda node: -chances[node])[: nodes + 1]
    size = _best_size([chances[node] for node in order], curve)
    rank = {node: index for index, node in enumerate(order[:size])}
    return TokenTree(
        [tokens[node] for node in rank],
        [rank[parents[node]] if node else -1 for node in rank],
        chances=[chances[node] for node in rank],
    )
