"""Unrolling is drafting a chain from every prefix: held to doing just that, one pair after the other."""

import pytest
import torch

from draftboard.methods.eagle.unroll import unrolled
from draftboard.methods.engine.cache import TreeCache

from bound_heads import BASE, THREE, V, bound_head


@pytest.mark.parametrize("config", [BASE, THREE])
def test_every_prefix_drafts_as_the_chain_does(config):
    head = bound_head(config)
    torch.manual_seed(3)
    features, tokens = torch.randn(1, 9, config.hidden).double(), torch.randint(V, (1, 9))
    steps = list(unrolled(head, features, tokens, 4))
    for prefix in range(1, 6):
        cache = TreeCache(1)
        cache.reserve(16)
        out = head(features[:, :prefix], tokens[:, 1 : prefix + 1], cache=cache)[:, -1:]
        cache.keep(range(prefix))
        for step in range(4):
            torch.testing.assert_close(steps[step][:, prefix - 1 : prefix], out, atol=1e-6, rtol=1e-6)
            if prefix + step + 1 < 9:
                out = head(head.recycled(out), tokens[:, prefix + step + 1][:, None], cache=cache)
                cache.keep([0])


def test_padding_on_the_right_leaves_a_text_as_it_is():
    head = bound_head(THREE)
    features, tokens = torch.randn(1, 6, 16).double(), torch.randint(V, (1, 6))
    padded = torch.cat([features, torch.zeros(1, 3, 16)], 1), torch.cat([tokens, torch.zeros(1, 3).long()], 1)
    for step, (short, long) in enumerate(
        zip(unrolled(head, features, tokens, 3), unrolled(head, *padded, 3), strict=True)
    ):
        fits = 5 - step
        torch.testing.assert_close(long[:, :fits], short[:, :fits], atol=1e-6, rtol=1e-6)
