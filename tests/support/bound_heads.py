"""Heads of a few weights in float64, bound to a target of 16 wide states and 20 ids."""

from dataclasses import replace

import torch

from draftboard.methods.eagle.config import HeadConfig
from draftboard.methods.eagle.heads import make_head

H, V = 16, 20
BASE = HeadConfig(
    kind="eagle",
    hidden=H,
    target_hidden=H,
    vocab=V,
    draft_vocab=V,
    heads=4,
    kv_heads=2,
    head_dim=4,
    intermediate=24,
    taps=(2,),
    own_lm_head=False,
)
THREE = replace(BASE, kind="eagle3", taps=(1, 2, 3), own_lm_head=True)


def bound_head(config, ids=None, *, seed=0):
    torch.manual_seed(seed)
    head = make_head(config, ids).double().eval().requires_grad_(False)
    for weight in head.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    head.bind(torch.randn(V, H).double(), torch.randn(V, H).double())
    return head


def pairs(count, width=H, *, seed=1):
    noise = torch.Generator().manual_seed(seed)
    tokens = torch.randint(V, (1, count), generator=noise)
    return torch.randn(1, count, width, generator=noise, dtype=torch.float64), tokens
