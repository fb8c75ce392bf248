"""Changes and their intervals, against sums written out and closed forms."""

import math

import pytest

from draftboard.gate.figures import acceptance_change, cell_change, stored_change
from draftboard.results import Figure, Interval
from draftboard.statistics import Sampling

FEW = Sampling(resamples=500)
DOMAINS = {"1": "qa", "2": "qa", "3": "rag", "4": "rag"}


def change(rows, domains=DOMAINS, *, tolerance=0.02):
    return cell_change(rows, domains, figure="speedup", tolerance=tolerance, sampling=FEW)


def test_a_speedup_changes_by_the_ratio_of_both_speedups_pooled_in_each_domain():
    rows = [
        # method before, after, then the baseline before, after: seconds and tokens
        ("1", 0, (1.0, 10, 2.0, 10, 2.0, 10, 2.0, 10)),
        ("2", 0, (3.0, 20, 4.0, 20, 6.0, 20, 7.0, 20)),
        ("3", 0, (1.0, 10, 1.0, 10, 1.5, 10, 1.5, 10)),
        ("4", 0, (2.0, 10, 2.5, 12, 3.0, 10, 3.0, 10)),
    ]
    qa = ((2 + 6) / 30 / ((1 + 3) / 30), (2 + 7) / 30 / ((2 + 4) / 30))
    rag = ((1.5 + 3) / 20 / ((1 + 2) / 20), (1.5 + 3) / 20 / ((1 + 2.5) / 22))
    found = change(rows)
    assert found.before == pytest.approx(math.sqrt(qa[0] * rag[0]))
    assert found.after == pytest.approx(math.sqrt(qa[1] * rag[1]))
    assert found.ratio == pytest.approx(found.after / found.before)
    assert found.interval.low < found.ratio < found.interval.high
    assert (found.n, found.rounds, found.noise_floor) == (4, 1, None)
    assert found.figure == "speedup (geometric mean over domains)"


def test_a_slower_machine_cancels_out_of_a_speedup():
    rows = [(str(i), 0, (1.0 + i, 10, 3 * (1.0 + i), 10, 2.0 + i, 10, 3 * (2.0 + i), 10)) for i in range(1, 5)]
    found = change(rows)
    assert found.ratio == pytest.approx(1)
    assert found.decision == "same"
    times = cell_change(
        [(s, r, parts[:4]) for s, r, parts in rows], DOMAINS, figure="time", tolerance=0.02, sampling=FEW
    )
    assert times.ratio == pytest.approx(1 / 3)
    assert times.decision == "slower"


def test_a_side_against_itself_is_exactly_the_same():
    rows = [(str(i), r, (1.0 + i, 10, 1.0 + i, 10, 2.0 + r, 9, 2.0 + r, 9)) for i in range(1, 5) for r in range(3)]
    found = change(rows)
    assert (found.ratio, found.p, found.decision) == (1, 1, "same")
    assert found.interval.low <= 1 <= found.interval.high


def test_domains_of_one_sample_are_taken_together():
    rows = [(str(i), 0, (1.0, 10, 1.0 + i / 10, 10)) for i in range(4)]
    found = change(rows, {str(i): f"d{i}" for i in range(4)})
    assert found.figure == "speedup (geometric mean over samples)"
    assert found.ratio == pytest.approx(1 / math.prod(1 + i / 10 for i in range(4)) ** 0.25)
    assert found.interval is not None


def test_the_noise_floor_is_the_largest_difference_between_rounds_of_one_side():
    rows = [
        ("1", 0, (1.0, 10, 1.0, 10)),
        ("2", 0, (1.0, 10, 1.0, 10)),
        ("1", 1, (1.1, 10, 1.0, 10)),
        ("2", 1, (1.1, 10, 1.0, 10)),
        ("1", 2, (1.0, 10, 0.95, 10)),
        ("2", 2, (1.0, 10, 0.95, 10)),
    ]
    found = change(rows)
    assert found.noise_floor == pytest.approx(math.log(1.1))
    assert found.interval.low <= found.ratio / 1.1 + 1e-12
    assert found.interval.high >= found.ratio * 1.1 - 1e-12


def test_acceptance_is_pooled_over_steps():
    rows = [("1", 0, (20, 10, 15, 10)), ("2", 0, (30, 10, 30, 12)), ("3", 0, (10, 10, 10, 10))]
    found = acceptance_change(rows, DOMAINS, tolerance=0.0, sampling=FEW)
    assert (found.before, found.after) == (2.0, 55 / 32)
    assert found.ratio == pytest.approx(55 / 64)


def figure(value, low=None, high=None, n=10):
    return Figure(value=value, n=n, interval=None if low is None else Interval(low=low, high=high))


def test_stored_intervals_of_equal_width_add_as_squares():
    half = math.log(1.03)
    old = {"speedup": figure(2.0, 2.0 / 1.03, 2.0 * 1.03)}
    new = {"speedup": figure(1.8, 1.8 / 1.03, 1.8 * 1.03)}
    found = stored_change("speedup", old, new, tolerance=0.02)
    assert found.ratio == pytest.approx(0.9)
    assert math.log(found.interval.high / 0.9) == pytest.approx(math.sqrt(2) * half)
    assert math.log(0.9 / found.interval.low) == pytest.approx(math.sqrt(2) * half)
    assert found.decision == "slower"
    back = stored_change("speedup", new, old, tolerance=0.02)
    assert (back.interval.low, back.interval.high) == pytest.approx((1 / found.interval.high, 1 / found.interval.low))


@pytest.mark.parametrize("missing", [{}, {"speedup": figure(None)}, {"speedup": figure(0.0)}])
def test_a_stored_figure_without_a_value_cannot_be_compared(missing):
    known = {"speedup": figure(2.0)}
    assert stored_change("speedup", known, missing, tolerance=0.0) is None
    assert stored_change("speedup", missing, known, tolerance=0.0) is None
    assert stored_change("speedup", known, known, tolerance=0.0).interval is None


def test_a_round_that_some_samples_lack_has_no_part_in_the_noise_floor():
    rows = [(sample, number, (1.0, 10, 1.0, 10)) for sample in ("1", "2") for number in (0, 1)]
    slow = ("3", 0, (50.0, 10, 50.0, 10))
    assert change([*rows, slow]).noise_floor == 0
    assert change([rows[0], ("2", 1, rows[0][2])]).noise_floor is None
