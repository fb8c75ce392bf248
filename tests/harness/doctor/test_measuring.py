"""Clocks, the cost curve, memory and the A/A estimates, on numbers whose right answer is known."""

from itertools import count

import numpy as np
import pytest
import torch

from draftboard.curves import Fall, deepest_fall
from draftboard.doctor.clocks import clock_signs, cuda_event_sign, ticks
from draftboard.doctor.curve import curve_sign, falls
from draftboard.doctor.examination import waiting_sign
from draftboard.doctor.model import _amount, memory_sign, size_of
from draftboard.doctor.noise import Timing, aa_ratio, estimate, measure_pairs, noise_floor
from draftboard.methods.engine.cost import CostCurve


def curve(*cost: float, one_row_s: float = 0.05) -> CostCurve:
    return CostCurve(rows=tuple(2**i for i in range(len(cost))), cost=cost, one_row_s=one_row_s)


@pytest.mark.parametrize(
    ("cost", "fall", "state"),
    [
        ((1.0, 1.2, 1.5), None, "fine"),
        ((1.0, 1.0, 1.0), None, "fine"),
        ((1.0, 0.95, 1.5), Fall(fewer=1, rows=2, depth=0.05), "fine"),
        ((1.0, 2.0, 1.81), Fall(fewer=2, rows=4, depth=0.095), "fine"),
        ((1.0, 2.0, 1.7), Fall(fewer=2, rows=4, depth=0.15), "unreliable"),
        ((1.0, 2.0, 1.9, 1.6, 3.0), Fall(fewer=2, rows=8, depth=0.2), "unreliable"),
        ((1.0,), None, "fine"),
    ],
)
def test_a_curve_that_falls_by_more_than_a_tenth_is_disturbed(cost, fall, state):
    found = deepest_fall(curve(*cost).rows, cost)
    assert falls(curve(*cost)) == (state == "unreliable")
    assert (found is None) == (fall is None)
    if found is not None and fall is not None:
        assert (found.fewer, found.rows) == (fall.fewer, fall.rows)
        assert found.depth == pytest.approx(fall.depth)
    sign = curve_sign(curve(*cost))
    assert sign.state == state
    assert ("disturbed" in sign.told) == (state == "unreliable")


def test_a_fall_that_comes_again_at_the_same_place_is_the_kernels_own():
    fallen = curve(1.0, 2.0, 1.7)
    assert curve_sign(fallen, curve(1.0, 2.1, 1.7)).state == "note"
    assert curve_sign(fallen, curve(1.0, 1.6, 1.7)).state == "unreliable"
    assert curve_sign(fallen, curve(1.0, 2.0, 1.9)).state == "unreliable"


