"""`draftboard suite show`: origin, licence, hash, counts and prompts, without torch."""

import json
import os
import subprocess
import sys

import pytest


def test_a_suite_is_described_with_counts_hash_licence_and_a_prompt_of_each_domain(cli, questions):
    told = cli("suite", "show", f"jsonl@{questions}")
    assert told.code == 0, told.err
    lines = told.out.splitlines()
    assert lines[0] == "jsonl · questions.jsonl · 4 samples"
    assert "licence: the file's own" in lines
    assert "qa: 2 samples (0 for calibration), 2 turns, qa (2), 2 with references" in lines
    assert "chat: 2 samples (0 for calibration), 3 turns, unscored, 0 with references" in lines
    assert sum(line.startswith("--- ") for line in lines) == 2


def test_json_holds_whole_prompts(cli, ask):
    long = "who wrote " * 400
    path = ask([{"question_id": 1, "turns": [long, "and\u2028when"], "system": "be brief"}])
    report = cli("suite", "show", f"jsonl@{path}", "--json").json
    assert report["prompts"][0]["turns"] == [long, "and\u2028when"]
    assert report["prompts"][0]["system"] == "be brief"
    assert len(report["sha256"]) == 64
    shown = cli("suite", "show", f"jsonl@{path}").out
    assert "more characters)" in shown
    assert long not in shown
    assert cli("suite", "show", f"jsonl@{path}", "--prompts", 0, "--json").json["prompts"] == []


def test_nothing_from_a_file_reaches_the_terminal_as_an_order(cli, ask):
    path = ask(
        [{"question_id": "\x1b[2J", "category": "\x1b[31mred\nx", "turns": ["\x1b[5mwho"], "system": "\x1b]0;x"}]
    )
    for tokens in (("suite", "show"), ("check", "--model", "smollm2-135m", "--category", "no", "--suite")):
        told = cli(*tokens, f"jsonl@{path}")
        assert "\x1b" not in told.out + told.err
        assert "red" in told.out + told.err


def test_json_is_valid_in_any_encoding_of_the_terminal(ask):
    path = ask([{"question_id": 1, "turns": ["é 中 😀"]}])
    command = [sys.executable, "-m", "draftboard", "suite", "show", f"jsonl@{path}", "--json"]
    told = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=True)
    assert json.loads(told.stdout)["prompts"][0]["turns"] == ["é 中 😀"]


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        (("mini", "--prompts", "-1"), "--prompts must be 0 or more"),
        (("mini", "--prompts", "0.5"), "'0.5' is not a whole number"),
        (("mmlu/k-shot", "--shots", "2.7"), "'2.7' is not a whole number"),
        (("mini", "--shots", "3"), "mini does not use shots"),
        (("minni",), "did you mean mini?"),
        (("jsonl@nowhere.jsonl",), "there is no such file"),
    ],
)
def test_what_cannot_be_shown_is_refused(cli, tokens, why):
    told = cli("suite", "show", *tokens)
    assert told.code == 2
    assert why in told.err


def test_nothing_heavy_is_imported():
    code = (
        "import sys\nfrom draftboard.cli import main\n"
        "try:\n    main(['suite', 'show', 'mini'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('torch', 'transformers', 'datasets', 'pyarrow') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines()[-1] == "[]"
