"""Runs as benchmarks, through pytest-benchmark's own fixture and statistics."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from pytest_benchmark.plugin import pytest_benchmark_generate_json
from pytest_benchmark.utils import NameWrapper

from draftboard.analysis import analyse
from draftboard.benchmark_json import read_benchmarks
from draftboard.errors import UserError
from draftboard.pytest_bridge import record_run
from draftboard.run_result import RunResult

from made_runs import cell, stored, turn

TEST = "tests/test_a.py::test_speed[short]"


@pytest.fixture
def result() -> RunResult:
    cells = [
        cell("autoregressive", "1", turn(10, 1.0), turn(10, 1.0)),
        cell("autoregressive", "1", turn(10, 2.0), turn(10, 2.0), repeat=1),
        cell("autoregressive", "2", turn(5, 1.0)),
        cell("autoregressive", "2", turn(5, 1.5), repeat=1),
        cell("m", "1", turn(10, 0.5), turn(10, 0.5)),
        cell("m", "1", turn(10, 1.0), turn(10, 1.0), repeat=1),
        cell("m", "2", turn(5, 0.5)),
        cell("m", "2", status="failed", reason="boom", repeat=1),
        cell("idle", "1", turn(0, 1.0)),
    ]
    run = stored(cells, domains={"1": "qa", "2": "chat"}, methods=("autoregressive", "m", "idle"), repeats=2)
    return RunResult(run, analyse(run))


def fixture(kept: list[Any], *, disabled: bool = False, group: str | None = None) -> BenchmarkFixture:
    node = SimpleNamespace(
        name="test_speed[short]", nodeid=TEST, callspec=SimpleNamespace(id="short", params={"size": "short"})
    )
    made = BenchmarkFixture(
        node,
        disable_gc=False,
        timer=NameWrapper(sum),
        min_rounds=1,
        min_time=1,
        max_time=1,
        precision=None,
        confidence=None,
        warmup=False,
        warmup_iterations=1,
        calibration_precision=1,
        add_stats=kept.append,
        logger=None,
        warner=None,
        disabled=disabled,
        cprofile=False,
        cprofile_loops=None,
        cprofile_dump=None,
        group=group,
    )
    made.extra_info["branch"] = "mine"
    return made


def test_each_method_is_a_benchmark_in_seconds_per_token(result: RunResult) -> None:
    kept: list[Any] = []
    record_run(fixture(kept), result, TEST)
    assert [one.name for one in kept] == ["test_speed[short-autoregressive]", "test_speed[short-m]"]
    assert kept[1].fullname == "tests/test_a.py::test_speed[short-m]"
    assert {one.group for one in kept} == {"test_speed[short]"}
    assert kept[1].params == {"size": "short", "method": "m"}
    assert kept[0].stats.data == pytest.approx([0.1, 0.2, 0.2, 0.3])
    assert kept[1].stats.data == pytest.approx([0.05, 0.1, 0.1])
    assert kept[1].stats.mean == pytest.approx(0.25 / 3)


def test_what_is_written_is_read_back(result: RunResult, tmp_path: Path) -> None:
    kept: list[Any] = []
    record_run(fixture(kept, group="mine"), result, TEST)
    data = pytest_benchmark_generate_json(None, kept, include_data=False, machine_info={}, commit_info={})
    path = tmp_path / "benchmarks.json"
    path.write_text(json.dumps(data, allow_nan=False), encoding="utf-8")
    assert data["benchmarks"][1]["group"] == "mine"
    info = data["benchmarks"][0]["extra_info"]
    assert info["branch"] == "mine"
    assert info["speedup"] == result.baseline.figures["speedup"].value
    (run,) = read_benchmarks(path)
    assert (run.test, run.baseline, list(run.methods)) == (TEST, "autoregressive", ["autoregressive", "m"])
    assert run.conditions["suites"] == {"s": "f" * 64}
    assert {run.conditions[key] for key in ("model", "hardware", "dtype")} == {"tiny", "here", "float32"}
    assert run.conditions["sampling"] == {"temperature": 0.0, "top_p": 1.0, "top_k": 0}
    assert run.domains == {"s/1": "qa", "s/2": "chat"}
    assert run.methods["m"].samples == {"s/1": ((1.0, 20), (2.0, 20)), "s/2": ((0.5, 5),)}
    assert run.methods["m"].figures["speedup"] == result["m"].figures["speedup"]
    first, second = run.methods["m"].prompts["s/1"]
    assert first == second == run.methods["autoregressive"].prompts["s/1"][0] != run.methods["m"].prompts["s/2"][0]


def test_disabled_benchmarks_record_nothing(result: RunResult) -> None:
    kept: list[Any] = []
    disabled = fixture(kept, disabled=True)
    record_run(disabled, result, TEST)
    assert kept == []
    # It counts as used, or pytest-benchmark would warn.
    assert disabled._mode == "draftboard"


def test_a_second_run_in_one_test_is_refused(result: RunResult) -> None:
    benchmark = fixture([])
    record_run(benchmark, result, TEST)
    with pytest.raises(UserError, match="used already, in draftboard mode"):
        record_run(benchmark, result, TEST)


def test_a_fixture_of_another_build_is_told(result: RunResult) -> None:
    with pytest.raises(UserError, match="has no _make_stats"):
        record_run(SimpleNamespace(), result, TEST)
