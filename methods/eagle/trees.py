"""Static draft trees as child counts in breadth-first order (native-methods 1.3). Free of torch.

Entry m is the number of children of node m, node 0 being the root; missing entries are 0. The children of a node are
its ranks 0, 1, 2, …: the place in the parent's top list, or in the order of drawing. All published trees are of this
form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["TREES", "StaticTree", "chain"]


@dataclass(frozen=True, slots=True)
class StaticTree:
    """A tree of places to fill; index 0 is the root. Made by `of`."""

    counts: tuple[int, ...]
    """Children of every node."""
    parents: tuple[int, ...]
    """-1 for the root."""
    ranks: tuple[int, ...]
    """Place among the siblings; 0 for the root."""
    depths: tuple[int, ...]

    @classmethod
    def of(cls, counts: Sequence[int]) -> StaticTree:
        """Unfold breadth-first child counts. Raises ValueError for counts that name no tree."""
        parents, ranks, depths, known = [-1], [0], [0], []
        node = 0
        while node < len(parents):
            count = counts[node] if node < len(counts) else 0
            if count < 0:
                raise ValueError(f"node {node} has {count} children")
            known.append(count)
            parents += [node] * count
            ranks += range(count)
            depths += [depths[node] + 1] * count
            node += 1
        if len(counts) > len(parents):
            raise ValueError(f"{len(counts)} child counts for a tree of {len(parents)} nodes")
        return cls(tuple(known), tuple(parents), tuple(ranks), tuple(depths))

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def depth(self) -> int:
        """Length of the longest path."""
        return self.depths[-1]

    def widths(self) -> list[int]:
        """Return for every depth from 0 on how many nodes have children: the rows that are run through the head."""
        found = [0] * self.depth
        for count, depth in zip(self.counts, self.depths, strict=True):
            if count:
                found[depth] += 1
        return found

    def only(self, nodes: Sequence[int]) -> StaticTree:
        """Return the tree of these nodes, given in ascending order.

        With every node stand its parent and its elder siblings, so that what remains is again such a tree.
        """
        counts = dict.fromkeys(nodes, 0)
        for node in nodes[1:]:
            counts[self.parents[node]] += 1
        return StaticTree.of(tuple(counts.values()))

    def within(self, *, nodes: int, depth: int) -> StaticTree:
        """Return the first `nodes` nodes (the root counted) that are at most that deep."""
        if len(self) <= nodes and self.depth <= depth:
            return self
        kept = [node for node in range(len(self)) if self.depths[node] <= depth]
        return self.only(kept[: max(1, nodes)])


TREES: dict[str, StaticTree] = {
    "mc_sim_7b_63": StaticTree.of((4, 3, 2, 2, 1, 3, 2, 2, 1, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2)),
}
"""EAGLE-1's published tree: 25 drafted nodes."""


def chain(length: int) -> StaticTree:
    """Return the tree without branches of that many drafted nodes."""
    return StaticTree.of((1,) * length)
