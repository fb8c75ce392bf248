from collections import Counter

import pytest
import torch

from draftboard.methods import MethodError
from draftboard.methods.engine import GREEDY, Context, Scores, TokenTree, Verdict
from draftboard.methods.engine.cost import CostCurve
from draftboard.methods.method import Binding
from draftboard.methods.token_recycling import TREES, TokenRecycling

V = 64


def bound(method, **changes):
    return method.drafter(Binding(**{"target": None, "vocab_size": V, "logit_width": V, **changes}))


def ask(drafter, root, *, room=99, max_nodes=999):
    context = Context(tokens=[], root=root, room=room, max_nodes=max_nodes, sampling=GREEDY, generator=None)
    return drafter.propose(context)


def logits(*rows):
    """Scores whose best tokens are these, in order."""
    table = torch.zeros(len(rows), V)
    for index, row in enumerate(rows):
        for rank, token in enumerate(row):
            table[index, token] = 100.0 - rank
    return table


def successors(token):
    return [(token * 7 + rank + 1) % V for rank in range(8)]


def observe(drafter, tokens, rows, emitted=(0,), parents=None):
    tree = TokenTree(tokens, parents)
    drafter.observe(Verdict(tree=tree, path=[0], emitted=list(emitted), scores=Scores(rows)))


def filled(method, **changes):
    drafter = bound(method, **changes)
    observe(drafter, list(range(V)), logits(*map(successors, range(V))))
    return drafter


@pytest.mark.parametrize(
    ("name", "per_depth"),
    [("2.2.2", {0: 1, 1: 8, 2: 21, 3: 25, 4: 15, 5: 8, 6: 3}), ("samd-60", {0: 1, 1: 7, 2: 20, 3: 21, 4: 8, 5: 4})],
)
def test_a_full_table_fills_the_published_tree(name, per_depth):
    tree = ask(filled(TokenRecycling(tree=name, budget="paper")), 5)
    assert Counter(tree.depths) == per_depth
    assert len(tree) - 1 == sum(TREES[name]) == {"2.2.2": 80, "samd-60": 60}[name]
    counts = [*TREES[name], *[0] * len(tree)]
    for node, children in enumerate(tree.children):
        # Level by level: the k-th node in breadth-first order has the k-th count, its children the first ranks.
        assert len(children) == counts[node]
        expected = successors(tree.token_list[node])[: len(children)]
        assert [tree.token_list[child] for child in children] == expected
    assert tree.depths == sorted(tree.depths)


def test_nothing_known_drafts_nothing():
    for budget in ("paper", "auto"):
        assert len(ask(bound(TokenRecycling(budget=budget)), 5)) == 1


def test_unknown_rows_are_pruned_with_what_hangs_below():
    drafter = bound(TokenRecycling(budget="paper"))
    observe(drafter, [5, 9], logits(range(8, 16), range(20, 28)))
    tree = ask(drafter, 5)
    # The second child of the root has four children in the published tree.
    assert tree.token_list == [5, *range(8, 16), *range(20, 24)]
    assert tree.parent_list == [-1, *[0] * 8, *[2] * 4]


def test_of_a_doubled_token_the_highest_row_wins():
    drafter = bound(TokenRecycling(budget="paper"))
    observe(drafter, [5, 6, 5], logits(range(8, 16), range(30, 38), range(40, 48)), parents=[-1, 0, 1])
    assert ask(drafter, 5).token_list[1:9] == list(range(40, 48))
    observe(drafter, [5], logits(range(50, 58)))
    assert ask(drafter, 5).token_list[1:9] == list(range(50, 58))


@pytest.mark.parametrize("budget", ["paper", "auto"])
@pytest.mark.parametrize(("room", "max_nodes"), [(0, 99), (1, 99), (2, 99), (99, 1), (99, 4), (3, 30)])
def test_the_draft_heeds_room_and_nodes(budget, room, max_nodes):
    drafter = filled(TokenRecycling(budget=budget))
    full = ask(drafter, 5)
    tree = ask(drafter, 5, room=room, max_nodes=max_nodes)
    assert tree.depth <= room
    assert len(tree) <= max_nodes
    if budget == "paper":
        wanted = sum(depth <= room for depth in full.depths)
        assert len(tree) == min(wanted, max_nodes)


def test_the_prompts_last_rows_fill_the_table():
    drafter = bound(TokenRecycling(budget="paper"))
    assert not drafter.wants_prompt_logits
    drafter.begin([3, 4, 5], Scores(logits(range(8, 16))))
    assert len(ask(drafter, 5)) == 9
    assert len(ask(drafter, 4)) == 1
    drafter = bound(TokenRecycling(budget="paper", prompt_rows=2))
    assert drafter.wants_prompt_logits
    drafter.begin([3, 4, 5], Scores(logits(range(8), range(10, 18), range(30, 38))))
    assert ask(drafter, 5).token_list[1:9] == list(range(30, 38))
    assert ask(drafter, 4).token_list[1:9] == list(range(10, 18))
    assert len(ask(drafter, 3)) == 1
    drafter = bound(TokenRecycling(budget="paper", prompt_rows=9))
    drafter.begin([3, 4], Scores(logits(range(8), range(10, 18))))
    assert len(ask(drafter, 3)) > 1


def test_ids_beyond_the_vocabulary_are_never_drafted():
    drafter = bound(TokenRecycling(budget="paper"), vocab_size=20)
    observe(drafter, [5], logits([30, 19, 40, 2, 50, 20, 1, 0, 3, 4, 6, 7]))
    assert ask(drafter, 5).token_list[1:9] == [19, 2, 1, 0, 3, 4, 6, 7]


def test_a_vocabulary_smaller_than_a_row():
    drafter = bound(TokenRecycling(budget="paper"), vocab_size=3)
    observe(drafter, [0, 1, 2], torch.eye(3)[[1, 2, 0]])
    tree = ask(drafter, 0)
    assert tree.token_list[1] == 1
    assert max(tree.token_list) <= 2
    assert len(tree) > 4


def test_auto_grows_with_what_comes_true():
    curve = CostCurve(rows=(1, 20), cost=(1.0, 2.0))
    drafter = filled(TokenRecycling(), curve=curve)
    before = ask(drafter, 5)
    assert before.expected is not None
    assert 1 <= before.expected <= len(before)
    for _ in range(40):
        observe(drafter, [5], logits(successors(5)), emitted=[successors(5)[0]])
    grown = ask(drafter, 5)
    assert grown.depth > before.depth
    for _ in range(2000):
        observe(drafter, [5], logits(successors(5)), emitted=[63])
    assert len(ask(drafter, 5)) == 1


def test_impossible_settings_are_refused():
    with pytest.raises(MethodError, match="prompt_rows must be at least 0"):
        TokenRecycling(prompt_rows=-1)
