from types import SimpleNamespace

import pytest
import torch
import transformers as tf

from draftboard.methods.engine.model import LanguageModel
from draftboard.methods.engine.support import check_config
from draftboard.methods.errors import MethodError

HYBRID = {
    "vocab_size": 32,
    "hidden_size": 32,
    "num_hidden_layers": 4,
}


@pytest.mark.parametrize(
    ("config", "name", "reason"),
    [
        (tf.MistralConfig(), "Mistral", "sliding-window attention"),
        (tf.Gemma2Config(), "Gemma2", "sliding_attention"),
        (tf.Gemma3TextConfig(), "Gemma3", "sliding_attention"),
        (tf.Qwen2Config(use_sliding_window=True, max_window_layers=2), "Qwen2", "sliding_attention"),
        (tf.T5Config(), "T5", "encoder–decoder"),
        (tf.MambaConfig(), "Mamba", "linear_attention"),
        (tf.JambaConfig(), "Jamba", "linear_attention"),
        (tf.Qwen3NextConfig(**HYBRID), "Qwen3Next", "linear_attention"),
        (tf.FalconConfig(alibi=True), "Falcon", "ALiBi"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_tree_cannot_be_verified_on_is_refused_by_name(config, name, reason):
    with pytest.raises(MethodError, match=reason) as caught:
        check_config(config)
    assert str(caught.value).startswith(name)
    assert "full attention in every layer" in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"model_type": "my_mamba"}, "state space"),
        ({"rwkv_version": 7}, "state space"),
        ({"attention_chunk_size": 64}, "chunked attention"),
        ({"sliding_window": 64}, r"sliding-window attention \(64 tokens\)"),
        ({"position_embedding_type": "alibi"}, "ALiBi"),
    ],
)
def test_configurations_of_other_packages_are_judged_by_their_fields(fields, reason):
    with pytest.raises(MethodError, match=reason):
        check_config(SimpleNamespace(architectures=["Own"], **fields))
    check_config(SimpleNamespace(architectures=["Own"], sliding_window=None))
    check_config(SimpleNamespace(architectures=["Own"], sliding_window=64, use_sliding_window=False))


def test_the_architecture_is_named_where_the_configuration_knows_it():
    with pytest.raises(MethodError, match=r"^MistralForCausalLM is not supported"):
        check_config(tf.MistralConfig(architectures=["MistralForCausalLM"]))


@pytest.mark.parametrize(
    "config",
    [
        tf.LlamaConfig(),
        tf.MistralConfig(sliding_window=None),
        tf.Qwen2Config(),
        tf.Qwen3Config(),
        tf.Gemma2Config(num_hidden_layers=2, layer_types=["full_attention"] * 2),
    ],
    ids=lambda config: config.model_type,
)
def test_full_attention_is_accepted(config):
    check_config(config)


def test_a_window_that_layer_types_do_not_govern_still_counts():
    config = tf.MistralConfig(num_hidden_layers=2)
    config.layer_types = ["full_attention", "full_attention"]
    with pytest.raises(MethodError, match="sliding-window"):
        check_config(config)


def test_bloom_is_refused_for_its_forward():
    torch.manual_seed(0)
    model = tf.BloomForCausalLM(tf.BloomConfig(vocab_size=16, hidden_size=16, n_layer=1, n_head=2)).eval()
    with pytest.raises(MethodError, match=r"BloomForCausalLM is not supported: .*position_ids"):
        LanguageModel(model)
