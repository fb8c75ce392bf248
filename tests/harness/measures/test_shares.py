"""Where step time goes, and the identity that its parts obey."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.measures import cost_figures, forecast, pair_up, share_figures, speedups


def values(figures):
    return {name: figure.value for name, figure in figures.items()}


def test_parts_are_means_per_step_and_shares_of_the_whole(vector, of):
    assert values(share_figures(of(vector))) == pytest.approx(
        {
            "step_ms": 4.0,
            "draft_ms": 1.0,
            "verify_ms": 2.0,
            "other_ms": 1.0,
            "draft_share": 0.25,
            "verify_share": 0.5,
            "other_share": 0.25,
        }
    )


def test_predictions_from_the_parts(turn, of):
    base = of(turn(5, steps=((0, 0, 1),) * 4, times=(0.0, 9.0, 1.0)))
    own = of(turn(9, steps=((4, 3, 4),) * 2, times=(2.0, 12.0, 1.0)))
    # τ = 4, t_AR = 10 ms, a step of 15 ms, 4 tokens drafted in 2 ms.
    assert values(cost_figures(pair_up(base, own).pairs)) == pytest.approx(
        {
            "predicted_decode_speedup": 4 * 10 / 15,
            "ceiling_no_draft": 4 * 10 / 13,
            "ceiling_no_overhead": 4 * 10 / 14,
            "relative_draft_cost": (2 / 4) / 10,
            "relative_verify_cost": 12 / 10,
        }
    )


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.floats(1, 50), st.floats(1, 50))
def test_the_prediction_is_the_decode_speedup_of_turns_that_are_nothing_but_steps(turn, of, kept, plain, step):
    tokens, plain_ms, step_ms = sum(kept), round(plain), round(step)
    base = of(
        turn(
            1 + tokens, 1 + tokens * plain_ms / 1e3, steps=((0, 0, 1),) * tokens, first=1.0, times=(0.0, plain_ms, 0.0)
        )
    )
    own = of(
        turn(
            1 + tokens,
            1 + len(kept) * step_ms / 1e3,
            steps=[(6, k - 1, k) for k in kept],
            first=1.0,
            times=(0.0, step_ms, 0.0),
        )
    )
    pairs = pair_up(base, own).pairs
    predicted, measured = cost_figures(pairs)["predicted_decode_speedup"], speedups(pairs)["speedup_decode"]
    assert predicted.value == pytest.approx(measured.value)


def test_the_baseline_predicts_itself_and_drafts_nothing(turn, of):
    base = of(turn(5, steps=((0, 0, 1),) * 4))
    figures = cost_figures(pair_up(base, base).pairs)
    assert figures["predicted_decode_speedup"].value == 1.0
    assert figures["relative_draft_cost"].reason == "nothing was drafted"


def test_unsynchronised_parts_are_not_told_but_their_sum_is(vector, turn, of):
    shares = share_figures(of(vector), unsplit="run with --profile")
    assert set(shares) == set(share_figures(of(vector)))
    assert shares.pop("step_ms").value == pytest.approx(4.0)
    assert {(figure.value, figure.reason) for figure in shares.values()} == {(None, "run with --profile")}
    base = of(turn(12, steps=((0, 0, 1),) * 11))
    costs = cost_figures(pair_up(base, of(vector)).pairs, unsplit="run with --profile")
    assert costs.pop("predicted_decode_speedup").value == pytest.approx(2.75)
    assert {(figure.value, figure.reason) for figure in costs.values()} == {(None, "run with --profile")}


def test_unrecorded_parts_have_the_reason(imported, of):
    turns = of(imported([3, 2]))
    figures = {**share_figures(turns), **cost_figures(pair_up(turns, turns).pairs)}
    assert {(figure.value, figure.reason) for figure in figures.values()} == {
        (None, "not recorded in the imported file")
    }
    unpaired = cost_figures(pair_up([], []).pairs, nothing="no plain run")
    assert {figure.reason for figure in unpaired.values()} == {"no plain run"}
    assert {figure.reason for figure in share_figures([], nothing="why").values()} == {"why"}


def test_turns_of_one_token_have_no_step(turn, of):
    turns = of(turn(1))
    figures = {**share_figures(turns), **cost_figures(pair_up(turns, turns).pairs)}
    assert {(figure.value, figure.reason) for figure in figures.values()} == {(None, "no step after the prefill")}


def test_the_forecast_is_tokens_over_the_curves_cost(vector, imported, of):
    curve = {"rows": [1, 4, 5], "cost": [1.0, 1.5, 2.0], "one_row_s": 0.1}
    assert forecast(of(vector), curve).value == pytest.approx(11 / (3 * 2.0 + 1.5))
    assert forecast(of(vector), None).reason == "no cost curve in this run"
    assert forecast(of(imported([2, 3])), curve).reason == "not recorded in the imported file"
    assert forecast([], curve, "why").reason == "why"
