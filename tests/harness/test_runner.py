"""Runs through the command line: what is decoded, in which order, and what is recorded of it."""

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
METHODS = ("--method", "pld", "--method", "token_recycling", "--method", "samd")
LABELS = {"autoregressive", "pld", "token_recycling", "samd[token_recycling]"}
LIGHT = ("--warmup", "none")


def test_a_run_has_every_cell_and_all_methods_write_what_the_baseline_writes(run, tmp_path, rows, outputs, cli):
    told = run(*METHODS)
    assert told.code == 0, told.err
    assert "draftboard render" in told.err
    assert "autoregressive (baseline)" in told.out
    folder = tmp_path / "run"
    assert {path.name for path in folder.iterdir()} == {
        "plan.json",
        "environment.json",
        "samples.jsonl",
        "generations.jsonl",
        "divergences.jsonl",
        "scores.jsonl",
        "verdict.json",
    }
    found = outputs(folder)
    assert set(found) == {(label, f"jsonl/{i}", 0) for label in LABELS for i in (1, 2, 3, 4)}
    for (_, sample, repeat), ids in found.items():
        assert ids == found["autoregressive", sample, repeat]
    assert rows(folder / "divergences.jsonl") == []
    for row in rows(folder / "generations.jsonl"):
        for turn in row["turns"]:
            steps = turn["steps"]
            assert 1 + sum(steps["kept"]) == len(turn["token_ids"]) == 8
            assert all(0 <= a <= d for a, d in zip(steps["accepted"], steps["drafted"], strict=True))
            assert 0 < turn["first_ns"] <= turn["end_ns"]
            assert turn["finish"] == "length"
    shown = cli("show", folder, "--json").json["groups"][0]
    assert {method["method"]: method["output"] for method in shown["methods"]} == {
        label: "" if label == "autoregressive" else "identical" for label in LABELS
    }
    assert shown["conditions"]["dtype"] == "float32"


def test_the_order_of_methods_rotates_from_sample_to_sample(run, tmp_path, rows):
    assert run("--method", "pld", "--method", "token_recycling", *LIGHT).code == 0
    cells = [(row["sample"], row["method"]) for row in rows(tmp_path / "run" / "generations.jsonl")]
    rounds = [cells[start : start + 3] for start in range(0, 12, 3)]
    for group in rounds:
        assert len({sample for sample, _ in group}) == 1
    firsts = [group[0][1] for group in rounds]
    assert firsts == ["autoregressive", "pld", "token_recycling", "autoregressive"]


def test_the_sample_order_depends_on_the_seed(run, tmp_path, rows):
    orders = []
    for seed in (0, 1, 2):
        out = tmp_path / str(seed)
        assert run("--method", "pld", "--seed", seed, *LIGHT, out=out).code == 0
        orders.append(tuple(dict.fromkeys(row["sample"] for row in rows(out / "generations.jsonl"))))
    assert len(set(orders)) > 1


def test_the_baseline_is_there_even_if_nobody_asked_for_it(run, tmp_path, outputs):
    assert run(*LIGHT).code == 0
    assert {method for method, _, _ in outputs(tmp_path / "run")} == {"autoregressive"}


def test_answers_to_earlier_turns_stand_in_the_prompt(run, tmp_path, rows):
    assert run(*LIGHT).code == 0
    (cell,) = [row for row in rows(tmp_path / "run" / "generations.jsonl") if row["sample"] == "jsonl/3"]
    first, second = cell["turns"]
    # A turn is its words behind "user :", its answer's words and an end token, and "assistant :" once more.
    answered = len(first["text"].split()) + 1
    asked = len(["and", "when", "is", "the", "train", "late"])
    assert second["prompt_tokens"] == first["prompt_tokens"] + answered + 2 + asked + 2


@pytest.mark.parametrize(
    ("error", "warmup"),
    [
        ("ZeroDivisionError('by zero')", "none"),
        ("KeyError('lost')", "full"),
        ("MemoryError()", "light"),
        ("SystemExit(0)", "light"),
        (r"ValueError('half \ud800')", "none"),
    ],
)
def test_a_failing_method_costs_its_own_cells_only(run, tmp_path, rows, breaking, cli, error, warmup):
    told = run("--method", "breaking", "--method", "pld", "--plugin", breaking(error), "--warmup", warmup)
    assert told.code == 1, told.err
    assert "Traceback" not in told.err
    found = rows(tmp_path / "run" / "generations.jsonl")
    assert len(found) == 12
    failed = [row for row in found if row["status"] == "failed"]
    assert {row["method"] for row in failed} == {"breaking"}
    assert {row["sample"] for row in failed} == {"jsonl/3", "jsonl/4"}
    for row in failed:
        assert row["reason"].startswith(error.partition("(")[0])
        assert row["turns"] == []
    assert "failed: breaking on jsonl/4" in told.err
    verdict = cli("show", tmp_path / "run", "--json").json["groups"][0]
    (method,) = [m for m in verdict["methods"] if m["method"] == "breaking"]
    assert method["overall"]["speedup"]["value"] is None
    assert "2 of 2 cells failed" in method["overall"]["speedup"]["reason"]
    again = run(
        "--method",
        "breaking",
        "--method",
        "pld",
        "--plugin",
        breaking("ValueError('still')"),
        "--warmup",
        warmup,
        "--resume",
    )
    assert again.code == 1
    assert "2 of 12 cells to run" in again.err
    assert {row["reason"] for row in rows(tmp_path / "run" / "generations.jsonl")[12:]} == {"ValueError: still"}


