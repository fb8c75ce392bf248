import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.methods.eagle.sizing import Calibration, HeadCost, Sizer, fastest
from draftboard.methods.eagle.trees import TREES, chain
from draftboard.methods.engine.cost import FLAT, CostCurve
from draftboard.testing import FakeClock

STEEP = CostCurve(rows=(1, 2, 8, 64), cost=(1.0, 1.3, 2.0, 9.0))


def cost(head):
    flat = CostCurve(rows=(1, 64), cost=(head, head))
    return HeadCost(root=flat, level=flat)


def made(*, head=0.05, curve=STEEP, width=10, nodes=63):
    return Sizer(cost=cost(head), curve=curve, width=width, nodes=nodes)


@given(st.lists(st.floats(0.0, 0.98), max_size=40), st.integers(1, 40), st.floats(1.0, 3.0))
def test_the_size_is_worth_most(chances, nodes, rate):
    sizer = made()
    sizer._tokens, sizer._time = rate, 1.0
    size = sizer.size(np.array(chances), nodes=nodes)
    ordered = sorted(chances, reverse=True)[:nodes]
    values = [1 + sum(ordered[:n]) - rate * STEEP.at(1 + n) for n in range(len(ordered) + 1)]
    assert values[size] == pytest.approx(max(values))


def test_free_rows_take_all_nodes_and_dear_ones_none():
    chances = np.array([0.5, 0.3, 0.1])
    assert made(curve=FLAT).size(chances, nodes=63) == 3
    assert made(curve=CostCurve(rows=(1, 64), cost=(1.0, 100.0))).size(chances, nodes=63) == 0


def test_nothing_is_drafted_with_a_head_that_costs_more_than_it_brings():
    assert made(head=0.05).pays(1, levels=5, room=100)
    assert not made(head=2.0).pays(1, levels=5, room=100)


def test_reading_a_long_prompt_is_paid_off_over_the_turn():
    root = CostCurve(rows=(1, 1000), cost=(0.05, 20.0))
    sizer = Sizer(cost=HeadCost(root=root, level=cost(0.05).level), curve=STEEP, width=10)
    assert sizer.pays(1000, levels=5, room=500)
    assert not sizer.pays(1000, levels=5, room=5)
    assert sizer.pays(1, levels=5, room=5)


def test_a_further_level_is_weighed_against_its_cost():
    chances = np.array([0.8, 0.1])
    assert made(head=0.05).wider(chances, chances, 1, levels=4, nodes=63) >= 1
    assert made(head=1.5).wider(chances, chances, 1, levels=4, nodes=63) == 0
    faint = np.array([0.03, 0.01])
    assert made(head=0.05).wider(faint, faint, 1, levels=4, nodes=63) == 0
    assert made(head=0.0, curve=FLAT).wider(faint, faint, 1, levels=0, nodes=63) == 0


def test_a_dearer_verifier_expands_fewer_nodes():
    frontier = np.array([0.6, 0.3, 0.2, 0.1, 0.05])
    cheap = made(curve=CostCurve(rows=(1, 64), cost=(1.0, 1.5)))
    dear = made(curve=CostCurve(rows=(1, 64), cost=(1.0, 12.0)))
    assert 1 <= dear._breadth(frontier, 1) < cheap._breadth(frontier, 1) <= 5


def test_chances_follow_what_was_accepted():
    calibration = Calibration(4)
    row = np.log(np.array([0.6, 0.2, 0.1, 0.05]))
    before = calibration.chances(1, row)
    for turn in range(400):
        # The head says 0.6, and is right three times in ten; its second choice is right half of the time.
        calibration.learn(1, row, 0 if turn % 10 < 3 else 1 if turn % 10 < 8 else None)
    after = calibration.chances(1, row)
    assert after[0] < before[0]
    assert after[0] == pytest.approx(0.3, abs=0.02)
    # A later rank is never likelier than an earlier one, so that what is kept is always a tree of first ranks.
    assert after[1] == pytest.approx(after[0])
    assert calibration.chances(2, row)[0] != pytest.approx(after[0])


