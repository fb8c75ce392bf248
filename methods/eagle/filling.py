"""Filling the places of a static tree (native-methods 1.3): by rank when the run is greedy, else in drawing order.

Free of torch. Only nodes that have children are run through the head.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from draftboard.methods.eagle.dynamic import Ranked
from draftboard.methods.eagle.trees import StaticTree

__all__ = ["Filling"]

Floats = NDArray[np.float64]


class Filling:
    """A static tree that is filled level by level. A place stays empty where the head offers too few tokens."""

    def __init__(self, tree: StaticTree, root: int) -> None:
        self._tree = tree
        self._tokens: dict[int, int] = {0: root}
        self._children: list[list[int]] = [[] for _ in range(len(tree))]
        for node in range(1, len(tree)):
            self._children[tree.parents[node]].append(node)
        self._open = [0] if tree.counts[0] else []
        self._rows: dict[int, tuple[list[int], Floats]] = {}
        self._seen: NDArray[np.bool_] = np.zeros((1, 0), dtype=np.bool_)

    def take(self, ranked: Ranked) -> None:
        """Fill the children of the nodes that were run last, at first of the root. A negative id is no token."""
        for row, node in enumerate(self._open):
            tokens: list[int] = ranked.tokens[row].tolist()
            self._rows[node] = tokens, ranked.logprobs[row]
            for child, token in zip(self._children[node], tokens, strict=False):
                if token < 0:
                    break
                self._tokens[child] = token

    def advance(self) -> tuple[list[int], list[int], NDArray[np.bool_]]:
        """Return what to run next: for every node its parent's place in the block before, its token, and its row of the
        mask over all nodes run so far; nothing when the tree is full.
        """
        place = {node: row for row, node in enumerate(self._open)}
        following = [child for node in self._open for child in self._children[node] if child in self._tokens]
        self._open = [node for node in following if self._tree.counts[node]]
        above = [place[self._tree.parents[node]] for node in self._open]
        own = np.eye(len(above), dtype=np.bool_)
        self._seen = np.concatenate([self._seen[above], own], axis=1) if above else self._seen
        return above, [self._tokens[node] for node in self._open], self._seen

    def nodes(self) -> tuple[list[int], list[int], list[int]]:
        """Return tokens, parents and ranks of the filled places, the root first."""
        kept = sorted(self._tokens)
        place = {node: index for index, node in enumerate(kept)}
        parents = [-1, *(place[self._tree.parents[node]] for node in kept[1:])]
        return [self._tokens[node] for node in kept], parents, [self._tree.ranks[node] for node in kept]

    def ranked(self) -> list[int]:
        """Return the nodes whose children were ranked, in the order of the rankings, as places in `nodes()`."""
        place = {node: index for index, node in enumerate(sorted(self._tokens))}
        return [place[node] for node in self._rows]

    def logprobs(self) -> list[Floats]:
        """Return log-probabilities [k] of the children of these nodes, by rank."""
        return [row for _, row in self._rows.values()]

    def walk(self, emitted: Sequence[int]) -> list[tuple[Floats, int | None]]:
        """Follow what was emitted, as `Growth.walk` does."""
        found: list[tuple[Floats, int | None]] = []
        node: int | None = 0
        for token in emitted:
            if node is None or node not in self._rows:
                break
            tokens, logprobs = self._rows[node]
            rank = tokens.index(token) if token in tokens else None
            found.append((logprobs, rank))
            children = self._children[node]
            node = children[rank] if rank is not None and rank < len(children) else None
        return found
