"""A draft: the root, and the tokens that may follow it, as a tree. A chain is a tree without branches.

Free of torch until a tensor is asked for, so that methods which work on ids can be listed without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["AuxRows", "Proposal", "TokenTree"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """How a *sampled* draft was drawn. Absent for deterministic drafts.

    `q` is float32 [n, V]: row i is the full distribution of i's parent from which node i was drawn, before its
    earlier siblings were removed. Siblings stand in the order of drawing, without replacement. Row 0 is unused.
    """

    q: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class AuxRows:
    """Rows that ride along in the target forward and are never candidates (Lookahead, SPACE).

    `tokens` int64 [m]; `positions` int64 [m], counted from the root (root = 0); `mask` bool [m, 1 + m]: whether row i
    sees the root and which aux rows. Every row sees the whole prefix; none sees a candidate, no candidate sees one.
    """

    tokens: Tensor
    positions: Tensor
    mask: Tensor


class TokenTree:
    """Tokens proposed in one step. Node 0 is the root; `parents[i] < i`, `parents[0] == -1`.

    Kept as Python ints: retrieval drafters work on ints, the verdict is reached on the host, and a step then costs
    one transfer to the device. `tokens` and `parents` are the same as int64 tensors of shape [n].
    """

    def __init__(
        self,
        tokens: Sequence[int],
        parents: Sequence[int] | None = None,
        *,
        proposal: Proposal | None = None,
        aux: AuxRows | None = None,
        chances: Sequence[float] | None = None,
    ) -> None:
        """`parents=None` makes a chain. Raises ValueError when the two do not form a tree.

        `chances`: how likely the drafter thinks each node is to be accepted, 1 for the root; None if it cannot say.
        """
        self.token_list = list(tokens)
        self.parent_list = list(range(-1, len(self.token_list) - 1)) if parents is None else list(parents)
        self.proposal = proposal
        self.aux = aux
        self.chances = chances
        self._chain = parents is None
        if not self.token_list or len(self.parent_list) != len(self.token_list):
            raise ValueError(f"{len(self.token_list)} tokens and {len(self.parent_list)} parents form no tree")
        if not self._chain:
            self._check()

    def _check(self) -> None:
        chain = True
        for index, parent in enumerate(self.parent_list):
            if parent != index - 1:
                chain = False
                if not 0 <= parent < index:
                    raise ValueError(f"node {index} has parent {parent}; a parent stands before its child")
        self._chain = chain

    def __len__(self) -> int:
        return len(self.token_list)

    @property
    def is_chain(self) -> bool:
        """Whether every node follows the one before it."""
        return self._chain

    @property
    def expected(self) -> float | None:
        """Tokens that the drafter expects of this step, the bonus included; None if it cannot say."""
        return None if self.chances is None else sum(self.chances)

    @property
    def tokens(self) -> Tensor:
        """int64 [n]."""
        import torch

        return torch.tensor(self.token_list, dtype=torch.int64)

    @property
    def parents(self) -> Tensor:
        """int64 [n]."""
        import torch

        return torch.tensor(self.parent_list, dtype=torch.int64)

    @cached_property
    def depths(self) -> list[int]:
        """Distance of every node from the root."""
        if self._chain:
            return list(range(len(self.token_list)))
        depths = [0] * len(self.token_list)
        for index in range(1, len(depths)):
            depths[index] = depths[self.parent_list[index]] + 1
        return depths

    @property
    def depth(self) -> int:
        """Length of the longest drafted path."""
        return len(self.token_list) - 1 if self._chain else max(self.depths)

    @cached_property
    def children(self) -> list[list[int]]:
        """For every node its children, in order."""
        children: list[list[int]] = [[] for _ in self.token_list]
        for index in range(1, len(self.parent_list)):
            children[self.parent_list[index]].append(index)
        return children

    def ancestors(self) -> Tensor:
        """Bool [n, n]: row i marks i and its ancestors."""
        import torch

        size = len(self.token_list)
        if self._chain:
            return torch.ones(size, size, dtype=torch.bool).tril_()
        rows = [0] * size
        rows[0] = 1
        for index in range(1, size):
            rows[index] = rows[self.parent_list[index]] | (1 << index)
        return torch.tensor([[row >> column & 1 for column in range(size)] for row in rows], dtype=torch.bool)

    def shortened(self, nodes: int) -> TokenTree:
        """Return the tree of the first `nodes` nodes (at least the root), without aux rows that no longer fit."""
        if nodes >= len(self.token_list) and self.aux is None:
            return self
        nodes = max(1, nodes)
        proposal = Proposal(q=self.proposal.q[:nodes]) if self.proposal else None
        parents = None if self._chain else self.parent_list[:nodes]
        return TokenTree(self.token_list[:nodes], parents, proposal=proposal)
