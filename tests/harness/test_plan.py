"""What a plan decides, and how it refuses; `check` on the command line."""

import os
import shutil
from pathlib import Path

import pytest

from draftboard.errors import UserError
from draftboard.options import RunOptions
from draftboard.plan import describe, make_plan

DATA = Path(__file__).parents[1] / "data"


def made(**options):
    return make_plan(RunOptions(suite=("mini",), limit=1, **options))


def problems(**options) -> tuple[str, ...]:
    with pytest.raises(UserError) as caught:
        make_plan(RunOptions(**{"suite": ("mini",), **options}))
    return caught.value.problems


def settings(plan, label):
    (entry,) = [entry for entry in plan.entries if entry.label == label]
    return entry.method.settings()


def test_defaults():
    plan = make_plan(RunOptions())
    assert [entry.label for entry in plan.entries] == ["autoregressive"]
    assert (plan.model, plan.max_new_tokens, plan.sampling.greedy, plan.seed, plan.repeats) == (
        "smollm2-135m",
        1024,
        True,
        0,
        1,
    )
    assert [suite.name for suite in plan.suites] == ["mini"]


def test_no_more_threads_than_cores():
    assert make_plan(RunOptions(suite=("mini",), threads=1)).threads == 1
    cores = os.cpu_count()
    assert problems(suite=("mini",), threads=cores + 1) == (
        f"threads is {cores + 1}, and this machine has {cores} cores to run them on",
    )


def test_everything_wrong_is_told_at_once_with_the_nearest_names():
    found = problems(
        method=("pdl", "samd[token_recicling]", "pld[samd]"),
        suite=("mni", "jsonl@nowhere.jsonl"),
        model="smollm2-135",
        temperature=-1.0,
        top_p=1.5,
        top_k=-1,
        max_new_tokens=0,
        limit=0,
        repeats=0,
        threads=0,
        stop=("",),
    )
    text = "\n".join(found)
    assert len(found) == 14
    for part in (
        "'pdl' — did you mean 'pld'?",
        "'token_recicling' — did you mean 'token_recycling'?",
        "pld wraps no other method",
        "did you mean mini?",
        "nowhere.jsonl: there is no such file",
        "Did you mean smollm2-135m?",
        "temperature must be",
        "top_p must lie",
        "top_k must be",
        "max_new_tokens must be",
        "limit must be",
        "repeats must be",
        "threads must be",
        "stop text must not be empty",
    ):
        assert part in text


@pytest.mark.parametrize("temperature", [float("nan"), float("inf"), -0.1])
def test_temperatures_that_are_none(temperature):
    assert "temperature must be a number of at least 0" in problems(temperature=temperature)[0]


def test_an_unknown_name_without_a_near_one_still_reads_well():
    (found,) = problems(method=("qqq",))
    assert "there is no method 'qqq'. Known: autoregressive, " in found


def test_method_tables_with_labels():
    plan = made(
        methods=(
            {"method": "pld", "label": "short", "draft_length": 3},
            {"method": "samd", "auxiliary": "none"},
            {"method": "samd[token_recycling]", "min_match": 2},
        )
    )
    assert [entry.label for entry in plan.entries] == ["autoregressive", "short", "samd[none]", "samd[token_recycling]"]
    assert settings(plan, "short")["draft_length"] == 3
    assert settings(plan, "samd[none]")["auxiliary"] is None
    assert settings(plan, "samd[token_recycling]")["min_match"] == 2


def test_faults_of_method_tables_name_the_table():
    found = problems(
        methods=(
            {"label": "x"},
            {"method": "pld", "draft_lenght": 3},
            {"method": "pld", "draft_length": "3"},
            {"method": "pld", "label": ""},
            {"method": "pld", "draft_length": 0},
            {"method": "pld", "label": "autoregressive"},
            {"method": "samd", "auxiliary": {"method": "pld", "what": 1}},
            {"method": "samd", "auxiliary": 3},
        )
    )
    expected = (
        'methods[0]: a method table needs method = "name"',
        "methods[1]: pld has no setting 'draft_lenght' — did you mean 'draft_length'?",
        "methods[2]: draft_length = '3': ",
        "methods[3]: label must be a text",
        "methods[4]: pld: ",
        "methods[5]: autoregressive is the baseline's name",
        "methods[6].auxiliary: pld has no setting 'what'",
        "methods[7]: auxiliary takes a method, not 3",
    )
    assert len(found) == len(expected)
    for problem, start in zip(found, expected, strict=True):
        assert problem.startswith(start)


def test_doubled_labels_and_suites_are_refused():
    (found,) = problems(method=("pld",), methods=({"method": "pld", "draft_length": 3},))
    assert found.startswith("several methods are called pld")
    (found,) = problems(method=("samd", "samd[token_recycling]"))
    assert "samd[token_recycling]" in found
    (found,) = problems(suite=("mini", "mini"))
    assert "suite mini is named more than once" in found


