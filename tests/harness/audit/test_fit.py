import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.audit.fit import LEVEL, fit, holm, variation
from draftboard.lossless import chi_square

P = {"a": 0.5, "b": 0.3, "c": 0.2}


def test_large_counts_are_tested_as_they_stand():
    counts = {"a": 1000, "b": 600, "c": 450}
    found = fit(counts, P)
    whole = chi_square(list(counts.values()), list(P.values()))
    # The shares of `P` times 2050 draws.
    assert (found.statistic, found.degrees) == (pytest.approx(whole.statistic), 2)
    assert found.p_value == pytest.approx(whole.p_value)


def test_an_outcome_that_cannot_be_fails():
    found = fit({"a": 50, "d": 1}, {"a": 1.0})
    assert (found.statistic, found.p_value) == (math.inf, 0.0)


def test_a_single_possible_outcome_passes():
    found = fit({"a": 50}, {"a": 1.0})
    assert (found.statistic, found.p_value) == (0.0, 1.0)


def test_one_likely_outcome_is_tested_exactly():
    # 4 of 50 where 0.5 are expected: chi-square alone would say 6e-7.
    found = fit({"a": 46, "b": 4}, {"a": 0.99, "b": 0.01})
    exact = sum(math.comb(50, k) * 0.01**k * 0.99 ** (50 - k) for k in range(4, 51))
    assert found.p_value == pytest.approx(exact, rel=1e-6)


def test_outcomes_beyond_the_most_frequent_count_together():
    chances = dict.fromkeys(range(100), 1 / 100)
    found = fit(dict.fromkeys(range(100), 10), chances, most=50)
    assert (found.statistic, found.degrees) == (pytest.approx(0), 50)
    # All draws of the tail on one token are still the tail.
    other = fit({**dict.fromkeys(range(50), 10), 99: 500}, chances, most=50)
    assert other.statistic == pytest.approx(0)


def test_right_draws_rarely_fail():
    dice = random.Random(0)
    chances = {index: p / 55 for index, p in enumerate(range(1, 11))}
    drawn = [Counter(dice.choices(list(chances), list(chances.values()), k=50)) for _ in range(400)]
    assert sum(fit(counts, chances).p_value < 0.05 for counts in drawn) / 400 == pytest.approx(0.05, abs=0.03)
    assert all(fit(counts, chances).p_value > LEVEL / 10 for counts in drawn)


def test_no_draws():
    with pytest.raises(ValueError, match="draws"):
        fit({}, P)


def test_holm():
    # 0.01 * 4, 0.02 * 3, 0.03 * 2 (made no smaller than the one before), 0.04 * 1.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_rejects_as_stepping_down_does(p_values):
    adjusted = holm(p_values)
    ordered = sorted(range(len(p_values)), key=p_values.__getitem__)
    for level in (0.01, 0.05, 0.3):
        rejected = set()
        for rank, index in enumerate(ordered):
            if min(1.0, p_values[index] * (len(p_values) - rank)) > level:
                break
            rejected.add(index)
        assert {index for index, p in enumerate(adjusted) if p <= level} == rejected


def test_variation():
    assert variation({"a": 5, "b": 5}, {"a": 0.5, "c": 0.5}) == 0.5
    assert variation({"a": 1, "b": 1}, {"a": 0.5, "b": 0.5}) == 0
