"""Chain drafting from every prefix of a text at once, with the text's own tokens: what heads are trained and judged on.

Step 0 reads true features. Step j reads the head's own outputs of step j - 1 at the same index, and the tokens one
place further on. A row attends to what a draft from its prefix would have in its cache: the true pairs up to its index,
and its own earlier steps (EAGLE-3's training-time test, native-methods 1.7).
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from draftboard.methods.eagle.heads import Head

__all__ = ["unrolled"]


class _Steps:
    """Keys and values of all steps so far, in the order of their making; stands in for a cache in attention."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Tensor, Tensor]] = {}

    def update(self, keys: Tensor, values: Tensor, layer: int, **_: object) -> tuple[Tensor, Tensor]:
        """Add the rows [B, heads, L, head_dim] of one step; return those of all."""
        if layer in self._known:
            before = self._known[layer]
            keys, values = torch.cat([before[0], keys], 2), torch.cat([before[1], values], 2)
        self._known[layer] = keys, values
        return keys, values

    def get_seq_length(self) -> int:
        """Return 0: masks and positions are given."""
        return 0


def unrolled(head: Head, features: Tensor, tokens: Tensor, steps: int) -> Iterator[Tensor]:
    """Yield the outputs [B, L, H] of each step; at index i those of step j predict the token at i + 2 + j.

    `features` [B, L, H] as `Head.feature` returns them; `tokens` int64 [B, L] of the same positions. Where a text is
    too short for a step (i + 1 + j >= L, padding included) its outputs mean nothing.
    """
    length = tokens.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril_()
    own = torch.eye(length, dtype=torch.bool, device=tokens.device)
    places = torch.arange(length, device=tokens.device)[None]
    known = _Steps()
    for step in range(steps):
        taken = tokens.roll(-1 - step, 1)
        mask = torch.cat([causal, *[own] * step], 1)[None, None]
        outputs = head(features, taken, positions=places + step, mask=mask, cache=known)
        yield outputs
        features = head.recycled(outputs)