def test_the_baseline_stands_first_once():
    plan = made(method=("pld", "autoregressive"))
    assert [entry.label for entry in plan.entries] == ["autoregressive", "pld"]


def test_the_budget_reaches_nested_methods_and_leaves_what_a_table_says():
    plan = made(
        budget="paper",
        method=("samd", "token_recycling"),
        methods=(
            {"method": "pld", "label": "own", "budget": "auto"},
            {"method": "samd", "label": "inner", "auxiliary": {"method": "pld", "budget": "auto"}},
            {"method": "samd", "label": "outer", "budget": "auto", "auxiliary": {"method": "pld"}},
        ),
    )
    assert settings(plan, "samd[token_recycling]")["budget"] == "paper"
    assert settings(plan, "samd[token_recycling]")["auxiliary"]["budget"] == "paper"
    assert settings(plan, "token_recycling")["budget"] == "paper"
    assert settings(plan, "own")["budget"] == "auto"
    assert settings(plan, "inner")["budget"] == "paper"
    # A wrapper's budget rules what it wraps, and what is recorded is what is used.
    assert settings(plan, "inner")["auxiliary"]["budget"] == "paper"
    assert settings(plan, "outer")["auxiliary"]["budget"] == "auto"


def test_the_draft_model_goes_to_every_sps_that_has_none_also_inside():
    plan = made(
        draft_model="tiny", method=("sps", "samd[sps]"), methods=({"method": "sps", "label": "b", "draft": "mine"},)
    )
    assert settings(plan, "sps")["draft"] == "tiny"
    assert settings(plan, "samd[sps]")["auxiliary"]["draft"] == "tiny"
    assert settings(plan, "b")["draft"] == "mine"


def test_a_plan_describes_itself_without_folders(tmp_path):
    folder = tmp_path / "corpus"
    plan = made(methods=({"method": "samd", "static": str(folder)},))
    told = describe(plan)
    assert told["methods"][1]["settings"]["static"] == "corpus"
    assert str(tmp_path) not in repr(told)


def test_limits_choose_subsets():
    few, more = (make_plan(RunOptions(suite=("mini",), limit=n)) for n in (1, 2))
    ids = [{sample.sample_id for _, sample in plan.samples} for plan in (few, more)]
    assert ids[0] < ids[1]
    assert set(few.suites[0].counts.values()) == {1}


# On the command line


def test_cases_1_and_2_through_check_and_run(cli, tmp_path, model):
    bad = DATA / "01-questions-with-problems.jsonl"
    for command in (("check",), ("run", "--out", tmp_path / "run")):
        told = cli(*command, "--model", model, "--suite", f"jsonl@{bad}")
        assert told.code == 2
        for line, what in ((2, "not valid JSON"), (3, "101"), (4, "turns"), (5, "empty"), (6, "blank")):
            (problem,) = [row for row in told.err.splitlines() if f"{bad}:{line}: " in row]
            assert what in problem
        assert f"{bad}:1:" not in told.err
        assert f"{bad}:7:" not in told.err
    assert not (tmp_path / "run").exists()
    good = DATA / "02-questions-bom-crlf.jsonl"
    told = cli("check", "--model", model, "--suite", f"jsonl@{good}", "--template", "vicuna", "--json")
    assert told.code == 0
    assert told.err == ""
    assert told.json["plan"]["suites"][0]["samples"] == 4
    assert told.json["cells"] == 4


