"""A stored run is scored again from what it holds, without model, tokenizer or suite."""

import json
import shutil

import msgspec
import pytest

from draftboard.errors import UserError
from draftboard.evaluation import score_run, scorer_errors
from draftboard.records import Cell, SampleRecord, ScoreRecord, Turn
from draftboard.scoring import Scores, Value, register_scorer, registry
from draftboard.store import StoredRun, read_run
from draftboard.suites import scorers as names


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


def test_an_answer_without_reference_is_left_out_and_counted(run, ask, tmp_path):
    asked = {"category": "math", "turns": ["how many"], "scorer": "last_number"}
    suite = ask([{"question_id": 1, **asked, "reference": "7"}, {"question_id": 2, **asked, "reference": None}])
    assert run("--warmup", "none", suite=suite).code == 0
    (record,) = read_run(tmp_path / "run").scores
    assert record.scores.counts["answers"] == 2
    assert record.scores.counts["no_reference"] == 1
    assert record.scores.values["accuracy"].n == 1


def test_scoring_again_without_the_model_gives_the_runs_own_scores(scored, cli):
    own = (scored / "scores.jsonl").read_bytes()
    assert own
    before = cli("show", scored, "--json").out
    (scored / "scores.jsonl").unlink()
    told = cli("score", scored)
    assert told.code == 0
    assert (scored / "scores.jsonl").read_bytes() == own
    assert cli("show", scored, "--json").out == before
    lines = [line for line in told.out.splitlines() if not line.startswith("    ")]
    assert len(lines) == 2 * 3 * 2
    assert (
        told.out.count("    bleu_clean ")
        == told.out.count(", brevity_penalty ")
        == told.out.count("|tok:13a|")
        == 2 * 2
    )
    assert told.out.count(", unparsed_rate ") == 2 * 2
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


def turn(text: str, **changes: object) -> Turn:
    fields = dict.fromkeys(("prefill_ns", "first_ns", "cpu_ns", "first_cpu_ns"), 1)
    return Turn(
        **{
            **fields,
            "prompt_tokens": 1,
            "prompt_sha256": "",
            "token_ids": [1],
            "text": text,
            "finish": "eos",
            "end_ns": 2,
            **changes,
        }
    )


def sample(key: str, domain: str, scorer: str, *references: list[str], **fields: object) -> SampleRecord:
    return SampleRecord(
        key=f"made/{key}",
        suite="made",
        sample_id=key,
        domain=domain,
        turns=["?"] * len(references),
        references=list(references),
        scorer=scorer,
        **{"category": domain, **fields},
    )


def stored(folder, samples, texts, **changes) -> StoredRun:
    """A run of one method; `texts` holds the turns of each sample."""
    cells = [
        Cell(
            method="m",
            sample=record.key,
            turns=[one if isinstance(one, Turn) else turn(one) for one in texts[record.sample_id]],
        )
        for record in samples
    ]
    return StoredRun(path=folder, plan={}, environment={}, samples=samples, cells=cells, **changes)


@pytest.fixture
def own_registry(monkeypatch):
    monkeypatch.setattr(registry, "_FUNCTIONS", dict(registry._FUNCTIONS))
    monkeypatch.setattr(registry, "_ABOUT", dict(registry._ABOUT))
    monkeypatch.setattr(registry, "_RUN_CODE", set(registry._RUN_CODE))
    monkeypatch.setattr(names, "_added", dict(names._added))


def test_classes_options_and_contexts_reach_the_scorer(tmp_path):
    options = ["lime", "gneiss", "basalt", "slate"]
    samples = [
        sample("1", "mmlu", "letter", ["B"], options=options, category="geology", group="stem"),
        sample("2", "mmlu", "letter", ["C"], options=options, category="law", group="humanities"),
        sample("3", "mmlu", "letter", ["D"], options=options, category="law", group="humanities"),
    ]
    run = stored(tmp_path, samples, {"1": ["It is the gneiss."], "2": ["C"], "3": ["A"]})
    (record,) = score_run(run)
    assert record.scores.values["accuracy"].value == pytest.approx(2 / 3)
    assert record.scores.extras["accuracy_macro"].value == 0.75
    assert record.scores.extras["accuracy/humanities"].value == 0.5
    assert record.scores.per_sample["accuracy"] == {"made/1#0": 1, "made/2#0": 1, "made/3#0": 0}
    assert record.scores.counts["rule:option-text"] == 1


