"""A run's folder under crashes: what is whole counts, what is missing is run, what does not fit is refused."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from draftboard import files
from draftboard.store import read_run

DATA = Path(__file__).parents[1] / "data"
LIGHT = ("--warmup", "none")


@pytest.fixture
def finished(run, tmp_path):
    assert run("--method", "pld", *LIGHT).code == 0
    return tmp_path / "run"


def lines(folder):
    return (folder / "generations.jsonl").read_bytes().splitlines(keepends=True)


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


# Case 16


def speeds(cell, seconds, tokens):
    """The cell as if its turn had taken that long for that many tokens."""
    (turn,) = cell["turns"]
    kept = [1] * (tokens - 1)
    steps = {name: [0] * len(kept) for name in turn["steps"] if name != "signals"} | {"kept": kept, "signals": {}}
    timed = {**turn, "token_ids": [5] * tokens, "end_ns": int(seconds * 1e9), "steps": steps}
    return {**cell, "turns": [timed]}


def test_case_16_torn_line_and_doubled_cell_then_resume(run, cli, tmp_path, rows):
    suite = DATA / "16-resume-questions.jsonl"
    folder = tmp_path / "run"
    assert run(*LIGHT, suite=suite).code == 0
    cells = {row["sample"]: row for row in rows(folder / "generations.jsonl")}
    given = (DATA / "16-resume-results.jsonl").read_text().splitlines()
    kept = [json.loads(row) for row in given[:-1]]
    stored = [
        json.dumps(speeds(cells[f"jsonl/{row['question_id']}"], row["wall_time_s"], row["new_tokens"])) for row in kept
    ]
    torn = json.dumps(cells["jsonl/4"])[:70]
    for name in ("verdict.json", "scores.jsonl"):
        (folder / name).unlink()
    before = "\n".join([*stored, torn])
    (folder / "generations.jsonl").write_text(before)

    shown = cli("show", folder, "--json")
    assert shown.code == 0
    overall = shown.json["groups"][0]["methods"][0]["overall"]
    assert overall["tokens_per_s"]["value"] == pytest.approx(47.272727, abs=1e-6)
    assert overall["tokens_per_s"]["n"] == 3
    assert overall["tokens_per_s_mean_of_samples"]["value"] == pytest.approx(50.0)
    assert overall["speedup"]["value"] is None
    assert "3 of 6 cells have not run" in overall["speedup"]["reason"]
    assert "autoregressive on jsonl/2, repeat 0, is recorded more than once" in shown.err
    assert "dropped an unfinished last line of 70 bytes" in shown.err
    page = cli("render", folder, "-o", tmp_path / "site")
    assert page.code == 0
    assert page.err.count("recorded more than once") == 1
    assert "unfinished" in (tmp_path / "site" / "leaderboard.md").read_text()
    # Reading changes nothing.
    assert (folder / "generations.jsonl").read_text() == before

    refused = run(*LIGHT, suite=suite)
    assert refused.code == 2
    assert "holds a run already" in refused.err
    assert "--resume" in refused.err
    assert (folder / "generations.jsonl").read_text() == before

    resumed = run(*LIGHT, "--resume", suite=suite)
    assert resumed.code == 0
    assert "3 of 6 cells to run" in resumed.err
    assert "recorded more than once" in resumed.err
    assert "unfinished last line" in resumed.err
    found = rows(folder / "generations.jsonl")
    assert [row["sample"] for row in found[:4]] == ["jsonl/1", "jsonl/2", "jsonl/2", "jsonl/3"]
    assert sorted(row["sample"] for row in found[4:]) == ["jsonl/4", "jsonl/5", "jsonl/6"]
    counted = [cell.sample for cell in read_run(folder).cells]
    assert sorted(counted) == [f"jsonl/{i}" for i in range(1, 7)]
    assert cli("show", folder, "--json").json["groups"][0]["methods"][0]["overall"]["tokens_per_s"]["n"] == 6
    again = run(*LIGHT, "--resume", suite=suite)
    assert "0 of 6 cells to run" in again.err
    assert len(rows(folder / "generations.jsonl")) == 7


# What is no run


def test_a_folder_that_is_no_run(cli, run, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    for folder, what in ((empty, "is not a run"), (tmp_path / "nowhere", "no such folder")):
        for command in ("show", "score"):
            told = cli(command, folder)
            assert told.code == 2
            assert what in told.err
            assert str(folder) in told.err
        told = cli("render", folder, "-o", tmp_path / "site")
        assert (told.code, what in told.err) == (2, True)
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('{"schema": 1}', "it lacks model, methods"),
        ('{"title": "a plan of mine"}', "no schema number"),
        ("[1, 2]", "is damaged"),
        ('{"schema": 1, "mod', "is damaged"),
    ],
)
def test_somebody_elses_plan_json(cli, tmp_path, content, what):
    (tmp_path / "plan.json").write_text(content)
    told = cli("show", tmp_path)
    assert told.code == 2
    assert what in told.err
    assert "plan.json" in told.err


def test_out_that_cannot_hold_a_run_is_refused_before_anything_is_loaded(run, tmp_path, monkeypatch):
    from draftboard import models

    monkeypatch.setattr(models, "load_config", None)
    file = tmp_path / "file"
    file.write_text("mine")
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.tex").write_text("mine")
    for out, what in ((file, "is a file"), (full, "is not empty and holds no run")):
        for resume in ((), ("--resume",)):
            told = run(*LIGHT, *resume, out=out)
            assert told.code == 2
            assert what in told.err
    assert [path.name for path in full.iterdir()] == ["thesis.tex"]


def test_a_run_stopped_before_its_plan_was_written_starts_anew(run, tmp_path, rows):
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("samples.jsonl", "environment.json", ".plan.json.abc123.tmp"):
        (folder / name).write_text("{")
    assert run(*LIGHT).code == 0
    assert len(rows(folder / "generations.jsonl")) == 4


def test_resume_without_a_run_starts_one(run, tmp_path, rows):
    assert run(*LIGHT, "--resume").code == 0
    assert len(rows(tmp_path / "run" / "generations.jsonl")) == 4


# The disk


def test_output_that_cannot_be_written_is_one_clear_message(run, tmp_path):
    (tmp_path / "file").write_text("")
    told = run(*LIGHT, out=tmp_path / "file" / "run")
    assert told.code == 2
    assert "cannot be written" in told.err
    assert "Traceback" not in told.err


class FullDisk:
    """`os.write` of a disk that has room for so many whole records and the beginning of one more."""

    def __init__(self, whole):
        self.left, self.write = whole, os.write

    def __call__(self, handle, data):
        if self.left > 0:
            self.left -= 1
            return self.write(handle, data)
        if self.left == 0:
            self.left = -1
            return self.write(handle, data[:100])
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("whole", [0, 3])
def test_disk_full_in_the_middle_leaves_whole_cells_and_resumes(run, tmp_path, monkeypatch, outputs, cli, whole):
    assert run("--method", "pld", *LIGHT, out=tmp_path / "good").code == 0
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "write", FullDisk(whole))
        told = run("--method", "pld", *LIGHT)
    assert told.code == 2
    assert "generations.jsonl: cannot be written: No space left on device" in told.err
    assert told.err.count("cannot be written") == 1
    assert "Traceback" not in told.err
    folder = tmp_path / "run"
    assert len(lines(folder)) == whole
    assert not (folder / "verdict.json").exists()
    assert cli("show", folder).code == 0
    assert run("--method", "pld", *LIGHT, "--resume").code == 0
    assert outputs(folder) == outputs(tmp_path / "good")


def test_disk_full_while_the_run_is_made_leaves_no_run(run, tmp_path, monkeypatch):
    real = tempfile.mkstemp

    def full(**place):
        if "environment" in place["prefix"]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(**place)

    with monkeypatch.context() as patch:
        patch.setattr(files.tempfile, "mkstemp", full)
        told = run(*LIGHT)
    assert told.code == 2
    assert "environment.json: cannot be written: No space left" in told.err
    assert {path.name for path in (tmp_path / "run").iterdir()} == {"samples.jsonl"}
    assert run(*LIGHT).code == 0


def test_scores_on_a_full_disk_leave_the_old_ones(cli, finished, monkeypatch):
    before = (finished / "scores.jsonl").read_bytes()
    assert before

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        told = cli("score", finished)
    assert told.code == 2
    assert "scores.jsonl: cannot be written" in told.err
    assert (finished / "scores.jsonl").read_bytes() == before


# Interruption


def test_ctrl_c_and_kill_leave_runs_that_resume_to_the_same_cells(
    run, tmp_path, slow, outputs, model, questions, shared_cache
):
    plan = tmp_path / "plan.toml"
    plan.write_text('method = ["pld"]\n[[methods]]\nmethod = "slow"\npause_s = 0.04\n')
    extra = ("--plugin", slow, "--warmup", "none")
    assert run(plan, *extra, out=tmp_path / "whole").code == 0
    whole = outputs(tmp_path / "whole")
    assert len(whole) == 12
    for number, name in ((signal.SIGINT, "stopped"), (signal.SIGKILL, "killed")):
        out = tmp_path / name
        code, err = interrupted(
            number,
            4,
            out,
            [
                "run",
                plan,
                "--model",
                model,
                "--suite",
                f"jsonl@{questions}",
                "--max-new-tokens",
                8,
                "--dtype",
                "float32",
                "--device",
                "cpu",
                "--threads",
                1,
                "--out",
                out,
                *extra,
            ],
            shared_cache,
        )
        assert code == (130 if number == signal.SIGINT else -signal.SIGKILL), err
        if number == signal.SIGINT:
            assert "Traceback" not in err
            assert f"--resume --out {out}" in err
        done = len(outputs(out))
        assert 4 <= done < 12
        assert not (out / "verdict.json").exists()
        # What a power cut may leave besides.
        with (out / "generations.jsonl").open("ab") as file:
            file.write(b'{"method":"pld","sam')
        told = run(plan, *extra, "--resume", out=out)
        assert told.code == 0, told.err
        assert f"{12 - done} of 12 cells to run" in told.err
        assert outputs(out) == whole


def interrupted(number, after, out, tokens, cache):
    """Start a run, send it a signal once that many cells are on disk, and return its exit code and stderr."""
    # A shell starts its background jobs deaf to Ctrl-C, and their children inherit that.
    hearing = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{hearing}from draftboard.cli import main; main()", *map(str, tokens)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "DRAFTBOARD_CACHE": str(cache)},
    )
    try:
        deadline = time.monotonic() + 120
        path = out / "generations.jsonl"
        while not (path.exists() and path.read_bytes().count(b"\n") >= after):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline, "the run did not get going"
            time.sleep(0.01)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return process.returncode, err


def test_a_cell_that_failed_is_tried_again_and_then_counts_as_good(run, tmp_path, breaking, outputs, cli):
    plugin = breaking("RuntimeError('out of memory')")
    assert run("--method", "breaking", "--plugin", plugin, *LIGHT).code == 1
    plugin.write_text(plugin.read_text().replace("if self.bad", "if False"))
    told = run("--method", "breaking", "--plugin", plugin, *LIGHT, "--resume")
    assert told.code == 0, told.err
    assert "2 of 8 cells to run" in told.err
    found = outputs(tmp_path / "run")
    assert len(found) == 8
    shown = cli("show", tmp_path / "run", "--json").json["groups"][0]
    assert all(method["overall"]["speedup"]["value"] for method in shown["methods"])
    assert json.loads((tmp_path / "run" / "verdict.json").read_text())["failed"] == 0


# What does not fit


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (("--top-k", 9), "sampling.top_k: the run has 0, now 9"),
        (("--temperature", 0.5), "sampling.temperature: the run has 0.0, now 0.5"),
        (("--seed", 4), "seed: the run has 0, now 4"),
        (("--repeats", 2), "repeats: the run has 1, now 2"),
        (("--method", "token_recycling"), "methods.token_recycling: the run has None"),
        (("--budget", "paper"), "methods.pld.settings.budget: the run has 'auto', now 'paper'"),
        (("--limit", 1), "limit: the run has None, now 1"),
        (("--stop", "ferry"), "stop: the run has [], now ['ferry']"),
    ],
)
def test_a_plan_that_differs_on_resume_is_refused_with_the_difference(run, finished, change, shown):
    before = lines(finished)
    told = run("--method", "pld", *LIGHT, "--resume", *change)
    assert told.code == 2
    assert "another plan" in told.err
    assert shown in told.err
    assert lines(finished) == before


def test_changed_questions_are_refused_by_their_hash(run, finished, questions):
    questions.write_text(questions.read_text().replace("low", "high"))
    told = run("--method", "pld", *LIGHT, "--resume")
    assert told.code == 2
    assert "suites.jsonl.content_hash: the run has" in told.err


def test_changed_weights_are_refused(run, tmp_path, models_made):
    target = shutil.copytree(models_made["target"], tmp_path / "copy")
    assert run(*LIGHT, target=str(target)).code == 0
    before = lines(tmp_path / "run")
    shutil.copy(models_made["other"] / "model.safetensors", target)
    told = run(*LIGHT, "--resume", target=str(target))
    assert told.code == 2
    assert "weights have changed" in told.err
    assert lines(tmp_path / "run") == before


def test_a_changed_chat_template_is_refused(run, tmp_path, models_made):
    target = shutil.copytree(models_made["target"], tmp_path / "copy")
    assert run(*LIGHT, target=str(target)).code == 0
    (target / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    told = run(*LIGHT, "--resume", target=str(target))
    assert told.code == 2
    assert "the prompts differ from the run's" in told.err


def test_another_machine_or_dtype_is_refused(run, finished):
    edit(finished / "environment.json", hardware="Some GPU")
    plan = json.loads((finished / "plan.json").read_text())
    edit(finished / "plan.json", resolved={**plan["resolved"], "dtype": "bfloat16"})
    told = run("--method", "pld", *LIGHT, "--resume")
    assert told.code == 2
    assert "hardware: the run has 'Some GPU', now " in told.err
    assert "resolved.dtype: the run has 'bfloat16', now 'float32'" in told.err


def test_a_newer_schema_is_refused_with_advice(cli, run, finished):
    edit(finished / "plan.json", schema=2)
    for told in (cli("show", finished), run("--method", "pld", *LIGHT, "--resume")):
        assert told.code == 2
        assert "plan.json: has schema 2; this draftboard reads up to 1" in told.err
        assert "pip install -U draftboard" in told.err


def test_a_newer_record_is_refused_even_if_its_fields_are_unknown(cli, finished):
    whole = lines(finished)
    whole[1] = b'{"schema": 2, "what": "is this"}\n'
    (finished / "generations.jsonl").write_bytes(b"".join(whole))
    told = cli("show", finished)
    assert told.code == 2
    assert "generations.jsonl:2: has schema 2" in told.err


def test_broken_inner_lines_are_all_named_with_file_and_line(cli, run, finished):
    path = finished / "generations.jsonl"
    whole = lines(finished)
    path.write_bytes(b"".join([whole[0], b'{"method": "pl\n', *whole[2:4], b"\xff\xfe\n", *whole[5:]]))
    for told in (
        cli("show", finished),
        cli("render", finished, "-o", finished / "site"),
        cli("score", finished),
        run("--method", "pld", *LIGHT, "--resume"),
    ):
        assert told.code == 2
        assert f"{path}:2: not valid JSON" in told.err
        assert f"{path}:5: not valid JSON" in told.err
    path.write_bytes(b"".join([whole[0], b'{"method": "pld"}\n', *whole[2:]]))
    told = cli("show", finished)
    assert told.code == 2
    assert f"{path}:2: not a cell record" in told.err


def test_a_lost_file_of_a_run_is_named(cli, finished):
    (finished / "environment.json").unlink()
    told = cli("show", finished)
    assert told.code == 2
    assert "environment.json: cannot be read: No such file" in told.err


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("plan.json", {"methods": 5}, "methods"),
        ("plan.json", {"methods": [{}]}, "label"),
        ("plan.json", {"suites": None}, "suites"),
        ("plan.json", {"sampling": {}}, "temperature"),
        ("plan.json", {"repeats": "x"}, "repeats"),
        ("environment.json", {"cost_curve": {}}, "rows"),
        ("verdict.json", {"reasons": 5}, "reasons"),
    ],
)
def test_a_document_of_another_shape_is_refused_with_the_place(cli, finished, name, change, said):
    edit(finished / name, **change)
    told = cli("show", finished)
    assert told.code == 2
    assert f"{finished / name}: is not of a run" in told.err
    assert said in told.err


@pytest.mark.parametrize("steps", [{"kept": [1]}, {"kept": "x"}, {"accepted": [0], "kept": [1], "end_ns": []}])
def test_steps_of_another_shape_are_refused_with_their_line(cli, finished, steps):
    rows = [json.loads(line) for line in lines(finished)]
    rows[1]["turns"][0]["steps"] = steps
    (finished / "generations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = cli("show", finished)
    assert told.code == 2
    assert "generations.jsonl:2: not a cell record" in told.err


@pytest.mark.parametrize("content", [None, b""])
def test_a_run_without_its_samples_is_refused(cli, run, finished, content):
    path = finished / "samples.jsonl"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    for told in (cli("show", finished), cli("score", finished), run("--method", "pld", "--resume", *LIGHT)):
        assert told.code == 2
        assert f"{path}: lacks samples of this run: jsonl/1" in told.err
