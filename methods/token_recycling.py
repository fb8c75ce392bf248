"""Token Recycling: the target's own runners-up of the last time a token was seen (Luo et al. 2024).

A table holds, for every token, the eight likeliest successors of its last occurrence as an input row, accepted or
not. Drafts are trees filled from it. The table starts empty with every turn, so that neither order nor other samples
change a result; the published setting inherits it across requests, which a resumed or interleaved run cannot repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from draftboard.methods.budget import RankEstimate, best_tree
from draftboard.methods.engine.drafter import Context, Drafter, Verdict
from draftboard.methods.engine.tree import TokenTree
from draftboard.methods.errors import MethodError
from draftboard.methods.method import Binding, Budget, Method
from draftboard.methods.registry import register

if TYPE_CHECKING:
    from torch import Tensor

    from draftboard.methods.engine.scores import Scores

__all__ = ["TREES", "TokenRecycling"]

# fmt: off
TREES: dict[str, tuple[int, ...]] = {
    "2.2.2": (
        8, 8, 4, 3, 2, 1, 1, 1, 1, 8, 3, 2, 1, 1, 1, 1, 1, 2, 1, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 5, 2, 1, 1, 1, 0, 0,
        0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 3, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 0, 0, 1,
    ),
    "samd-60": (
        7, 6, 5, 3, 2, 2, 1, 1, 3, 2, 2, 1, 1, 0, 3, 2, 1, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 2, 1, 0, 1, 0, 0, 0, 0, 0,
        2, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 1, 0, 1,
    ),
}
# fmt: on
"""Published static trees as child counts in breadth-first order; a child's rank is its place among its siblings."""

_WIDTH = 8


@register("token_recycling")
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecycling(Method):
    """`budget="paper"` fills the published tree; `auto` grows one best-first to the size that pays on this machine."""

    about: ClassVar[str] = "token recycling: table of the target's runners-up, tree"
    reference: ClassVar[str] = "Luo et al. 2024, arXiv:2408.08696"
    tree: Literal["2.2.2", "samd-60"] = "2.2.2"
    prompt_rows: int = 0
    """How many of the last prompt positions also fill the table (their logits cost a larger LM head at prefill)."""
    budget: Budget = "auto"

    def __post_init__(self) -> None:
        if self.prompt_rows < 0:
            raise MethodError("token_recycling: prompt_rows must be at least 0")

    def drafter(self, binding: Binding) -> Drafter:
        """Return a drafter with an empty table."""
        return _Recycler(self, binding)


class _Recycler(Drafter):
    def __init__(self, method: TokenRecycling, binding: Binding) -> None:
        self._method = method
        self._curve = binding.curve
        self._vocab_size = binding.vocab_size
        self._table: dict[int, list[int]] = {}
        self._ranks = RankEstimate(_WIDTH)
        self.wants_prompt_logits = method.prompt_rows > 0

    def begin(self, prompt: Sequence[int], scores: Scores) -> None:
        """Fill the table from the prompt's last rows."""
        rows = min(self._method.prompt_rows or 1, len(scores.logits))
        self._update(list(prompt[-rows:]), scores.logits[-rows:])

    def propose(self, context: Context) -> TokenTree:
        """Return a tree filled from the table."""
        nodes = context.max_nodes - 1
        if self._method.budget == "paper":
            return self._static(context.root, nodes, context.room)
        tree = best_tree(
            context.root, self._table.get, self._ranks.chances(), nodes=nodes, depth=context.room, curve=self._curve
        )
        context.signals["expected"] = sum(tree.chances or ())
        return tree

    def observe(self, verdict: Verdict) -> None:
        """Learn which ranks were right along the text, then refresh the table from every row."""
        token = verdict.tree.token_list[0]
        for following in verdict.emitted:
            row = self._table.get(token)
            if row is not None:
                self._ranks.learn(row.index(following) if following in row else None)
            token = following
        self._update(verdict.tree.token_list, verdict.scores.logits)

    def _update(self, tokens: list[int], logits: Tensor) -> None:
        logits = logits[:, : self._vocab_size]
        rows: list[list[int]] = logits.topk(min(_WIDTH, logits.shape[-1]), -1).indices.tolist()
        # Of a token that stands in several rows the highest row index wins: dict order does exactly that.
        self._table.update(zip(tokens, rows, strict=True))

    def _static(self, root: int, nodes: int, room: int) -> TokenTree:
        counts = TREES[self._method.tree]
        tokens, parents, depths = [root], [-1], [0]
        # Places of the published tree in breadth-first order; None = nothing known there, so nothing below it either.
        places: list[int | None] = [0]
        for index, place in enumerate(places):
            count = counts[index] if index < len(counts) else 0
            row = None if place is None or depths[place] >= room else self._table.get(tokens[place])
            for rank in range(count):
                if row is None or place is None or rank >= len(row) or len(tokens) > nodes:
                    places.append(None)
                    continue
                places.append(len(tokens))
                tokens.append(row[rank])
                parents.append(place)
                depths.append(depths[place] + 1)
        return TokenTree(tokens, parents)