def test_the_plugin_of_the_readme_runs_from_anywhere_and_stands_in_the_table(
    run, tmp_path, cli, fresh_registry, outputs
):
    source = ROOT / "docs" / "plugin_example.py"
    assert len([line for line in source.read_text().splitlines() if line.strip()]) <= 32
    plugin = Path(shutil.copy(source, tmp_path / "mine.py"))
    told = run("--method", "last_time", "--plugin", plugin)
    assert told.code == 0, told.err
    assert re.search(r"\d\s+last_time\s+\d\.\d\d×( \[.*\])?\s+identical", told.out)
    found = outputs(tmp_path / "run")
    assert all(ids == found["autoregressive", sample, r] for (_, sample, r), ids in found.items())
    page = cli("render", tmp_path / "run", "-o", tmp_path / "site")
    assert page.code == 0
    assert "last_time" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


def test_a_prompt_longer_than_the_window_is_skipped_in_every_method_and_counted(run, tmp_path, rows, ask, cli):
    suite = ask(
        [
            {"question_id": "long", "category": "qa", "turns": [" ".join(["ferry"] * 120)]},
            {"question_id": "near", "category": "qa", "turns": [" ".join(["the ferry leaves"] * 29)]},
            {"question_id": "short", "category": "qa", "turns": ["the ferry leaves"]},
        ]
    )
    told = run(*METHODS, "--warmup", "full", suite=suite)
    assert told.code == 0, told.err
    found = rows(tmp_path / "run" / "generations.jsonl")
    skipped = [row for row in found if row["status"] == "skipped"]
    assert {row["method"] for row in skipped} == LABELS
    assert {row["sample"] for row in skipped} == {"jsonl/long"}
    assert all("window 96" in row["reason"] for row in skipped)
    for row in found:
        if row["sample"] == "jsonl/near":
            (turn,) = row["turns"]
            assert turn["prompt_tokens"] == 1 + 2 + 87 + 2
            assert len(turn["token_ids"]) == 96 - 92
            assert turn["finish"] == "window"
    group = cli("show", tmp_path / "run", "--json").json["groups"][0]
    for method in group["methods"]:
        assert method["domains"]["qa"]["skipped"] == 1
        assert method["domains"]["qa"]["samples"] == 2
        assert method["overall"]["speedup"]["value"] is not None
    assert cli("check", "--model", told_model(rows, tmp_path), "--suite", f"jsonl@{suite}", "--json").json[
        "skipped"
    ] == ["jsonl/long"]


def told_model(rows, tmp_path):
    import json

    return json.loads((tmp_path / "run" / "plan.json").read_text())["model"]


def test_a_later_turn_that_outgrows_the_window_skips_the_sample(run, tmp_path, rows, ask):
    suite = ask([{"question_id": 1, "category": "qa", "turns": ["the ferry", " ".join(["tide"] * 80)]}])
    assert run("--method", "pld", *LIGHT, suite=suite).code == 0
    found = rows(tmp_path / "run" / "generations.jsonl")
    assert [row["status"] for row in found] == ["skipped", "skipped"]
    assert all(row["reason"].startswith("turn 2: prompt of ") for row in found)


def test_stop_texts_cut_the_answer_the_same_in_every_method(run, tmp_path, rows):
    assert run(*LIGHT, out=tmp_path / "plain").code == 0
    plain = {row["sample"]: row["turns"][0]["text"] for row in rows(tmp_path / "plain" / "generations.jsonl")}
    words = plain["jsonl/4"].split()
    stop = words[3]
    assert run(*METHODS, "--stop", stop, *LIGHT).code == 0
    found = rows(tmp_path / "run" / "generations.jsonl")
    for row in found:
        text = row["turns"][0]["text"]
        assert text == plain[row["sample"]].partition(stop)[0].strip()
        assert (row["turns"][0]["finish"] == "stop") == (stop in plain[row["sample"]])
        base = next(r for r in found if r["sample"] == row["sample"] and r["method"] == "autoregressive")
        assert row["turns"][0]["token_ids"] == base["turns"][0]["token_ids"]
    assert any(row["turns"][0]["finish"] == "stop" for row in found)


