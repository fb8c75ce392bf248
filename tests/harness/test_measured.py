"""What methods measure when a run begins: kept with it, given back after a break, told where it fails."""

import json

import pytest

METHOD = """
from dataclasses import dataclass
from pathlib import Path

from draftboard.methods import Method, MethodError, register
from draftboard.methods.engine import RootOnly

SEEN = Path(__file__).with_name("seen.txt")

@register("timed")
@dataclass(frozen=True, slots=True, kw_only=True)
class Timed(Method):
    about = "measures"
    broken: bool = False

    def measure(self, binding):
        if self.broken:
            raise MethodError("its head cannot be read")
        number = len(list(SEEN.parent.glob("asked-*")))
        SEEN.with_name(f"asked-{number}").touch()
        return {"number": number}

    def drafter(self, binding):
        with SEEN.open("a") as file:
            file.write(f"{binding.measured}\\n")
        return RootOnly()
"""


@pytest.fixture
def plugin(tmp_path, fresh_registry):
    path = tmp_path / "timed.py"
    path.write_text(METHOD)
    return path


def measured(folder):
    return json.loads((folder / "environment.json").read_text(encoding="utf-8")).get("measured")


def test_a_run_keeps_what_its_methods_measured_and_gives_it_back(run, plugin, tmp_path):
    assert run("--plugin", plugin, "--method", "timed").code == 0
    first = measured(tmp_path / "run")
    lines = (tmp_path / "run" / "generations.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "run" / "generations.jsonl").write_bytes(b"".join(lines[:-2]))
    assert run("--plugin", plugin, "--method", "timed", "--resume").code == 0
    assert measured(tmp_path / "run") == first
    seen = plugin.with_name("seen.txt").read_text().splitlines()
    assert len(seen) > 2
    assert set(seen) == {str(first["timed"])}


def test_a_run_by_the_curve_of_another_one_takes_over_what_was_measured_too(run, plugin, tmp_path):
    assert run("--plugin", plugin, "--method", "timed").code == 0
    first = measured(tmp_path / "run")
    assert run("--plugin", plugin, "--method", "timed", "--curve", tmp_path / "run", out=tmp_path / "two").code == 0
    assert measured(tmp_path / "two") == first
    assert run("--plugin", plugin, "--method", "timed", out=tmp_path / "three").code == 0
    assert measured(tmp_path / "three")["timed"]["number"] > first["timed"]["number"]


def test_methods_that_measure_nothing_leave_no_trace(run, tmp_path):
    assert run("--method", "pld").code == 0
    assert measured(tmp_path / "run") is None


def test_what_a_method_cannot_load_is_told_before_the_first_cell(run, plugin, tmp_path, model):
    plan = tmp_path / "plan.toml"
    plan.write_text(f'model = {json.dumps(model)}\n[[methods]]\nmethod = "timed"\nbroken = true\n')
    told = run(plan, "--plugin", plugin)
    assert told.code == 2
    assert "timed: its head cannot be read" in told.err
    assert not (tmp_path / "run" / "plan.json").exists()
