"""Heads for `draftboard.testing.tiny_model` as folders, with random weights: lossless whatever they draft."""

from pathlib import Path

import torch

from draftboard.methods.eagle.config import HeadConfig
from draftboard.methods.eagle.export import save_head
from draftboard.methods.eagle.heads import make_head


def head_config(kind, *, vocab, layers=2, draft_vocab=0, **changes):
    third = kind == "eagle3"
    return HeadConfig(
        kind=kind,
        hidden=32,
        target_hidden=32,
        vocab=vocab,
        draft_vocab=draft_vocab or vocab,
        heads=4,
        kv_heads=2,
        head_dim=8,
        intermediate=48,
        taps=tuple(range(layers)[-3:]) if third else (layers,),
        own_lm_head=third,
        **changes,
    )


def random_head(config, ids=None, *, seed=3):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = make_head(config, ids).double().eval().requires_grad_(False)
        for weight in head.parameters():
            if weight.dim() > 1:
                torch.nn.init.normal_(weight, std=0.3)
    return head


def save_heads(folder: Path, *, vocab, layers=2):
    """Write `eagle` and `eagle3`, the latter over a part of the vocabulary, both with a window of 24 positions."""
    counts = torch.arange(vocab).flip(0)
    ids = torch.tensor([index for index in range(vocab) if index % 5 != 4])
    save_head(
        random_head(head_config("eagle", vocab=vocab, layers=layers, window=24)),
        folder / "eagle",
        record={"target": "tiny"},
        counts=counts,
    )
    third = head_config("eagle3", vocab=vocab, layers=layers, draft_vocab=len(ids), window=24)
    save_head(random_head(third, ids), folder / "eagle3", record={"target": "tiny"}, counts=counts)
    return folder