def test_sampling_is_reproducible_and_no_method_changes_another(run, tmp_path, outputs, cli, rows):
    hot = ("--temperature", "0.9", "--top-p", "0.95", *LIGHT)
    assert run("--method", "pld", *hot, out=tmp_path / "a").code == 0
    assert run(*reversed_methods(), *hot, out=tmp_path / "b").code == 0
    assert run("--method", "pld", *hot, "--seed", 1, out=tmp_path / "c").code == 0
    one, two, three = (outputs(tmp_path / name) for name in "abc")
    assert all(two[key] == ids for key, ids in one.items())
    assert any(three[key] != ids for key, ids in one.items())
    greedy_like = {len({tuple(map(tuple, ids)) for ids in found.values()}) for found in (one, three)}
    assert greedy_like != {1}
    assert not (tmp_path / "a" / "divergences.jsonl").exists()
    shown = cli("show", tmp_path / "a", "--json").json["groups"][0]
    assert [method["output"] for method in shown["methods"]] == ["", ""]
    assert shown["conditions"]["decoding"] == "temperature 0.9, top-p 0.95, top-k all"


def reversed_methods():
    return ("--method", "samd", "--method", "token_recycling", "--method", "pld")


def test_repeats_are_rounds_over_all_samples(run, tmp_path, rows, outputs):
    assert run("--method", "pld", "--repeats", 2, "--temperature", 1, "--top-k", 20, *LIGHT).code == 0
    found = rows(tmp_path / "run" / "generations.jsonl")
    assert [row["repeat"] for row in found] == [0] * 8 + [1] * 8
    # The first round starts its first sample with the baseline, the second one with the other method.
    assert found[0]["method"] != found[8]["method"]
    ids = outputs(tmp_path / "run")
    assert any(ids["pld", f"jsonl/{i}", 0] != ids["pld", f"jsonl/{i}", 1] for i in (1, 2, 3, 4))


def test_sps_runs_with_a_draft_model_of_wider_logits(run, tmp_path, models_made, outputs, rows):
    told = run("--method", "sps", "--draft-model", models_made["draft"])
    assert told.code == 0, told.err
    found = outputs(tmp_path / "run")
    assert all(ids == found["autoregressive", sample, r] for (_, sample, r), ids in found.items())
    steps = [
        turn["steps"]
        for row in rows(tmp_path / "run" / "generations.jsonl")
        if row["method"] == "sps"
        for turn in row["turns"]
    ]
    assert all(max(columns["drafted"]) == 5 for columns in steps)


def test_sps_with_the_target_as_draft_accepts_everything_even_when_sampling(run, tmp_path, models_made, rows):
    # Two loads of one folder are one distribution: q equals p, so that min(1, p / q) is 1.
    told = run("--method", "sps", "--draft-model", models_made["target"], "--temperature", 0.9, *LIGHT)
    assert told.code == 0, told.err
    for row in rows(tmp_path / "run" / "generations.jsonl"):
        if row["method"] == "sps":
            for turn in row["turns"]:
                assert turn["steps"]["accepted"] == turn["steps"]["drafted"]


WRONG = '''
from dataclasses import dataclass
from draftboard.methods import Method, register
from draftboard.methods.engine import LOSSLESS, RootOnly

@register("wrong")
@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong(Method):
    """Says that it is lossless, and is not."""
    def drafter(self, binding):
        return RootOnly()
    def verifier(self):
        return Second()

class Second:
    lossless = True
    def judge(self, tree, scores, sampling, generator):
        return [0], int(scores.logits[0].topk(2).indices[1])
'''


def test_a_wrong_method_is_found_out_with_the_targets_own_scores(run, tmp_path, rows, fresh_registry, cli):
    plugin = tmp_path / "wrong.py"
    plugin.write_text(WRONG)
    tokens = ("--method", "wrong", "--method", "pld", "--plugin", plugin, *LIGHT)
    told = run(*tokens)
    assert told.code == 0, told.err
    path = tmp_path / "run" / "divergences.jsonl"
    found = rows(path)
    assert {(row["method"], row["sample"], row["turn"], row["place"]) for row in found} == {
        ("wrong", f"jsonl/{i}", 0, 1) for i in (1, 2, 3, 4)
    }
    cells = {
        (row["method"], row["sample"]): row["turns"][0]["token_ids"]
        for row in rows(tmp_path / "run" / "generations.jsonl")
    }
    for row in found:
        assert row["baseline_token"] == cells["autoregressive", row["sample"]][1]
        assert row["method_token"] == cells["wrong", row["sample"]][1]
        assert row["baseline_below_best"] == 0
        assert row["method_below_best"] == row["gap"] > 0
    group = cli("show", tmp_path / "run", "--json").json["groups"][0]
    assert {m["method"]: m["output"] for m in group["methods"]} == {
        "autoregressive": "",
        "wrong": "different",
        "pld": "identical",
    }
    assert "wrong" in (tmp_path / "run" / "verdict.json").read_text()
    # What was not yet compared when a run stopped is compared on resuming.
    path.write_text(path.read_text().splitlines(keepends=True)[0])
    assert run(*tokens, "--resume").code == 0
    again = rows(path)
    assert sorted(again, key=str) == sorted(found, key=str)


def test_without_out_a_run_gets_a_folder_of_its_own_below_runs(cli, model, questions, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = cli("run", "--model", model, "--suite", f"jsonl@{questions}", "--max-new-tokens", 1, "--threads", 1, *LIGHT)
    assert told.code == 0, told.err
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("jsonl-")
    assert (folder / "verdict.json").is_file()
