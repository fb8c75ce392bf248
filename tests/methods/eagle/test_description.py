"""Configurations of real heads' shapes, read without memory for a single weight."""

import re
from typing import Any

import pytest
import torch

from draftboard.methods.eagle.config import HeadConfig, TargetShape
from draftboard.methods.eagle.description import describe
from draftboard.methods.eagle.heads import make_head
from draftboard.methods.eagle.naming import name_tensors
from draftboard.methods.errors import MethodError

Shapes = dict[str, tuple[int, ...]]


def layer(prefix: str, *, width: int, reads: int, q: int, kv: int, middle: int, bias: bool = False) -> Shapes:
    shapes: Shapes = {
        "self_attn.q_proj.weight": (q, reads),
        "self_attn.k_proj.weight": (kv, reads),
        "self_attn.v_proj.weight": (kv, reads),
        "self_attn.o_proj.weight": (width, q),
        "mlp.gate_proj.weight": (middle, width),
        "mlp.up_proj.weight": (middle, width),
        "mlp.down_proj.weight": (width, middle),
        "post_attention_layernorm.weight": (width,),
    }
    if bias:
        shapes |= {f"self_attn.{part}_proj.bias": (q if part == "q" else kv,) for part in "qkv"}
    return {prefix + name: shape for name, shape in shapes.items()}


def first(width: int, *, kv: int, middle: int, bias: bool = False) -> Shapes:
    shapes = layer("layers.0.", width=width, reads=width, q=width, kv=kv, middle=middle, bias=bias)
    return {"fc.weight": (width, 2 * width), **shapes}


def third(width: int, *, q: int, kv: int, middle: int, draft: int, prefix: str = "midlayer.") -> Shapes:
    norms = {f"{prefix}{name}.weight": (width,) for name in ("hidden_norm", "input_layernorm")}
    shapes = layer(prefix, width=width, reads=2 * width, q=q, kv=kv, middle=middle)
    ends: Shapes = {"fc.weight": (width, 3 * width), "norm.weight": (width,), "lm_head.weight": (draft, width)}
    return {**ends, **norms, **shapes}


def told(config: dict[str, Any], shapes: Shapes, target: TargetShape, said: list[str] | None = None) -> HeadConfig:
    naming = name_tensors(shapes)
    official = {name: shapes[found] for name, found in naming.found.items()}
    notices: list[str] = []
    made = describe(config, naming, official, target=target, where="head", say=notices.append)
    if said is None:
        assert notices == []
    else:
        said += notices
    with torch.device("meta"):
        head = make_head(made, torch.arange(made.draft_vocab))
    for name, parameter in head.state_dict().items():
        assert tuple(parameter.shape) == official[name], name
    return made


VICUNA = TargetShape(name="vicuna", hidden=4096, vocab=32000, layers=32)
LLAMA = TargetShape(name="llama", hidden=4096, vocab=128256, layers=32)
SMALL = TargetShape(name="small", hidden=64, vocab=100, layers=12)
PLAIN = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100}
WIDE = third(64, q=64, kv=32, middle=96, draft=100)


def test_eagle1_of_vicuna_7b() -> None:
    config = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "max_position_embeddings": 2048,
        "num_attention_heads": 32,
        "num_hidden_layers": 1,
        "rms_norm_eps": 1e-06,
        "vocab_size": 32000,
    }
    shapes = {**first(4096, kv=4096, middle=11008), "fc.bias": (4096,), "embed_tokens.weight": (32000, 4096)}
    made = told(config, shapes, VICUNA)
    assert (made.kind, made.fc_bias, made.heads, made.kv_heads, made.head_dim) == ("eagle", True, 32, 32, 128)
    assert (made.rope_theta, made.eps, made.window, made.taps, made.draft_vocab) == (10000.0, 1e-6, 2048, (32,), 32000)
    assert not made.own_lm_head
    assert not made.own_embedding


def test_eagle1_of_llama3_8b() -> None:
    config = {
        "bias": False,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "rms_norm_eps": 1e-05,
        "rope_theta": 500000.0,
        "rope_scaling": None,
        "vocab_size": 128256,
    }
    made = told(config, first(4096, kv=1024, middle=14336), LLAMA)
    assert (made.fc_bias, made.heads, made.kv_heads, made.intermediate) == (False, 32, 8, 14336)
    assert (made.rope_theta, made.rope_scaling, made.eps) == (500000.0, None, 1e-5)


