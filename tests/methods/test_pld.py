import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.methods import MethodError
from draftboard.methods.engine import GREEDY, Context, Limits, Scores, Verdict, decode
from draftboard.methods.engine.cost import CostCurve
from draftboard.methods.method import Binding
from draftboard.methods.pld import Pld
from draftboard.testing import TableTarget


def bound(method, **changes):
    return method.drafter(Binding(**{"target": None, "vocab_size": 9, "logit_width": 9, **changes}))


def ask(drafter, text, *, room=99, max_nodes=99):
    context = Context(
        tokens=list(text[:-1]),
        root=text[-1],
        room=room,
        max_nodes=max_nodes,
        sampling=GREEDY,
        generator=None,
    )
    return drafter.propose(context), context


def published(text, max_ngram, length, eos=()):
    """The rule of transformers, by search: the first earlier occurrence that something follows."""
    for size in range(min(max_ngram, len(text) - 1), 0, -1):
        for start in range(len(text) - size):
            end = start + size
            if text[start:end] == text[-size:]:
                found = text[end : end + length]
                for index, token in enumerate(found):
                    if token in eos:
                        return size, found[:index]
                return size, found
    return 0, []


@given(
    text=st.lists(st.integers(0, 2), min_size=2, max_size=30),
    steps=st.lists(st.integers(1, 4), max_size=12),
    max_ngram=st.integers(1, 4),
    length=st.integers(1, 6),
    eos=st.sets(st.integers(1, 2), max_size=1),
)
def test_the_published_rule_by_search(text, steps, max_ngram, length, eos):
    method = Pld(max_ngram=max_ngram, draft_length=length, budget="paper")
    drafter = bound(method, eos_ids=frozenset(eos))
    end = max(2, len(text) - sum(steps))
    drafter.begin(text[: end - 1], None)
    for step in [*steps, 0]:
        if end > len(text):
            break
        tree, context = ask(drafter, text[:end])
        size, found = published(text[:end], max_ngram, length, eos)
        assert tree.token_list == [text[end - 1], *found]
        assert tree.is_chain
        assert context.signals["match"] == size
        end += step


@pytest.mark.parametrize(("limit", "expected"), [({"room": 2}, 3), ({"max_nodes": 5}, 5), ({"room": 0}, 1)])
def test_the_draft_heeds_room_and_nodes(limit, expected):
    drafter = bound(Pld(budget="paper"))
    drafter.begin([1, 2, 3, 4, 5, 6, 7, 8], None)
    tree, _ = ask(drafter, [1, 2, 3, 4, 5, 6, 7, 8, 1], **limit)
    assert len(tree) == expected


def verdict(tree, emitted, accepted):
    import torch

    return Verdict(tree=tree, path=list(range(accepted + 1)), emitted=emitted, scores=Scores(torch.zeros(1)))


def test_auto_sizes_the_chain_and_learns():
    curve = CostCurve(rows=(1, 9), cost=(1.0, 3.0))
    text = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3]
    drafter = bound(Pld(), curve=curve)
    drafter.begin(text[:-1], None)
    sizes = []
    for _ in range(30):
        tree, _ = ask(drafter, text)
        assert tree.token_list == [3, 4, 5, 6, 7, 8, 1, 2, 3][: len(tree)]
        assert tree.expected is not None
        assert 1 <= tree.expected <= len(tree)
        sizes.append(len(tree))
        drafter.observe(verdict(tree, [0], 0))
    assert sizes[0] > 1
    assert sizes[-1] == 1
    for _ in range(60):
        tree, _ = ask(drafter, text)
        drafter.observe(verdict(tree, [4, 5, 6, 7, 8, 1, 2, 3, 0], len(tree) - 1))
    assert len(ask(drafter, text)[0]) == 9


def test_the_estimate_ignores_steps_without_a_match():
    drafter = bound(Pld())
    drafter.begin([1, 2], None)
    tree, context = ask(drafter, [1, 2, 5])
    assert tree.token_list == [5]
    assert context.signals == {"match": 0}
    drafter.observe(verdict(tree, [6], 0))


def test_a_repeating_target_is_followed():
    script = [1, 2, 3, 4] * 12
    target = TableTarget.scripted(script, vocab_size=9)
    found = decode(
        target,
        bound(Pld(budget="paper"), target=target),
        script[:5],
        limits=Limits(max_new_tokens=34),
    )
    assert found.token_ids == script[5:39]
    # The first draft ends with the text, one period on; from then on there are ten tokens to copy.
    assert found.trace.kept.tolist()[0] == 5
    assert sum(found.trace.kept) / len(found.trace) > 6


@pytest.mark.parametrize("settings", [{"max_ngram": 0}, {"draft_length": 0}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(MethodError, match="pld: max_ngram and draft_length must be at least 1"):
        Pld(**settings)


def test_a_fresh_drafter_knows_nothing():
    method = Pld(budget="paper")
    first = bound(method)
    first.begin([1, 2, 3, 1], None)
    second = bound(method)
    second.begin([1], None)
    assert ask(first, [1, 2, 3, 1, 2])[0].token_list == [2, 3, 1, 2]
    assert ask(second, [1, 2])[0].token_list == [2]