def test_depths_beyond_the_last_share_its_estimate():
    calibration = Calibration(2)
    row = np.log(np.array([0.6, 0.2]))
    for _ in range(50):
        calibration.learn(9, row, None)
    assert calibration.chances(4, row)[0] < 0.2
    assert calibration.chances(3, row)[0] > 0.4


def test_no_number_is_no_chance():
    calibration = Calibration(3)
    row = np.array([np.nan, -1.0, -np.inf])
    assert calibration.chances(1, row)[0] == 0
    assert np.isfinite(calibration.log_chances(1, row)).all()
    calibration.learn(1, row, 0)
    assert np.isfinite(calibration.chances(1, np.log(np.array([0.5])))).all()


def brute_cut(tree, chances, rate, head, curve):
    """The best value over all parts of the tree that are trees of first ranks."""
    best, drafted = -np.inf, range(1, len(tree))
    for size in range(len(tree)):
        for chosen in itertools.combinations(drafted, size):
            kept = {0, *chosen}
            if any(tree.parents[n] not in kept or (tree.ranks[n] and n - 1 not in kept) for n in chosen):
                continue
            levels = max((tree.depths[n] for n in chosen), default=0)
            value = sum(chances[n] for n in kept) - rate * (curve.at(len(kept)) + max(0, levels - 1) * head)
            best = max(best, value)
    return best


@pytest.mark.parametrize("curve", [FLAT, STEEP])
@pytest.mark.parametrize("head", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("rate", [1.0, 1.6])
def test_a_static_tree_is_cut_where_it_is_worth_most(curve, head, rate):
    from draftboard.methods.eagle.trees import StaticTree

    tree = StaticTree.of((3, 2, 1, 0, 1, 1, 0, 1))
    sizer = made(head=head, curve=curve, width=3, nodes=len(tree) - 1)
    sizer._tokens, sizer._time = rate, 1.0
    first = np.array([0.6, 0.2, 0.1])
    chances = [1.0]
    for node in range(1, len(tree)):
        row = first if tree.depths[node] == 1 else sizer.calibration.usual(tree.depths[node])
        chances.append(chances[tree.parents[node]] * row[tree.ranks[node]])
    cut = sizer.cut(tree, first, room=9, nodes=99)
    value = 1.0
    found = [1.0]
    for node in range(1, len(cut)):
        row = first if cut.depths[node] == 1 else sizer.calibration.usual(cut.depths[node])
        found.append(found[cut.parents[node]] * row[cut.ranks[node]])
        value += found[-1]
    value -= rate * (curve.at(len(cut)) + max(0, cut.depth - 1) * head)
    assert value == pytest.approx(brute_cut(tree, chances, rate, head, curve))


def test_a_cut_heeds_room_and_nodes():
    sizer = made(head=0.0, curve=FLAT, width=4, nodes=25)
    first = np.array([0.5, 0.2, 0.1, 0.1])
    whole = TREES["mc_sim_7b_63"]
    assert len(sizer.cut(whole, first, room=9, nodes=63)) == 26
    assert sizer.cut(whole, first, room=2, nodes=63).depth == 2
    assert len(sizer.cut(whole, first, room=9, nodes=5)) == 6
    assert len(made(head=0.0, width=1, nodes=5).cut(chain(5), np.array([0.001]), room=9, nodes=63)) == 1


def test_the_rate_is_what_steps_gave():
    sizer = made(head=0.1, curve=FLAT)
    for _ in range(300):
        sizer.begin()
        sizer.spend_root(1)
        sizer.spend_level(4)
        sizer.done(3, 10)
    assert sizer.rate == pytest.approx(3 / 1.2, rel=0.01)
    for _ in range(300):
        sizer.begin()
        sizer.done(1, 1)
    assert sizer.rate == pytest.approx(1.0, abs=0.01)


def test_contenders_take_turns_and_keep_their_fastest():
    clock, order = FakeClock(), []
    delays = {"a": iter([99, 5, 7, 6]), "b": iter([1, 9, 8, 30])}

    def run(name):
        order.append(name)
        clock.advance(next(delays[name]))

    took = fastest(
        {name: lambda name=name: run(name) for name in "ab"}, repeats=3, synchronize=lambda: None, clock=clock
    )
    assert order == list("abababab")
    assert took == {"a": 5, "b": 8}
