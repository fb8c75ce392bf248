"""Runs inside tests: asked for in this process, and in a project of its own as users have it."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from draftboard.benchmark_json import read_benchmarks
from draftboard.errors import UserError
from draftboard.methods import Method, MethodError, method_class, parse
from draftboard.methods.engine import Drafter, RootOnly
from draftboard.pytest_plugin import PlanRunner
from draftboard.pytest_runs import FailedCells, Models, layered, plan_of
from draftboard.testing import tiny_suite

pytest_plugins = ["pytester"]

PROMPTS = ["who wrote the answer", "the boat leaves at ten the boat leaves"]
QUICK = {"max_new_tokens": 6, "dtype": "float32", "device": "cpu", "threads": 1, "warmup": "none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nameless(Method):
    """Nobody registered it."""

    failing: bool = False

    def drafter(self, binding: object) -> Drafter:
        if self.failing:
            raise ValueError("it cannot draft")
        return RootOnly()


@dataclass(frozen=True, slots=True, kw_only=True)
class Needy(Nameless):
    """Has a setting without a default."""

    length: int


# What is asked for becomes a plan.


def planned(**said: Any) -> Any:
    return plan_of({"prompts": PROMPTS, **said})


def test_methods_are_names_tables_objects_and_classes() -> None:
    samd = method_class("samd")
    plan = planned(
        method="pld",
        methods=[
            "samd",
            {"method": "pld", "label": "short", "draft_length": 2},
            {"method": samd(draft_length=3), "label": "mine"},
            Nameless,
            {"method": Nameless(failing=True), "label": "bad"},
        ],
    )
    labels = {entry.label: entry.method for entry in plan.entries}
    assert list(labels) == ["autoregressive", "pld", "samd[token_recycling]", "short", "mine", "Nameless", "bad"]
    assert labels["short"].draft_length == 2
    assert labels["mine"] == samd(draft_length=3)
    assert labels["bad"] == Nameless(failing=True)
    assert [entry.label for entry in planned(methods=parse("pld")).entries] == ["autoregressive", "pld"]


def test_prompts_and_suites(questions: Path) -> None:
    (suite,) = planned(prompts=["one", ["two", "and then"]]).suites
    assert [(sample.sample_id, sample.turns) for sample in suite.samples] == [
        ("1", ("one",)),
        ("2", ("two", "and then")),
    ]
    assert suite.content_hash != planned(prompts=["one", "two and then"]).suites[0].content_hash
    assert [len(s.samples) for s in plan_of({"suite": [tiny_suite(), questions], "limit": 1}).suites] == [2, 2]
    assert [s.name for s in plan_of({}).suites] == ["mini"]
    assert [s.name for s in plan_of({"prompts": "one"}).suites] == ["prompts"]


def test_a_plan_file_is_filled_and_overruled(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text('method = ["pld"]\nsuite = "mini"\nlimit = 1\n[[methods]]\nmethod = "samd"\nlabel = "x"\n')
    plan = plan_of({"seed": 3}, path)
    assert ([entry.label for entry in plan.entries], plan.limit, plan.seed) == (["autoregressive", "pld", "x"], 1, 3)
    plan = plan_of({"methods": ["token_recycling"], "prompts": PROMPTS}, str(path))
    assert [entry.label for entry in plan.entries] == ["autoregressive", "token_recycling"]
    assert [suite.name for suite in plan.suites] == ["prompts"]


def test_nearer_settings_replace_farther_ones() -> None:
    outer = {"suite": "mini", "method": "pld", "limit": 1, "seed": None}
    assert layered([outer, {"prompts": ["a"], "limit": None}, {"methods": ["samd"]}]) == {
        "limit": 1,
        "prompts": ["a"],
        "methods": ["samd"],
    }


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"limt": 1}, "unknown key 'limt' — did you mean 'limit'?"),
        ({"promts": "a"}, "unknown key 'promts' — did you mean 'prompts'?"),
        ({"limit": "1"}, "limit = '1'"),
        ({"limit": 0}, "limit must be at least 1"),
        ({"methods": ["samt"]}, "no method 'samt' — did you mean 'samd'?"),
        ({"methods": 3}, "methods = 3: a list of methods is expected"),
        ({"methods": [3]}, "3 is no method"),
        ({"methods": [{"label": "x"}]}, "None is no method"),
        ({"methods": [Method]}, "Method lacks drafter()"),
        ({"methods": [Needy]}, "Needy needs length: give Needy(…)"),
        ({"methods": ["pld", "pld"]}, "several methods are called pld"),
        ({"methods": [{"method": "pld", "length": 3}]}, "pld has no setting 'length'"),
        ({"prompts": []}, "prompts = []: a list of texts is expected"),
        ({"prompts": ["a", 3]}, "prompts[1] = 3"),
        ({"prompts": [[]]}, "prompts[0] = []"),
        ({"suite": "mini", "prompts": ["a"]}, "suite and prompts exclude each other"),
        ({"suite": [tiny_suite()], "prompts": ["a"]}, "suite and prompts exclude each other"),
        ({"suite": 3}, "suite = 3: a suite or a list of suites is expected"),
        ({"suite": ["miny"]}, "unknown suite 'miny'"),
        ({"suite": [3]}, "suite = [3]"),
        ({"model": "smollm"}, "unknown model 'smollm'"),
    ],
)
def test_what_makes_no_sense_is_told(said: dict[str, Any], told: str) -> None:
    with pytest.raises((UserError, MethodError)) as caught:
        plan_of(said)
    assert told in str(caught.value)


def test_faults_of_all_kinds_are_told_at_once() -> None:
    with pytest.raises(UserError) as caught:
        plan_of({"methods": [3], "prompts": 4, "limt": 5, "seed": "six"})
    assert len(caught.value.problems) == 4


# Runs in this process.


@pytest.fixture
def asked(model: str) -> dict[str, Any]:
    return {"model": model, "prompts": PROMPTS, **QUICK}


def test_a_run_comes_back_to_assert_on(draftboard_run: PlanRunner, asked: dict[str, Any], tmp_path: Path) -> None:
    import torch

    threads = torch.get_num_threads()
    result = draftboard_run(methods=["samd", Nameless], **asked)
    assert list(result) == ["autoregressive", "samd[token_recycling]", "Nameless"]
    assert result["samd"].lossless
    assert result["samd"].output == "identical"
    assert result["samd"].speedup.n == 2
    assert result["Nameless"].acceptance_length.value == 1
    assert result.path.is_relative_to(tmp_path)
    assert (result.path / "verdict.json").is_file()
    assert "only 2 samples" in result.verdict.reasons[0]
    again = draftboard_run(methods=["samd"], **{**asked, "threads": 2})
    assert again.path != result.path
    # The second run decodes with the target of the first.
    written = [
        {c.key: [turn.token_ids for turn in c.turns] for c in run.cells if c.method != "Nameless"}
        for run in (result.run, again.run)
    ]
    assert written[0] == written[1]
    assert again.run.environment["threads"] == 2
    assert torch.get_num_threads() == threads


@pytest.mark.draftboard(methods=["pld"], max_new_tokens=3)
class TestMarks:
    @pytest.mark.draftboard(max_new_tokens=4, limit=1)
    def test_marks_give_defaults(self, draftboard_run: PlanRunner, model: str, questions: Path) -> None:
        said = {**QUICK, "max_new_tokens": None, "model": Path(model)}
        result = draftboard_run(suite=questions, **said)
        assert result.run.plan["max_new_tokens"] == 4
        assert list(result) == ["autoregressive", "pld"]
        assert len(result.run.samples) == 2
        assert draftboard_run(suite=questions, **{**said, "max_new_tokens": 2}).run.plan["max_new_tokens"] == 2


def test_failed_cells_fail_the_test_unless_they_are_expected(draftboard_run: PlanRunner, asked: dict[str, Any]) -> None:
    with pytest.raises(FailedCells) as caught:
        draftboard_run(methods=[Nameless(failing=True)], **asked)
    told = str(caught.value)
    assert "2 of 4 cells failed" in told
    assert "Nameless on prompts/1, round 0: ValueError: it cannot draft" in told
    result = draftboard_run(methods=[Nameless(failing=True)], allow_failed=True, **asked)
    assert not result["Nameless"].lossless
    assert "cells failed" in result["Nameless"].speedup.reason


def test_bad_input_fails_the_test_with_its_message(draftboard_run: PlanRunner) -> None:
    with pytest.raises(pytest.fail.Exception, match="did you mean 'limit'"):
        draftboard_run(limt=1)


def test_a_disabled_benchmark_runs_all_the_same(
    draftboard_benchmark: PlanRunner, benchmark: Any, asked: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    if not request.config.getoption("benchmark_disable"):
        pytest.skip("benchmarks are not disabled in this session")
    assert draftboard_benchmark(methods=["pld"], **asked)["pld"].lossless
    assert benchmark.stats is None


def test_the_target_stays_loaded_while_it_is_the_same(
    asked: dict[str, Any], models_made: dict[str, Path], new_model: Callable[..., Path], tmp_path: Path
) -> None:
    import torch

    from draftboard.session import Session, open_reader

    models, threads = Models(), torch.get_num_threads()

    def load(**said: Any) -> Session:
        plan = plan_of({**asked, **said})
        return models.load(plan, open_reader(plan))

    path = str(new_model(tmp_path / "model"))
    try:
        first, again = load(model=path), load(model=path, seed=3, threads=2)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert again.target is first.target
    assert (first.plan.seed, again.plan.seed) == (0, 3)
    assert load(model=path, dtype="bfloat16").target is not first.target
    before = load(model=path)
    assert before.target is not first.target
    new_model(tmp_path / "model", seed=11)
    changed = load(model=path)
    assert changed.target is not before.target
    assert changed.fingerprint != before.fingerprint
    models.drop()
    assert load(model=path).target is not changed.target


# In a project of its own.

TESTS = """
import pytest

