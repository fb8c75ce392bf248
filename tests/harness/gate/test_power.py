"""How often the gate errs, by simulation: at default settings, with 3 % noise a cell and a machine that drifts by 5 %
from round to round, on 48 samples in 6 domains and 3 rounds."""

import pytest

from draftboard.gate import Rules, compare

from made_sides import simulated

TRIALS = 200


def decisions(slower, **size):
    for trial in range(TRIALS):
        before = simulated("before", seed=2 * trial, **size)
        after = simulated("after", seed=2 * trial + 1, slower=slower, **size)
        report = compare(before, after, Rules(methods=("samd",)))
        yield report.checks[0].speed.decision, report.exit_code


def test_equal_code_is_the_same_in_95_of_100_trials():
    found = list(decisions(slower=0.0))
    assert sum(decision == "same" for decision, _ in found) >= 0.95 * TRIALS
    assert sum(code == 0 for _, code in found) >= 0.95 * TRIALS


def test_a_planted_slowdown_of_5_percent_fails_the_gate_in_95_of_100_trials():
    assert sum(code == 1 for _, code in decisions(slower=0.05)) >= 0.95 * TRIALS


def test_one_round_of_24_samples_takes_equal_code_for_another_speed_in_about_12_of_100_trials():
    found = list(decisions(slower=0.0, samples=24, rounds=1))
    assert sum(decision != "same" for decision, _ in found) == pytest.approx(0.12 * TRIALS, abs=0.05 * TRIALS)
