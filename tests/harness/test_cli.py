"""The command line's own manners: documents on stdout, messages on stderr, exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from draftboard import cli as command_line

DRAFTBOARD = (sys.executable, "-c", "from draftboard.cli import main; main()")


@pytest.mark.parametrize("what", ["methods", "suites", "models", "metrics"])
def test_list_as_text_and_as_json(cli, what):
    document = cli("list", what, "--json")
    assert document.code == 0
    assert document.err == ""
    names = [row["name"] for row in document.json]
    assert len(set(names)) == len(names) > 0
    assert all(row["about"] for row in document.json)
    text = cli("list", what).out.splitlines()
    assert len(text) == len(names)
    assert all(line.startswith(name) for line, name in zip(text, names, strict=True))


def test_list_knows_what_a_plugin_brings(cli, slow):
    names = [row["name"] for row in cli("list", "methods", "--plugin", slow, "--json").json]
    assert names[0] == "autoregressive"
    assert names[-1] == "slow"


def test_a_suite_from_a_plugin(cli, model, tmp_path, monkeypatch):
    from draftboard.suites import registry

    monkeypatch.setattr(registry, "_registered", {})
    plugin = tmp_path / "questions.py"
    plugin.write_text(
        "from draftboard.suites import register_suite\nfrom draftboard.testing import tiny_suite\n"
        "@register_suite('tiny')\ndef tiny(path):\n    'Four samples.'\n    return tiny_suite()\n"
    )
    told = cli("check", "--model", model, "--plugin", plugin, "--suite", "tiny", "--json")
    assert told.code == 0, told.err
    assert told.json["plan"]["suites"][0]["samples"] == 4
    assert cli("check", "--model", model, "--plugin", plugin, "--suite", "tiny").code == 0


def test_a_plugin_that_brings_nothing_or_fails_is_refused(cli, tmp_path):
    plugin = tmp_path / "mine.py"
    for content, what in (
        ("x = 1\n", "registers no method and no suite"),
        ("\nimport nowhere_to_be_found\n", "line 2: ModuleNotFoundError"),
        ("def f(:\n", "SyntaxError"),
    ):
        plugin.write_text(content)
        told = cli("list", "methods", "--plugin", plugin)
        assert told.code == 2
        assert what in told.err
        assert str(plugin) in told.err


def test_show_json_is_one_strict_document_and_equals_the_rendered_one(cli, run, tmp_path):
    assert run("--method", "pld", "--warmup", "none").code == 0
    shown = cli("show", tmp_path / "run", "--json")
    cli("render", tmp_path / "run", "-o", tmp_path / "site")
    rendered = json.loads((tmp_path / "site" / "leaderboard.json").read_text(encoding="utf-8"))
    for ours, theirs in zip(shown.json["groups"], rendered["groups"], strict=True):
        for method in theirs["methods"]:
            del method["rank"]
        assert ours["methods"] == theirs["methods"]


def test_the_table_at_the_end_of_a_run_opens_with_its_verdict(cli, run, tmp_path):
    told = run("--warmup", "none")
    reasons = json.loads((tmp_path / "run" / "verdict.json").read_text(encoding="utf-8"))["reasons"]
    assert "nothing was warmed up before timing" in reasons
    expected = f"Not valid for claims: {'; '.join(reasons)}."
    # Words of the board, which folds them; what is printed before the first table is the same in both commands.
    opening = told.out.partition("\nSpeed")[0].splitlines()
    assert " ".join(" ".join(opening[1:]).split()) == expected
    shown = cli("show", tmp_path / "run")
    assert shown.out.partition("\nSpeed")[0].splitlines() == opening
    assert expected in shown.err


def test_run_says_how_to_go_on_and_never_overwrites(run, tmp_path):
    assert run("--warmup", "none").code == 0
    told = run("--warmup", "none")
    assert told.code == 2
    assert told.out == ""
    assert "Add --resume to go on with it, or choose another --out." in told.err


def test_what_is_told_can_be_copied_from_a_narrow_terminal(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    told = run("--warmup", "none")
    assert told.code == 0
    assert f"   page: draftboard render {tmp_path / 'run'} -o site\n" in told.err


def test_a_bar_on_a_terminal_stays_whole_whatever_names_hold(capsys):
    from rich.console import Console

    from draftboard.progress import RichProgress
    from draftboard.records import Cell

    progress = RichProgress()
    progress._console = Console(stderr=True, force_terminal=True, width=120)
    progress.begin(3, 1)
    progress.advance(Cell(method="samd[none]", sample="s/2", status="failed", reason="ValueError: [/nope]"))
    progress.advance(Cell(method="samd[token_recycling]", sample="s/[bold]1[/x]"))
    progress.end()
    progress.end()
    told = capsys.readouterr().err
    assert "samd[token_recycling] · s/[bold]1[/x]" in told
    assert "failed: samd[none] on s/2: ValueError: [/nope]" in told
    assert "3/3" in told


def test_a_template_without_chat_gives_its_notice(run, models_made, tmp_path):
    import shutil

    folder = shutil.copytree(models_made["target"], tmp_path / "bare")
    (folder / "chat_template.jinja").unlink()
    told = run("--warmup", "none", target=str(folder))
    assert told.code == 0
    assert "no chat template; prompts are the raw turns" in told.err
    assert json.loads((tmp_path / "run" / "plan.json").read_text())["resolved"]["template"] == "none"


def test_an_encoder_is_refused_by_name(cli, tmp_path):
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text('{"model_type": "t5", "architectures": ["T5Model"]}')
    told = cli("run", "--model", tmp_path / "bert", "--suite", "mini", "--out", tmp_path / "run")
    assert told.code == 2
    assert "encoder–decoder" in told.err
    assert not (tmp_path / "run").exists()


def test_a_run_command_that_is_stopped_says_how_to_go_on(run, tmp_path, monkeypatch):
    from draftboard import worker

    def stop(self, task):
        raise KeyboardInterrupt

    monkeypatch.setattr(worker.Worker, "cell", stop)
    told = run("--warmup", "none")
    assert told.code == 130
    assert f"--resume --out {tmp_path / 'run'}" in told.err
    assert "Traceback" not in told.err


def test_a_reader_that_has_gone_is_no_error(monkeypatch):
    def gone(*args, **kwargs):
        raise BrokenPipeError

    monkeypatch.setattr("draftboard.listing.list_command", gone)
    moved = []
    monkeypatch.setattr(command_line.os, "dup2", lambda *handles: moved.append(handles))
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1, raising=False)
    with pytest.raises(SystemExit) as ended:
        command_line.main(["list", "metrics"])
    assert ended.value.code == 0
    assert len(moved) == 1


def test_rendering_into_a_file_is_refused(cli, tmp_path):
    import pathlib

    case = pathlib.Path(__file__).parents[1] / "data" / "12-ties.json"
    (tmp_path / "site").write_text("mine")
    told = cli("render", case, "-o", tmp_path / "site")
    assert told.code == 2
    assert "site" in told.err
    assert "Traceback" not in told.err
    assert (tmp_path / "site").read_text() == "mine"


def test_the_demo_runs_its_methods_and_renders(cli, model, tmp_path, monkeypatch):
    from draftboard import models
    from draftboard.options import RunOptions

    def options(**said):
        # The bundled head is another model's.
        without = tuple(method for method in said["method"] if "eagle" not in method)
        assert {"eagle2", "eagle3", "samd[eagle2]"} == set(said["method"]) - set(without)
        suite = ("jsonl@" + str(tmp_path / "q.jsonl"),)
        return RunOptions(**{**said, "method": without, "model": model, "suite": suite, "threads": 1})

    monkeypatch.setattr(models, "is_fetched", lambda name: True)
    monkeypatch.setattr("draftboard.commands.RunOptions", options)
    (tmp_path / "q.jsonl").write_text('{"question_id": 1, "category": "qa", "turns": ["the ferry leaves at"]}\n')
    for _ in range(2):
        told = cli("demo", "--out", tmp_path / "run", "--site", tmp_path / "site")
        assert told.code == 0, told.err
        assert f"Open {tmp_path / 'site' / 'index.html'} in a browser." in told.out
    assert "nothing was missing: these figures were measured at" in told.err
    assert (tmp_path / "run" / "generations.jsonl").read_bytes().count(b"\n") == 4


def test_names_that_the_terminal_cannot_show_are_escaped(tmp_path):
    results = tmp_path / "r.json"
    results.write_text(r'{"rows": [{"method": "\ud800\ud83d\ude00", "speedup": 1.5}]}')
    asked = [*DRAFTBOARD, "show", str(results)]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    shown = subprocess.run(asked, capture_output=True, check=False, env=environment)
    assert (shown.returncode, shown.stderr) == (0, b"")
    document = subprocess.run([*asked, "--json"], capture_output=True, check=False, env=environment)
    (method,) = json.loads(document.stdout)["groups"][0]["methods"]
    assert method["method"] == "\ud800\U0001f600"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_standard_output_that_is_full_is_one_message(tmp_path, form):
    results = tmp_path / "r.json"
    results.write_text('{"rows": [{"method": "p", "speedup": 1.5}]}')
    with Path("/dev/full").open("wb") as full:
        told = subprocess.run(
            [*DRAFTBOARD, "show", str(results), *form],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert told.returncode == 2
    assert told.stderr.decode() == "draftboard: No space left on device\nRun it with --debug for the place.\n"


def test_a_name_that_is_too_long_is_one_message(cli, run, tmp_path):
    for told in (cli("show", "a" * 300), run(out=tmp_path / ("a" * 300)), run(suite=tmp_path / ("a" * 300))):
        assert told.code == 2
        assert "File name too long" in told.err
