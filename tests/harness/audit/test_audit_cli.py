"""The command on runs of the tiny model."""

import json
from pathlib import Path

import pytest

from draftboard.analysis import analyse
from draftboard.store import read_run

QUICK = ("--positions", 60)
PLACE = 3
"""The first place that the faulty method's third step writes."""


@pytest.fixture
def made(run, tmp_path):
    told = run("--method", "pld")
    assert told.code == 0, told.err
    return tmp_path / "run"


@pytest.fixture
def broken(run, faulty, tmp_path):
    told = run("--method", "pld", "--method", "faulty", "--plugin", faulty)
    assert told.code == 0, told.err
    return tmp_path / "run"


def by_method(document):
    return {method["method"]: method for method in document["methods"]}


def test_a_lossless_run_passes_and_theta_is_measured(cli, made):
    told = cli("audit", made, "--json", *QUICK)
    assert told.code == 0, told.err
    document = told.json
    assert document["passed"]
    limit = document["limit"]
    assert (limit["source"], limit["positions"]) == ("measured", 60)
    assert limit["value"] == max(2 * limit["percentile"], 1e-3)
    (method,) = document["methods"]
    assert (method["verdict"], method["counts"], method["passed"]) == ("identical", {"identical": 5}, True)
    assert method["domains"] == {"qa": {"identical": 2}, "chat": {"identical": 3}}
    assert json.loads((made / "audit.json").read_bytes()) == document
    assert document["schema"] == 1


def test_a_wrong_token_is_found_at_its_place(cli, broken, rows):
    told = cli("audit", broken, "--json", "--fp32", "--theta", 0.001)
    assert told.code == 1, told.err
    methods = by_method(told.json)
    assert methods["pld"]["passed"]
    bad = methods["faulty"]
    assert (bad["verdict"], bad["lossless"], bad["passed"]) == ("mismatch", True, False)
    # The second turn of the conversation has another first answer before it.
    assert bad["counts"] == {"mismatch": 4, "not-comparable": 1}
    written = {(row["method"], row["sample"]): row["turns"] for row in rows(broken / "generations.jsonl")}
    for difference in bad["differences"]:
        ours = written["autoregressive", difference["sample"]][0]["token_ids"]
        assert (difference["turn"], difference["place"]) == (0, PLACE)
        assert difference["baseline_token"] == ours[PLACE]
        assert difference["method_token"] == written["faulty", difference["sample"]][0]["token_ids"][PLACE]
        assert difference["shared"] == PLACE / len(ours)
        # The faulty verifier takes the last of the 56 tokens.
        assert (difference["baseline_rank"], difference["method_rank"]) == (1, 56)
        assert difference["margin"] == difference["method_below"] > difference["gap"] > 0.001
        assert (difference["judged_by"], difference["float32_sides_with"]) == ("model", "baseline")


