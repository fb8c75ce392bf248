"""Two arms: faster, same or slower, with 3 % noise a cell as machines have it."""

import math

import numpy as np
import pytest

from draftboard.results import Interval
from draftboard.statistics import ONE_ROUND, Sampling, compare_arms, decide, mcnemar, pooled_drift

QUICK = Sampling(resamples=1000)


def arms(rng, *, n, rounds, slower=1.0, noise=0.03, drift=0.01):
    """Seconds and tokens by sample and round: log-normal answers, rounds that drift for both arms alike."""
    tokens = np.ceil(rng.lognormal(4.5, 0.8, n))
    pace = rng.normal(0.03, 0.004, n).clip(0.015)
    hours = rng.normal(1, drift, rounds)
    found = []
    for factor in (1.0, slower):
        seconds = (tokens * pace * factor)[:, None] * hours * rng.normal(1, noise, (n, rounds))
        found.append({f"s{i}": [(float(s), float(tokens[i])) for s in seconds[i]] for i in range(n)})
    return found


def share(decision, trials=200, **how):
    rng = np.random.default_rng(2024)
    tolerance = how.pop("tolerance", 0.0)
    found = [compare_arms(*arms(rng, **how), tolerance=tolerance, sampling=QUICK).decision for _ in range(trials)]
    return found.count(decision) / trials


@pytest.mark.parametrize(
    ("n", "rounds", "least"), [(120, 3, 0.95), (20, 3, 0.95), (20, 2, 0.95), (80, 1, 0.93), (60, 1, 0.9), (20, 1, 0.83)]
)
def test_the_same_against_itself_is_called_the_same(n, rounds, least):
    """With one round only the samples' own spread protects, which few samples tell too little of."""
    assert share("same", n=n, rounds=rounds) >= least


def test_a_planted_slowdown_of_five_percent_is_found_beyond_two():
    assert share("slower", n=120, rounds=3, slower=1.05, tolerance=0.02) >= 0.95


@pytest.mark.parametrize(("n", "about"), [(60, 0.9), (20, 0.7)])
def test_fewer_samples_find_it_less_often(n, about):
    assert share("slower", n=n, rounds=3, slower=1.05, tolerance=0.02) == pytest.approx(about, abs=0.05)


def test_a_speedup_of_five_percent_is_found_too():
    assert share("faster", n=120, rounds=3, slower=1 / 1.05, trials=60) >= 0.95


def test_an_arm_against_its_own_times_is_exactly_one():
    base, _ = arms(np.random.default_rng(1), n=25, rounds=3)
    found = compare_arms(base, base)
    assert (found.ratio, found.interval, found.p, found.decision) == (1, Interval(low=1, high=1), 1, "same")


def test_the_same_seed_gives_the_same_interval_whatever_the_order():
    base, other = arms(np.random.default_rng(1), n=25, rounds=2, slower=1.01)
    turned = {key: other[key] for key in reversed(other)}
    assert compare_arms(base, other, sampling=QUICK) == compare_arms(base, turned, sampling=QUICK)
    assert compare_arms(base, other, sampling=Sampling(seed=1, resamples=1000)) != compare_arms(
        base, other, sampling=QUICK
    )


def test_drift_between_rounds_is_no_speedup():
    """The same method half an hour later, 1.5 % slower: an interval over samples alone would call it slower."""
    base = {str(i): [(2.0 + i / 9, 100.0), ((2.0 + i / 9) * 1.015, 100.0)] for i in range(40)}
    later = {key: [(seconds * 1.013, tokens) for seconds, tokens in cells] for key, cells in base.items()}
    found = compare_arms(base, later, sampling=QUICK)
    assert found.noise_floor == pytest.approx(math.log(1.015))
    assert found.decision == "same"
    once = compare_arms(*({k: cells[:1] for k, cells in arm.items()} for arm in (base, later)), sampling=QUICK)
    assert (once.noise_floor, once.decision, once.notes) == (None, "slower", (ONE_ROUND,))


def test_the_overall_ratio_is_the_geometric_mean_of_the_domains():
    base = {"1": [(1.0, 10)], "2": [(1.0, 10)], "3": [(9.0, 90)], "4": [(9.0, 90)]}
    fast = {"1": [(0.25, 10)], "2": [(0.25, 10)], "3": [(9.0, 90)], "4": [(9.0, 90)]}
    domains = {"1": "qa", "2": "qa", "3": "rag", "4": "rag"}
    assert compare_arms(base, fast, domains=domains, sampling=QUICK).ratio == pytest.approx(2)


def test_what_cannot_be_compared_is_told():
    with pytest.raises(ValueError, match="no sample is in both arms"):
        compare_arms({"1": [(1.0, 1)]}, {"2": [(1.0, 1)]})
    with pytest.raises(ValueError, match="needs time and tokens"):
        compare_arms({"1": [(0.0, 1)]}, {"1": [(1.0, 1)]})
    lone = compare_arms({"1": [(1.0, 1)]}, {"1": [(3.0, 1), (2.0, 1)]}, sampling=QUICK)
    assert (lone.interval, lone.p, lone.decision, lone.n) == (None, None, "same", 1)
    assert len(lone.notes) == 3


def test_drift_is_the_largest_between_any_two_rounds():
    assert pooled_drift([[(1.0, 10), (1.0, 10)]]) == 0
    rounds = [[(1.0, 10), (3.0, 30)], [(1.1, 10), (3.3, 30)], [(0.9, 10), (2.7, 30)]]
    assert pooled_drift(rounds) == pytest.approx(math.log(1.1 / 0.9))


def test_the_rule_of_deciding():
    above, around = Interval(low=1.01, high=1.1), Interval(low=0.99, high=1.2)
    assert decide(1.05, above) == "faster"
    assert decide(1.05, above, 0.1) == "same"
    assert decide(1.05, around) == "same"
    assert decide(0.9, Interval(low=0.85, high=0.97), 0.05) == "slower"
    assert decide(0.96, Interval(low=0.95, high=0.97), 0.05) == "same"
    assert decide(1.05, None) == "same"


def test_mcnemar_is_the_exact_sign_test_of_the_discordant():
    first = {str(i): float(i < 8) for i in range(12)}
    second = {str(i): float(i < 2) for i in range(12)}
    assert mcnemar(first, second) == pytest.approx(2 * 0.5**6)
    assert mcnemar(first, first) == 1
    assert mcnemar(first, {"other": 1.0}) is None
    assert mcnemar({"1": 0.5}, {"1": 1.0}) is None
