"""The modules against the formulas of the papers, written out once more in plain tensor code."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import linear, silu

from draftboard.methods import MethodError
from draftboard.methods.eagle.config import default_taps
from draftboard.methods.eagle.heads import make_head
from draftboard.methods.engine.cache import TreeCache

from bound_heads import BASE, THREE, H, V, bound_head, pairs


def norm(x, weight, eps=1e-6):
    # transformers' norm works in float32 whatever comes in.
    x32 = x.float()
    return weight * (x32 * (x32.pow(2).mean(-1, keepdim=True) + eps).rsqrt()).to(x.dtype)


def attended(weights, x, theta):
    """Llama attention over one sequence [n, reads], written with complex rotations."""
    n = len(x)
    q, k, v = (linear(x, weights[f"{name}_proj.weight"], weights.get(f"{name}_proj.bias")) for name in "qkv")
    q, k, v = q.view(n, 4, 4), k.view(n, 2, 4), v.view(n, 2, 4)
    angles = torch.arange(n)[:, None] * theta ** (-torch.arange(0, 4, 2) / 4)
    turn = torch.polar(torch.ones_like(angles), angles)[:, None]

    def rotated(states):
        halves = torch.complex(states[..., :2].contiguous(), states[..., 2:].contiguous()) * turn
        return torch.cat([halves.real, halves.imag], -1)

    q, k = rotated(q), rotated(k).repeat_interleave(2, 1)
    scores = torch.einsum("ihd,jhd->hij", q, k) / 2
    scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf).softmax(-1)
    mixed = torch.einsum("hij,jhd->ihd", scores, v.repeat_interleave(2, 1)).reshape(n, -1)
    return linear(mixed, weights["o_proj.weight"])


def below(state, prefix):
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def mlp(weights, x):
    gate, up = linear(x, weights["gate_proj.weight"]), linear(x, weights["up_proj.weight"])
    return linear(silu(gate) * up, weights["down_proj.weight"])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("norms", [False, True])
def test_eagle_1_is_the_formula_of_1_2(bias, norms):
    head = bound_head(replace(BASE, fc_bias=bias, qkv_bias=bias, input_norms=norms, rope_theta=500.0))
    features, tokens = pairs(7)
    state = head.state_dict()
    embedded, feature = head._embedding[tokens[0]], features[0]
    if norms:
        embedded = norm(embedded, state["embedding_layernorm.weight"])
        feature = norm(feature, state["hidden_states_layernorm.weight"])
    z = linear(torch.cat([embedded, feature], -1), state["fc.weight"], state.get("fc.bias"))
    y = z + attended(below(state, "layers.0.self_attn."), z, 500.0)
    o = y + mlp(below(state, "layers.0.mlp."), norm(y, state["layers.0.post_attention_layernorm.weight"]))
    found = head(features, tokens)
    torch.testing.assert_close(found[0], o, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(head.logits(found)[0], found[0] @ head._target_lm_head.T)


@pytest.mark.parametrize("switch", ["", "norm_before_residual", "norm_before_fc", "fc_norm", "norm_output"])
def test_eagle_3_is_the_formula_of_1_5(switch):
    ids = torch.tensor([1, 4, 5, 9, 19])
    head = bound_head(replace(THREE, draft_vocab=5, **({switch: True} if switch else {})), ids)
    states = [pairs(6, seed=seed)[0] for seed in (3, 4, 5)]
    _, tokens = pairs(6)
    state = head.state_dict()
    taken = [s[0] for s in states]
    if switch == "fc_norm":
        taken = [norm(s, state[f"fc_norm.{i}.weight"]) for i, s in enumerate(taken)]
    joined = torch.cat(taken, -1)
    if switch == "norm_before_fc":
        joined = norm(joined, state["input_norm.weight"])
    g = linear(joined, state["fc.weight"])
    normed = norm(g, state["midlayer.hidden_norm.weight"])
    u = torch.cat([norm(head._embedding[tokens[0]], state["midlayer.input_layernorm.weight"]), normed], -1)
    y = (normed if switch == "norm_before_residual" else g) + attended(below(state, "midlayer.self_attn."), u, 1e4)
    o = y + mlp(below(state, "midlayer.mlp."), norm(y, state["midlayer.post_attention_layernorm.weight"]))
    found = head(head.feature(states), tokens)
    torch.testing.assert_close(found[0], o, atol=1e-5, rtol=1e-5)
    final = norm(o, state["norm.weight"])
    torch.testing.assert_close(head.logits(found)[0], linear(final, state["lm_head.weight"]), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(head.recycled(found)[0], final if switch == "norm_output" else o, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("config", [BASE, replace(BASE, layers=2), replace(BASE, qk_norm=True), THREE])
@pytest.mark.parametrize("split", [1, 3, 8])
def test_pairs_one_after_the_other_give_what_all_at_once_give(config, split):
    head = bound_head(config)
    features, tokens = pairs(9)
    whole = head(features, tokens)
    cache = TreeCache(config.layers)
    cache.reserve(9)
    parts = []
    for start in range(0, 9, split):
        end = min(9, start + split)
        parts.append(head(features[:, start:end], tokens[:, start:end], cache=cache))
        cache.keep(range(end - start))
    torch.testing.assert_close(torch.cat(parts, 1), whole)


def test_a_constant_shift_of_positions_changes_nothing():
    head = bound_head(BASE)
    features, tokens = pairs(5)
    shifted = head(features, tokens, positions=torch.arange(5)[None] + 40)
    torch.testing.assert_close(shifted, head(features, tokens), atol=1e-6, rtol=1e-6)


def test_parameters_have_the_names_of_official_files():
    layer = [f"self_attn.{name}_proj.weight" for name in "qkvo"]
    layer += [f"mlp.{name}_proj.weight" for name in ("gate", "up", "down")]
    layer += ["post_attention_layernorm.weight"]
    assert set(bound_head(BASE).state_dict()) == {"fc.weight", *(f"layers.0.{name}" for name in layer)}
    layer += ["hidden_norm.weight", "input_layernorm.weight"]
    expected = {"fc.weight", "norm.weight", "lm_head.weight", *(f"midlayer.{name}" for name in layer)}
    assert set(bound_head(THREE).state_dict()) == expected


@pytest.mark.parametrize("config", [BASE, THREE])
def test_a_smaller_vocabulary_keeps_the_logits_of_its_ids(config):
    head = bound_head(config)
    out = head(*pairs(4))
    whole = head.logits(out)
    head.restrict(torch.tensor([0, 3, 7, 18]))
    torch.testing.assert_close(head.logits(out), whole[..., [0, 3, 7, 18]])
    head.restrict(torch.tensor([3, 18]))
    torch.testing.assert_close(head.logits(out), whole[..., [3, 18]])
    assert head.target_ids.tolist() == [3, 18]
    with pytest.raises(MethodError, match="ids that the head drafts already"):
        head.restrict(torch.tensor([0, 3]))


def test_a_head_that_knows_no_target_says_so():
    with pytest.raises(RuntimeError, match="bind"):
        make_head(BASE)(*pairs(2))
    with pytest.raises(MethodError, match="which they are"):
        make_head(replace(THREE, draft_vocab=5))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kv_heads": 3}, "cannot share 3"),
        ({"draft_vocab": V + 1}, "these sizes"),
        ({"hidden": H // 2}, "target's width"),
        ({"kind": "eagle3", "layers": 2}, "one layer"),
        ({"kind": "eagle3", "norm_before_fc": True, "fc_norm": True}, "exclude"),
    ],
)
def test_sizes_that_make_no_head_are_refused(change, told):
    with pytest.raises(MethodError, match=told):
        replace(BASE, **change)


def test_default_states_of_a_target():
    assert default_taps(32) == (2, 16, 29)
    assert default_taps(7) == (2, 3, 4)
    with pytest.raises(MethodError, match="6 layers"):
        default_taps(6)