def test_eagle1_of_qwen2_has_biased_projections() -> None:
    config = {"bias": True, "qkv_bias": True, "num_attention_heads": 28, "num_key_value_heads": 4, "rope_theta": 1e6}
    target = TargetShape(name="qwen2", hidden=3584, vocab=152064, layers=28)
    shapes = first(3584, kv=512, middle=18944, bias=True)
    made = told({**config, "vocab_size": 152064}, {**shapes, "fc.bias": (3584,)}, target)
    assert made.qkv_bias
    assert (made.heads, made.kv_heads, made.head_dim, made.rope_theta) == (28, 4, 128, 1e6)
    bare = {name: shape for name, shape in shapes.items() if not name.endswith("k_proj.bias")}
    with pytest.raises(MethodError, match=r"missing: layers\.0\.self_attn\.k_proj\.bias"):
        told({**config, "vocab_size": 152064}, bare, target)


def test_the_configuration_does_not_decide_over_the_bias_of_fc() -> None:
    shapes = first(64, kv=32, middle=96)
    assert not told({**PLAIN, "bias": True}, shapes, SMALL).fc_bias
    assert told({**PLAIN, "bias": False}, {**shapes, "fc.bias": (64,)}, SMALL).fc_bias


def test_eagle3_of_llama31_8b() -> None:
    shapes = {**third(4096, q=4096, kv=1024, middle=14336, draft=32000), "d2t": (32000,), "t2d": (128256,)}
    assert shapes["fc.weight"] == (4096, 12288)
    assert shapes["midlayer.self_attn.q_proj.weight"] == (4096, 8192)
    assert shapes["midlayer.self_attn.k_proj.weight"] == (1024, 8192)
    config = {
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 1,
        "rms_norm_eps": 1e-05,
        "vocab_size": 128256,
        "draft_vocab_size": 32000,
    }
    made = told(config, shapes, LLAMA)
    assert (made.taps, made.draft_vocab, made.vocab, made.own_lm_head) == ((2, 16, 29), 32000, 128256, True)
    assert made.rope_theta == 10000.0


def test_eagle3_of_vicuna_13b_whose_configuration_has_40_layers() -> None:
    target = TargetShape(name="vicuna-13b", hidden=5120, vocab=32000, layers=40)
    config = {"num_hidden_layers": 40, "num_attention_heads": 40, "vocab_size": 32000, "draft_vocab_size": 32000}
    made = told(config, third(5120, q=5120, kv=5120, middle=13824, draft=32000), target)
    assert (made.layers, made.taps, made.heads, made.kv_heads) == (1, (2, 20, 37), 40, 40)
    assert made.draft_vocab == made.vocab == 32000


def test_eagle3_of_speculators_for_qwen3() -> None:
    shapes = third(4096, q=4096, kv=1024, middle=12288, draft=32000, prefix="layers.0.")
    shapes |= {f"layers.0.self_attn.{part}_norm.weight": (128,) for part in "qk"}
    shapes |= {"d2t": (32000,), "t2d": (151936,), "embed_tokens.weight": (151936, 4096)}
    nested = {
        "model_type": "qwen3",
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000},
        "vocab_size": 151936,
    }
    config = {
        "speculators_model_type": "eagle3",
        "norm_before_residual": True,
        "target_hidden_size": None,
        "draft_vocab_size": 32000,
        "transformer_layer_config": nested,
    }
    target = TargetShape(name="qwen3", hidden=4096, vocab=151936, layers=36)
    made = told(config, shapes, target)
    assert made.qk_norm
    assert made.norm_before_residual
    assert (made.rope_theta, made.rope_scaling, made.taps) == (1e6, None, (2, 18, 33))


def test_a_smaller_head_than_its_target() -> None:
    target = TargetShape(name="large", hidden=128, vocab=100, layers=12)
    shapes = {**WIDE, "fc.weight": (64, 384), "embed_tokens.weight": (100, 64)}
    made = told({**PLAIN, "target_hidden_size": 128}, shapes, target)
    assert (made.hidden, made.target_hidden, made.own_embedding) == (64, 128, True)
    # The width follows from the tensors alone.
    assert told(PLAIN, shapes, target) == made


@pytest.mark.parametrize(
    ("config", "taps", "notices"),
    [
        ({}, (2, 6, 9), 0),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 3, 7]}}, (1, 4, 8), 0),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 5, 8]}}, (2, 6, 9), 0),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 6, 9]}}, (2, 6, 9), 1),
        ({"eagle_config": {"use_aux_hidden_state": True}}, (2, 6, 9), 0),
        ({"eagle_aux_hidden_state_layer_ids": [1, 4, 8]}, (1, 4, 8), 0),
        ({"eagle_aux_hidden_state_layer_ids": [2, 6, 9]}, (2, 6, 9), 0),
        ({"eagle_aux_hidden_state_layer_ids": [1, 5, 8]}, (2, 6, 9), 1),
        (
            {
                "eagle_aux_hidden_state_layer_ids": [1, 5, 8],
                "eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 4, 7]},
            },
            (1, 5, 8),
            0,
        ),
    ],
)
def test_taps_are_states_whatever_the_way_of_counting(
    config: dict[str, Any], taps: tuple[int, ...], notices: int
) -> None:
    said: list[str] = []
    assert told({**PLAIN, **config}, WIDE, SMALL, said).taps == taps
    assert len(said) == notices