pytestmark = pytest.mark.draftboard(
    model={model!r}, prompts={prompts!r}, methods=["pld"], max_new_tokens=6, dtype="float32", device="cpu", threads=1,
    warmup="none",
)


@pytest.fixture(scope="module")
def shared(draftboard_session):
    return draftboard_session(model={model!r}, prompts="when is the tide low", methods=["pld"], max_new_tokens=4)


def test_holds(draftboard_run):
    assert draftboard_run()["pld"].lossless


@pytest.mark.parametrize("times", [1, 2])
def test_shares(shared, times):
    assert shared["pld"].output == "identical"


def test_too_slow(draftboard_run):
    result = draftboard_run()
    assert result["pld"].speedup.value > 1000


def test_without_interval(shared):
    assert shared["pld"].speedup.low > 1


def test_misspelt(draftboard_run):
    draftboard_run(methods=["pdl"])


@pytest.mark.parametrize("size", ["small"])
def test_speed(draftboard_benchmark, size):
    draftboard_benchmark()
"""


@pytest.fixture
def project(
    pytester: pytest.Pytester, model: str, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> pytest.Pytester:
    # The project's own pytest runs alone, even where these tests run side by side: pytest-benchmark goes by it.
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makepyfile(test_model=TESTS.format(model=model, prompts=PROMPTS))
    return pytester


SAVED = {
    "min": 1,
    "max": 1,
    "stddev": 0,
    "median": 1,
    "iqr": 0,
    "outliers": "0;0",
    "ops": 1,
    "rounds": 2,
    "iterations": 1,
}


def test_a_project_passes_and_fails_as_it_should(project: pytest.Pytester) -> None:
    # An earlier measurement, by which the baseline was slow and the method quick.
    before = [
        {"fullname": f"test_model.py::test_speed[small-{method}]", "stats": {**SAVED, "mean": mean}}
        for method, mean in (("autoregressive", 1000.0), ("pld", 1e-9))
    ]
    saved = json.dumps({"machine_info": {}, "benchmarks": before})
    (project.path / "before.json").write_text(saved, encoding="utf-8")
    done = project.runpytest_subprocess(
        "--strict-markers",
        "--draftboard-out=kept",
        "--junitxml=report.xml",
        "--benchmark-json=all.json",
        "--benchmark-compare=before.json",
        "--benchmark-compare-fail=mean:5%",
    )
    assert done.ret != 0
    cases = ElementTree.parse(project.path / "report.xml").iter("testcase")
    outcomes = {case.get("name"): [child.tag for child in case] for case in cases}
    assert {name for name, tags in outcomes.items() if tags} == {
        "test_too_slow",
        "test_without_interval",
        "test_misspelt",
    }
    assert len(outcomes) == 7

    done.stdout.fnmatch_lines(["*draftboard run in *kept*test_too_slow*", "*autoregressive (baseline)*"])
    done.stdout.fnmatch_lines(["E * speedup of pld is * and has no confidence interval; it rests on 1 sample.*"])
    done.stdout.fnmatch_lines(["E *no method 'pdl' — did you mean 'pld'?*"])
    # Only lines of the test itself: what draftboard does inside is no news to its author.
    done.stdout.no_fnmatch_line("*run_result.py:*")
    done.stdout.no_fnmatch_line("*pytest_plugin.py:*")
    kept = {path.name for path in (project.path / "kept").iterdir()}
    assert kept == {f"test_model.py-test_{name}" for name in ("holds", "too_slow", "speed-small")} | {"session"}
    assert all((project.path / "kept" / name / "plan.json").is_file() for name in kept)

    told = done.stderr.str().partition("Performance has regressed:")[2].partition("PercentageRegressionCheck")[0]
    assert "test_speed[small-pld]" in told
    assert "autoregressive" not in told
    (run,) = read_benchmarks(project.path / "all.json")
    assert list(run.methods) == ["autoregressive", "pld"]
    assert {len(rounds) for rounds in run.methods["pld"].samples.values()} == {1}
    assert run.conditions["dtype"] == "float32"
    assert len(run.conditions["model_fingerprint"]) == 64


def test_without_pytest_benchmark_only_its_fixture_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_light(draftboard_session):
            assert "torch" not in sys.modules

        def test_nothing(draftboard_benchmark):
            pass
        """
    )
    done = pytester.runpytest_subprocess("-p", "no:benchmark", "--strict-markers")
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(["*draftboard_benchmark needs pytest-benchmark: pip install 'pytest-benchmark>=5'*"])