def test_check_reads_no_weights(cli, models_made, tmp_path, questions):
    folder = shutil.copytree(models_made["target"], tmp_path / "model")
    (folder / "model.safetensors").write_bytes(b"garbage")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'model = "{folder}"\nsuite = "jsonl@{questions}"\nmethod = ["pld", "samd"]\nrepeats = 2\nlimit = 1\n'
    )
    told = cli("check", plan)
    assert told.code == 0, told.err
    assert "3 methods × 2 samples × 2 = 12 cells" in told.out
    assert "jsonl: 2 samples, qa 1, chat 1" in told.out
    assert "template chat, window 96" in told.out
    report = cli("check", plan, "--json", "--limit", 2).json
    assert report["ok"] is True
    assert report["cells"] == 24
    assert report["skipped"] == []
    assert [m["label"] for m in report["plan"]["methods"]] == ["autoregressive", "pld", "samd[token_recycling]"]
    # "user :", the turn and "assistant :" behind the start token.
    assert report["prompt_tokens"] == {"min": 9, "median": 10, "max": 17}
    ran = cli("run", plan, "--out", tmp_path / "run")
    assert ran.code == 2
    assert "cannot be loaded" in ran.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (("--limit", "x"), "--limit"),
        (("--limit", "1.5"), "'1.5' is not a whole number"),
        (("--seed", "0.4"), "'0.4' is not a whole number"),
        (("--device", "tpu"), "unknown device 'tpu'"),
        (("--template", "~nobody-of-that-name/x"), "cannot be read"),
        (("--mthod", "pld"), "--method"),
        (("--dtype", "float31"), "float32"),
        (("--method", "pdl"), "did you mean 'pld'?"),
        (("--suite", "mnii"), "did you mean mini?"),
        (("--model", "smolm2-135m"), "Did you mean smollm2-135m?"),
        (("nowhere.toml",), "nowhere.toml: cannot be read"),
        (("--plugin", "nowhere.py"), "plug-in nowhere.py is not a file"),
        (("--template", "nowhere.jinja"), "nowhere.jinja"),
        (("--method", "sps"), "sps needs a draft model"),
    ],
)
def test_bad_command_lines_exit_2_and_say_what_to_do(cli, model, tokens, said):
    told = cli("check", *(() if "--model" in tokens else ("--model", model)), *tokens)
    assert told.code == 2
    assert said in told.err
    assert "Traceback" not in told.err
    assert told.out == ""


def test_debug_shows_the_traceback():
    from draftboard.cli import main

    with pytest.raises(UserError):
        main(["check", "--debug", "nowhere.toml"])


def test_the_command_line_wins_over_the_plan_file(cli, tmp_path, model):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'model = "nowhere/at-all"\nsuite = "mini"\nmethod = "pld"\nseed = 3\ntemperature = 0.5\nlimit = 1\n'
    )
    told = cli("check", plan, "--model", model, "--temperature", 0, "--method", "samd[none]", "--json").json["plan"]
    assert told["model"] == model
    assert told["seed"] == 3
    assert told["sampling"]["temperature"] == 0
    assert [method["label"] for method in told["methods"]] == ["autoregressive", "samd[none]"]


# Case 22


@pytest.fixture
def pair(new_model, tmp_path):
    """Model folders with the token tables of case 22, whose weights cannot be read."""
    import json

    case = json.loads((DATA / "22-vocab-pairs.json").read_text())
    folders = {}
    for table in (case["target"] | {"name": "target"}, *case["drafts"]):
        words = sorted(table["vocab"], key=table["vocab"].__getitem__)
        assert table["vocab"] == {word: index for index, word in enumerate(words)}
        folder = new_model(tmp_path / table["name"], words=words, width=table["logit_width"], unknown="<pad>")
        folders[table["name"]] = folder
    return folders


def test_case_22_drafts_with_another_table_are_refused_before_anything_is_loaded(cli, pair, questions, tmp_path):
    for folder in pair.values():
        (folder / "model.safetensors").rename(folder / "kept")
        (folder / "model.safetensors").write_bytes(b"garbage")
    for name, said in (
        ("two-words-swapped", ("id 7 is 'nine' in the target and 'ten' in the draft",)),
        ("shorter-table", ("ids 9 to 11 are missing in the draft", "translates between tables")),
    ):
        told = cli(
            "run",
            "--model",
            pair["target"],
            "--suite",
            f"jsonl@{questions}",
            "--method",
            "sps",
            "--draft-model",
            pair[name],
            "--out",
            tmp_path / "run",
        )
        assert told.code == 2
        assert all(part in told.err for part in said), told.err
        assert not (tmp_path / "run").exists()


def test_case_22_wider_logits_run_and_never_propose_padding(run, pair, tmp_path, rows):
    told = run(
        "--method",
        "sps",
        "--draft-model",
        pair["same-table-wider-logits"],
        "--temperature",
        1.5,
        target=str(pair["target"]),
    )
    assert told.code == 0, told.err
    assert {row["status"] for row in rows(tmp_path / "run" / "generations.jsonl")} == {"ok"}


@pytest.mark.parametrize("name", ["limit", "max_new_tokens", "repeats", "threads", "top_k", "seed"])
def test_numbers_that_json_cannot_hold_are_refused(name):
    assert f"{name} must be at most 9007199254740991" in problems(**{name: 10**20})[0]


def test_text_that_a_run_could_not_be_stored_with_is_refused():
    assert problems(stop=("\udcff",)) == ("stop is not UTF-8 text, which a run could not be stored with",)


def test_the_name_of_a_file_of_ids_has_to_be_storable_too(tmp_path):
    path = tmp_path / "\udcff"
    path.write_text(made().suites[0].samples[0].sample_id)
    assert problems(ids=str(path)) == ("ids is not UTF-8 text, which a run could not be stored with",)


