import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftboard.methods.budget import MatchEstimate, RankEstimate, best_chain, best_tree, merged
from draftboard.methods.engine.cost import FLAT, CostCurve
from draftboard.methods.engine.tree import TokenTree


@st.composite
def curves(draw):
    costs, total = [1.0], 1.0
    for _ in range(draw(st.integers(0, 8))):
        total += draw(st.sampled_from([0.0, 0.05, 0.3, 1.0, 3.0]))
        costs.append(total)
    return CostCurve(rows=tuple(range(1, len(costs) + 1)), cost=tuple(costs))


@given(st.lists(st.floats(0.5, 4.0), max_size=10))
def test_a_measured_curve_is_made_to_rise_and_a_rising_one_is_kept(costs):
    curve = CostCurve(rows=tuple(range(1, len(costs) + 2)), cost=(1.0, *costs), one_row_s=0.1)
    rising = curve.rising()
    assert list(rising.cost) == sorted(rising.cost)
    assert (rising.cost[0], rising.rows, rising.one_row_s) == (1.0, curve.rows, 0.1)
    assert rising.rising() is rising
    assert (rising is curve) == (list(curve.cost) == sorted(curve.cost))


def test_a_dip_of_the_curve_makes_no_draft_longer():
    measured = CostCurve(rows=(1, 2, 3, 4), cost=(1.0, 2.0, 1.0, 2.5))
    assert measured.rising().cost == (1.0, 1.5, 1.5, 2.5)


class Chances(MatchEstimate):
    def __init__(self, chances):
        self.chances = chances

    def chance(self, match):
        return self.chances[match - 1]


@given(curves(), st.lists(st.sampled_from([0.1, 0.3, 0.6, 0.9, 1.0]), min_size=10, max_size=10))
def test_the_best_chain_is_the_best(curve, chances):
    options = {0: 1.0}
    share, expected = 1.0, 1.0
    for drafted in range(1, 9):
        share *= chances[drafted - 1]
        if share < 0.015:
            break
        expected += share
        options[drafted] = expected
    tree = best_chain(0, range(1, 9), Chances(chances), 1, longest=8, curve=curve)
    size, promised = len(tree) - 1, tree.expected
    assert promised == pytest.approx(options[size])
    best = max(value / curve.at(1 + drafted) for drafted, value in options.items())
    assert promised / curve.at(1 + size) == pytest.approx(best)


def drafted(match, longest, curve):
    return len(best_chain(0, range(1, 600), MatchEstimate(), match, longest=longest, curve=curve)) - 1


def test_no_match_and_no_room_draft_nothing():
    assert drafted(0, 10, FLAT) == 0
    assert drafted(9, 0, FLAT) == 0


def test_free_rows_are_all_taken_and_dear_ones_are_not():
    dear = CostCurve(rows=(1, 64), cost=(1.0, 127.0))
    assert drafted(30, 20, FLAT) == 20
    assert 20 < drafted(30, 500, FLAT) <= 63
    assert drafted(30, 20, dear) == 0


def test_the_match_estimate_learns_by_length():
    estimate = MatchEstimate()
    assert estimate.chance(0) == 0.0
    chances = [estimate.chance(match) for match in range(1, 40)]
    assert chances == sorted(chances)
    short, middle, long = estimate.chance(1), estimate.chance(2), estimate.chance(30)
    estimate.learn(1, [7, 8, 9], [7, 5, 9])
    assert estimate.chance(1) > short
    assert estimate.chance(2) < middle
    assert estimate.chance(3) == chances[2]
    assert estimate.chance(30) == long
    for _ in range(400):
        estimate.learn(30, [1], [2])
    assert estimate.chance(30) < 0.02
    estimate.learn(30, [], [2])
    estimate.learn(30, [2], [])


def test_the_rank_estimate_learns():
    estimate = RankEstimate(3)
    before = estimate.chances()
    estimate.learn(1)
    assert estimate.chances()[1] > before[1]
    assert estimate.chances()[0] < before[0]
    estimate.learn(None)
    estimate.learn(7)
    assert len(estimate.chances()) == 3
    for _ in range(500):
        estimate.learn(2)
    assert estimate.chances()[2] > 0.95


