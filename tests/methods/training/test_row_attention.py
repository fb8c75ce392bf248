"""Attention row by row is attention under a mask."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from draftboard.methods.training.row_attention import row_attention, rows_apart
from draftboard.testing import tiny_model


@pytest.mark.parametrize(("heads", "key_heads"), [(4, 4), (6, 2), (3, 1)])
def test_each_row_sees_its_own_columns(heads, key_heads):
    generator = torch.Generator().manual_seed(heads)
    rows, width, size = 5, 9, 8
    query, key, value = (
        torch.randn(rows, count, columns, size, generator=generator, dtype=torch.float64)
        for count, columns in ((heads, 1), (key_heads, width), (key_heads, width))
    )
    lengths = torch.tensor([1, 9, 4, 5, 4])
    mask = (torch.arange(width) < lengths[:, None])[:, None, None]
    expected = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=0.3, enable_gqa=True)
    # What stands behind a row's columns is nothing to it.
    key.masked_fill_(~mask.mT, torch.nan)
    value.masked_fill_(~mask.mT, torch.nan)
    found, weights = row_attention(None, query, key, value, mask, scaling=0.3)
    assert weights is None
    assert torch.allclose(found, expected.transpose(1, 2), atol=1e-12)


def test_a_model_attends_as_before_when_the_block_ends_by_an_error():
    model = tiny_model()

    def fail():
        with rows_apart(model):
            assert model.config._attn_implementation == "draftboard_rows"
            raise KeyError

    assert model.config._attn_implementation == "sdpa"
    with pytest.raises(KeyError):
        fail()
    assert model.config._attn_implementation == "sdpa"
