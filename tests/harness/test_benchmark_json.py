"""Files of pytest-benchmark with our records in them, and what is wrong with others."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from draftboard.benchmark_json import BenchmarkRun, is_benchmark_json, read_benchmarks
from draftboard.errors import UserError
from draftboard.results import Figure, Interval


def record(method: str = "m", **changes: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "test": "test_a.py::test_speed",
        "method": method,
        "baseline": "autoregressive",
        "conditions": {"model": "tiny", "dtype": "float32"},
        "settings": {"draft_length": 4},
        "output": "identical",
        "figures": {"speedup": {"value": 1.5, "n": 2, "interval": {"low": 1.2, "high": 1.8, "level": 0.95}}},
        "samples": {"s/1": [[0.5, 12], [0.25, 12]], "s/2": [[1, 8]]},
        "prompts": {"s/1": ["a", "a"], "s/2": ["b"]},
        "domains": {"s/1": "qa", "s/2": "chat"},
        **changes,
    }


def document(*records: Any) -> dict[str, Any]:
    benchmarks = [{"name": "test_speed[m]", "stats": {}, "extra_info": {"draftboard": one}} for one in records]
    return {"machine_info": {}, "benchmarks": benchmarks, "version": "5.3.1"}


def written(tmp_path: Path, data: Any, name: str = "benchmarks.json") -> Path:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


def refused(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_benchmarks(path)
    return str(caught.value)


def test_methods_of_one_test_stand_together(tmp_path: Path) -> None:
    other = record("autoregressive", test="test_a.py::test_other")
    data = document(record("autoregressive"), record("m"), other)
    # Of other code, with what JSON has no word for.
    data["benchmarks"].insert(1, {"name": "test_sort", "stats": {"mean": float("nan")}, "extra_info": {"n": 3}})
    data["benchmarks"].insert(0, "not even an object")
    first, second = read_benchmarks(written(tmp_path, b"\xef\xbb\xbf" + json.dumps(data).encode()))
    assert (first.test, second.test) == ("test_a.py::test_speed", "test_a.py::test_other")
    assert list(first.methods) == ["autoregressive", "m"]
    assert first.conditions == {"model": "tiny", "dtype": "float32"}
    assert first.domains == {"s/1": "qa", "s/2": "chat"}
    method = first.methods["m"]
    assert method.samples == {"s/1": ((0.5, 12), (0.25, 12)), "s/2": ((1.0, 8),)}
    assert method.prompts == {"s/1": ("a", "a"), "s/2": ("b",)}
    assert method.figures == {"speedup": Figure(value=1.5, n=2, interval=Interval(low=1.2, high=1.8))}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe", "is not UTF-8 (byte 0)"),
        (b"[" * 100_000, "is not JSON"),
        (b"9" * 5000, "is not JSON"),
        ([], "is not a file of pytest-benchmark"),
        ({"benchmarks": {}}, "is not a file of pytest-benchmark"),
        ({"benchmarks": []}, "it holds no benchmarks"),
        ({"benchmarks": [{"extra_info": {}}, {"extra_info": None}, 3]}, "none of its 3 benchmarks is"),
    ],
)
def test_files_of_others_are_refused(tmp_path: Path, data: Any, told: str) -> None:
    path = written(tmp_path, data)
    assert told in refused(path)
    assert str(path) in refused(path)
    assert "draftboard_benchmark" in refused(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refused(tmp_path / "none.json")
    assert not is_benchmark_json(tmp_path / "none.json")


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    data = document(
        record("a", samples={"s/1": [[float("nan"), 3]]}),
        record("b", samples={"s/1": [[0.5, 0], [0.5, 3], [-1, 3]]}),
        record("c", samples={"s/1": [[0.5, True]]}),
        record("d", schema=None),
        record("e"),
        record("e"),
        record("f", conditions={"dtype": "bfloat16"}),
        "no record",
    )
    told = refused(written(tmp_path, data))
    assert "8 damaged record(s)" in told
    assert "benchmarks[0]: sample 's/1', round 0: nan s and 3 tokens are no measurement" in told
    assert "benchmarks[1]: sample 's/1', round 0: 0.5 s and 0 tokens" in told
    assert "benchmarks[1]: sample 's/1', round 2: -1.0 s and 3 tokens" in told
    assert "benchmarks[2]: Expected `int`, got `bool`" in told
    assert "benchmarks[3]: extra_info.draftboard has no schema number" in told
    assert "benchmarks[5]: e of test_a.py::test_speed stands in the file twice" in told
    assert "benchmarks[6]: f was measured under other conditions" in told
    assert "benchmarks[7]: extra_info.draftboard has no schema number" in told


def test_a_newer_schema_is_refused_with_advice(tmp_path: Path) -> None:
    assert "pip install -U draftboard" in refused(written(tmp_path, document(record(schema=2))))


def test_what_looks_like_a_file_of_pytest_benchmark(tmp_path: Path) -> None:
    assert is_benchmark_json(written(tmp_path, document()))
    assert not is_benchmark_json(written(tmp_path, {"benchmarks": []}))
    assert not is_benchmark_json(written(tmp_path, b"{"))


ODD = (None, True, -1, 2**70, 0.5, math.nan, math.inf, "", "x", [], [1], [[1, 2]], {}, {"s": 1}, {"s": [1]})
ODD_SAMPLES = ({"s": [[1]]}, {"s": [[1, 2, 3]]}, {"s": [[None, 1]]}, {"s": [[1e308, 2**70]]}, {"s": [[math.inf, 1]]})


@pytest.mark.parametrize("key", sorted(record()))
def test_any_value_is_read_or_refused(tmp_path: Path, key: str) -> None:
    refusals = 0
    for value in (*ODD, *ODD_SAMPLES):
        path = written(tmp_path, document({**record(), key: value}))
        runs: tuple[BenchmarkRun, ...] = ()
        try:
            runs = read_benchmarks(path)
        except UserError:
            refusals += 1
            assert str(path) in refused(path)
        times = [rounds for run in runs for method in run.methods.values() for rounds in method.samples.values()]
        assert all(0 < seconds < math.inf for rounds in times for seconds, _ in rounds)
    assert refusals
