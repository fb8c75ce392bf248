"""Rates by place in the draft: the worked trace, the chain case, cut steps, and brute force."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.measures import acceptance_figures, positions
from draftboard.measures.acceptance import CUT_UNKNOWN
from draftboard.measures.positions import DRAFT_UNKNOWN

NOWHERE = {"joint": (), "conditional": (), "all_steps": (), "vllm": ()}


def rates(places, name):
    return [figure.value for figure in places[name]]


def test_the_worked_trace_by_place(vector, of):
    places = positions(of(vector))
    assert rates(places, "joint") == pytest.approx([3 / 4, 3 / 4, 2 / 4, 1 / 3])
    assert rates(places, "conditional") == pytest.approx([3 / 4, 1, 2 / 3, 1])
    assert rates(places, "vllm") == pytest.approx([3 / 4, 3 / 4, 2 / 4, 1 / 4])
    assert [figure.n for figure in places["joint"]] == [4, 4, 4, 3]
    assert [figure.n for figure in places["conditional"]] == [4, 3, 3, 1]
    assert [figure.n for figure in places["vllm"]] == [4, 4, 4, 4]


def test_the_chain_case_by_place(replay, of):
    places = positions(of(replay("03-trace-chain.json")))
    assert rates(places, "vllm") == pytest.approx([5 / 6, 3 / 6, 2 / 6, 1 / 6])
    assert rates(places, "joint") == pytest.approx([5 / 6, 3 / 5, 2 / 4, 1 / 3])
    assert sum(rates(places, "vllm")) == pytest.approx(17 / 6 - 1)
    assert rates(places, "all_steps") == pytest.approx([5 / 6, 3 / 6, 2 / 6, 1 / 6])
    assert {figure.n for figure in places["all_steps"]} == {6}


def test_over_all_steps_means_those_without_a_draft_too_and_after_the_cut(turn, replay, of):
    # Steps that drafted 2, nothing, and 3, the last cut inside its draft.
    places = positions(of(turn(6, steps=((2, 1, 2), (0, 0, 1), (3, 3, 2)))))
    assert rates(places, "all_steps") == pytest.approx([2 / 3, 1 / 3, 0])
    assert rates(places, "vllm") == pytest.approx([1, 1 / 2, 1 / 2])
    ended = positions(of(replay("05-trace-eos-in-block.json")))
    assert rates(ended, "all_steps")[:3] == pytest.approx([2 / 2, 2 / 2, 1 / 2])
    assert sum(rates(ended, "all_steps")) == pytest.approx(5 / 2)


def test_places_that_no_step_reached_have_a_reason(turn, of):
    places = positions(of(turn(3, steps=((3, 0, 1), (3, 0, 1)))))
    assert rates(places, "joint") == [0.0, 0.0, 0.0]
    assert rates(places, "conditional") == [0.0, None, None]
    assert places["conditional"][1].reason


def test_nothing_drafted_has_no_places(turn, of):
    assert positions(of(turn(3, steps=((0, 0, 1),) * 2))) == NOWHERE
    assert positions([]) == NOWHERE


def test_of_a_cut_step_known_after_the_cut_nothing_beyond_counts(imported, of):
    # The vector's last step drafted 3 and kept 2, all drafted: place 3 is neither hit nor miss.
    turns = of(imported([5, 1, 3, 2], emits=1, drafted=[4, 4, 4, 3], accepted=[4, 0, 2, 2]))
    places = positions(turns)
    assert rates(places, "joint") == pytest.approx([3 / 4, 3 / 4, 1 / 3, 1 / 3])
    assert rates(places, "conditional") == pytest.approx([3 / 4, 1, 1 / 2, 1])
    assert {figure.reason for figure in places["vllm"]} == {"not recorded in the imported file"}


def test_without_drafted_lengths_only_joint_rates_are_given_and_say_so(imported, of):
    places = positions(of(imported([1, 5, 1, 3, 2])))
    assert rates(places, "joint") == pytest.approx([3 / 5, 2 / 5, 1 / 5, 1 / 5])
    assert {figure.signature for figure in places["joint"]} == {DRAFT_UNKNOWN}
    assert {figure.n for figure in places["joint"]} == {5}
    for name in ("conditional", "vllm"):
        assert rates(places, name) == [None] * 4
        assert {figure.reason for figure in places[name]} == {"not recorded in the imported file"}
    assert rates(places, "all_steps") == rates(places, "joint")
    assert {figure.signature for figure in places["all_steps"]} == {CUT_UNKNOWN}
    assert positions(of(imported(None, tokens=7))) == NOWHERE


STEPS = st.lists(
    st.integers(0, 5).flatmap(lambda d: st.tuples(st.just(d), st.integers(0, d)).map(lambda p: (*p, p[1] + 1))),
    max_size=25,
)


@given(STEPS, STEPS)
def test_places_are_counted_as_by_hand(turn, of, first, second):
    steps = [*first, *second]
    places = positions(of(turn(1 + sum(k for *_, k in first), steps=first)) + of(turn(1, steps=second), sample="2"))
    depth = max((d for d, _, _ in steps), default=0)
    assert [len(places[name]) for name in ("joint", "conditional", "vllm")] == [depth] * 3
    assert len(places["all_steps"]) == depth
    for k in range(1, depth + 1):
        hits = sum(a >= k for _, a, _ in steps)
        assert places["all_steps"][k - 1].value == hits / len(steps)
        for name, tries in (
            ("joint", sum(d >= k for d, _, _ in steps)),
            ("conditional", sum(a >= k - 1 and d >= k for d, a, _ in steps)),
            ("vllm", sum(d > 0 for d, _, _ in steps)),
        ):
            figure = places[name][k - 1]
            assert figure.value == (hits / tries if tries else None)
    product = math.prod(figure.value or 0.0 for figure in places["conditional"])
    fixed = len({d for d, _, _ in steps}) == 1
    if fixed and depth:
        assert places["joint"][-1].value == pytest.approx(product)


@given(STEPS, st.integers(0, 5))
def test_rates_over_all_steps_add_up_to_accepted_per_step(turn, of, whole, dropped):
    uncut = of(turn(1 + sum(k for *_, k in whole), steps=whole))
    if any(d for d, _, _ in whole):
        total = sum(rates(positions(uncut), "all_steps"))
        assert total == pytest.approx(acceptance_figures(uncut)["acceptance_length"].value - 1)
    if whole and whole[-1][2] > dropped:
        *first, (d, a, k) = whole
        steps = [*first, (d, a, k - dropped)]
        cut = of(turn(1 + sum(k for *_, k in steps), steps=steps))
        if any(d for d, _, _ in steps):
            total = sum(rates(positions(cut), "all_steps"))
            assert total == pytest.approx(acceptance_figures(cut)["accepted_per_step"].value)
