import random

import pytest
import torch

from draftboard.methods.engine import Limits, RootOnly, TokenTree, decode
from draftboard.methods.method import Binding
from draftboard.testing import tiny_model


@pytest.fixture(autouse=True)
def _one_thread():
    """Tiny tensors only lose time to threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def model64():
    """A float64 Llama whose greedy output repeats itself often enough for retrieval to accept something."""
    return tiny_model(vocab_size=12, dtype="float64", window=256)


@pytest.fixture
def greedy():
    """Plain decoding through the loop."""

    def run(target, prompt, **limits):
        return decode(target, RootOnly(), prompt, limits=Limits(**limits))

    return run


@pytest.fixture
def binding():
    def make(target, **changes):
        size = getattr(target, "vocab_size", 8)
        return Binding(**{"target": target, "vocab_size": size, "logit_width": size, **changes})

    return make


@pytest.fixture
def random_tree():
    def make(dice: random.Random, nodes: int, vocab_size: int, root: int | None = None) -> TokenTree:
        tokens = [dice.randrange(vocab_size) for _ in range(nodes)]
        if root is not None:
            tokens[0] = root
        return TokenTree(tokens, [-1, *(dice.randrange(node) for node in range(1, nodes))])

    return make


@pytest.fixture
def check_trace():
    """The invariants of suites-and-scoring 7.1, and what more is true of a greedy or lossless turn."""

    def check(generation, limits):
        trace, ids = generation.trace, generation.token_ids
        assert 1 + sum(trace.kept) == len(ids) <= limits.max_new_tokens
        for s in range(len(trace)):
            assert 0 <= trace.accepted[s] <= trace.drafted[s] <= trace.nodes[s]
            if s < len(trace) - 1:
                assert trace.kept[s] == trace.accepted[s] + 1
        if len(trace):
            assert 1 <= trace.kept[-1] <= trace.accepted[-1] + 1
        times = [generation.first_ns, *trace.end_ns, generation.end_ns]
        assert times == sorted(times)
        assert generation.finish in ("eos", "stop", "length", "window")
        assert not limits.eos_ids & set(ids[:-1])
        assert (generation.finish == "eos") == (ids[-1] in limits.eos_ids)
        if generation.finish == "length":
            assert len(ids) == limits.max_new_tokens

    return check
