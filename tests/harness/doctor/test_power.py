"""The formula against what the statistics of a run really decide."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftboard.doctor.power import LEAST, Layout, Spread, _larger_range, detectable, power_of, recommend
from draftboard.statistics import Sampling, compare_arms

SPREAD = Spread(pair=0.04, pair_drift=0.01, arm=0.03, arm_drift=0.008)
LARGEST = Layout(domains=6, samples=80)


def spreads():
    part = st.floats(0, 0.2)
    return st.builds(Spread, pair=part, pair_drift=part, arm=part, arm_drift=part)


def decided(spread: Spread, effect: float, layout: Layout, rounds: int, *, trials: int, seed: int) -> float:
    """How often `compare_arms` calls an arm faster that is: arms drift by themselves, samples scatter in each round."""
    random = np.random.default_rng(seed)
    keys = [f"{domain}/{sample}" for domain in range(layout.domains) for sample in range(layout.samples)]
    domains = {key: key.partition("/")[0] for key in keys}
    own = spread.arm_drift
    seen = 0
    for _ in range(trials):
        drift = random.normal(0, own, (2, rounds))
        scatter = random.normal(0, spread.arm, (2, len(keys), rounds))
        arms = [
            {key: [(float(np.exp(gain + drift[a, r] + scatter[a, i, r])), 1.0) for r in range(rounds)]
             for i, key in enumerate(keys)}
            for a, gain in enumerate((0.0, -effect))
        ]  # fmt: skip
        found = compare_arms(*arms, domains=domains, sampling=Sampling(seed=seed, resamples=200))
        seen += found.decision == "faster"
    return seen / trials


@pytest.mark.parametrize(
    ("arm", "drift", "layout", "rounds"),
    [
        (0.03, 0.008, Layout(domains=3, samples=6), 3),
        (0.05, 0.0, Layout(domains=1, samples=20), 4),
        (0.01, 0.02, Layout(domains=2, samples=8), 3),
    ],
)
def test_the_power_is_that_of_the_rule_results_are_reported_by(arm, drift, layout, rounds):
    independent = Spread(pair=arm * 2**0.5, pair_drift=drift * 2**0.5, arm=arm, arm_drift=drift)
    effect = detectable(independent, 0.8, layout=layout, rounds=rounds)
    assert decided(independent, effect, layout, rounds, trials=250, seed=1) == pytest.approx(0.8, abs=0.1)
    assert decided(independent, effect / 3, layout, rounds, trials=100, seed=2) < 0.35
    assert decided(independent, effect * 1.6, layout, rounds, trials=100, seed=3) > 0.9


@pytest.mark.parametrize("rounds", [2, 3, 5, 10])
def test_the_larger_range_by_brute_force(rounds):
    drawn = np.random.default_rng(4).normal(size=(40_000, 2, rounds))
    ranges = (drawn.max(axis=2) - drawn.min(axis=2)).max(axis=1)
    mean, deviation = _larger_range(rounds)
    assert mean == pytest.approx(ranges.mean(), rel=0.01)
    assert deviation == pytest.approx(ranges.std(), rel=0.02)


@settings(deadline=None)
@given(spreads(), st.floats(0.55, 0.99), st.integers(3, 10), st.integers(3, 80))
def test_what_is_detectable_has_just_the_power(spread, power, rounds, samples):
    layout = Layout(domains=3, samples=samples)
    effect = detectable(spread, power, layout=layout, rounds=rounds)
    if max(spread.pair, spread.pair_drift, spread.arm, spread.arm_drift) > 1e-6:
        assert power_of(spread, effect, layout=layout, rounds=rounds) == pytest.approx(power, abs=1e-6)
    more = Layout(domains=3, samples=samples + 1)
    assert detectable(spread, power, layout=more, rounds=rounds) <= effect + 1e-12


def test_the_recommendation_is_the_cheapest_that_sees_it():
    design = recommend(SPREAD, 0.05, 0.8, largest=LARGEST)
    assert design is not None
    assert design.power >= 0.8
    cost = design.rounds * design.layout.samples
    effect = float(np.log(1.05))
    for rounds in range(3, 11):
        for samples in range(LEAST, 81):
            sees = power_of(SPREAD, effect, layout=Layout(domains=6, samples=samples), rounds=rounds) >= 0.8
            assert not (sees and (rounds * samples, rounds) < (cost, design.rounds))


def test_a_quiet_machine_needs_the_least_and_a_loud_one_cannot_do_it():
    quiet = Spread(pair=0, pair_drift=0, arm=0, arm_drift=0)
    design = recommend(quiet, 0.001, 0.99, largest=LARGEST)
    assert design is not None
    assert (design.rounds, design.layout.samples, design.power) == (3, LEAST, 1.0)
    loud = Spread(pair=0, pair_drift=0.2, arm=0, arm_drift=0.2)
    assert recommend(loud, 0.05, 0.8, largest=LARGEST) is None


def test_a_smaller_difference_or_more_power_costs_more():
    def cost(difference: float, power: float) -> int:
        design = recommend(SPREAD, difference, power, largest=LARGEST)
        assert design is not None
        return design.rounds * design.layout.samples

    assert cost(0.2, 0.8) <= cost(0.08, 0.8) <= cost(0.05, 0.8)
    assert cost(0.05, 0.8) <= cost(0.05, 0.95)
