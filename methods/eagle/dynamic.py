"""EAGLE-2's dynamic tree: expand the likeliest nodes level by level, then keep the best of all that was seen
(Li et al. 2024, arXiv:2406.16858; native-methods 1.4). Free of torch, so that it is tested without a model.

Nodes are candidates in the order of their creation: level by level, within a level by the expanded node and by rank.
Every choice of the best is stable in that order. As no child scores above its parent, the kept nodes then always form
a tree, and their order is one in which parents stand first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from draftboard.methods.engine.tree import TokenTree

__all__ = ["Expand", "Growth", "Ranked", "grow"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ranked:
    """What the head thinks of the next token after each of w nodes: the k likeliest, best first."""

    tokens: Ints
    """Target ids [w, k]."""
    logprobs: Floats
    """Of them [w, k]: float32 log-probabilities, held in float64."""


Expand = Callable[[Ints, list[int], NDArray[np.bool_]], Ranked]
"""Runs the head on w nodes of one depth: `(rows, tokens, seen)`.

`rows` [w]: of each node's parent in the block that was run before (0 where that was the root); `tokens`: the nodes'
own; `seen` bool [w, m]: which of the m nodes run so far, these w being the last, each of them attends to.
"""

Weigh = Callable[[int, Floats], Floats]
"""`(depth, log-probabilities)` -> what a node of that depth adds to its parent's score, at most 0 each."""


class Growth:
    """The candidates of one step. A candidate's parent is a candidate, or -1 for the root."""

    def __init__(self, weigh: Weigh | None = None) -> None:
        self._weigh = weigh
        self._tokens: list[Ints] = []
        self._parents: list[Ints] = []
        self._logprobs: list[Floats] = []
        self._scores: list[Floats] = []
        self._blocks: dict[int, tuple[int, int]] = {}
        """Level and row in which the children of an expanded candidate stand."""
        self._first = 0
        self._end = 0

    @property
    def depth(self) -> int:
        """Levels so far."""
        return len(self._scores)

    def scores(self) -> Floats:
        """Return the score of every candidate, in order of creation."""
        return np.concatenate(self._scores)

    def chances(self) -> Floats:
        """Return them as probabilities, where scores are logarithms of such."""
        return np.exp(self.scores())

    def add(self, ranked: Ranked, parents: Ints) -> None:
        """Take the children of `parents` [w] (-1: the root) as the next level."""
        count, width = ranked.tokens.shape
        above = np.zeros(1) if self.depth == 0 else self._scores[-1][parents - self._first]
        own = ranked.logprobs if self._weigh is None else self._weigh(self.depth + 1, ranked.logprobs)
        for row, parent in enumerate(parents.tolist()):
            self._blocks[parent] = self.depth, row
        self._tokens.append(ranked.tokens.ravel())
        self._parents.append(np.repeat(parents, width))
        self._logprobs.append(ranked.logprobs)
        self._scores.append((above[:, None] + own).ravel())
        self._first, self._end = self._end, self._end + count * width

    def frontier(self, width: int) -> tuple[Ints, list[int], Floats]:
        """Return the best `width` candidates of the last level, best first, with their tokens and scores."""
        scores = self._scores[-1]
        order = np.argsort(-scores, kind="stable")[:width]
        return order + self._first, self._tokens[-1][order].tolist(), scores[order]

    def parents_of(self, nodes: Ints) -> list[int]:
        """Return the parents of candidates of the last level."""
        found: list[int] = self._parents[-1][nodes - self._first].tolist()
        return found

    def best(self, count: int, root: int, *, chances: bool = False) -> TokenTree:
        """Return the tree of the best `count` candidates behind `root`; `chances`: scores are their logarithms."""
        scores = self.scores()
        kept = np.argsort(-scores, kind="stable")[:count]
        kept.sort()
        place = np.zeros(self._end + 1, dtype=np.int64)
        place[kept] = np.arange(1, len(kept) + 1)
        parents = place[np.concatenate(self._parents)[kept]]
        return TokenTree(
            [root, *np.concatenate(self._tokens)[kept].tolist()],
            [-1, *parents.tolist()],
            chances=[1.0, *np.exp(scores[kept]).tolist()] if chances else None,
        )

    def walk(self, emitted: Sequence[int]) -> list[tuple[Floats, int | None]]:
        """Follow what was emitted: for every node on the way that was expanded, its children's log-probabilities [k]
        and the rank of the token that came, None if it was not among them.
        """
        found: list[tuple[Floats, int | None]] = []
        node: int | None = -1
        for token in emitted:
            if node is None or node not in self._blocks:
                break
            level, row = self._blocks[node]
            logprobs = self._logprobs[level]
            width = logprobs.shape[1]
            hits = np.flatnonzero(self._tokens[level][row * width : (row + 1) * width] == token)
            rank = int(hits[0]) if len(hits) else None
            found.append((logprobs[row], rank))
            start = sum(len(scores) for scores in self._scores[:level])
            node = None if rank is None else start + row * width + rank
        return found


def grow(
    first: Ranked,
    expand: Expand,
    *,
    width: int,
    levels: int,
    weigh: Weigh | None = None,
    go_on: Callable[[Growth], int] | None = None,
) -> Growth:
    """Grow the candidates behind the root, whose own ranking is `first` (w = 1).

    `levels`: head forwards at most (the paper's depth D; drafted paths have up to D + 1 nodes). `width`: nodes that
    each of them expands (k). `go_on` says before each how many it may have; 0 ends the growth.
    """
    growth = Growth(weigh)
    growth.add(first, np.array([-1]))
    seen: NDArray[np.bool_] = np.zeros((1, 0), dtype=np.bool_)
    place: dict[int, int] = {-1: 0}
    for _ in range(levels):
        wanted = width if go_on is None else min(width, go_on(growth))
        if wanted < 1:
            break
        nodes, tokens, _scores = growth.frontier(wanted)
        rows = np.array([place[parent] for parent in growth.parents_of(nodes)])
        seen = _extended(seen[rows], len(nodes))
        growth.add(expand(rows, tokens, seen), nodes)
        place = {node: row for row, node in enumerate(nodes.tolist())}
    return growth


def _extended(above: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """Return the mask rows [w, m + w] of w nodes from those of their parents [w, m]: what these see, and themselves."""
    return np.concatenate([above, np.eye(count, dtype=np.bool_)], axis=1)
