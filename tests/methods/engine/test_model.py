import random

import pytest
import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from draftboard.methods.engine import AuxRows, Limits, RootOnly, TokenTree, decode
from draftboard.methods.engine.model import LanguageModel
from draftboard.methods.engine.support import attention_for
from draftboard.methods.errors import MethodError
from draftboard.testing import OracleDrafter, tiny_model

V = 40
SHAPE = {
    "vocab_size": V,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
KINDS = {
    "llama": (LlamaConfig, LlamaForCausalLM, {}),
    "mistral": (MistralConfig, MistralForCausalLM, {"sliding_window": None}),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, {}),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 16}),
    "gemma2": (
        Gemma2Config,
        Gemma2ForCausalLM,
        {"head_dim": 8, "query_pre_attn_scalar": 8, "layer_types": ["full_attention"] * 3},
    ),
}


def build(kind, attention, dtype):
    config_class, model_class, extra = KINDS[kind]
    torch.manual_seed(3)
    config = config_class(**{**SHAPE, **extra}, attn_implementation=attention)
    return LanguageModel(model_class(config).to(dtype).eval())


def sequential(model, ids, first):
    """Logits after each of ids[first:], from the bare model and without a cache."""
    with torch.inference_mode():
        return model.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, first:]


CASES = [(kind, "sdpa") for kind in KINDS if kind != "gemma2"] + [(kind, "eager") for kind in KINDS]


@pytest.mark.parametrize(("kind", "attention"), CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["fp32", "fp64"])
@torch.inference_mode()
def test_a_tree_forward_equals_sequential_forwards(kind, attention, dtype, random_tree):
    model = build(kind, attention, dtype)
    # Eager computes its softmax, and Qwen3 and Gemma their norms, in float32 even for float64 models.
    exact = dtype == torch.float64 and attention == "sdpa" and kind in ("llama", "mistral", "qwen2")
    atol = 1e-12 if exact else 1e-4
    dice = random.Random(f"{kind}{attention}")
    text = [dice.randrange(V) for _ in range(6)]
    model.reserve(200)
    first = model.prefill(text, all_logits=True)
    torch.testing.assert_close(first.logits, sequential(model, text, 0), atol=atol, rtol=0)
    for _ in range(5):
        tree = random_tree(dice, dice.randint(1, 12), V)
        scores = model.forward(tree)
        assert scores.logits.shape == (len(tree), V)
        paths = [[0]]
        for node in range(1, len(tree)):
            paths.append([*paths[tree.parent_list[node]], node])
        for node, path in enumerate(paths):
            ids = [*text, *(tree.token_list[step] for step in path)]
            truth = sequential(model, ids, len(ids) - 1)[0]
            torch.testing.assert_close(scores.logits[node], truth, atol=atol, rtol=0)
        path = paths[dice.randrange(len(tree))]
        model.keep(path)
        text += [tree.token_list[node] for node in path]


@pytest.mark.parametrize(("kind", "attention"), CASES)
def test_speculation_on_every_architecture_equals_generate(kind, attention):
    model = build(kind, attention, torch.float64)
    prompt = [5, 3, 9, 1]
    truth = model.model.generate(torch.tensor([prompt]), max_new_tokens=24, do_sample=False)[0, 4:].tolist()
    limits = Limits(max_new_tokens=24)
    assert decode(model, RootOnly(), prompt, limits=limits).token_ids == truth
    assert decode(model, OracleDrafter(truth, 4, decoys=2), prompt, limits=limits).token_ids == truth


@torch.inference_mode()
def test_prefill_returns_the_last_row_unless_asked_for_all():
    model = tiny_model(dtype="float64")
    last = model.prefill([1, 2, 3])
    every = model.prefill([1, 2, 3], all_logits=True)
    assert last.logits.shape == (1, 64)
    assert every.logits.shape == (3, 64)
    torch.testing.assert_close(last.logits[0], every.logits[2], atol=1e-12, rtol=0)


