"""Waiting: the worked trace, blocks, percentiles against the standard library, and turns without a second emission."""

from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.measures import latency_figures
from draftboard.measures.latency import gaps, percentile


def rounded(turn):
    return [(round(seconds, 6), tokens) for seconds, tokens in gaps(turn)]


def values(turns):
    return {name: figure.value for name, figure in latency_figures(turns).items()}


def test_the_worked_trace(vector, of):
    found = values(of(vector))
    assert found["ttft_s"] == pytest.approx(0.2)
    assert found["tpot_s"] == pytest.approx(0.2 / 11)
    assert found["step_gap_p50_s"] == pytest.approx(0.05)
    assert found["step_gap_max_s"] == pytest.approx(0.05)
    assert found["itl_uniform_p50_s"] == pytest.approx(0.05 / 3)
    assert found["itl_uniform_mean_s"] == pytest.approx(0.2 / 11)
    assert found["itl_burst_mean_s"] == pytest.approx(0.2 / 11)
    assert found["itl_burst_p50_s"] == 0.0
    assert rounded(of(vector)[0]) == [(0.05, 5), (0.05, 1), (0.05, 3), (0.05, 2)]


def test_a_step_that_kept_nothing_is_no_emission(turn, of):
    made = turn(4, 0.5, steps=((1, 0, 1), (1, 1, 0), (1, 1, 2)), ends=(0.2, 0.3, 0.5), first=0.1)
    assert rounded(of(made)[0]) == [(0.1, 1), (0.3, 2)]


def test_without_a_prefill_token_the_first_step_is_the_first_emission(turn, of):
    made = turn(5, 0.6, steps=((3, 2, 3), (3, 1, 2)), ends=(0.2, 0.6), first=0.2, emits=0)
    facts = of(made)
    assert rounded(facts[0]) == [(0.4, 2)]
    assert facts[0].decode == pytest.approx((2, 0.4))
    assert values(facts)["tpot_s"] == pytest.approx(0.2)


def test_an_answer_that_ended_at_once_is_left_out_and_said(turn, of):
    only = latency_figures(of(turn(1, 0.3, first=0.3)))
    assert only["ttft_s"].value == pytest.approx(0.3)
    rest = {name: figure for name, figure in only.items() if not name.startswith("ttft")}
    assert {figure.value for figure in rest.values()} == {None}
    assert {figure.reason for figure in rest.values()} == {"every answer ended with its first emission"}
    longer = of(turn(3, 0.5, steps=((0, 0, 1),) * 2, ends=(0.4, 0.5), first=0.3), sample="2")
    mixed = latency_figures([*of(turn(1, 9.0, first=0.3)), *longer])
    assert (mixed["tpot_s"].value, mixed["tpot_s"].n) == (pytest.approx(0.1), 1)
    assert (mixed["step_gap_p50_s"].n, mixed["ttft_s"].n) == (1, 2)


def test_times_that_were_not_recorded_have_the_reason(imported, of):
    figures = latency_figures(of(imported([3, 2])))
    assert {figure.value for figure in figures.values()} == {None}
    assert {figure.reason for figure in figures.values()} == {"not recorded in the imported file"}
    assert {figure.reason for figure in latency_figures([], "why").values()} == {"why"}


def test_percentiles_of_the_first_token_are_over_turns(turn, of):
    turns = [fact for i in range(101) for fact in of(turn(1, first=i / 100), sample=str(i % 7))]
    found = latency_figures(turns)
    assert found["ttft_s"].value == pytest.approx(0.50)
    assert found["ttft_p90_s"].value == pytest.approx(0.90)
    assert found["ttft_p99_s"].value == pytest.approx(0.99)
    assert found["ttft_s"].n == 7


@given(st.lists(st.floats(0, 10), min_size=2, max_size=40))
def test_percentiles_are_those_of_the_standard_library(values):
    ordered = sorted(values)
    cuts = quantiles(values, n=100, method="inclusive")
    found = [percentile(ordered, level) for level in range(1, 100)]
    assert found == pytest.approx(cuts)
    assert [percentile(ordered, level) for level in (0, 100)] == [ordered[0], ordered[-1]]
    assert percentile(ordered[:1], 99) == ordered[0]


def test_a_percentile_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one value"):
        percentile([], 50)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 1000)), min_size=1, max_size=20))
def test_all_three_views_have_the_same_total(turn, of, blocks):
    ends, now = [], 0.1
    for _, ms in blocks:
        now += ms / 1000
        ends.append(now)
    steps = [(4, max(0, kept - 1), kept) for kept, _ in blocks]
    tokens = 1 + sum(kept for kept, _ in blocks)
    found = values(of(turn(tokens, now, steps=steps, ends=ends, first=0.1)))
    if tokens == 1:
        assert found["itl_uniform_mean_s"] is None
        return
    assert found["itl_uniform_mean_s"] == pytest.approx(found["itl_burst_mean_s"])
    if blocks[-1][0]:
        assert found["itl_uniform_mean_s"] == pytest.approx(found["tpot_s"])
    assert found["step_gap_p50_s"] <= found["step_gap_p95_s"] <= found["step_gap_p99_s"] <= found["step_gap_max_s"]


def test_both_ways_of_sharing_a_gap_have_the_mean_of_the_time_per_token(turn, of):
    made = of(turn(7, 0.9, steps=((3, 2, 3), (3, 1, 2), (0, 0, 1)), ends=(0.3, 0.5, 0.9), first=0.1))
    found = values(made)
    assert found["itl_uniform_mean_s"] == found["itl_burst_mean_s"] == pytest.approx(found["tpot_s"])
    assert all(type(value) is float for value in found.values() if value is not None)
