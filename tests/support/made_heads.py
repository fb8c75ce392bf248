"""Heads of a few weights, and their files as the toolkits write them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from draftboard.methods.eagle.config import HeadConfig, TargetShape
from draftboard.methods.eagle.heads import Head, make_head
from draftboard.methods.eagle.vocabulary import kept, to_offsets

TARGET = TargetShape(name="tiny", hidden=16, vocab=40, layers=8)
IDS = torch.tensor([0, 2, 3, 7, 11, 12, 20, 25, 33, 39])


def head_config(kind: str, **changes: Any) -> HeadConfig:
    """A head of GQA shape: 4 heads of 6 on width 16, so that heads times head_dim is not the width."""
    sizes: dict[str, Any] = {
        "kind": kind,
        "hidden": 16,
        "target_hidden": TARGET.hidden,
        "vocab": TARGET.vocab,
        "draft_vocab": TARGET.vocab if kind == "eagle" else len(IDS),
        "heads": 4,
        "kv_heads": 2,
        "head_dim": 6,
        "intermediate": 24,
        "taps": (TARGET.layers,) if kind == "eagle" else (2, 4, 5),
        "own_lm_head": kind == "eagle3",
        "eps": 1e-5,
    }
    return HeadConfig(**{**sizes, **changes})


def made_head(config: HeadConfig, seed: int = 3) -> Head:
    """A head whose every weight, norms too, is random."""
    ids = None if config.draft_vocab == config.vocab else IDS[: config.draft_vocab]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        head = make_head(config, ids)
        for parameter in head.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    return head.eval().requires_grad_(False)


def tensors_of(head: Head) -> dict[str, Tensor]:
    """The head's tensors with official names, vocabulary tables included."""
    found = {name: value.clone() for name, value in head.state_dict().items()}
    if head.config.kind == "eagle3" and head.config.draft_vocab < head.config.vocab:
        found |= {"d2t": to_offsets(head.target_ids), "t2d": kept(head.target_ids, head.config.vocab)}
    return found


def layer_settings(config: HeadConfig, **changes: Any) -> dict[str, Any]:
    """The Llama fields that every toolkit writes in some place."""
    found = {
        "model_type": "llama",
        "hidden_size": config.hidden,
        "intermediate_size": config.intermediate,
        "num_hidden_layers": 1,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": config.eps,
        "max_position_embeddings": 128,
        "vocab_size": config.vocab,
    }
    return {**found, **changes}


def speculators_settings(config: HeadConfig, **changes: Any) -> dict[str, Any]:
    """As speculators nests them."""
    found = {
        "architectures": ["Eagle3Speculator" if config.kind == "eagle3" else "EagleSpeculator"],
        "speculators_model_type": config.kind,
        "speculators_config": {"algorithm": config.kind, "verifier": {"name_or_path": "owner/tiny"}},
        "transformer_layer_config": layer_settings(config),
    }
    if config.kind == "eagle3":
        found |= {"draft_vocab_size": config.draft_vocab, "norm_before_residual": config.norm_before_residual}
    return {**found, **changes}


def renamed(tensors: Mapping[str, Tensor], **prefixes: str) -> dict[str, Tensor]:
    """Tensors under other names: `midlayer="layers.0"` renames what begins with `midlayer.`."""
    found = {}
    for name, value in tensors.items():
        first, dot, rest = name.partition(".")
        found[prefixes.get(first, first) + dot + rest] = value
    return found


def write_head(
    folder: Path, tensors: Mapping[str, Tensor], settings: Mapping[str, Any], *, file: str = "model.safetensors"
) -> Path:
    """Write a folder with config.json and one weight file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    if file.endswith(".bin"):
        torch.save(dict(tensors), folder / file)
    else:
        save_file({name: value.contiguous() for name, value in tensors.items()}, folder / file)
    return folder


def outputs_of(head: Head, rows: int = 5) -> tuple[Tensor, Tensor]:
    """Outputs and logits on fixed states and tokens, bound to fixed embedding and output layer."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(11)
        head.bind(torch.randn(TARGET.vocab, TARGET.hidden), torch.randn(TARGET.vocab, TARGET.hidden))
        states = [torch.randn(1, rows, TARGET.hidden) for _ in head.config.taps]
        tokens = torch.randint(0, TARGET.vocab, (1, rows))
    with torch.no_grad():
        outputs = head(head.feature(states), tokens)
        return head.recycled(outputs), head.logits(outputs)