def test_the_table_names_the_place_in_80_columns(cli, broken, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    told = cli("audit", broken, "--theta", 0.001)
    assert told.code == 1
    assert max(map(len, told.out.splitlines())) <= 80
    joined = " ".join(told.out.split())
    assert f"mismatch on jsonl/1, turn 1, place {PLACE}:" in joined
    assert "not lossless as claimed: faulty" in joined


def test_without_the_model_the_stored_divergences_judge(cli, broken, models_made, monkeypatch):
    from draftboard import models

    monkeypatch.setattr(models, "load_model", None)
    told = cli("audit", broken, "--no-model", "--json")
    assert told.code == 1, told.err
    assert told.json["limit"] == {"value": 1e-3, "source": "default", "positions": 0, "percentile": None}
    bad = by_method(told.json)["faulty"]
    assert bad["verdict"] == "mismatch"
    assert {d["judged_by"] for d in bad["differences"]} == {"stored"}
    (broken / "divergences.jsonl").unlink()
    bad = by_method(cli("audit", broken, "--no-model", "--json").json)["faulty"]
    assert (bad["verdict"], bad["passed"], bad["counts"]["different"]) == ("unjudged", False, 4)


def test_a_wide_limit_makes_ties_which_exact_fails(cli, broken):
    told = cli("audit", broken, "--no-model", "--theta", 1e6)
    assert told.code == 0, told.out
    assert "tie-divergent" in told.out
    assert "--exact would fail it" in told.out
    told = cli("audit", broken, "--no-model", "--theta", 1e6, "--exact")
    assert told.code == 1
    assert "differ at a near-tie" in told.out


def test_analysis_takes_a_measured_limit_and_no_given_one(cli, broken):
    def output():
        (found,) = [m for m in analyse(read_run(broken)).methods if m.method == "faulty"]
        return found.output

    assert output() == "different"
    cli("audit", broken, "--no-model", "--theta", 1e6)
    assert output() == "different"
    path = broken / "audit.json"
    stored = json.loads(path.read_bytes())
    stored["limit"]["source"] = "measured"
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert output() == "tie-divergent"
    # A later audit without the model keeps what was measured.
    assert cli("audit", broken, "--no-model", "--json").json["limit"]["value"] == 1e6


def test_a_lossy_method_breaks_no_claim(cli, broken):
    path = broken / "plan.json"
    plan = json.loads(path.read_bytes())
    plan["methods"][2]["lossless"] = False
    path.write_text(json.dumps(plan), encoding="utf-8")
    told = cli("audit", broken, "--no-model", "--json")
    assert told.code == 0
    assert by_method(told.json)["faulty"]["verdict"] == "mismatch"


def test_a_half_written_run_is_judged_by_what_is_there(cli, made):
    path = made / "generations.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:5]) + lines[5][:40], encoding="utf-8")
    told = cli("audit", made, "--no-model", "--json")
    assert told.code == 0, told.err
    assert any("3 of 8 cells have not run" in note for note in told.json["notes"])
    assert told.json["methods"][0]["counts"]["identical"] >= 2


def test_cells_that_failed_beside_a_good_baseline_fail_the_method(cli, run, breaking, tmp_path):
    run("--method", "breaking", "--plugin", breaking("ValueError('no')"))
    told = cli("audit", tmp_path / "run", "--no-model", "--json")
    assert told.code == 1
    (method,) = told.json["methods"]
    assert method["verdict"] == "identical"
    assert "cells failed where autoregressive did not" in method["reason"]


def test_other_weights_are_refused(cli, made, models_made):
    told = cli("audit", made, "--model", models_made["other"])
    assert told.code == 2
    assert "other weights" in told.err
    assert not (made / "audit.json").exists()


def test_a_model_that_is_gone_is_told_with_the_ways_out(cli, run, new_model, tmp_path):
    import shutil

    home = new_model(tmp_path / "here", layers=1)
    assert run("--method", "pld", target=str(home)).code == 0
    shutil.move(home, tmp_path / "there")
    told = cli("audit", tmp_path / "run")
    assert told.code == 2
    assert "--no-model" in told.err
    assert "--model" in told.err
    assert cli("audit", tmp_path / "run", "--model", tmp_path / "there", *QUICK).code == 0
    (tmp_path / "there" / "model.safetensors").unlink()
    told = cli("audit", tmp_path / "run", "--model", tmp_path / "there")
    assert (told.code, "no weight files" in told.err) == (2, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plan, cells: plan.update(imported={"format": "spec_bench"}), "was imported"),
        (lambda plan, cells: plan.update(methods=plan["methods"][:1]), "no method beside autoregressive"),
        (lambda plan, cells: plan.pop("model_fingerprint"), "no fingerprint"),
        (lambda plan, cells: cells.clear(), "no answer of autoregressive"),
        (lambda plan, cells: cells.__delitem__(slice(1, None)), "no turn of any method could be compared"),
    ],
)
def test_runs_that_cannot_be_audited(cli, made, change, message):
    plan = json.loads((made / "plan.json").read_bytes())
    cells = (made / "generations.jsonl").read_text(encoding="utf-8").splitlines()
    cells.sort(key=lambda line: json.loads(line)["method"])
    change(plan, cells)
    (made / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    (made / "generations.jsonl").write_text("".join(f"{line}\n" for line in cells), encoding="utf-8")
    told = cli("audit", made, *QUICK)
    assert told.code == 2
    assert message in told.err
    assert "Traceback" not in told.err


def test_prompts_that_cannot_be_made_again_leave_it_to_what_was_stored(cli, broken):
    path = broken / "samples.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace("who wrote", "what wrote"), encoding="utf-8")
    told = cli("audit", broken, "--json", *QUICK)
    bad = by_method(told.json)["faulty"]
    judged = {d["sample"]: d["judged_by"] for d in bad["differences"]}
    assert judged == {"jsonl/1": "stored", "jsonl/2": "model", "jsonl/3": "model", "jsonl/4": "model"}


@pytest.mark.parametrize("text", ["{", '{"schema": 1}', '{"schema": 1, "limit": {"value": "x"}}'])
def test_a_damaged_audit_is_told_with_what_helps(cli, made, text):
    (made / "audit.json").write_text(text, encoding="utf-8")
    told = cli("show", made)
    assert (told.code, "Delete it and audit the run again." in told.err) == (2, True)


def test_a_folder_that_is_no_run(cli, tmp_path):
    assert cli("audit", tmp_path).code == 2
    assert cli("audit", tmp_path / "none").code == 2


def test_all_that_is_wrong_with_what_is_asked_is_told_at_once(cli, made):
    told = cli("audit", made, "--theta", "nan", "--no-model", "--fp32", "--draws", 1)
    assert told.code == 2
    for word in ("theta", "fp32", "draws"):
        assert word in told.err


DATA = Path(__file__).parents[2] / "data"


def test_case_7(cli):
    files = (DATA / "07-outputs-reference.jsonl", DATA / "07-outputs-method.jsonl")
    told = cli("audit", *files, "--theta", 0.01, "--json")
    assert told.code == 1
    (method,) = told.json["methods"]
    assert method["verdict"] == "mismatch"
    assert method["counts"] == {"identical": 1, "near-tie": 2, "mismatch": 1, "not-comparable": 1}
    found = {(d["sample"], d["turn"]): (d["outcome"], d["place"], d["gap"]) for d in method["differences"]}
    assert found == {
        ("2", 0): ("near-tie", 5, 0.0039),
        ("3", 0): ("mismatch", 2, 3.1),
        ("4", 0): ("near-tie", 2, 0.002),
    }


@pytest.mark.parametrize(("exact", "code"), [((), 0), (("--exact",), 1)])
def test_case_7_without_question_3(cli, tmp_path, exact, code):
    files = []
    for name in ("07-outputs-reference.jsonl", "07-outputs-method.jsonl"):
        lines = (DATA / name).read_text(encoding="utf-8").splitlines()
        files.append(tmp_path / name)
        files[-1].write_text("".join(f"{x}\n" for x in lines if '"question_id": 3' not in x), encoding="utf-8")
    told = cli("audit", *files, "--theta", 0.01, "--json", *exact)
    assert told.code == code
    assert told.json["methods"][0]["verdict"] == "tie-divergent"


def test_bad_files_of_outputs(cli, tmp_path):
    good, bad = DATA / "07-outputs-reference.jsonl", tmp_path / "bad.jsonl"
    assert "needs --theta" not in cli("audit", good).err
    assert "--theta" in cli("audit", good, good).err
    bad.write_text('{"question_id": 1, "turns": "x"}\n{"question_id": 2}\n', encoding="utf-8")
    told = cli("audit", good, bad, "--theta", 0.1)
    assert told.code == 2
    assert "bad.jsonl:1" in told.err
    assert "bad.jsonl:2" in told.err
    bad.write_text("", encoding="utf-8")
    assert cli("audit", good, bad, "--theta", 0.1).code == 2