def test_what_is_stored_is_what_is_returned(tmp_path):
    samples = [sample("1", "translation", "bleu", ["It rained all day."]), sample("2", "qa", "qa", ["2017"])]
    found = score_run(stored(tmp_path, samples, {"1": ["It rained all day."], "2": ["in 2017"]}))
    lines = (tmp_path / "scores.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(line, type=ScoreRecord) for line in lines] == found
    assert found[1].scores.statistics["bleu"] == {"made/1#0": [5, 5, 5, 4, 3, 2, 5, 4, 3, 2]}


def test_a_failed_turn_is_not_an_answer(tmp_path):
    """Other harnesses write ERROR for a failure; a model of ours that says so has answered."""
    samples = [sample(key, "qa", "qa", ["2017"]) for key in "1234"]
    texts = {
        "1": [turn("ERROR", tokens=7)],
        "2": [turn("in 2017", finish="error")],
        "3": ["ERROR"],
        "4": [turn("in 2017", tokens=3)],
    }
    (record,) = score_run(stored(tmp_path, samples, texts))
    assert (record.scores.counts["failed"], record.scores.values["contains"].n) == (2, 2)
    assert record.scores.per_sample["contains"] == {"made/3#0": 0, "made/4#0": 1}


def test_a_turn_that_was_never_reached_is_counted(tmp_path):
    samples = [sample("1", "math", "last_number", ["1"], ["2"])]
    (record,) = score_run(stored(tmp_path, samples, {"1": ["1"]}))
    assert (record.scores.counts["answers"], record.scores.counts["failed"]) == (2, 1)


@pytest.mark.usefixtures("own_registry")
def test_a_scorer_that_cannot_score_takes_nothing_else_with_it(tmp_path):
    @register_scorer("breaks", about="fails")
    def breaks(answers):
        raise RuntimeError("no licence")

    register_scorer("wrong", about="returns text")(lambda answers: "high")
    register_scorer("nan", about="gives NaN")(
        lambda answers: Scores(scorer="nan", signature="", values={"nan": Value(value=float("nan"), n=1)})
    )
    kinds = {"a": "breaks", "b": "wrong", "c": "nan", "d": "qaa", "e": "qa", "f": "breaks"}
    samples = [sample(key, f"domain-{key}", scorer, ["2017"]) for key, scorer in kinds.items()]
    records = score_run(stored(tmp_path, samples, {key: ["in 2017"] for key in kinds}))
    found = {record.domain: record.scores for record in records}
    assert found["domain-e"].values["contains"].value == 1
    assert found["domain-e"].error == found["domain-c"].error == ""
    assert found["domain-c"].values["nan"].value is None
    reason = found["domain-a"].values["breaks"].reason
    assert (found["domain-a"].values["breaks"].value, found["domain-a"].values["breaks"].n) == (None, 0)
    assert reason.startswith("test_evaluation.py:")
    assert "the scorer 'breaks' failed: RuntimeError: no licence" in reason
    assert found["domain-b"].values["wrong"].reason == "the scorer 'wrong' returned str, not Scores"
    assert found["domain-d"].values["qaa"].reason == "there is no scorer named 'qaa'"
    errors = scorer_errors(records)
    assert len(errors) == 3
    assert any(error.startswith("domain-a, domain-f not scored: test_evaluation.py:") for error in errors)
    assert len((tmp_path / "scores.jsonl").read_bytes().splitlines()) == 6


def test_a_scorer_that_is_not_here_is_told_and_the_rest_is_scored(scored, cli, rows):
    found = rows(scored / "samples.jsonl")
    for row in found:
        if row["domain"] == "qa":
            row["scorer"] = "comet"
    (scored / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    told = cli("score", scored)
    assert told.code == 1
    assert told.err == "draftboard: qa not scored: there is no scorer named 'comet'\n"
    assert "comet n/a (there is no scorer named 'comet') (n=0)" in told.out
    assert "translation · round 1: bleu " in told.out
    assert cli("score", scored, "--json").code == 1
    assert cli("show", scored).code == 0


PROGRAM = sample("1", "code", "pass_at_1", ["assert add(2, 3) == 5"], context="def add(a, b):\n")


def test_code_is_run_only_on_demand(tmp_path, monkeypatch):
    heard = []
    monkeypatch.setattr("draftboard.scoring.execution.require_sandbox", lambda run_code: None)
    monkeypatch.setattr("draftboard.evaluation.require_sandbox", lambda run_code: None)

    def run_program(programs, tests, *, run_code):
        heard.append(run_code)
        return "passed"

    monkeypatch.setattr("draftboard.scoring.execution.run_program", run_program)
    run = stored(tmp_path, [PROGRAM], {"1": ["return a + b"]})
    (record,) = score_run(run)
    value = record.scores.values["pass_at_1"]
    assert (value.value, value.n, heard) == (None, 0, [])
    assert value.reason == "code is not run unless asked for: draftboard score RUN --run-code"
    (record,) = score_run(run, run_code=True)
    assert (record.scores.values["pass_at_1"].value, record.scores.values["pass_at_1"].n, heard) == (1, 1, [True])


def test_where_code_cannot_be_run_the_old_scores_stay(tmp_path, monkeypatch):
    def refuse(run_code):
        raise UserError("code cannot be kept from network and files here: no new namespaces")

    monkeypatch.setattr("draftboard.evaluation.require_sandbox", refuse)
    run = stored(tmp_path, [PROGRAM], {"1": ["return a + b"]})
    score_run(run)
    before = (tmp_path / "scores.jsonl").read_bytes()
    with pytest.raises(UserError, match="no new namespaces"):
        score_run(run, run_code=True)
    assert (tmp_path / "scores.jsonl").read_bytes() == before
    plain = stored(tmp_path, [sample("1", "qa", "qa", ["2017"])], {"1": ["2017"]})
    assert score_run(plain, run_code=True)[0].scores.values["em"].value == 1


def test_running_code_on_the_command_line(scored, cli, monkeypatch):
    told = cli("score", scored, "--unisolated")
    assert told.code == 2
    assert "Add --run-code" in told.err
    seen = []
    monkeypatch.setattr("draftboard.evaluation.score_run", lambda run, *, run_code: seen.append(run_code) or [])
    for flags in ((), ("--run-code",), ("--run-code", "--unisolated")):
        assert cli("score", scored, *flags).code == 0
    assert seen == [False, True, "unisolated"]


SCORER = """
from draftboard.scoring import register_scorer, score_each

@register_scorer("brevity_of_ours")
def brevity(answers):
    \"\"\"Share of answers of at most ten words.\"\"\"
    return score_each(answers, scorer="brevity_of_ours", signature="words:10", metrics=("brief",),
                      measure=lambda item: {"brief": float(len(item.text.split()) <= 10)})
"""


def test_a_file_may_bring_nothing_but_a_scorer(run, cli, ask, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_FUNCTIONS", dict(registry._FUNCTIONS))
    monkeypatch.setattr(registry, "_ABOUT", dict(registry._ABOUT))
    monkeypatch.setattr(names, "_added", dict(names._added))
    plugin = tmp_path / "brevity.py"
    plugin.write_text(SCORER)
    suite = ask([{"question_id": 1, "turns": ["the ferry"], "reference": "the", "scorer": "brevity_of_ours"}])
    assert run("--warmup", "none", suite=suite).code == 2
    told = run("--warmup", "none", "--plugin", plugin, suite=suite)
    assert told.code == 0, told.err
    again = cli("score", tmp_path / "run", "--plugin", plugin)
    assert again.code == 0, again.err
    assert "brief 1.000 (n=1)" in again.out