@torch.inference_mode()
def test_hidden_states_are_the_models_own():
    model = tiny_model(dtype="float64", layers=3)
    text = [4, 8, 15, 16]
    truth = model.model(
        input_ids=torch.tensor([[*text, 23, 42]]), output_hidden_states=True, use_cache=False
    ).hidden_states
    scores = model.prefill(text, hidden=(0, 2, 3))
    assert set(scores.hidden) == {0, 2, 3}
    for index, rows in scores.hidden.items():
        torch.testing.assert_close(rows, truth[index][0, :4], atol=1e-12, rtol=0)
    scores = model.forward(TokenTree([23, 9, 42], [-1, 0, 0]), hidden=(1, 3))
    for index, rows in scores.hidden.items():
        assert rows.shape == (3, 32)
        torch.testing.assert_close(rows[[0, 2]], truth[index][0, 4:], atol=1e-12, rtol=0)
    assert model.forward(TokenTree([23])).hidden == {}


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@torch.inference_mode()
def test_aux_rows_ride_along(attention):
    model = tiny_model(dtype="float64", attention=attention)
    atol = 1e-12 if attention == "sdpa" else 1e-5
    text = [3, 1, 4]
    tree = [20, 21, 22], [-1, 0, 0]
    aux = AuxRows(
        tokens=torch.tensor([30, 31, 32]),
        positions=torch.tensor([1, 2, 1]),
        # the root; the root and the row before; the prefix and itself alone
        mask=torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]], dtype=torch.bool),
    )
    model.prefill(text)
    plain = model.forward(TokenTree(*tree))
    both = model.forward(TokenTree(*tree, aux=aux), hidden=(2,))
    torch.testing.assert_close(both.logits, plain.logits, atol=atol, rtol=0)
    assert both.hidden[2].shape == (3, 32)
    assert both.aux_logits.shape == (3, 64)
    assert plain.aux_logits is None
    torch.testing.assert_close(both.aux_logits[0], sequential(model, [*text, 20, 30], 4)[0], atol=atol, rtol=0)
    torch.testing.assert_close(both.aux_logits[1], sequential(model, [*text, 20, 30, 31], 5)[0], atol=atol, rtol=0)
    # Its position leaves a hole where the root stands; without a mask that would be taken for a second text.
    ids, places = torch.tensor([[*text, 32]]), torch.tensor([[0, 1, 2, 4]])
    causal = torch.full((1, 1, 4, 4), torch.finfo(torch.float64).min, dtype=torch.float64).triu(1)
    alone = model.model(input_ids=ids, position_ids=places, attention_mask=causal, use_cache=False)
    torch.testing.assert_close(both.aux_logits[2], alone.logits[0, -1], atol=atol, rtol=0)
    model.keep([0, 2])
    after = model.forward(TokenTree([7]))
    torch.testing.assert_close(after.logits[0], sequential(model, [*text, 20, 22, 7], 5)[0], atol=atol, rtol=0)


def test_attention_that_takes_no_tree_mask_is_refused():
    model = tiny_model().model
    model.config._attn_implementation = "flash_attention_2"
    with pytest.raises(MethodError, match="'flash_attention_2' takes no tree mask; load with sdpa"):
        LanguageModel(model)


def test_soft_capped_attention_is_loaded_as_eager():
    assert attention_for(Gemma2Config()) == "eager"
    assert attention_for(LlamaConfig()) == "sdpa"


def test_the_embeddings_are_the_models_own():
    target = tiny_model(vocab_size=V)
    assert target.input_embedding.shape == target.output_embedding.shape == (V, 32)
    assert target.input_embedding.data_ptr() == target.model.model.embed_tokens.weight.data_ptr()
    with torch.inference_mode():
        scores = target.prefill([1, 2, 3], hidden=(2,))
    torch.testing.assert_close(scores.hidden[2][-1] @ target.output_embedding.T, scores.logits[-1])


def test_an_output_layer_that_is_not_all_is_refused():
    target = tiny_model(vocab_size=V)
    target.model.lm_head.bias = torch.nn.Parameter(torch.zeros(V))
    with pytest.raises(MethodError, match=r"more than a product with its output layer \(a bias\)"):
        _ = target.output_embedding
    target = tiny_model(vocab_size=V)
    target.config.logit_scale = 0.25
    with pytest.raises(MethodError, match="logit_scale"):
        _ = target.output_embedding
    target.model.lm_head = torch.nn.Identity()
    with pytest.raises(MethodError, match="LlamaForCausalLM has no output layer with plain weights"):
        _ = target.output_embedding