@pytest.mark.parametrize("name", ["model", "device", "template", "ids", "qa_references", "suite", "draft_model"])
def test_what_is_said_to_be_empty_is_no_default(name):
    assert f"{name} is empty; leave it out for its default" in problems(**{name: () if name == "suite" else ""})


def test_labels_that_look_alike_are_alike():
    tables = ({"method": "pld", "label": "x "}, {"method": "samd", "label": "x"})
    assert problems(methods=tables) == ("several methods are called x: give each its own label in a plan file",)


def ids(plan, suite=0):
    return [sample.sample_id for sample in plan.suites[suite].samples]


def test_both_parts_of_a_split_are_written_and_one_is_run():
    whole = make_plan(RunOptions(suite=("mini",)))
    assert describe(whole)["splits"] == {}
    found = {part: make_plan(RunOptions(suite=("mini",), part=part)) for part in ("all", "calibration", "test")}
    assert ids(found["all"]) == ids(whole)
    assert sorted(ids(found["calibration"]) + ids(found["test"])) == sorted(ids(whole))
    written = describe(found["test"])["splits"]["mini"]
    assert written == describe(found["calibration"])["splits"]["mini"] == describe(found["all"])["splits"]["mini"]
    assert written["calibration"] == ids(found["calibration"])
    assert written["test"] == ids(found["test"])
    assert (written["fraction"], written["seed"]) == (0.2, 0)
    limited = make_plan(RunOptions(suite=("mini",), part="test", limit=1))
    assert set(ids(limited)) < set(ids(found["test"]))


def test_categories_may_be_domains_raw_categories_and_comma_separated():
    plan = make_plan(RunOptions(suite=("mini",), category=("speed_bench/coding,speed_bench/math", "writing")))
    domains = {sample.domain for sample in plan.suites[0].samples}
    assert {"speed_bench/coding", "speed_bench/math"} < domains
    assert {
        s.category for s in plan.suites[0].samples if s.domain not in ("speed_bench/coding", "speed_bench/math")
    } == {"writing"}
    (problem,) = problems(category=("codnig",))
    assert "codnig" in problem
    assert "coding" in problem


def test_a_category_may_hold_commas_and_blanks(tmp_path):
    path = tmp_path / "q.jsonl"
    lines = [f'{{"id": {n}, "prompt": "x", "category": "{name}"}}' for n, name in enumerate(["a, b", "a", " c "])]
    path.write_text("\n".join(lines))

    def chosen(*category):
        plan = make_plan(RunOptions(suite=(f"jsonl@{path}",), category=category))
        return list(plan.category), ids(plan)

    assert chosen("a, b") == (["a, b"], ["0"])
    assert chosen("a, b", "a") == (["a, b", "a"], ["0", "1"])
    assert chosen(" c ") == ([" c "], ["2"])
    assert chosen("a , ") == (["a"], ["1"])


def test_a_category_of_one_suite_does_not_empty_the_other(tmp_path):
    (tmp_path / "own.jsonl").write_text('{"question_id": 1, "category": "own", "turns": ["a"]}\n')
    suites = ("mini", f"jsonl@{tmp_path / 'own.jsonl'}")
    plan = make_plan(RunOptions(suite=suites, category=("speed_bench/coding", "own")))
    assert {sample.domain for sample in plan.suites[0].samples} == {"speed_bench/coding"}
    assert ids(plan, 1) == ["1"]
    (problem,) = problems(suite=suites, category=("own",))
    assert "suite mini has no such category" in problem


def test_listed_ids_keep_their_order(tmp_path):
    whole = ids(make_plan(RunOptions(suite=("mini",))))
    (tmp_path / "ids.txt").write_text(f"{whole[5]}\r\n\n{whole[2]}\n")
    plan = make_plan(RunOptions(suite=("mini",), ids=str(tmp_path / "ids.txt")))
    assert ids(plan) == [whole[5], whole[2]]
    assert describe(plan)["ids"] == "ids.txt"
    (tmp_path / "ids.txt").write_text("nobody\n")
    assert "no sample nobody" in problems(ids=str(tmp_path / "ids.txt"))[0]
    assert "cannot be read" in problems(ids=str(tmp_path / "gone.txt"))[0]


def test_a_setting_that_no_suite_uses_is_a_mistake():
    (problem,) = problems(shots=3)
    assert problem == "shots: none of the suites uses it (mini)"


def test_two_files_of_one_kind_are_told_apart_by_name(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"question_id": 1, "turns": ["a"]}\n')
    plan = make_plan(RunOptions(suite=tuple(f"jsonl@{tmp_path / name}.jsonl" for name in ("a", "b"))))
    assert [suite.name for suite in plan.suites] == ["jsonl(a)", "jsonl(b)"]
    twice = problems(suite=(f"jsonl@{tmp_path / 'a.jsonl'}",) * 2)
    assert "named more than once" in twice[0]
