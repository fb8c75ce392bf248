import json

import pytest

from draftboard.results_file import read_results

from made_rows import by_name, case, overall, write

approx = pytest.approx


@pytest.mark.parametrize("nothing", [[], None, float("nan")])
def test_case_4_steps_that_are_empty_are_told(tmp_path, nothing):
    rows = [json.loads(line) for line in case("04").read_text(encoding="utf-8").splitlines()]
    rows[3]["tokens_per_step"] = nothing
    (group,) = read_results(write(tmp_path, rows)).groups
    assert overall(group, "B", "acceptance_length").value == approx(2.5)
    assert group.notes == ("B: `tokens_per_step` is empty for question 2, which is left out of τ",)
    rows[2]["tokens_per_step"] = nothing
    (group,) = read_results(write(tmp_path, rows)).groups
    assert overall(group, "B", "acceptance_length").reason == "no steps"
    assert group.notes == ("B: `tokens_per_step` is empty for questions 1, 2, which is left out of τ",)


def test_case_4_a_method_that_lacks_a_question_is_told(tmp_path):
    rows = [json.loads(line) for line in case("04").read_text(encoding="utf-8").splitlines()]
    (group,) = read_results(write(tmp_path, rows[:3])).groups
    assert group.notes == ("B: no row for 1 of 2 questions that other methods have",)


def of_settings(question, seconds, method="method-x", **about):
    return {"method": method, "question_id": question, "new_tokens": 10, "wall_time_s": seconds, **about}


def test_case_16_rows_with_another_settings_id_are_another_method(tmp_path):
    rows = [of_settings(q, 4.0, "autoregressive", settings_id="base") for q in (1, 2)]
    rows += [of_settings(q, 2.0, settings_id="s1") for q in (1, 2)]
    rows += [of_settings(1, 1.0, settings_id=2)]
    (group,) = read_results(write(tmp_path, rows)).groups
    assert list(by_name(group)) == ["autoregressive", "method-x (s1)", "method-x (2)"]
    assert overall(group, "method-x (s1)", "speedup").value == approx(2.0)
    assert overall(group, "method-x (2)", "speedup").reason == "no speed for 1 of 2 questions of autoregressive"
    assert group.notes == ("method-x: rows with different settings stand as methods of their own",)


def test_other_settings_of_one_question_are_another_method(tmp_path):
    rows = [of_settings(1, 4.0, "autoregressive")]
    rows += [of_settings(1, s, settings={"k": k, "n": 2}) for k, s in ((3, 2.0), (5, 1.0))]
    (group,) = read_results(write(tmp_path, rows)).groups
    found = {name: method.overall["speedup"].value for name, method in by_name(group).items()}
    assert found == approx({"autoregressive": 1.0, "method-x (k=3)": 2.0, "method-x (k=5)": 4.0})
    assert by_name(group)["method-x (k=5)"].settings == {"k": 5, "n": 2}
    long = {"k": "y" * 100}
    rows[1:] = [of_settings(1, 2.0, settings={**long, "n": n}) for n in ([1] * 50, [1] * 51)]
    (group,) = read_results(write(tmp_path, rows)).groups
    assert [len(name) for name in by_name(group)][1:] == [len("method-x ()") + 60, len("method-x ()") + 63]


def test_settings_that_vary_between_questions_do_not_part_a_method(tmp_path):
    rows = [of_settings(q, 4.0, "autoregressive", settings={"seed": q}) for q in (1, 2)]
    rows += [of_settings(q, 2.0, settings={"seed": q}) for q in (1, 2)]
    rows += [of_settings(q, 1.0, "y", **({"settings": {"k": 1}} if q == 1 else {})) for q in (1, 2)]
    (group,) = read_results(write(tmp_path, rows)).groups
    assert overall(group, "method-x", "speedup").value == approx(2.0)
    assert overall(group, "y", "speedup").value == approx(4.0)
    assert group.notes == (
        "autoregressive: settings differ between rows; those of the last row are shown",
        "method-x: settings differ between rows; those of the last row are shown",
    )


def test_a_baseline_of_different_settings_is_no_single_one(tmp_path):
    rows = [of_settings(1, s, "autoregressive", settings_id=name) for name, s in (("a", 4.0), ("b", 9.0))]
    (group,) = read_results(write(tmp_path, [*rows, of_settings(1, 2.0, settings_id="a")])).groups
    assert list(by_name(group)) == ["autoregressive (a)", "autoregressive (b)", "method-x"]
    assert overall(group, "method-x", "speedup").reason == "no single autoregressive run"
