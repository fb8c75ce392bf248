"""The bootstrap against scipy's, against brute force, and what must not change it."""

import math
import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from draftboard.statistics import (
    MANY,
    RESAMPLES,
    RESAMPLES_OF_MANY,
    Coded,
    Replicates,
    Sampling,
    Statistic,
    both,
    chained,
    draws,
    geometric,
    interval_of,
    p_value,
    pool_ratio,
    ratio,
    replicates,
    resamples_for,
    widened,
)


def one(statistic, strata, **how):
    ((_, found),) = replicates({"": statistic}, strata, Sampling(**how))
    return found


def of_samples(tops, bottoms, **other):
    names = [f"{i:04}" for i in range(len(tops))]
    made = Statistic(samples=names, columns=[tops, bottoms], formula=ratio(), **other)
    return made, dict.fromkeys(names, "qa")


numbers = st.lists(st.tuples(st.integers(1, 5000), st.integers(1, 500)), min_size=6, max_size=45)
"""Whole numbers, so that sums are exact and equal values equal."""


@settings(max_examples=25, deadline=None)
@given(numbers, st.integers(0, 99))
def test_intervals_are_scipys_on_the_same_draws(rows, seed):
    tops, bottoms = (np.array(column, float) for column in zip(*rows, strict=True))
    made, strata = of_samples(tops, bottoms)
    found = one(made, strata, seed=seed, resamples=299)
    assume(np.ptp(tops / bottoms) > 0)
    interval = interval_of(found, 0.95)
    theirs = stats.bootstrap(
        (tops, bottoms),
        lambda x, y, axis: x.sum(axis=axis) / y.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=299,
        method="BCa" if len(rows) < 30 else "percentile",
        rng=Sampling(seed=seed).generator("qa"),
    ).confidence_interval
    assert (interval.low, interval.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_of_many_samples_fewer_resamples_say_the_same():
    assert (resamples_for(MANY), resamples_for(MANY + 1)) == (RESAMPLES, RESAMPLES_OF_MANY)
    rng = np.random.default_rng(1)
    made, strata = of_samples(rng.gamma(2.0, 1.0, MANY + 1), rng.gamma(4.0, 1.0, MANY + 1))
    full = one(made, strata)
    whole, error = interval_of(full, 0.95), float(full.values.std())
    few = [interval_of(one(made, strata, seed=seed, resamples=RESAMPLES_OF_MANY), 0.95) for seed in range(1, 9)]
    off = np.array([((each.low - whole.low) / error, (each.high - whole.high) / error) for each in few])
    # Standard errors by which an end is uncertain, as `RESAMPLES_OF_MANY` has it.
    assert abs(off).max() < 4 * math.hypot(0.06, 0.027)
    assert abs(off.mean(axis=0)).max() < 4 * math.hypot(0.06 / math.sqrt(len(few)), 0.027)


def test_samples_by_place_are_those_by_name():
    rng = np.random.default_rng(2)
    names = tuple(f"{i:04}" for i in range(12))
    places = rng.integers(0, 12, 40)
    columns = [rng.random(40), rng.random(40)]
    strata = {name: "ab"[i % 2] for i, name in enumerate(names)}
    found = [
        one(Statistic(samples=samples, columns=columns, formula=ratio()), strata, resamples=50).values
        for samples in (Coded(names, places), [names[place] for place in places])
    ]
    assert (found[0] == found[1]).all()
    coded = Coded(names, places)
    for parts in ([coded, coded[:3]], [coded, ["0003"]], [coded, Coded(names[:5], places[places < 5])]):
        assert list(chained(parts)) == [name for part in parts for name in part]
    assert isinstance(chained([coded, coded]), Coded)


def test_drawing_holds_a_bounded_number_of_counts_whatever_the_samples():
    for n in (3, 500, 30_000):
        shapes = [counts.shape for _, counts in draws._batches(n, Sampling(resamples=200), "qa")]
        assert sum(rows for rows, _ in shapes) == 200
        assert max(rows * width for rows, width in shapes) <= draws._BATCH


def test_batches_draw_what_one_piece_draws(monkeypatch):
    made, strata = of_samples(np.arange(1.0, 8), np.ones(7))
    whole = one(made, strata, resamples=100).values
    monkeypatch.setattr(draws, "_BATCH", 21)
    assert (one(made, strata, resamples=100).values == whole).all()


@settings(max_examples=20, deadline=None)
@given(numbers, st.randoms(use_true_random=False))
def test_order_of_samples_and_of_statistics_changes_nothing(rows, rng):
    names = [str(i) for i in range(len(rows))]
    strata = {name: "ab"[i % 2] for i, name in enumerate(names)}

    def made(order, keys):
        statistic = Statistic(
            samples=[names[i] for i in order],
            columns=[[rows[i][part] for i in order] for part in (0, 1)],
            formula=ratio(),
            over="geometric",
        )
        other = Statistic(samples=names, columns=[[r[1] for r in rows], [r[0] for r in rows]], formula=ratio())
        table = {"x": statistic, "y": other}
        found = dict(replicates({key: table[key] for key in keys}, strata, Sampling(resamples=50)))
        return found["x"].values

    order = list(range(len(rows)))
    straight = made(order, "xy")
    rng.shuffle(order)
    assert (made(order, "yx") == straight).all()


def test_domains_are_drawn_apart_and_rejoined():
    strata = {"1": "a", "2": "a", "3": "b", "4": "b"}
    tops, bottoms = [1.0, 3, 10, 30], [1.0, 1, 1, 1]
    parts = {
        over: Statistic(samples=list(strata), columns=[tops, bottoms], formula=ratio(), over=over)
        for over in ("pool", "geometric", "mean", "weighted")
    }
    found = dict(replicates(parts, strata, Sampling(resamples=400)))
    assert found["pool"].value == pytest.approx(11)
    assert found["geometric"].value == pytest.approx(math.sqrt(2 * 20))
    assert found["mean"].value == found["weighted"].value == pytest.approx(11)
    # A domain's mean is one of three numbers, whatever the other one's draw is.
    assert {round(value, 9) for value in found["pool"].values} == {
        round((a + b) / 2, 9) for a in (1, 2, 3) for b in (10, 20, 30)
    }
    assert (found["pool"].n, found["pool"].smallest) == (4, 2)


def test_one_sample_in_a_domain_has_no_interval():
    lone = Statistic(samples=["1", "2", "3"], columns=[[1.0, 2, 3], [1, 1, 1]], formula=ratio())
    found = one(lone, {"1": "a", "2": "a", "3": "b"}, resamples=100)
    assert interval_of(found, 0.95) is None
    assert p_value(found, 1.0) is None


def test_a_figure_that_few_resamples_have_has_no_interval():
    strata = {str(i): "a" for i in range(10)}
    rare = Statistic(samples=["1", "2"], columns=[[1.0, 2], [1, 1]], formula=ratio())
    assert interval_of(one(rare, strata, resamples=200), 0.95) is None


def test_an_arm_against_itself_is_exactly_one():
    rng = random.Random(3)
    cells = [(rng.random() + 0.1, rng.randint(1, 99)) for _ in range(40)]
    names = [str(i) for i in range(40)]
    seconds, tokens = zip(*cells, strict=True)
    same = Statistic(samples=names, columns=[seconds, tokens, seconds, tokens], formula=pool_ratio, over="geometric")
    found = one(same, {name: name[0] for name in names}, resamples=500)
    assert found.value == 1
    assert (found.values == 1).all()
    logs = Statistic(samples=names, columns=[[0.0] * 40, [1.0] * 40], formula=geometric)
    assert one(logs, dict.fromkeys(names, "a"), resamples=100).value == 1


def test_two_statistics_are_compared_on_the_same_resamples():
    made, strata = of_samples([1.0, 2, 3, 4, 9], [1.0] * 5)
    twice = Statistic(samples=made.samples, columns=[np.array(made.columns[0]) * 2, made.columns[1]], formula=ratio())
    found = one(both(twice, made, lambda a, b: a / b), strata, resamples=200)
    assert np.allclose(found.values, 2)


def test_runs_are_drawn_from_five_rounds_on():
    """Rounds that differ much while samples do not: only drawing runs shows it."""
    samples = [str(s) for s in range(40) for _ in range(5)]
    rounds = list(range(5)) * 40
    column = [1.0 + number for number in rounds]
    made = Statistic(samples=samples, rounds=rounds, columns=[column, [1.0] * 200], formula=ratio())
    strata = dict.fromkeys(samples, "a")
    still = interval_of(one(made, strata, resamples=500), 0.95)
    assert still.low == still.high == 3
    moving = one(made, strata, resamples=2000, rounds=5)
    interval = interval_of(moving, 0.95)
    assert interval.low < 2.2
    assert interval.high > 3.8
    # The spread of the mean of five draws of 1..5.
    assert moving.values.std() == pytest.approx(math.sqrt(2 / 5), rel=0.1)


def test_unknown_samples_are_refused():
    made, _ = of_samples([1.0, 2], [1.0, 1])
    with pytest.raises(ValueError, match="samples of no domain: 0000, 0001"):
        list(replicates({"": made}, {"other": "a"}, Sampling()))


def test_a_round_that_is_never_drawn_is_refused():
    made = Statistic(samples=["1"] * 5, rounds=range(1, 6), columns=[[1.0] * 5, [1.0] * 5], formula=ratio())
    with pytest.raises(ValueError, match="round 5 of a run of 5 rounds"):
        one(made, {"1": "a"}, rounds=5)


def test_the_p_value_goes_with_the_interval_and_its_noise():
    values = np.exp(np.random.default_rng(1).normal(0.05, 0.01, 4000))
    found = Replicates(value=math.exp(0.05), values=values, n=100, smallest=100)
    assert p_value(found, 1.0) < 0.001
    for floor in (0.0, 0.02, 0.03, 0.032, 0.06):
        interval = widened(interval_of(found, 0.95), floor)
        assert (p_value(found, 1.0, floor) < 0.05) == (interval.low > 1)
    assert p_value(Replicates(value=1.0, values=values, n=9, smallest=9), 1.0) == 1


@pytest.mark.parametrize("floor", [0.0, 0.05])
@pytest.mark.parametrize("over", ["pool", "geometric"])
def test_the_p_value_of_few_samples_goes_with_their_corrected_interval(over, floor):
    """Of nulls on either side of each end: lengths as skewed as answers, so that percentiles would say otherwise."""
    rng = np.random.default_rng(6)
    lengths = rng.lognormal(0, 0.8, 12)
    seconds = lengths ** rng.uniform(1, 1.6, 12)
    names = [str(i) for i in range(12)]
    made = Statistic(samples=names, columns=[seconds, lengths], formula=ratio(), over=over)
    found = one(made, {name: "ab"[i % 2] for i, name in enumerate(names)}, resamples=4000)
    interval = widened(interval_of(found, 0.95), floor)
    plain = np.quantile(found.values, (0.025, 0.975)) * np.exp((-floor, floor))
    assert max(abs(plain / (interval.low, interval.high) - 1)) > 0.02
    for null, inside in [
        (interval.low * 0.99, False),
        (interval.low * 1.01, True),
        (interval.high * 0.99, True),
        (interval.high * 1.01, False),
    ]:
        assert (p_value(found, null, floor) > 0.05) == inside
    assert p_value(found, found.value, floor) == 1
    assert 2 / 4001 == p_value(found, 1e-9, floor) < p_value(found, 1e9, floor) < 0.02


@pytest.mark.parametrize("n", [12, 60])
def test_intervals_hold_the_truth_about_as_often_as_they_say(n):
    """Of 200 made workloads; the ratio of sums of log-normal lengths."""
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(200):
        lengths = rng.lognormal(0, 0.6, n)
        made, strata = of_samples(lengths * rng.normal(2, 0.3, n), lengths)
        interval = interval_of(one(made, strata, resamples=400), 0.95)
        hits += interval.low <= 2 <= interval.high
    assert hits / 200 > (0.86 if n < 30 else 0.9)