@settings(max_examples=60)
@given(
    curve=curves(),
    seed=st.integers(0, 999),
    nodes=st.integers(0, 5),
    depth=st.integers(0, 3),
)
def test_the_best_tree_is_the_best(curve, seed, nodes, depth):
    """Against every tree of the rows: any parent-closed choice of the places that they offer."""
    dice = random.Random(seed)
    chances = sorted((dice.random() for _ in range(2)), reverse=True)
    chances = [chance / 1.3 for chance in chances]
    table = {token: dice.sample(range(4), 2) for token in range(3)}
    places = [(0, 0, 1.0, None)]
    for index, (token, level, share, _) in enumerate(places):
        if level < min(depth, 3):
            for rank, child in enumerate(table.get(token, [])):
                places.append((child, level + 1, share * chances[rank], index))
    best = 0.0
    for size in range(min(nodes, len(places) - 1) + 1):
        for chosen in itertools.combinations(range(1, len(places)), size):
            if all(places[i][3] == 0 or places[i][3] in chosen for i in chosen):
                expected = 1 + sum(places[i][2] for i in chosen)
                best = max(best, expected / curve.at(1 + size))
    tree = best_tree(0, table.get, chances, nodes=nodes, depth=depth, curve=curve)
    tokens, parents = tree.token_list, tree.parent_list
    assert tree.expected / curve.at(len(tokens)) == pytest.approx(best, rel=0.03)
    assert len(tokens) - 1 <= nodes
    assert parents[0] == -1
    levels = [0]
    for node in range(1, len(tokens)):
        assert tokens[node] in table[tokens[parents[node]]]
        levels.append(levels[parents[node]] + 1)
    assert max(levels) <= depth
    assert len(set(zip(parents, tokens, strict=True))) == len(tokens)


def test_a_tree_stays_within_its_limits():
    chances = [0.9, 0.8]
    tree = best_tree(0, lambda token: [1, 2], chances, nodes=500, depth=60, curve=FLAT)
    assert len(tree) <= 64
    assert len(best_tree(0, lambda token: None, chances, nodes=9, depth=9, curve=FLAT)) == 1


def paths(tree):
    found = {}
    for node in range(1, len(tree)):
        path, at = [], node
        while at:
            path.append(tree.token_list[at])
            at = tree.parent_list[at]
        found[tuple(reversed(path))] = tree.chances[node]
    return found


def test_a_union_holds_both_drafts_once():
    chain = TokenTree([0, 1, 2], chances=[1.0, 0.5, 0.25])
    tree = TokenTree([0, 1, 3, 2], [-1, 0, 0, 1], chances=[1.0, 0.6, 0.2, 0.1])
    union = merged(chain, tree, nodes=9, curve=FLAT)
    assert paths(union) == {(1,): 0.6, (1, 2): 0.25, (3,): 0.2}
    assert union.expected == pytest.approx(2.05)
    assert paths(merged(chain, tree, nodes=2, curve=FLAT)) == {(1,): 0.6, (1, 2): 0.25}
    dear = CostCurve(rows=(1, 2, 3), cost=(1.0, 1.1, 3.0))
    assert paths(merged(chain, tree, nodes=9, curve=dear)) == {(1,): 0.6}


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 8))
def test_a_union_is_always_a_tree(seed, other, nodes):
    def draft(seed):
        dice = random.Random(seed)
        parents, chances = [-1], [1.0]
        for node in range(1, dice.randint(1, 7)):
            parents.append(dice.randrange(node))
            chances.append(chances[parents[-1]] * dice.random())
        return TokenTree([0, *(dice.randrange(4) for _ in parents[1:])], parents, chances=chances)

    first, second = draft(seed), draft(other)
    union = merged(first, second, nodes=nodes, curve=FLAT)
    assert len(union) <= nodes + 1
    known = paths(first).keys() | paths(second).keys()
    assert paths(union).keys() <= known
    assert len(paths(union)) == len(union) - 1
    if nodes >= len(known):
        assert paths(union).keys() == known
