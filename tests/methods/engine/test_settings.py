import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.methods.engine import Limits, Sampling
from draftboard.methods.errors import MethodError


@pytest.mark.parametrize(
    ("generated", "new", "expected"),
    [
        ([5, 6, 7], 2, (2, "")),
        ([5, 6, 2, 7], 3, (2, "eos")),
        ([5, 2, 6, 2], 4, (2, "eos")),
        ([5, 6, 3], 1, (1, "eos")),
        ([1, 1, 1, 1, 1, 1, 1, 1, 1], 3, (2, "length")),
        ([1, 1, 1, 1, 1, 1, 1, 1], 1, (1, "length")),
        ([1, 1, 1, 1, 1, 1, 1, 2], 1, (1, "eos")),
        ([1, 1, 1, 1, 1, 1, 1, 1, 2], 2, (1, "length")),
    ],
)
def test_the_earliest_end_wins(generated, new, expected):
    assert Limits(max_new_tokens=8, eos_ids=frozenset({2, 3})).cut(generated, new) == expected


@given(
    ids=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    blocks=st.lists(st.integers(1, 5), min_size=12, max_size=12),
    limit=st.integers(1, 14),
)
def test_blocks_end_where_single_tokens_end(ids, blocks, limit):
    """Whatever the blocks, the output is that of one token at a time: end id 3, stop text (1, 2), limit."""

    def stop(seen):
        ends = [k + 2 for k in range(len(seen) - 1) if tuple(seen[k : k + 2]) == (1, 2)]
        return ends[0] if ends else None

    def run(sizes):
        output, taken = [], 0
        for size in sizes:
            block = ids[taken : taken + size]
            taken += len(block)
            if not block:
                return output, ""
            output += block
            kept, finish = limits.cut(output, len(block))
            del output[len(output) - len(block) + kept :]
            if finish:
                return output, finish
        return output, ""

    limits = Limits(max_new_tokens=limit, eos_ids=frozenset({3}), stop=stop)
    assert run(blocks) == run([1] * 12)


def test_a_stop_rule_cannot_take_back_what_is_out():
    assert Limits(max_new_tokens=8, stop=lambda ids: 1).cut([4, 5, 6, 7], 2) == (1, "stop")


@pytest.mark.parametrize("count", [0, -1])
def test_no_tokens_is_no_generation(count):
    with pytest.raises(MethodError, match=f"max_new_tokens must be at least 1, not {count}"):
        Limits(max_new_tokens=count)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -0.1}, "temperature must be a number of at least 0, not -0.1"),
        ({"temperature": float("nan")}, "temperature must be"),
        ({"temperature": float("inf")}, "temperature must be"),
        ({"top_p": 0.0}, r"top_p must lie in \(0, 1\], not 0.0"),
        ({"top_p": 1.5}, "top_p must lie in"),
        ({"top_p": float("nan")}, "top_p must lie in"),
        ({"top_k": -1}, "top_k must be at least 0"),
        ({"temperature": 1e-45}, r"temperature must be 0 \(greedy\) or lie in"),
        ({"temperature": 1e308}, r"temperature must be 0 \(greedy\) or lie in"),
        ({"top_p": 1e-320}, "top_p must be at least 1e-9"),
    ],
)
def test_sampling_that_means_nothing_is_refused(settings, message):
    with pytest.raises(MethodError, match=message):
        Sampling(**settings)


def test_temperature_zero_is_greedy():
    assert Sampling().greedy
    assert not Sampling(temperature=0.01).greedy
