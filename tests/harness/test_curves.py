"""A run that drafts by the cost curve of another one."""

import json

import pytest

from draftboard.curves import KnownCurve
from draftboard.errors import UserError


def environment(folder):
    return json.loads((folder / "environment.json").read_text(encoding="utf-8"))


def test_a_run_takes_the_curve_of_another_one_and_says_so(run, tmp_path):
    assert run("--method", "pld").code == 0
    first = environment(tmp_path / "run")["cost_curve"]
    told = run("--method", "pld", "--curve", tmp_path / "run", out=tmp_path / "second")
    assert told.code == 0, told.err
    second = environment(tmp_path / "second")["cost_curve"]
    assert second == {**first, "taken_from": "run"}
    again = run("--method", "pld", "--resume", "--curve", tmp_path / "run", out=tmp_path / "second")
    assert again.code == 0, again.err
    assert environment(tmp_path / "second")["cost_curve"] == second


def test_a_curve_of_another_model_is_refused_before_anything_is_written(run, models_made, tmp_path):
    assert run("--method", "pld").code == 0
    told = run("--method", "pld", "--curve", tmp_path / "run", out=tmp_path / "second", target=models_made["other"])
    assert told.code == 2
    assert "its cost curve is of another target or machine" in told.err
    assert not (tmp_path / "second" / "plan.json").exists()


def test_what_has_no_curve_is_one_message(run, tmp_path):
    told = run("--curve", tmp_path / "nowhere")
    assert told.code == 2
    assert "nowhere" in told.err
    assert run("--curve", "").code == 2


def test_everything_that_differs_is_named():
    known = KnownCurve(curve={}, where="runs/good", measured_on={"model": "a", "dtype": "float32", "hardware": ""})
    known.check({"model": "a"})
    with pytest.raises(UserError) as caught:
        known.check({"model": "a", "dtype": "bfloat16", "hardware": "here"})
    assert caught.value.problems == (
        "dtype: there float32, here bfloat16",
        "hardware: there not said, here here",
    )
