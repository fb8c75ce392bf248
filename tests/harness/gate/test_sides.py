"""What becomes a side of a comparison besides a run: files of pytest-benchmark and results documents."""

import json

import pytest

from draftboard.errors import UserError
from draftboard.gate import Rules, compare, read_side


def benchmarks(path, pace, *, tests=("test_a.py::test_speed",), dtype="float32", prompt="p"):
    """A file of pytest-benchmark whose method m takes `pace` times as long as it should."""
    records = []
    for test in tests:
        for method, each in (("autoregressive", 2.0), ("m", pace)):
            samples = {f"s/{i}": [[each * (1 + i / 10), 20], [each * (1 + i / 10) * 1.01, 20]] for i in range(8)}
            records.append(
                {
                    "schema": 1,
                    "test": test,
                    "method": method,
                    "baseline": "autoregressive",
                    "conditions": {"model": "tiny", "dtype": dtype},
                    "output": "identical",
                    "samples": samples,
                    "prompts": {sample: [prompt, prompt] for sample in samples},
                    "domains": dict.fromkeys(samples, "qa"),
                }
            )
    content = {
        "machine_info": {},
        "version": "5.3.1",
        "benchmarks": [{"name": "x", "stats": {}, "extra_info": {"draftboard": one}} for one in records],
    }
    path.write_text(json.dumps(content))
    return read_side(path)


def test_files_of_pytest_benchmark_are_paired_by_sample_and_round(tmp_path):
    good, bad = benchmarks(tmp_path / "a.json", 1.0), benchmarks(tmp_path / "b.json", 1.3)
    report = compare(good, bad, Rules(require_lossless=True))
    found = {check.method: check for check in report.checks}
    assert report.exit_code == 1
    assert (found["m"].speed.n, found["m"].speed.rounds) == (8, 2)
    assert found["m"].speed.ratio == pytest.approx(1 / 1.3)
    assert (found["autoregressive"].outcome, found["autoregressive"].gated) == ("pass", False)
    assert compare(good, good, Rules(require_lossless=True)).exit_code == 0


def test_methods_of_several_tests_are_told_apart_and_have_their_own_baselines(tmp_path):
    side = benchmarks(tmp_path / "a.json", 1.0, tests=("test_a.py::one", "test_a.py::two"))
    assert list(side.methods)[:2] == ["test_a.py::one: autoregressive", "test_a.py::one: m"]
    report = compare(side, side, Rules())
    assert [check.speed.figure for check in report.checks] == ["tokens per second (pooled)", "speedup (pooled)"] * 2


def test_other_conditions_and_other_prompts_are_not_compared(tmp_path):
    good = benchmarks(tmp_path / "a.json", 1.0)
    other = compare(good, benchmarks(tmp_path / "b.json", 1.0, dtype="bfloat16"), Rules())
    assert (other.exit_code, other.refused) == (2, ("dtype: float32 → bfloat16",))
    asked = compare(good, benchmarks(tmp_path / "c.json", 1.0, prompt="q"), Rules())
    assert asked.exit_code == 2
    assert "no cell of one side can be paired" in asked.checks[1].reasons[0]


def test_the_other_clock_is_refused_where_it_was_not_recorded(tmp_path):
    good = benchmarks(tmp_path / "a.json", 1.0)
    report = compare(good, good, Rules(clock="cpu"))
    assert report.exit_code == 2
    assert "no cell of both sides has process CPU time" in report.checks[1].reasons


def document(path, *groups):
    path.write_text(json.dumps({"format": "draftboard-results", "schema": 1, "groups": list(groups)}))
    return path


def group(value, low=None, high=None, **other):
    interval = {} if low is None else {"interval": {"low": low, "high": high, "level": 0.95}}
    method = {"method": "m", "overall": {"speedup": {"value": value, "n": 40, **interval}}, "output": "identical"}
    return {"model": "t", "hardware": "here", "suite": "s", "methods": [method], **other}


def test_boards_are_compared_by_their_stored_intervals(tmp_path):
    old = read_side(document(tmp_path / "old.json", group(2.0, 1.95, 2.05)))
    slow = read_side(document(tmp_path / "new.json", group(1.7, 1.66, 1.74)))
    near = read_side(document(tmp_path / "near.json", group(1.94, 1.85, 2.03)))
    assert compare(old, slow, Rules()).exit_code == 1
    assert compare(old, near, Rules()).exit_code == 0
    bare = read_side(document(tmp_path / "bare.json", group(1.0)))
    report = compare(old, bare, Rules())
    assert (report.exit_code, report.checks[0].speed.interval) == (2, None)
    assert "2 → 1 (-50.0%), and nothing says whether that is noise" in report.checks[0].reasons[0]
    assert compare(old, read_side(document(tmp_path / "c.json", group(1.99))), Rules()).exit_code == 0


def test_a_file_of_several_groups_is_no_side(tmp_path):
    path = document(tmp_path / "two.json", group(2.0), group(2.0, hardware="there"))
    with pytest.raises(UserError, match="holds 2 groups"):
        read_side(path)


def test_boards_of_other_threads_are_refused_and_what_one_does_not_say_is_told(tmp_path):
    def board(name, **conditions):
        return read_side(document(tmp_path / name, group(2.0, 1.95, 2.05, conditions=conditions)))

    two, one, bare = board("a.json", threads="2"), board("b.json", threads="1"), board("c.json")
    refused = compare(two, one, Rules())
    assert (refused.exit_code, refused.refused) == (2, ("threads: 2 → 1",))
    told = compare(two, bare, Rules())
    assert told.exit_code == 0
    assert told.notes == ("said by one side alone, and taken for equal: threads",)
