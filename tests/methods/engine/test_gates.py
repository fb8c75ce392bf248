import pytest
import torch

from draftboard.methods.engine import TokenTree
from draftboard.methods.engine.gates import DENSE, Gates, GateSwitch
from draftboard.methods.errors import MethodError
from draftboard.testing import tiny_model

TEXT = [3, 1, 4, 1, 5]


@torch.inference_mode()
def by_hand(model, ids, *, attention=(), mlp=()):
    """The whole text through the layers one by one, halves left out."""
    decoder = model.model.model
    states = decoder.embed_tokens(torch.tensor([ids]))
    places = decoder.rotary_emb(states, torch.arange(len(ids))[None])
    mask = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()[None, None]
    for index, layer in enumerate(decoder.layers):
        if index not in attention:
            normed = layer.input_layernorm(states)
            states = states + layer.self_attn(normed, position_embeddings=places, attention_mask=mask)[0]
        if index not in mlp:
            states = states + layer.mlp(layer.post_attention_layernorm(states))
    return model.model.lm_head(decoder.norm(states))[0]


@torch.inference_mode()
def gated(model, **gates):
    """Everything but the first token through a gated forward."""
    model.reserve(64)
    model.prefill(TEXT[:1])
    return model.forward(TokenTree(TEXT[1:]), gates=Gates(**{k: frozenset(v) for k, v in gates.items()}))


@pytest.fixture
def model():
    return tiny_model(layers=4, dtype="float64")


@torch.inference_mode()
def test_a_bypassed_layer_is_a_model_without_it(model):
    without = tiny_model(layers=3, dtype="float64").model
    full = model.model
    without.model.embed_tokens = full.model.embed_tokens
    without.model.norm, without.lm_head = full.model.norm, full.lm_head
    for target, source in zip(without.model.layers, (0, 2, 3), strict=True):
        target.load_state_dict(full.model.layers[source].state_dict())
    truth = without(input_ids=torch.tensor([TEXT]), use_cache=False).logits[0, 2:]
    gates = Gates(layers=frozenset({1}))
    with model._gate_switch().set(gates):
        model.prefill(TEXT[:2])
    found = model.forward(TokenTree(TEXT[2:]), gates=gates)
    torch.testing.assert_close(found.logits, truth, atol=1e-12, rtol=0)


def test_halves_are_left_out_as_computed_by_hand(model):
    assert torch.allclose(by_hand(model, TEXT)[1:], gated(model).logits, atol=1e-12)
    # The prefilled token went through every layer; gates of the last one leave what others read of it as it is.
    found = gated(model, mlp={3}).logits
    torch.testing.assert_close(found, by_hand(model, TEXT, mlp={3})[1:], atol=1e-12, rtol=0)
    found = gated(model, attention={3}).logits
    torch.testing.assert_close(found, by_hand(model, TEXT, attention={3})[1:], atol=1e-12, rtol=0)
    both = gated(model, attention={3}, mlp={3}).logits
    torch.testing.assert_close(both, gated(model, layers={3}).logits, atol=1e-12, rtol=0)
    assert not torch.allclose(both, found, atol=1e-3)


@torch.inference_mode()
def test_earlier_gates_change_only_the_gated_rows(model):
    """A gated row in the middle, checked against layers run by hand on the dense prefix's states."""
    model.prefill(TEXT[:-1])
    found = model.forward(TokenTree(TEXT[-1:]), gates=Gates(mlp=frozenset({1}))).logits[0]
    decoder = model.model.model
    states = decoder.embed_tokens(torch.tensor([TEXT]))
    places = decoder.rotary_emb(states, torch.arange(len(TEXT))[None])
    mask = torch.ones(len(TEXT), len(TEXT), dtype=torch.bool).tril()[None, None]
    for index, layer in enumerate(decoder.layers):
        normed = layer.input_layernorm(states)
        states = states + layer.self_attn(normed, position_embeddings=places, attention_mask=mask)[0]
        added = layer.mlp(layer.post_attention_layernorm(states))
        if index == 1:
            added[:, -1] = 0
        states = states + added
    truth = model.model.lm_head(decoder.norm(states))[0, -1]
    torch.testing.assert_close(found, truth, atol=1e-12, rtol=0)


@torch.inference_mode()
def test_the_model_is_dense_again_after_the_forward(model):
    model.prefill(TEXT)
    tree = TokenTree([7, 8, 9], [-1, 0, 0])
    dense = model.forward(tree).logits
    sparse = model.forward(tree, gates=Gates(layers=frozenset({0}), mlp=frozenset({2}))).logits
    assert not torch.allclose(sparse, dense, atol=1e-3)
    assert torch.equal(model.forward(tree).logits, dense)
    assert torch.equal(model.forward(tree, gates=DENSE).logits, dense)


@torch.inference_mode()
def test_the_gates_open_again_after_an_error(model):
    switch = GateSwitch(model.model.model.layers)
    model.prefill(TEXT)
    dense = model.forward(TokenTree([7])).logits
    with pytest.raises(RuntimeError, match="on purpose"), switch.set(Gates(layers=frozenset({0}))):
        raise RuntimeError("on purpose")
    assert torch.equal(model.forward(TokenTree([7])).logits, dense)


@pytest.mark.parametrize("gates", [{"layers": {4}}, {"attention": {-1}}, {"mlp": {0, 9}}])
def test_a_layer_that_does_not_exist_is_refused(model, gates):
    with pytest.raises(MethodError, match=r"there is no layer -?\d: the model has layers 0 to 3"):
        gated(model, **gates)


def test_layers_without_halves_are_refused():
    with pytest.raises(MethodError, match="Linear has no self_attn and mlp"):
        GateSwitch(torch.nn.ModuleList([torch.nn.Linear(2, 2)]))


def test_dense_means_nothing_bypassed():
    assert Gates().dense
    assert not Gates(mlp=frozenset({0})).dense
