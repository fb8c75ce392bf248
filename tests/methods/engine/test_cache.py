import random

import pytest
import torch

from draftboard.methods.engine import TokenTree
from draftboard.methods.engine.cache import TreeCache
from draftboard.methods.errors import MethodError
from draftboard.testing import tiny_model


def states(model):
    cache = model._cache
    return [
        (k[:, :, : cache.length].clone(), v[:, :, : cache.length].clone())
        for k, v in zip(cache.key_layers, cache.value_layers, strict=True)
    ]


def assert_same(found, expected, atol=1e-12):
    for ours, theirs in zip(found, expected, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert a.shape == b.shape
            torch.testing.assert_close(a, b, atol=atol, rtol=0)


@torch.inference_mode()
def test_kept_rows_equal_a_recomputation(random_tree):
    model, other = tiny_model(dtype="float64"), tiny_model(dtype="float64")
    dice = random.Random(1)
    text = [dice.randrange(64) for _ in range(5)]
    model.reserve(300)
    model.prefill(text)
    for _ in range(12):
        tree = random_tree(dice, dice.randint(1, 14), 64)
        model.forward(tree)
        path = [0]
        while tree.children[path[-1]] and dice.random() < 0.8:
            path.append(dice.choice(tree.children[path[-1]]))
        model.keep(path)
        text += [tree.token_list[node] for node in path]
        assert model.length == len(text)
    other.prefill(text)
    assert_same(states(model), states(other))


@torch.inference_mode()
def test_rewinding_forgets_and_reading_on_agrees():
    model, other = tiny_model(dtype="float64"), tiny_model(dtype="float64")
    model.reserve(64)
    model.prefill([1, 2, 3, 4, 5, 6])
    model.rewind(3)
    model.forward(TokenTree([9, 8]))
    model.keep([0, 1])
    other.prefill([1, 2, 3, 9, 8])
    assert_same(states(model), states(other))
    with pytest.raises(ValueError, match="cannot rewind 5 committed rows to 6"):
        model.rewind(6)
    with pytest.raises(ValueError, match="cannot rewind"):
        model.rewind(-1)


@torch.inference_mode()
def test_growth_keeps_the_committed_rows():
    model, other = tiny_model(dtype="float64", window=2000), tiny_model(dtype="float64", window=2000)
    text = [n % 64 for n in range(250)]
    model.prefill(text)
    assert model._cache.capacity == 256
    before = states(model)
    size = model.cache_bytes
    model.reserve(700)
    assert model._cache.capacity == 768
    assert model.cache_bytes == 3 * size
    assert_same(states(model), before, atol=0)
    model.forward(TokenTree([1, 2, 3, 4, 5, 6, 7, 8, 9]))
    model.keep(range(9))
    other.prefill([*text, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    assert_same(states(model), states(other))


@torch.inference_mode()
def test_room_is_what_is_left_of_cache_and_window():
    model = tiny_model(window=300)
    model.reserve(10)
    model.prefill([1, 2, 3])
    assert model.room == 256 - 3
    model.reserve(400)
    assert model.room == 300 - 3


@torch.inference_mode()
def test_a_second_prefill_starts_afresh():
    model, other = tiny_model(dtype="float64"), tiny_model(dtype="float64")
    model.prefill([7, 7, 7, 7])
    second = model.prefill([1, 2, 3])
    first = other.prefill([1, 2, 3])
    assert torch.equal(second.logits, first.logits)
    assert model.length == 3


def test_layers_of_different_shape_are_refused():
    cache = TreeCache(2)
    cache.reserve(8)
    cache.layers[0].update(torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 1, 4))
    with pytest.raises(MethodError, match="different shapes"):
        cache.layers[1].update(torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 1, 4))
