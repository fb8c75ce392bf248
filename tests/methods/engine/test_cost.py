import pytest

from draftboard.methods.engine.cost import FLAT, CostCurve, measure_cost
from draftboard.testing import FakeClock, TableTarget, tiny_model


def test_a_curve_is_linear_between_and_beyond_its_points():
    curve = CostCurve(rows=(1, 3, 7), cost=(1.0, 2.0, 4.0))
    assert [curve.at(n) for n in (1, 2, 3, 4, 5, 7, 8, 11)] == [1, 1.5, 2, 2.5, 3, 4, 4.5, 6]
    assert CostCurve(rows=(1,), cost=(1.0,)).at(40) == 1.0
    assert FLAT.at(1) == FLAT.at(64) == FLAT.at(500) == 1.0


@pytest.mark.parametrize(("rows", "cost"), [((), ()), ((2, 3), (1.0, 2.0)), ((1, 2), (1.0,))])
def test_a_curve_starts_at_one_row(rows, cost):
    with pytest.raises(ValueError, match="starting at one row"):
        CostCurve(rows=rows, cost=cost)


def timed_target(clock, costs, **options):
    """A forward of n rows takes costs[n] ns, and now and then much longer."""
    calls = []

    def on_forward(rows):
        calls.append(rows)
        clock.advance(costs(rows) + (10_000 if len(calls) % 5 == 0 else 0))

    return TableTarget(lambda context: [0.0, 1.0], on_forward=on_forward, **options), calls


def test_measured_costs_are_the_fastest_of_interleaved_repeats():
    clock = FakeClock()
    target, calls = timed_target(clock, lambda rows: 1000 + 250 * rows)
    curve = measure_cost(target, prefix=20, sizes=(1, 2, 4, 8), repeats=3, clock=clock)
    assert calls == [1, 2, 4, 8] * 3
    assert len(target.ids) == 20
    assert curve.rows == (1, 2, 4, 8)
    assert curve.cost == (1.0, 1.2, 1.6, 2.4)
    assert curve.one_row_s == 1.25e-6
    assert curve.at(3) == pytest.approx(1.4)


def test_a_small_window_shortens_prefix_and_draft():
    clock = FakeClock()
    target, _ = timed_target(clock, lambda rows: rows, window=12)
    curve = measure_cost(target, prefix=200, sizes=(1, 2, 4, 8, 16), repeats=2, clock=clock)
    assert curve.rows == (1, 2, 4, 8)
    assert curve.cost == (1.0, 2.0, 4.0, 8.0)
    target, _ = timed_target(clock, lambda rows: rows, window=1)
    assert measure_cost(target, sizes=(1, 2), clock=clock) is FLAT


def test_a_real_model_is_measured():
    curve = measure_cost(tiny_model(window=48), sizes=(1, 4), repeats=2)
    assert curve.rows == (1, 4)
    assert curve.cost[0] == 1.0
    assert curve.cost[1] > 0
    assert curve.one_row_s > 0
