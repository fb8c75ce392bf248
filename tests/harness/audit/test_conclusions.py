import json
from pathlib import Path

import pytest

from draftboard.audit import audit_outputs
from draftboard.audit.report import Evidence, Report, document
from draftboard.audit.show import console_text
from draftboard.lossless import Turn


def turn(*ids, prompt="p"):
    return Turn(token_ids=ids, prompt=prompt)


def judged(ours, theirs, **options):
    return audit_outputs("m", {("s", 0): ours}, {("s", 0): theirs}, **{"limit": 0.1, **options})


@pytest.mark.parametrize(
    ("baseline_below", "method_below", "outcome"),
    [
        (0.0, 0.1, "near-tie"),
        (0.1, 0.0, "near-tie"),
        (0.0, 0.11, "mismatch"),
        # Close to each other, but both far from the best.
        (3.0, 3.05, "mismatch"),
        (0.0, None, "mismatch"),
    ],
)
def test_a_tie_needs_both_tokens_near_the_best(baseline_below, method_below, outcome):
    seen = Evidence(best=1, gap=0.0, baseline_below=baseline_below, method_below=method_below)
    found = judged([turn(1, 2)], [turn(1, 3)], evidence={(("s", 0), 0): seen})
    assert found.counts == {outcome: 1}
    assert found.differences[0].shared == 0.5


def test_the_model_goes_before_what_was_stored():
    far = Evidence(best=None, gap=9.0, baseline_below=0.0, method_below=9.0)
    near = Evidence(best=1, gap=0.0, baseline_below=0.0, method_below=0.0)
    at = (("s", 0), 0)
    assert judged([turn(1)], [turn(2)], stored={at: far}).verdict == "mismatch"
    found = judged([turn(1)], [turn(2)], stored={at: far}, evidence={at: near})
    assert (found.verdict, found.differences[0].judged_by) == ("tie-divergent", "model")


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict", "passed"),
    [
        ([turn(1, 2)], [turn(1, 2)], "identical", True),
        ([turn(1, 2)], [turn(1)], "length", False),
        ([turn(1)], [turn(1, 2)], "length", False),
        ([turn(1)], [turn(2)], "unjudged", False),
        ([turn(1)], [turn(1, prompt="q")], "not compared", False),
        ([turn(1), turn(1)], [turn(1), turn(2, prompt="q")], "identical", True),
        ([turn(1), turn(1)], [turn(1)], "identical", False),
    ],
)
def test_verdicts(ours, theirs, verdict, passed):
    found = judged(ours, theirs)
    assert (found.verdict, found.passed, bool(found.reason)) == (verdict, passed, not passed)


@pytest.mark.parametrize("label", ["[bold]x[/bold]", "\x1b[31mred", "\u202edesrever", "long" * 75, "{{ 7 }}"])
def test_hostile_names_stay_names(label, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    method = audit_outputs(label, {(label, 0): [turn(1)]}, {(label, 0): [turn(2)]}, limit=0, domains={label: label})
    report = Report(model="m", dtype="float32", baseline="b", exact=False, limit=None, methods=(method,))
    text = console_text(report)
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "\u202e" not in text
    if label.startswith("["):
        assert label in text
    assert json.loads(json.dumps(document(report), allow_nan=False))["methods"][0]["method"] == label


def test_case_7():
    def load(name):
        lines = (Path(__file__).parents[2] / "data" / name).read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return {(str(row["question_id"]), 0): [Turn(**one) for one in row["turns"]] for row in rows}

    ours, theirs = load("07-outputs-reference.jsonl"), load("07-outputs-method.jsonl")
    found = audit_outputs("m", ours, theirs, limit=0.01)
    assert (found.verdict, found.passed) == ("mismatch", False)
    assert found.counts == {"identical": 1, "near-tie": 2, "mismatch": 1, "not-comparable": 1}
    del ours["3", 0], theirs["3", 0]
    assert audit_outputs("m", ours, theirs, limit=0.01).passed
    assert not audit_outputs("m", ours, theirs, limit=0.01, exact=True).passed
