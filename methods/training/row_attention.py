"""Attention of many rows that each ask with one token, every row over as much of the cache as it has filled.

A batch in one call is as wide as its longest row, and rows of one length are rare: on a CPU the columns that a mask
hides cost as much as the others. Row by row nothing is computed in vain, and the query heads that share a key head
become queries of one product, so that keys are not repeated for them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

__all__ = ["row_attention", "rows_apart"]

_NAME = "draftboard_rows"


def row_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attend, with the signature of `transformers`' attention functions.

    `query`: [rows, heads, 1, D]. `key`, `value`: [rows, key heads, width, D]. `attention_mask`: bool [rows, 1, 1,
    width], true for a row's first columns and for no others. Returns [rows, 1, heads, D].
    """
    rows, heads, _, _ = query.shape
    key_heads = key.shape[1]
    grouped = query.view(rows, key_heads, heads // key_heads, -1)
    out = query.new_empty(*grouped.shape[:3], value.shape[3])
    for row, length in enumerate(attention_mask.sum(-1).flatten().tolist()):
        out[row] = scaled_dot_product_attention(
            grouped[row], key[row, :, :length], value[row, :, :length], scale=scaling
        )
    return out.view(rows, 1, heads, -1), None


@contextmanager
def rows_apart(model: Any) -> Iterator[None]:
    """Let a model on a CPU attend by `row_attention` while the block runs; elsewhere one wide call is faster."""
    usual = model.config._attn_implementation
    if model.device.type != "cpu" or usual != "sdpa":
        yield
        return
    AttentionInterface.register(_NAME, row_attention)
    model.config._attn_implementation = _NAME
    try:
        yield
    finally:
        model.config._attn_implementation = usual