def test_loading_the_plugin_imports_next_to_nothing() -> None:
    code = "import sys, pytest; old = set(sys.modules); import draftboard.pytest_plugin; print(*set(sys.modules) - old)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["draftboard", "draftboard.errors", "draftboard.pytest_plugin"]


def documented() -> list[str]:
    page = Path(__file__).parents[2] / "docs" / "pytest.md"
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("block", documented())
def test_documented_settings_are_understood(block: str) -> None:
    calls = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)]
    asked = [call for call in calls if re.search(r"draftboard(_run|_session|_benchmark)?$", ast.unparse(call.func))]
    assert asked
    for call in asked:
        said = {one.arg: one.value for one in call.keywords}
        names = {"methods": ["pld"]} if ast.unparse(said.get("methods", ast.Constant(0))) == "[Mine]" else {}
        plan_of({str(key): ast.literal_eval(value) for key, value in said.items() if key not in names} | names)


def test_folders_are_told_apart(pytester: pytest.Pytester) -> None:
    from draftboard.pytest_plugin import _kept

    config = pytester.parseconfig("--draftboard-out", "out")
    keep: Callable[[str], Path | None] = lambda test: _kept(config, test)  # noqa: E731
    assert keep("a.py::t[x/../y]") == pytester.path / "out" / "a.py-t-x-..-y"
    assert keep("a.py::t[x/../y]") == pytester.path / "out" / "a.py-t-x-..-y-2"
    assert keep("\u202e::") == pytester.path / "out" / "test"
    long = [keep("t" * 300 + end) for end in "ab"]
    assert len({path.name for path in long if path}) == 2
    assert max(len(path.name) for path in long if path) < 100
    (pytester.path / "file").write_text("")
    with pytest.raises(UserError, match="file"):
        _kept(pytester.parseconfig("--draftboard-out", "file"), "a.py::t")
    assert _kept(pytester.parseconfig(), "a.py::t") is None
