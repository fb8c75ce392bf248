"""`draftboard doctor` from the outside: documents, exit codes, bad input, and what it shows at 80 columns."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace

import pytest

from draftboard.cli import app
from draftboard.doctor import Report, Sign, document
from draftboard.doctor import examination as examining
from draftboard.doctor.noise import Noise
from draftboard.doctor.power import Design, Layout, Spread
from draftboard.doctor.report import Curve, Measured, Recommendation
from draftboard.doctor.show import console_text
from draftboard.doctor_cli import parse_part
from draftboard.errors import UserError
from draftboard.hardware import environment


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(examining, "_IDLE_S", 0.05)


def test_quick_is_one_document_and_its_exit_code_says_the_same(cli):
    told = cli("doctor", "--quick", "--threads", 1, "--json")
    assert told.code == (0 if told.json["reliable"] else 1)
    assert told.json["schema"] == 1
    assert told.json["measured"] is None
    states = {sign["state"] for sign in told.json["signs"]}
    assert states <= {"fine", "note", "unreliable", "n/a"}
    assert told.json["reliable"] == ("unreliable" not in states)
    assert "watching" in told.err


def test_too_many_threads_are_a_failure_with_advice(cli):
    told = cli("doctor", "--quick", "--device", "cpu", "--threads", 100_000, "--json")
    assert told.code == 1
    (cores,) = [sign for sign in told.json["signs"] if sign["name"] == "cores"]
    assert cores["state"] == "unreliable"
    assert cores["advice"].startswith("Use --threads ")


def test_a_model_is_measured_and_the_recommended_command_is_understood(cli, model):
    options = ("doctor", "--model", model, "--device", "cpu", "--dtype", "float32", "--threads", 1, "--seconds", 1)
    told = cli(*options, "--detect", "90%", "--json")
    assert told.code == (0 if told.json["reliable"] else 1), told.err
    measured, wanted = told.json["measured"], told.json["recommendation"]
    assert (measured["threads"], measured["dtype"], measured["rounds"]) == (1, "float32", 4)
    assert measured["curve"]["rows"][0] == 1
    assert measured["noise"]["wall"]["floor"] >= 0
    assert wanted["detect"] == pytest.approx(0.9)
    if wanted["design"] is not None:
        app.parse_args(["run", *wanted["run_options"]], exit_on_error=False, print_error=False)
    names = {sign["name"] for sign in told.json["signs"]}
    assert {"memory", "cost curve", "noise floor", "waiting", "other work"} <= names
    assert "noise: round 4 of 4" in told.err


def test_a_model_that_does_not_fit_is_not_loaded(cli, model, monkeypatch):
    from draftboard.doctor import Machine
    from draftboard.doctor import model as modelling
    from draftboard.session import Session

    monkeypatch.setattr(modelling, "_OVERHEAD", 1e9)
    monkeypatch.setattr(Session, "load", lambda *_: pytest.fail("loaded"))
    assert Machine().memory().available > 0
    told = cli("doctor", "--model", model, "--device", "cpu", "--threads", 1, "--json")
    assert told.code == 1
    (memory,) = [sign for sign in told.json["signs"] if sign["name"] == "memory"]
    assert memory["state"] == "unreliable"
    assert told.json["measured"] is None


@pytest.mark.parametrize(
    ("tokens", "what"),
    [
        (["--detect", "5"], "ambiguous"),
        (["--detect", "five"], "no number"),
        (["--detect", "nan"], "no number"),
        (["--detect", "0%", "--power", "20%", "--seconds", "nan"], "3 problem(s)"),
        (["--detect", "1e999%"], "no number"),
        (["--power", "100%"], "power must lie"),
        (["--threads", "0"], "at least 1"),
        (["--threads", "1.5"], "not a whole number"),
        (["--quick", "--detect", "5%", "--model", "x"], "--model, --detect would have no effect"),
        (["--quick", "--device", "tpu"], "unknown device"),
        (["--quick", "--device", "cuda:99"], "is not there"),
        (["--device", "tpu"], "unknown device"),
        (["--model", "smolm2-135m"], "smollm2-135m"),
        (["--dtype", "int3"], "int3"),
    ],
)
def test_bad_input(cli, tokens, what):
    told = cli("doctor", *tokens)
    assert told.code == 2
    assert what in told.err
    assert told.out == ""


@pytest.mark.parametrize(("text", "value"), [("5%", 0.05), (" 5 % ", 0.05), ("0.05", 0.05), ("1e-2", 0.01)])
def test_parts(text, value):
    assert parse_part("detect", text) == pytest.approx(value)
    with pytest.raises(UserError, match="ambiguous"):
        parse_part("detect", "5")


def report(*signs: Sign, model: str = "smollm2-135m") -> Report:
    noise = Noise(
        clock="wall",
        floor=0.02,
        ratio=1.001,
        spread=Spread(pair=0.03, pair_drift=0.01, arm=0.02, arm_drift=0.01),
    )
    design = Design(rounds=3, layout=Layout(domains=17, samples=3), power=0.85)
    return Report(
        environment=environment(threads=1),
        hardware="AMD EPYC · 1 core",
        signs=signs,
        measured=Measured(
            model=model,
            dtype="float32",
            device="cpu",
            threads=1,
            curve=Curve(rows=(1, 2, 4, 8, 16, 24, 32), cost=(1, 1.5, 1.6, 1.8, 2.2, 3, 3.5), one_row_s=0.05),
            rounds=4,
            samples=5,
            tokens=16,
            wall=noise,
            cpu=None,
        ),
        recommendation=Recommendation(
            detect=0.05, power=0.8, design=design, smallest=0.01, run_options=("--model", model, "--repeats", "3")
        ),
    )


LOUD = Sign(
    name="other work",
    group="machine",
    state="unreliable",
    told="1.90 of 2 cores: evil[bold]\x1b[31m\u202ename 0.90",
    value=1.9,
    advice="Stop the other work on this machine, or wait for its end. " * 2,
)
MISSING = Sign(name="turbo", group="machine", state="n/a", told="this system has no such reading")


def test_it_reads_at_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    long = "models/" + "deep/" * 30
    text = console_text(report(LOUD, MISSING, model=long))
    lines = text.splitlines()
    command = next(line for line in lines if line.startswith("  draftboard run "))
    assert shlex.split(command)[2:] == ["--model", long, "--repeats", "3"]
    assert all(len(line) <= 80 for line in lines if line != command)
    heads = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert heads == ["machine", "clocks", "curve", "noise", "advice"]
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "evil[bold]" in text
    assert "unreliable" in lines[-1]


def test_a_quiet_report_says_so():
    text = console_text(replace(report(MISSING), recommendation=None, measured=None))
    assert text.splitlines()[-1].strip() == "Nothing stands in the way of measuring."


def test_the_document_is_strict_and_whole():
    plain = json.loads(json.dumps(document(report(LOUD, MISSING)), allow_nan=False))
    assert plain["reliable"] is False
    assert plain["measured"]["noise"]["cpu"] is None
    assert plain["recommendation"]["design"]["layout"] == {"domains": 17, "samples": 3}
    assert [sign["name"] for sign in plain["signs"]] == ["other work", "turbo"]


def test_quick_needs_no_torch():
    code = (
        "import sys\nfrom draftboard.doctor import Machine, examine_quickly\n"
        "examine_quickly(Machine(pause=lambda s: __import__('time').sleep(0.05)), threads=1, gpu=False)\n"
        "assert not {'torch', 'transformers', 'scipy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
