"""`draftboard compare` on runs, results files and nonsense; the workflow of docs/ci as a shell script."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
import yaml

ROOT = Path(__file__).parents[3]
SLEEPING = """
import time
from dataclasses import dataclass
from draftboard.methods import register
from draftboard.methods.engine import Drafter
from draftboard.methods.pld import Pld

@register("mine")
@dataclass(frozen=True, slots=True, kw_only=True)
class Mine(Pld):
    "pld, and a nap."
    about = "pld"
    def drafter(self, binding):
        return Slow(Pld.drafter(self, binding))

class Slow(Drafter):
    def __init__(self, inner):
        self.inner = inner
        self.wants_hidden = inner.wants_hidden
    def begin(self, *given, **named):
        return self.inner.begin(*given, **named)
    def propose(self, context):
        time.sleep(NAP)
        return self.inner.propose(context)
    def observe(self, verdict):
        return self.inner.observe(verdict)
"""


def plugin(path, nap):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SLEEPING.replace("NAP", str(nap)))
    return path


PLAN = """
suite = ["jsonl@{questions}"]
model = "{model}"
max_new_tokens = 12
repeats = 2
threads = 1
method = ["mine"]
"""


@pytest.fixture
def plan(model, questions, tmp_path):
    path = tmp_path / "bench.toml"
    path.write_text(PLAN.format(questions=questions, model=model))
    return path


@pytest.fixture
def measure(plan, tmp_path):
    """Run a plan in a process of its own, since two plug-ins of one name cannot be in one."""

    def run(name, nap):
        code = plugin(tmp_path / name / "method.py", nap)
        asked = ["run", str(plan), "--plugin", str(code), "--out", str(tmp_path / "runs" / name)]
        main = [sys.executable, "-c", "from draftboard.cli import main; main()"]
        environment = {**os.environ, "DRAFTBOARD_CACHE": str(tmp_path / "cache")}
        done = subprocess.run([*main, *asked], capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        return tmp_path / "runs" / name

    return run


def test_a_planted_nap_fails_the_gate_and_a_copy_does_not(cli, measure, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    good = measure("good", 0)
    told = cli("compare", good, shutil.copytree(good, tmp_path / "copy"), "--require-lossless", "--json")
    assert told.code == 0, told.out + told.err
    assert {check["speed"]["decision"] for check in told.json["checks"]} == {"same"}
    bad = measure("bad", 0.05)
    told = cli("compare", good, bad, "--junit", tmp_path / "junit.xml")
    assert told.code == 1
    assert "mine: speedup (geometric mean over domains)" in told.out
    assert "95% interval" in told.out
    (failure,) = Xml.parse(tmp_path / "junit.xml").findall("testsuite/testcase/failure")
    assert "speedup (geometric mean over domains)" in failure.get("message")
    summary = (tmp_path / "summary.md").read_text()
    assert summary.count("### draftboard compare") == 2
    assert "FAILS: mine" in summary


@pytest.mark.parametrize("share", ["five", "-5%", "100%", "1", "", "nan"])
def test_a_share_that_is_none_is_refused(cli, tmp_path, share):
    told = cli("compare", tmp_path, tmp_path, f"--max-slowdown={share}")
    assert told.code == 2
    assert "--max-slowdown" in told.err


def test_a_seed_that_is_none_is_refused(cli, tmp_path):
    for seed in ("-1", "1.5"):
        told = cli("compare", tmp_path, tmp_path, f"--seed={seed}")
        assert told.code == 2
        assert "seed" in told.err.lower()


@pytest.fixture
def ran(run, tmp_path):
    told = run("--method", "pld")
    assert told.code == 0, told.err
    return tmp_path / "run"


def test_what_is_no_side_is_one_message(cli, ran, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.json").write_text("no json")
    (tmp_path / "other.json").write_text('{"benchmarks": [], "machine_info": {}}')
    for side in ("empty", "nowhere", "text.json", "other.json"):
        told = cli("compare", tmp_path / side, ran)
        assert told.code == 2
        assert side in told.err
        assert "Traceback" not in told.err


def test_a_summary_that_cannot_be_written_leaves_the_outcome_as_it_is(cli, ran, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere" / "summary.md"))
    told = cli("compare", ran, ran)
    assert told.code == 0
    assert "passes: " in told.out
    assert "the table was not written there" in told.err


def test_a_run_is_compared_with_its_own_board(cli, ran, tmp_path):
    (tmp_path / "board.json").write_text(cli("show", ran, "--json").out)
    for sides in ((tmp_path / "board.json", ran), (ran, tmp_path / "board.json")):
        told = cli("compare", *sides, "--json")
        found = json.loads(told.out)
        assert found["refused"] == []
        assert {check["speed"]["ratio"] for check in found["checks"]} == {1.0}
        assert told.code == 0


def test_a_run_for_quality_alone_is_told_as_such(cli, ran, tmp_path):
    untimed = shutil.copytree(ran, tmp_path / "untimed")
    lines = (untimed / "samples.jsonl").read_text().splitlines()
    records = [{**json.loads(line), "timed": False} for line in lines]
    (untimed / "samples.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    told = cli("compare", untimed, untimed)
    assert told.code == 2
    assert "for quality alone" in told.err


def test_half_a_run_does_not_pass(cli, ran, tmp_path):
    half = shutil.copytree(ran, tmp_path / "half")
    lines = (half / "generations.jsonl").read_text().splitlines(keepends=True)
    (half / "generations.jsonl").write_text("".join(lines[: len(lines) // 2]))
    told = cli("compare", ran, half)
    assert told.code == 2
    assert "cells have not run" in told.out


def test_a_run_that_has_only_begun_is_refused(cli, ran, tmp_path):
    begun = shutil.copytree(ran, tmp_path / "begun")
    (begun / "generations.jsonl").write_text("")
    told = cli("compare", ran, begun)
    assert told.code == 2
    assert "has no cell that could be compared" in told.err


def test_another_machine_is_refused_with_what_differs(cli, ran, tmp_path):
    other = shutil.copytree(ran, tmp_path / "other")
    record = json.loads((other / "environment.json").read_text())
    (other / "environment.json").write_text(json.dumps({**record, "hardware": "gpu-b"}))
    told = cli("compare", ran, other, "--junit", tmp_path / "junit.xml")
    assert told.code == 2
    assert "gpu-b" in told.out
    assert Xml.parse(tmp_path / "junit.xml").find("testsuite").get("errors") == "1"


def shell(steps, folder, environment, inputs):
    """Run the shell steps of a workflow in order, as the runner does: each with bash -e, its inputs as variables."""
    for step in steps:
        if "run" not in step:
            continue
        said = {
            name: str(inputs[value.split("inputs.")[1].split()[0]]) if "inputs." in value else value
            for name, value in step.get("env", {}).items()
        }
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env={**environment, **said},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return step["name"], done
    return "", None


@pytest.mark.parametrize(("nap", "ends_at"), [(0, ""), (0.05, "Compare")])
def test_the_example_workflow_runs_as_a_script(plan, tmp_path, nap, ends_at):
    workflow = yaml.safe_load((ROOT / "docs" / "ci" / "workflow.yml").read_text())
    action = yaml.safe_load((ROOT / "docs" / "ci" / "action.yml").read_text())
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, does in (
        ("pip", 'test "$*" = "install -c draftboard/constraints.txt ./draftboard"'),
        ("draftboard", f'exec {sys.executable} -c "from draftboard.cli import main; main()" "$@"'),
    ):
        (tools / name).write_text(f"#!/bin/sh\n{does}\n")
        (tools / name).chmod(0o755)
    for side in ("baseline", "candidate"):
        plugin(tmp_path / side / "method.py", nap if side == "candidate" else 0)
    shutil.copy(plan, tmp_path / "candidate" / "bench.toml")
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "DRAFTBOARD_CACHE": str(tmp_path / "cache"),
    }
    steps = workflow["jobs"]["gate"]["steps"]
    (used,) = [step for step in steps if step.get("uses") == "./draftboard/docs/ci"]
    place = steps.index(used)
    inputs = {name: given.get("default", "") for name, given in action["inputs"].items()}
    # The plan is small and a nap takes no processor time; equal code has to pass whatever the machine does.
    inputs |= {**used["with"], "clock": "wall", "max-slowdown": "60%"}
    assert set(used["with"]) <= set(action["inputs"])
    ended, failed = shell(
        [*steps[:place], *action["runs"]["steps"], *steps[place + 1 :]], tmp_path, environment, inputs
    )
    assert ended == ends_at, failed and failed.stderr
    assert "draftboard compare" in (tmp_path / "summary.md").read_text()
    assert (tmp_path / "draftboard-junit.xml").exists()
    if failed:
        assert failed.returncode == 1
    else:
        assert (tmp_path / "site" / "index.html").exists()


CASE = json.loads((ROOT / "tests" / "data" / "11-regression.json").read_text())


def stored_repeats(path, hardware, repeats):
    rows = [{"method": "method-x", "repeat": number, CASE["metric"]: value} for number, value in enumerate(repeats)]
    path.write_text(json.dumps({"hardware": hardware, "rows": rows}))
    return path


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("run-1", 0, ("-1.5%", "same, passes")),
        ("run-2", 1, ("speedup 2 → 1.72 (-14.0%", "slower, FAILS")),
        ("run-3", 0, ("+20.0%", "faster, passes")),
        ("run-4", 2, ("hardware: gpu-a → gpu-b",)),
    ],
)
def test_case_11_stored_repeats(cli, tmp_path, name, code, told):
    before = stored_repeats(tmp_path / "stored.json", CASE["hardware"], CASE["stored"]["repeats"])
    (candidate,) = [one for one in CASE["candidates"] if one["name"] == name]
    after = stored_repeats(tmp_path / "candidate.json", candidate["hardware"], candidate["repeats"])
    found = cli("compare", before, after, "--max-slowdown", f"{CASE['tolerance_fraction']:%}")
    assert found.code == code, found.out + found.err
    for words in told:
        assert words in found.out
