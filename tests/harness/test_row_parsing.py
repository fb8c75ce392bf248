import json

import pytest

from draftboard.errors import UserError
from draftboard.leaderboards import standings
from draftboard.results_file import read_results

from made_rows import by_name, case, overall, write

approx = pytest.approx

ROWS_9 = [
    {"method": method, "question_id": q, "category": "qa", "phase": phase, "new_tokens": n, "wall_time_s": t}
    for method, phase, q, n, t in (
        ("autoregressive", "warmup", 1, 100, 31.0),
        ("autoregressive", "measured", 1, 100, 4.0),
        ("autoregressive", "measured", 2, 200, 5.0),
        ("autoregressive", "measured", 3, 50, 2.0),
        ("method-x", "warmup", 1, 100, 12.0),
        ("method-x", "measured", 1, 100, 2.0),
        ("method-x", "measured", 2, 200, 2.0),
        ("method-x", "measured", 3, 50, 1.0),
    )
]


@pytest.mark.parametrize(
    "mark",
    [
        {"phase": "warm-up"},
        {"phase": "Warmup"},
        {"phase": "WARM_UP"},
        {"phase": " warm up "},
        {"phase": "warm\u2011up"},
        {"warmup": True},
        {"phase": None, "Warm-Up": True},
        {"phase": "warmup", "warmup": True},
    ],
)
def test_case_9_warm_up_in_any_spelling_is_left_out(tmp_path, mark):
    rows = [row for row in ROWS_9 if row["phase"] == "measured"]
    warm = [{**row, "phase": None, "question_id": 99, **mark} for row in ROWS_9 if row["phase"] == "warmup"]
    (group,) = read_results(write(tmp_path, [*rows, *warm])).groups
    assert overall(group, "method-x", "speedup").value == approx(2.2, abs=1e-9)
    assert by_name(group)["method-x"].domains["qa"].samples == 3


@pytest.mark.parametrize(
    "mark", [{"phase": "Measured"}, {"phase": "measure"}, {"phase": "TIMED"}, {"phase": ""}, {}, {"warmup": False}]
)
def test_measured_rows_count_in_any_spelling(tmp_path, mark):
    rows = [
        {**{name: value for name, value in row.items() if name != "phase"}, **mark}
        for row in ROWS_9
        if row["phase"] == "measured"
    ]
    (group,) = read_results(write(tmp_path, rows)).groups
    assert overall(group, "method-x", "speedup").value == approx(2.2, abs=1e-9)


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ({"phase": "cooldown"}, "`phase` is 'cooldown'; known are warmup, measured, measure, timed"),
        ({"phase": 1}, "`phase` has to be text"),
        ({"warmup": 1}, "`warmup` has to be true or false"),
        ({"warmup": True, "phase": "measured"}, "`phase` and `warmup` contradict each other"),
    ],
)
def test_other_phases_are_refused_with_their_line(tmp_path, mark, message):
    rows = [{"method": "a", "speedup": 2.0}, {"method": "b", "speedup": 2.0, **mark}]
    with pytest.raises(UserError, match=rf"rows\.jsonl:2: {message}"):
        read_results(write(tmp_path, rows))


def test_a_mark_of_the_file_holds_for_rows_without_one_and_a_count_is_no_mark(tmp_path):
    rows = [{"method": "a", "speedup": 2.0}, {"method": "b", "speedup": 2.0, "warmup": False}]
    text = json.dumps({"warmup": True, "rows": rows})
    (group,) = read_results(write(tmp_path, text, "a.json")).groups
    assert list(by_name(group)) == ["b"]
    (group,) = read_results(write(tmp_path, json.dumps({"warmup": 3, "rows": rows}), "b.json")).groups
    assert list(by_name(group)) == ["a", "b"]


@pytest.mark.parametrize("more", [{}, {"acceptance_length": 3.0}])
def test_case_13_a_speedup_of_no_domain_is_missing(tmp_path, more):
    content = json.loads(case("13").read_text(encoding="utf-8"))
    content["rows"].append({"method": "empty", "speedup": {}, **more})
    (group,) = read_results(write(tmp_path, json.dumps(content), "x.json")).groups
    assert overall(group, "empty", "speedup").value is None
    last = [(s.method.method, s.rank, s.reason) for s in standings(group, "speedup") if s.method.method == "empty"]
    assert last == [("empty", None, "`speedup` is stated for no domain")]
    assert [s.method.method for s in standings(group, "speedup")][:2] == ["full", "slow"]
    (alone,) = read_results(write(tmp_path, [{"method": "empty", "speedup": {}, **more}])).groups
    assert overall(alone, "empty", "speedup").reason == "`speedup` is stated for no domain"


def test_an_empty_speedup_leaves_the_measured_one(tmp_path):
    rows = [{**row, "speedup": {}} for row in ROWS_9]
    (group,) = read_results(write(tmp_path, rows)).groups
    assert overall(group, "method-x", "speedup").value == approx(2.2, abs=1e-9)


@pytest.mark.parametrize(
    "changes",
    [{"wall_time_s": 5e-324}, {"wall_time_s": 1e308}, {"new_tokens": 1e300}, {"new_tokens": 1, "wall_time_s": 1e-300}],
)
def test_numbers_beyond_all_measure_are_missing_values(tmp_path, changes):
    base = {"method": "autoregressive", "category": "qa", "new_tokens": 10, "wall_time_s": 1.0}
    rows = [{**base, "question_id": q, "method": m} for q in (1, 2) for m in ("autoregressive", "p")]
    rows = [{**row, **changes} if row["method"] == "p" else row for row in rows]
    (group,) = read_results(write(tmp_path, rows)).groups
    figure = overall(group, "p", "speedup")
    assert figure.value is None
    assert "to have been measured" in figure.reason
    assert overall(group, "autoregressive", "speedup").value == 1.0


def test_settings_nested_beyond_reason_are_refused_with_their_line(tmp_path):
    settings = {}
    for _ in range(600):
        settings = {"a": settings}
    with pytest.raises(UserError, match=r"rows\.jsonl:1: `settings` is nested too deeply"):
        read_results(write(tmp_path, [{"method": "p", "speedup": 2.0, "settings": settings}]))
