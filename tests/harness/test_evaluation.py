"""A stored run is scored again from what it holds, without model, tokenizer or suite."""

import json
import shutil

import pytest

from draftboard.evaluation import score_run
from draftboard.store import read_run


@pytest.fixture
def scored(run, ask, models_made, tmp_path):
    """A run of a copied model on three scored domains; model and questions are gone afterwards."""
    target = shutil.copytree(models_made["target"], tmp_path / "model")
    suite = ask(
        [
            {
                "question_id": 1,
                "category": "qa",
                "turns": ["who wrote the answer"],
                "reference": ["the ferry"],
                "scorer": "qa",
            },
            {
                "question_id": 2,
                "category": "math",
                "turns": ["how many boat leaves", "and how many now"],
                "reference": [["1"], ["2"]],
                "scorer": "last_number",
            },
            {
                "question_id": 3,
                "category": "translation",
                "turns": ["the ferry leaves"],
                "reference": ["the ferry leaves at nine"],
                "scorer": "bleu",
                "language": "en",
            },
            {"question_id": 4, "category": "chat", "turns": ["the boat"], "reference": ["no scorer"]},
        ]
    )
    told = run("--method", "pld", "--repeats", 2, "--warmup", "none", target=str(target), suite=suite)
    assert told.code == 0, told.err
    shutil.rmtree(target)
    suite.unlink()
    return tmp_path / "run"


def test_scoring_again_without_the_model_gives_the_runs_own_scores(scored, cli):
    own = (scored / "scores.jsonl").read_bytes()
    assert own
    before = cli("show", scored, "--json").out
    (scored / "scores.jsonl").unlink()
    told = cli("score", scored)
    assert told.code == 0
    assert (scored / "scores.jsonl").read_bytes() == own
    assert cli("show", scored, "--json").out == before
    lines = told.out.splitlines()
    assert len(lines) == 2 * 3 * 2
    assert any(line.startswith("pld · math · round 1: accuracy ") for line in lines)
    assert any(line.startswith("autoregressive · translation · round 0: bleu ") for line in lines)


def test_scores_as_json_are_the_stored_records(scored, cli, rows):
    document = cli("score", scored, "--json").json
    assert document == rows(scored / "scores.jsonl")
    assert {(row["method"], row["domain"], row["repeat"]) for row in document} == {
        (method, domain, repeat)
        for method in ("autoregressive", "pld")
        for domain in ("qa", "math", "translation")
        for repeat in (0, 1)
    }


def test_every_turn_with_references_is_an_answer(scored):
    (record,) = [r for r in score_run(read_run(scored)) if (r.method, r.domain, r.repeat) == ("pld", "math", 0)]
    assert record.scores.counts["answers"] == 2


def test_scores_follow_the_stored_text(scored, cli, rows):
    found = rows(scored / "generations.jsonl")
    for row in found:
        if (row["method"], row["sample"]) == ("pld", "jsonl/2"):
            row["turns"][0]["text"], row["turns"][1]["text"] = "so it is 1", "then 3"
    (scored / "generations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    document = cli("score", scored, "--json").json
    values = {
        (row["method"], row["repeat"]): row["scores"]["values"]["accuracy"]["value"]
        for row in document
        if row["domain"] == "math"
    }
    assert values == {("pld", 0): 0.5, ("pld", 1): 0.5, ("autoregressive", 0): 0.0, ("autoregressive", 1): 0.0}
    shown = cli("show", scored, "--json").json["groups"][0]
    assert {m["method"]: m["domains"]["math"]["figures"]["accuracy"]["value"] for m in shown["methods"]} == {
        "pld": 0.5,
        "autoregressive": 0.0,
    }


def test_a_failed_cell_counts_as_an_answer_that_is_not_there(scored, rows):
    found = rows(scored / "generations.jsonl")
    for row in found:
        if (row["method"], row["sample"]) == ("pld", "jsonl/1"):
            row.update(status="failed", reason="RuntimeError: boom", turns=[])
    (scored / "generations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    records = {(r.method, r.domain): r.scores for r in score_run(read_run(scored)) if r.repeat == 0}
    assert records["pld", "qa"].counts["failed"] == 1
    assert records["autoregressive", "qa"].counts["failed"] == 0


def test_a_run_without_scored_samples_says_so(run, ask, cli, tmp_path):
    suite = ask([{"question_id": 1, "category": "chat", "turns": ["the boat"]}])
    assert run("--warmup", "none", suite=suite).code == 0
    told = cli("score", tmp_path / "run")
    assert told.code == 0
    assert told.out == "nothing in this run has a scorer and references\n"
