"""Tensor names of every toolkit, on names alone."""

import re

import pytest
import torch

from draftboard.methods.eagle.config import HeadConfig
from draftboard.methods.eagle.heads import make_head
from draftboard.methods.eagle.naming import check_names, name_tensors, parameter_names
from draftboard.methods.errors import MethodError

from made_heads import head_config

LAYER = [
    *(f"self_attn.{part}_proj.weight" for part in "qkvo"),
    *(f"mlp.{part}_proj.weight" for part in ("gate", "up", "down")),
    "post_attention_layernorm.weight",
]
FIRST = ["fc.weight", *(f"layers.0.{name}" for name in LAYER)]
THIRD = [
    *("fc.weight", "norm.weight", "lm_head.weight", "d2t", "t2d"),
    *(f"midlayer.{name}" for name in (*LAYER, "hidden_norm.weight", "input_layernorm.weight")),
]
VARIANTS = [
    head_config("eagle"),
    head_config("eagle", fc_bias=True, qkv_bias=True, input_norms=True, layers=2),
    head_config("eagle3"),
    head_config("eagle3", qk_norm=True, norm_before_fc=True),
    head_config("eagle3", fc_norm=True, qkv_bias=True, own_embedding=True, hidden=24),
    head_config("eagle3", own_lm_head=False, draft_vocab=40),
]


@pytest.mark.parametrize("config", VARIANTS)
def test_the_official_names_are_those_of_the_modules(config: HeadConfig) -> None:
    with torch.device("meta"):
        head = make_head(config, torch.arange(config.draft_vocab))
    assert sorted(parameter_names(config)) == sorted(head.state_dict())


@pytest.mark.parametrize(
    ("names", "renamed"),
    [
        (FIRST, FIRST),
        ([f"model.{name}" for name in FIRST], FIRST),
        ([f"module.model.{name}" for name in FIRST], FIRST),
        ([name.replace("fc.", "fusion_fc.").replace("layers.0.", "transformer.") for name in FIRST], FIRST),
        (THIRD, THIRD),
        ([name.replace("midlayer.", "layers.0.") for name in THIRD], THIRD),
        ([f"model.{name}".replace("midlayer.", "layers.0.").replace("model.lm", "lm") for name in THIRD], THIRD),
        ([name.replace("d2t", "draft_id_to_target_id") for name in THIRD], THIRD),
        ([*FIRST, "embed_layernorm.weight"], [*FIRST, "embedding_layernorm.weight"]),
        (
            [*FIRST, "enorm.weight", "hnorm.weight"],
            [*FIRST, "embedding_layernorm.weight", "hidden_states_layernorm.weight"],
        ),
        ([*FIRST, "pre_lm_head_layernorm.weight"], [*FIRST, "hidden_states_layernorm.weight"]),
    ],
)
def test_every_toolkit_is_renamed_to_the_official_names(names: list[str], renamed: list[str]) -> None:
    naming = name_tensors(names)
    assert sorted(naming.found) == sorted(renamed)
    assert sorted(naming.found.values()) == sorted(names)
    assert naming.kind == ("eagle" if "layers.0.mlp.up_proj.weight" in renamed else "eagle3")


def test_rotary_tables_and_the_targets_own_layers_are_dropped() -> None:
    extra = ["layers.0.self_attn.rotary_emb.inv_freq", "rotary_emb.cos_cached", "verifier_lm_head.weight"]
    naming = name_tensors([*FIRST, *extra])
    assert sorted(naming.dropped) == sorted(extra)
    check_names(naming, head_config("eagle"), "head")


def test_two_tensors_of_one_meaning_are_refused() -> None:
    with pytest.raises(MethodError, match=re.escape("fc.weight and model.fc.weight are both fc.weight")):
        name_tensors([*FIRST, "model.fc.weight"])
    with pytest.raises(MethodError, match=re.escape("both midlayer.hidden_norm.weight")):
        name_tensors([*THIRD, "layers.0.hidden_norm.weight"])


def test_everything_missing_and_unexpected_is_named_at_once() -> None:
    names = [name for name in FIRST if "gate" not in name and "q_proj" not in name] + [
        "model.junk.weight",
        "norm.weight",
    ]
    with pytest.raises(MethodError) as told:
        check_names(name_tensors(names), head_config("eagle"), "head")
    text = str(told.value)
    for part in (
        "missing: layers.0.mlp.gate_proj.weight, layers.0.self_attn.q_proj.weight",
        "unexpected: model.junk.weight (junk.weight), norm.weight",
    ):
        assert part in text


def test_optional_tensors_are_neither_missing_nor_unexpected() -> None:
    check_names(name_tensors([*FIRST, "embed_tokens.weight", "token_map"]), head_config("eagle"), "head")
    check_names(name_tensors([*THIRD, "embed_tokens.weight"]), head_config("eagle3"), "head")
    bare = [name for name in THIRD if name not in ("d2t", "t2d")]
    check_names(name_tensors(bare), head_config("eagle3"), "head")


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ([*FIRST, "layers.0.input_layernorm.weight"], "another architecture"),
        ([*FIRST, "layers.0.mlp.up_proj.qweight"], "quantised"),
        ([*THIRD, "layers.1.mlp.up_proj.weight"], "one layer"),
        (["base_model.layers.0.lora_A.weight"], "whole model or an adapter"),
    ],
)
def test_the_likeliest_cause_is_told(names: list[str], reason: str) -> None:
    naming = name_tensors(names)
    with pytest.raises(MethodError, match=reason):
        check_names(naming, head_config(naming.kind), "head")


def test_layers_are_counted() -> None:
    assert name_tensors(FIRST).layers == 1
    assert name_tensors([*FIRST, "layers.1.input_layernorm.weight"]).layers == 2
