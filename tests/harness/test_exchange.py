"""`draftboard import` and `draftboard export`, through the command line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from draftboard.errors import UserError

DATA = Path(__file__).parents[1] / "data"


def row(question, text, entries, seconds, model, category="qa"):
    choice = {
        "index": 0,
        "turns": [text],
        "decoding_steps": [len(entries)],
        "new_tokens": [sum(entries)],
        "wall_time": [seconds],
        "accept_lengths": entries,
    }
    return {"question_id": question, "category": category, "model_id": model, "choices": [choice], "tstamp": 1.0}


@pytest.fixture
def answers(tmp_path: Path):
    def write(name, *rows):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    plain = write("plain", *(row(q, "who wrote it", [1] * 4, 0.4, "plain") for q in (1, 2)))
    fast = write("fast", *(row(q, "who wrote it", [4], 0.2, "fast") for q in (1, 2, 2)))
    return plain, fast


def test_answer_files_become_a_run_that_every_reader_reads(cli, answers, tmp_path: Path):
    out = tmp_path / "run"
    told = cli("import", "spec-bench", *answers, "-o", out, "--hardware", "A100", "--model", "vicuna")
    assert told.code == 0, told.err
    assert "plain: 2 rows, 0 doubled, 0 failed, the baseline" in told.out
    assert "fast: 2 rows, 1 doubled, 0 failed" in told.out
    assert "the last of each question counts" in told.err
    (group,) = json.loads(cli("show", out, "--json").out)["groups"]
    fast = next(method for method in group["methods"] if method["method"] == "fast")
    assert fast["overall"]["speedup"]["value"] == pytest.approx(2.0)
    assert any("1 doubled" in note for note in group["notes"])
    assert cli("render", out, "-o", tmp_path / "site").code == 0
    assert cli("score", out).code == 0
    told = cli("export", "spec-bench", out, "-o", tmp_path / "back")
    assert told.code == 0
    assert told.out.split() == [str(tmp_path / "back" / f"{name}.jsonl") for name in ("plain", "fast")]


def test_exports_of_a_run_come_back_with_the_same_figures(cli, run, tmp_path: Path):
    assert run("--method", "pld", "--warmup", "none").code == 0
    assert cli("export", "spec-bench", tmp_path / "run", "-o", tmp_path / "files").code == 0
    files = sorted((tmp_path / "files").iterdir())
    told = cli("import", "spec-bench", *files, "-o", tmp_path / "back")
    assert told.code == 0, told.err
    assert "autoregressive: 4 rows, 0 doubled, 0 failed, the baseline" in told.out

    def figures(folder, name):
        (group,) = json.loads(cli("show", folder, "--json").out)["groups"]
        return {method["method"]: method["overall"][name]["value"] for method in group["methods"]}

    for name in ("speedup_pooled", "acceptance_length", "tokens_per_s", "spec_bench_mean_accepted"):
        assert figures(tmp_path / "back", name) == pytest.approx(figures(tmp_path / "run", name))
    assert cli("export", "specdec-bench", tmp_path / "run", "-o", tmp_path / "nv").code == 0
    told = cli("import", "specdec-bench", *sorted((tmp_path / "nv").iterdir()), "-o", tmp_path / "nv-back")
    assert told.code == 0, told.err
    assert figures(tmp_path / "nv-back", "specdec_bench_al") == pytest.approx(
        figures(tmp_path / "run", "specdec_bench_al")
    )
    assert cli("export", "vllm", tmp_path / "run", "-o", tmp_path / "vl").code == 0
    told = cli("import", "vllm", *sorted((tmp_path / "vl").iterdir()), "-o", tmp_path / "vl-back")
    assert told.code == 0, told.err
    assert figures(tmp_path / "vl-back", "output_tokens_per_s") == pytest.approx(
        figures(tmp_path / "run", "tokens_per_s")
    )


def test_the_tokenizer_fills_the_figures_that_count_text(cli, answers, model, tmp_path: Path):
    out = tmp_path / "run"
    told = cli("import", "spec-bench", *answers, "-o", out, "--tokenizer", model)
    assert told.code == 0, told.err
    (group,) = json.loads(cli("show", out, "--json").out)["groups"]
    fast = next(method for method in group["methods"] if method["method"] == "fast")
    # Three words that the tokenizer does not put a start token before: less one, two tokens in 0.4 s.
    assert fast["overall"]["speedup_specbench"]["value"] == pytest.approx((4 / 0.2) / (2 / 0.4))


def test_speed_py_prints_the_original_numbers_in_full(cli, answers, model):
    plain, fast = answers
    told = cli("export", "speed-py", fast, plain, "--tokenizer", model, "--json")
    assert told.code == 0, told.err
    found = json.loads(told.out)["tasks"]
    assert found["qa"]["original"]["speedup"] == pytest.approx((4 / 0.2) / (2 / 0.4), abs=1e-6)
    assert found["qa"]["matched"]["pooled_speedup"] == pytest.approx(2.0)
    assert found["rag"]["original"]["speedup"] is None
    assert "1 doubled row(s)" in told.err
    words = cli("export", "speed-py", fast, plain, "--tokenizer", model).out
    assert repr(found["qa"]["original"]["speedup"]) in words
    assert "translation: 0 rows, 0 of the baseline, 0 matched" in words
    assert "nan" in words


def test_case_20(cli, tmp_path: Path):
    told = cli("import", "stream", DATA / "20-stream-events.jsonl", "-o", tmp_path / "out")
    assert told.code == 0, told.err
    for line in ("output_tokens_total: 21\n", "ttft_s: 0.2\n", "tokens_per_s: 35 [1]\n", "tpot_mean_s: 0.02 [2]\n"):
        assert line in told.out
    assert "[2] takes the first chunk as one token" in told.out
    shown = cli("show", tmp_path / "out")
    assert shown.code == 0
    assert "35.0" in shown.out


def test_case_21(cli, tmp_path: Path):
    told = cli(
        "import", "counters", DATA / "21-metrics-before.txt", DATA / "21-metrics-after.txt", "-o", tmp_path / "out"
    )
    assert told.code == 0, told.err
    for line in ("drafts: 100 ", "drafted_tokens: 300 ", "accepted_tokens: 165 ", "vllm_acceptance_length: 2.65 "):
        assert line in told.out
    assert "acceptance_rate: 0.55 " in told.out
    assert [f"vllm place {k}: {v} " in told.out for k, v in ((1, "0.8"), (2, "0.55"), (3, "0.3"))] == [True] * 3
    told = cli("render", tmp_path / "out", "-o", tmp_path / "site")
    assert told.code == 0
    assert told.err == ""
    board = json.loads((tmp_path / "site" / "leaderboard.json").read_text(encoding="utf-8"))
    figures = board["groups"][0]["methods"][0]["overall"]
    assert figures["vllm_acceptance_length"]["value"] == pytest.approx(2.65)
    assert "2.65" in cli("show", tmp_path / "out").out


def test_figures_of_several_models_are_told_apart(cli, tmp_path: Path):
    for name in ("before", "after"):
        page = (DATA / f"21-metrics-{name}.txt").read_text(encoding="utf-8")
        (tmp_path / name).write_text(page + page.replace('"m"', '"other"'), encoding="utf-8")
    told = cli("import", "counters", tmp_path / "before", tmp_path / "after", "-o", tmp_path / "out")
    assert told.code == 0, told.err
    assert re.findall(r"^server.*:", told.out, re.MULTILINE) == ["server (m):", "server (other):"]


def test_imported_results_are_shown_beside_runs_but_neither_scored_nor_exported(cli, answers, tmp_path: Path):
    vllm = tmp_path / "result.json"
    vllm.write_text(json.dumps({"duration": 1.0, "completed": 2, "output_throughput": 30.0}))
    assert cli("import", "vllm", vllm, "-o", tmp_path / "served").code == 0
    assert cli("import", "spec-bench", *answers, "-o", tmp_path / "run").code == 0
    assert cli("render", tmp_path / "served", tmp_path / "run", "-o", tmp_path / "site").code == 0
    board = json.loads((tmp_path / "site" / "leaderboard.json").read_text(encoding="utf-8"))
    assert len(board["groups"]) == 2
    for command in (["score"], ["export", "spec-bench"], ["export", "vllm"]):
        out = [] if command == ["score"] else ["-o", tmp_path / "no"]
        told = cli(*command, tmp_path / "served", *out)
        assert told.code == 2
        assert "imported results" in told.err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["import", "spec-bench", "{text}"],
        ["import", "spec-bench", "{missing}"],
        ["import", "spec-bench", "{folder}"],
        ["import", "specdec-bench", "{text}"],
        ["import", "specdec-bench", "{folder}"],
        ["import", "vllm", "{text}"],
        ["import", "stream", "{text}"],
        ["import", "counters", "{text}", "{missing}"],
        ["export", "spec-bench", "{folder}"],
        ["export", "vllm", "{missing}"],
        ["import", "spec-bench"],
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(cli, tmp_path: Path, command):
    places = {"{text}": tmp_path / "notes.txt", "{missing}": tmp_path / "no", "{folder}": tmp_path / "folder"}
    places["{text}"].write_text("some\nnotes\n")
    places["{folder}"].mkdir()
    told = cli(*(places.get(token, token) for token in command), "-o", tmp_path / "out")
    assert told.code == 2
    assert told.out == ""
    assert told.err.count("draftboard: ") == 1
    assert "Traceback" not in told.err
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(cli, answers, tmp_path: Path):
    assert cli("import", "spec-bench", *answers, "-o", tmp_path / "run").code == 0
    for form in ("spec-bench", "vllm"):
        told = cli("import", form, *answers, "-o", tmp_path / "run")
        assert told.code == 2
        assert "holds a run already" in told.err


@pytest.mark.parametrize("form", ["spec-bench", "specdec-bench", "vllm"])
def test_an_export_overwrites_nothing_and_leaves_nothing_half_written(cli, answers, tmp_path: Path, monkeypatch, form):
    assert cli("import", "spec-bench", *answers, "-o", tmp_path / "run").code == 0
    out, note = tmp_path / "files", tmp_path / "note.txt"
    assert cli("export", form, tmp_path / "run", "-o", out).code == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    note.write_text("mine")
    for place, why in ((out, "is not empty"), (note, "is a file"), (tmp_path / "run", "holds a run already")):
        told = cli("export", form, tmp_path / "run", "-o", place)
        assert told.code == 2
        assert why in told.err
        assert "Choose another --out, or delete it." in told.err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert note.read_text() == "mine"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert cli("export", form, tmp_path / "run", "-o", empty).code == 0
    assert {path.relative_to(empty) for path in empty.rglob("*") if path.is_file()} == {
        path.relative_to(out) for path in before
    }
    written = []

    def full(path, data):
        if written:
            raise UserError("cannot be written: No space left on device", where=str(path))
        written.append(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    monkeypatch.setattr("draftboard.foreign.folders.write_atomic", full)
    assert cli("export", form, tmp_path / "run", "-o", tmp_path / "half" / "way").code == 2
    assert written
    assert list((tmp_path / "half").iterdir()) == []


def test_case_9_all_four_averages_by_their_names(cli, tmp_path: Path):
    told = cli("render", DATA / "09-speed-records.jsonl", "-o", tmp_path / "site")
    assert told.code == 0, told.err
    (group,) = json.loads((tmp_path / "site" / "leaderboard.json").read_text(encoding="utf-8"))["groups"]
    found = {method["method"]: {k: v["value"] for k, v in method["overall"].items()} for method in group["methods"]}
    assert found["autoregressive"]["tokens_per_s"] == pytest.approx(31.818182, abs=1e-6)
    assert found["method-x"]["tokens_per_s"] == pytest.approx(70.0, abs=1e-6)
    wanted = {"speedup": 2.2, "speedup_rom": 2.222222, "speedup_mor": 2.166667, "speedup_gm": 2.154435}
    assert {name: found["method-x"][name] for name in wanted} == pytest.approx(wanted, abs=1e-6)
    for method in group["methods"]:
        for name in wanted:
            assert method["overall"][name]["n"] == 3


@pytest.mark.parametrize("command", ["stream", "counters", "spec-bench"])
def test_importing_needs_neither_torch_nor_transformers(answers, tmp_path: Path, command):
    sources = {
        "stream": [DATA / "20-stream-events.jsonl"],
        "counters": [DATA / "21-metrics-before.txt", DATA / "21-metrics-after.txt"],
        "spec-bench": answers,
    }
    tokens = ["import", command, *map(str, sources[command]), "-o", str(tmp_path / "out")]
    code = (
        "import sys\nfrom draftboard.cli import main\n"
        f"try:\n    main({tokens!r})\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "assert not {'torch', 'transformers', 'datasets', 'pyarrow'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