def test_ticks_of_a_clock():
    steps = count(0, 50)
    found = ticks(lambda: next(steps) // 1000 * 1000, reads=10, watch=count(0, 7).__next__)
    assert found is not None
    assert found.step_ns == 1000
    assert ticks(lambda: 5, watch=count(0, 10_000_000).__next__) is None


def test_a_coarse_clock_is_told(tmp_path):
    coarse = [("monotonic", count(0, 15_600_000).__next__), ("process CPU", count(0, 15_600_000).__next__)]
    states = {sign.name: sign.state for sign in clock_signs(tmp_path, coarse)}
    assert states == {"monotonic clock": "unreliable", "process CPU clock": "note", "clock source": "n/a"}
    source = tmp_path / "sys/devices/system/clocksource/clocksource0/current_clocksource"
    source.parent.mkdir(parents=True)
    for name, state in (("tsc\n", "fine"), ("hpet\n", "note")):
        source.write_text(name)
        assert clock_signs(tmp_path)[-1].state == state


def test_there_is_no_cuda_event_on_a_cpu():
    assert cuda_event_sign(torch.device("cpu")).state == "n/a"


def test_pairs_alternate_and_come_back_in_order_of_the_arms():
    calls = count(1)

    def work() -> Timing:
        number = next(calls)
        return Timing(float(number), number / 2)

    wall, cpu = measure_pairs(work, rounds=2, samples=3)
    assert wall == [[(1, 2), (4, 3), (5, 6)], [(8, 7), (9, 10), (12, 11)]]
    assert cpu[0][0] == (0.5, 1.0)


def test_the_noise_floor_is_the_largest_ratio_of_two_rounds_of_one_arm():
    times = [[(1.0, 2.0), (1.0, 2.0)], [(1.1, 2.0), (1.1, 2.0)], [(1.0, 2.4), (1.0, 2.4)]]
    assert noise_floor(times) == pytest.approx(np.log(1.2))
    assert aa_ratio(times) == pytest.approx(6.2 / 12.8)


def test_equal_times_have_no_noise():
    found = estimate("wall", [[(0.5, 0.5)] * 3] * 4)
    assert (found.floor, found.ratio) == (0.0, 1.0)
    assert (found.spread.pair, found.spread.pair_drift, found.spread.arm, found.spread.arm_drift) == (0, 0, 0, 0)


def test_spread_and_drift_are_told_apart():
    random = np.random.default_rng(5)
    rounds, samples = 200, 12
    drift = random.normal(0, 0.02, (rounds, 1, 1))  # shared by both arms
    arms = random.normal(0, 0.01, (rounds, 1, 2))
    times = np.exp(drift + arms + random.normal(0, 0.03, (rounds, samples, 2)))
    spread = estimate("wall", [[tuple(pair) for pair in one] for one in times.tolist()]).spread
    assert spread.arm == pytest.approx(0.03, rel=0.05)
    assert spread.pair == pytest.approx(0.03 * 2**0.5, rel=0.05)
    assert spread.arm_drift == pytest.approx((0.02**2 + 0.01**2) ** 0.5, rel=0.15)
    assert spread.pair_drift == pytest.approx(0.01 * 2**0.5, rel=0.2)


def test_noise_needs_times():
    with pytest.raises(ValueError, match="two rounds"):
        estimate("wall", [[(1.0, 1.0)] * 3])
    with pytest.raises(ValueError, match="coarse"):
        estimate("process CPU", [[(1.0, 0.0)] * 3] * 3)


@pytest.mark.parametrize(("cpu_s", "state"), [(1.0, "fine"), (0.95, "note"), (0.5, "unreliable")])
def test_a_thread_that_waits(cpu_s, state):
    wall = [[(1.0, 1.0)] * 2] * 2
    assert waiting_sign(wall, [[(cpu_s, cpu_s)] * 2] * 2).state == state


@pytest.mark.parametrize(
    ("step_s", "tokens", "pairs"),
    [
        (0.05, range(16, 25), range(3, 7)),  # this kind of machine
        (0.0005, range(256, 257), range(12, 13)),  # a GPU
        (3.0, range(4, 5), range(3, 4)),  # a model far too large
    ],
)
def test_the_amount_of_work_fits_the_model(step_s, tokens, pairs):
    found = _amount(curve(1.0, 1.2, 1.5, 1.8, 2.2, one_row_s=step_s), 30.0, prompt=16, room=2000)
    assert found[0] in tokens
    assert found[1] in pairs


def test_the_amount_of_work_fits_a_small_window():
    assert _amount(curve(1.0, one_row_s=1e-4), 30.0, prompt=2, room=9)[0] == 9


def test_memory_against_need():
    size = size_of(1000, layers=2, heads=3, width=4, turn=10, element_bytes=2)
    assert size.cache_bytes == 2 * 2 * 3 * 4 * 10 * 2
    assert size.need_bytes == int(1.2 * 1960)
    states = [memory_sign(size, free, place="memory").state for free in (None, 2000, 2500, 10_000)]
    assert states == ["n/a", "unreliable", "note", "fine"]