def test_a_shallow_target_needs_named_taps() -> None:
    shallow = TargetShape(name="shallow", hidden=64, vocab=100, layers=4)
    with pytest.raises(MethodError, match="a target of 4 layers has no default: it is a head for another target"):
        told(PLAIN, WIDE, shallow)
    assert told({**PLAIN, "eagle_aux_hidden_state_layer_ids": [1, 2, 3]}, WIDE, shallow).taps == (1, 2, 3)


@pytest.mark.parametrize(
    ("fields", "theta", "scaling"),
    [
        ({}, 10000.0, None),
        ({"rope_theta": 500000}, 500000.0, None),
        ({"rope_parameters": {"rope_theta": 2e6, "rope_type": "default"}, "rope_theta": 5.0}, 2e6, None),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, 10000.0, {"rope_type": "linear", "factor": 2.0}),
        (
            {"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
            5e5,
            {"rope_type": "llama3", "factor": 8.0},
        ),
    ],
)
def test_rope_is_the_heads_own(fields: dict[str, Any], theta: float, scaling: dict[str, Any] | None) -> None:
    config = {**PLAIN, **fields}
    naming = name_tensors(WIDE)
    made = describe(config, naming, WIDE, target=SMALL, where="head", say=lambda text: None)
    assert (made.rope_theta, made.rope_scaling) == (theta, scaling)


def test_the_draft_vocabulary_in_place_of_the_targets_is_seen_through() -> None:
    shapes = {**third(64, q=64, kv=32, middle=96, draft=30), "d2t": (30,)}
    assert told({**PLAIN, "vocab_size": 30}, shapes, SMALL).vocab == 100


def test_speculators_files_that_do_not_say_what_the_residual_is() -> None:
    said: list[str] = []
    shapes = third(64, q=64, kv=32, middle=96, draft=100, prefix="layers.0.")
    config = {"speculators_model_type": "eagle3", "transformer_layer_config": PLAIN}
    assert not told(config, shapes, SMALL, said).norm_before_residual
    assert "norm_before_residual; it is taken as false" in said[0]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"eagle_config": {"use_aux_hidden_state": False}}, "eagle_config.use_aux_hidden_state is false"),
        ({"speculators_model_type": "dflash", "transformer_layer_config": PLAIN}, "'dflash' is not EAGLE"),
        (
            {"speculators_model_type": "eagle", "transformer_layer_config": PLAIN},
            "says eagle and the tensors",
        ),
        ({"speculators_model_type": "eagle3"}, "transformer_layer_config is missing"),
        ({"model_type": "llama4_text"}, "Llama-4 head rotates interleaved pairs"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is not 1"),
        ({"architectures": ["LlamaForCausalLMEagle3"], "norm_output": False}, "norm_output is false"),
        ({"num_attention_heads": 5}, "num_attention_heads is 5, which does not divide the 64 rows of q_proj"),
        ({"num_attention_heads": None}, "num_attention_heads is None"),
        ({"num_key_value_heads": 4}, "k_proj has 32 rows, which are not the 4 key/value heads of 16"),
        (
            {"eagle_aux_hidden_state_layer_ids": [2, 6], "target_hidden_size": 64},
            "has 192 columns where 2 × 64 = 128 are",
        ),
        ({"eagle_aux_hidden_state_layer_ids": [2, 6, 13]}, "reads states [2, 6, 13] and small has layers 1 to 12"),
        ({"eagle_aux_hidden_state_layer_ids": [2, 6, 12]}, "before the final norm (12)"),
        ({"hidden_act": "swoosh"}, "no activation 'swoosh'"),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(config: dict[str, Any], said: str) -> None:
    with pytest.raises(MethodError, match=re.escape(said)):
        told({**PLAIN, **config}, WIDE, SMALL)


def test_wrong_types_are_told_all_at_once() -> None:
    config = {**PLAIN, "rms_norm_eps": "1e-5", "rope_theta": float("nan"), "max_position_embeddings": True}
    with pytest.raises(MethodError) as error:
        told({**config, "norm_before_residual": 1, "rope_scaling": []}, WIDE, SMALL)
    for name in ("rms_norm_eps", "rope_theta", "max_position_embeddings", "norm_before_residual", "rope_scaling"):
        assert f"{name} must be" in str(error.value)


def test_a_head_described_by_its_width_alone() -> None:
    config = {"head_dim": 16, "vocab_size": 100}
    assert told(config, WIDE, SMALL).heads == 4
