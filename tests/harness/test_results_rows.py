"""Speedups that one file states and another one measures: the measured one is shown, the other one is told."""

from statistics import stdev

import pytest

from draftboard.results_file import read_results

from made_rows import by_name, overall, write


def measured(method, seconds, **more):
    return [{"method": method, "question_id": i, "new_tokens": 100, "wall_time_s": seconds, **more} for i in (1, 2)]


PLAIN, PLD = measured("autoregressive", 4.0), measured("pld", 2.0)


def in_domain(rows, domain):
    return [{**row, "category": domain} for row in rows]


def read(tmp_path, *contents):
    paths = [write(tmp_path, rows, f"{index}.jsonl") for index, rows in enumerate(contents)]
    return read_results(*paths).groups[0]


@pytest.mark.parametrize("first", [True, False])
def test_what_was_measured_is_shown_and_what_was_stated_is_told_once(tmp_path, first):
    stated = [{"method": "pld", "speedup": 9.5}]
    group = read(tmp_path, [*PLAIN, *PLD], stated) if first else read(tmp_path, stated, [*PLAIN, *PLD])
    assert overall(group, "pld", "speedup").value == pytest.approx(2.0)
    assert overall(group, "pld", "speedup_gm").value == pytest.approx(2.0)
    assert overall(group, "pld", "speedup").n == 2
    told = "pld: the measured speedup is shown; a stated one was given, too: 9.5 (overall)"
    assert group.notes == (told,)


def test_each_domain_decides_for_itself(tmp_path):
    stated = [{"method": "pld", "speedup": {"qa": 9.5, "rag": 3.0}}, {"method": "pld", "speedup": 7.0}]
    group = read(tmp_path, in_domain([*PLAIN, *PLD], "qa"), stated)
    found = by_name(group)["pld"].domains
    assert found["qa"].figures["speedup"].value == pytest.approx(2.0)
    assert found["qa"].samples == 2
    assert found["rag"].figures["speedup"].value == 3.0
    assert overall(group, "pld", "speedup").value == pytest.approx(6**0.5)
    # Over the measured domain alone it would be another workload than the mean over both.
    assert "speedup_pooled" not in by_name(group)["pld"].overall
    assert [note for note in group.notes if "stated one" in note] == [
        "pld: the measured speedup is shown; a stated one was given, too: 9.5 (qa), 7 (overall)"
    ]


def test_measured_domains_keep_all_their_overall_figures(tmp_path):
    rows = [*in_domain([*PLAIN, *PLD], "qa"), *in_domain([*PLAIN, *measured("pld", 1.0)], "rag")]
    alone = read(tmp_path, rows)
    beside = read(tmp_path, rows, [{"method": "pld", "speedup": {"qa": 9.5, "rag": 9.0}}])
    assert by_name(beside)["pld"].overall == by_name(alone)["pld"].overall


@pytest.mark.parametrize(
    "rows",
    [
        PLD,
        [{"method": "autoregressive", "acceptance_length": 1.0}, *PLD],
        [*PLAIN, {"method": "pld", "new_tokens": None, "wall_time_s": None, "question_id": 1}],
    ],
)
def test_a_stated_speedup_stands_where_none_can_be_measured(tmp_path, rows):
    group = read(tmp_path, rows, [{"method": "pld", "speedup": 9.5}])
    assert overall(group, "pld", "speedup").value == 9.5
    assert not any("stated one" in note for note in group.notes)


def test_measured_rows_that_lack_a_question_are_not_covered_up(tmp_path):
    group = read(tmp_path, [*PLAIN, PLD[0]], [{"method": "pld", "speedup": 9.5}])
    assert overall(group, "pld", "speedup").reason == "no speed for 1 of 2 questions of autoregressive"
    assert any("9.5 (overall)" in note for note in group.notes)


def test_a_missing_stated_value_and_the_baselines_own_are_not_worth_a_word(tmp_path):
    stated = [{"method": "pld", "speedup": None}, {"method": "autoregressive", "speedup": 1.0}]
    group = read(tmp_path, [*PLAIN, *PLD], stated)
    assert overall(group, "pld", "speedup").value == pytest.approx(2.0)
    assert group.notes == ()


def test_speedups_of_several_repeats_are_a_mean_with_its_interval(tmp_path):
    repeats = [2.0, 2.04, 1.98, 2.02, 1.96]
    found = stated(tmp_path, *({"method": "samd", "repeat": i, "speedup": value} for i, value in enumerate(repeats)))
    assert found.value == pytest.approx(2.0)
    # 2.776445 is Student's t of 4 degrees at 97.5 %, 0.031623 the sample deviation.
    half = 2.776445 * 0.0316227766 / 5**0.5
    assert (found.interval.low, found.interval.high) == pytest.approx((2.0 - half, 2.0 + half), rel=1e-6)
    assert found.signature == "mean of 5 repeats"
    twice = stated(tmp_path, {"method": "m", "speedup": 2.0}, {"method": "m", "speedup": 3.0})
    assert (twice.value, twice.interval) == (3.0, None)
    lacking = stated(
        tmp_path, {"method": "m", "repeat": 0, "speedup": 2.0}, {"method": "m", "repeat": 1, "speedup": None}
    )
    assert (lacking.value, lacking.interval) == (None, None)


def by_domain(*repeats):
    return [{"method": "samd", "repeat": i, "speedup": speedup} for i, speedup in enumerate(repeats)]


def test_repeats_that_state_domains_give_the_overall_speedup_an_interval_too(tmp_path):
    rows = by_domain({"qa": 2.0, "rag": 1.5}, {"qa": 2.1, "rag": 1.6}, {"qa": 1.9, "rag": 1.4})
    found = stated(tmp_path, *rows)
    assert found.value == pytest.approx(3**0.5)
    # Student's t of 2 degrees at 97.5 %, and the deviation of the repeats' own overall values.
    half = 4.302653 * stdev([3**0.5, 3.36**0.5, 2.66**0.5]) / 3**0.5
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (found.value - half, found.value + half), rel=1e-6
    )
    equal = stated(tmp_path, *by_domain(*[{"qa": 2.0, "rag": 2.0}] * 3))
    assert (equal.value, equal.interval.low, equal.interval.high) == pytest.approx((2.0, 2.0, 2.0))


@pytest.mark.parametrize(
    ("repeats", "value"),
    [
        ([{"qa": 2.0, "rag": 2.0}], 2.0),
        ([{"qa": 2.0, "rag": 2.0}, {"qa": 2.0}], 2.0),
        ([{"qa": 2.0, "rag": 2.0}, {"qa": 2.0, "rag": float("nan")}], None),
    ],
)
def test_repeats_that_do_not_state_every_domain_give_no_interval(tmp_path, repeats, value):
    found = stated(tmp_path, *by_domain(*repeats))
    assert (found.value, found.interval) == (value, None)


def stated(tmp_path, *rows):
    (group,) = read_results(write(tmp_path, list(rows))).groups
    return group.methods[0].overall["speedup"]
