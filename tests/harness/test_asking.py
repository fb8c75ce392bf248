"""What a sample and a run may say about how it is asked: history, raw prompts, budgets, stops, choices, lengths."""

import json
from pathlib import Path

import pytest

from draftboard.likelihood import likeliest, log_probabilities

LIGHT = ("--warmup", "none")
SUITE = """
from draftboard.suites import Raw, Sample, Suite, register_suite

@register_suite("asked", path="never")
def load(path):
    def sample(name, turn, **more):
        return Sample(sample_id=name, suite="asked", domain=more.pop("domain", "plain"), category="c",
                      turns=(turn,), **more)
    shots = tuple(f"question {word} answer two" for word in "one two three four five".split())
    return Suite(name="asked", content_hash="1", source="asked.py", samples=(
        sample("plain", "who wrote the answer"),
        sample("short", "who wrote the answer", max_new_tokens=3),
        sample("long", "who wrote the answer", max_new_tokens=80),
        sample("raw", "question six answer", raw=Raw(header="the answer is", examples=shots), timed=False,
               domain="raw", max_new_tokens=2),
        sample("crowded", "question six answer", raw=Raw(header="the answer is " * {header}, examples=shots),
               timed=False, domain="raw", max_new_tokens=2),
        sample("choice", "question six answer", raw=Raw(header="the", examples=shots), timed=False, domain="likely",
               choices=(" one", " two", " three"), max_new_tokens=0, scorer="qa",
               references=(("one", "two", "three"),)),
    ))
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from draftboard.suites import registry

    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    path = tmp_path / "asked.py"
    path.write_text(SUITE.replace("{header}", "26"))
    return path


@pytest.fixture
def cells(cli, model, asked, tmp_path, rows):
    """Run the suite above and return (cells by method and sample, sample records by id)."""

    def call(*tokens):
        told = cli(
            "run", "--model", model, "--plugin", asked, "--suite", "asked", "--method", "pld", "--max-new-tokens", 8,
            "--dtype", "float32", "--device", "cpu", "--threads", 1, "--out", tmp_path / "run", *LIGHT, *tokens,
        )  # fmt: skip
        assert told.code == 0, told.err
        found = {(row["method"], row["sample"].split("/")[1]): row for row in rows(tmp_path / "run/generations.jsonl")}
        return found, {row["sample_id"]: row for row in rows(tmp_path / "run/samples.jsonl")}

    return call


def test_a_suites_shorter_budget_stays_and_its_longer_one_does_not(cells):
    found, _ = cells()
    for method in ("autoregressive", "pld"):
        lengths = {
            name: len(found[method, name]["turns"][0]["token_ids"]) for name in ("plain", "short", "long", "raw")
        }
        assert lengths == {"plain": 8, "short": 3, "long": 8, "raw": 2}


def test_a_raw_prompt_has_no_template_and_drops_examples_that_do_not_fit(cells, model, tmp_path):
    from transformers import AutoTokenizer

    found, records = cells()
    plain = found["autoregressive", "plain"]["turns"][0]["prompt_tokens"]
    assert plain == 9  # <s> user : who wrote the answer assistant :
    # This tokenizer adds no beginning token by itself: header 3, five examples of 4, the turn 3.
    assert AutoTokenizer.from_pretrained(model)("the").input_ids == [6]
    assert found["autoregressive", "raw"]["turns"][0]["prompt_tokens"] == 3 + 5 * 4 + 3
    assert records["raw"]["examples_dropped"] == 0
    assert len(json.loads((tmp_path / "run/plan.json").read_text())["prompts_sha256"]) == 64
    # 78 of the header and 3 of the turn leave 15 of the window's 96, less a budget of 2: three examples.
    assert found["autoregressive", "crowded"]["turns"][0]["prompt_tokens"] == 78 + 3 * 4 + 3
    assert records["crowded"]["examples_dropped"] == 2
    for name in ("raw", "crowded"):
        assert (
            found["pld", name]["turns"][0]["prompt_sha256"]
            == found["autoregressive", name]["turns"][0]["prompt_sha256"]
        )


def test_a_choice_is_the_likeliest_continuation_and_only_the_baseline_is_asked(cells, model):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    found, records = cells()
    turn = found["autoregressive", "choice"]["turns"][0]
    assert turn["token_ids"] == []
    assert turn["finish"] == "choice"
    tokenizer = AutoTokenizer.from_pretrained(model)
    shots = "\n\n".join(f"question {word} answer two" for word in ("one", "two", "three", "four", "five"))
    ids = tokenizer(f"the\n\n{shots}\n\nquestion six answer", return_tensors="pt").input_ids
    with torch.no_grad():
        row = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)(ids).logits[0, -1]
    words = ["one", "two", "three"]
    assert turn["text"] == max(words, key=lambda word: float(row[tokenizer(word).input_ids[0]]))
    assert found["pld", "choice"]["status"] == "skipped"
    assert "only the baseline" in found["pld", "choice"]["reason"]
    assert records["choice"]["timed"] is False


def test_what_is_not_timed_is_in_no_speed_figure(cells, cli, tmp_path):
    cells()
    group = cli("show", tmp_path / "run", "--json").json["groups"][0]
    for method in group["methods"]:
        assert "speedup" not in method["domains"]["raw"]["figures"]
        assert method["overall"]["speedup"]["n"] == 3
        assert method["overall"]["speedup"]["value"] is not None
    (base,) = [m for m in group["methods"] if m["method"] == "autoregressive"]
    assert base["domains"]["likely"]["figures"]["contains"]["value"] == 1.0


def test_log_probabilities_of_longer_continuations_are_sums(model):
    import torch
    from transformers import AutoModelForCausalLM

    from draftboard.methods.engine.model import LanguageModel

    reference = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float64)
    target = LanguageModel(AutoModelForCausalLM.from_pretrained(model, dtype=torch.float64))
    prompt, continuations = [1, 6, 7, 8], [[9], [10, 11], [12, 13, 14]]
    expected = []
    for ids in continuations:
        with torch.no_grad():
            rows = reference(torch.tensor([[*prompt, *ids]])).logits[0].log_softmax(-1)
        expected.append(sum(float(rows[len(prompt) - 1 + at, token]) for at, token in enumerate(ids)))
    assert log_probabilities(target, prompt, continuations) == pytest.approx(expected, abs=1e-9)
    assert likeliest(target, prompt, continuations) == expected.index(max(expected))
    assert log_probabilities(target, prompt, [[9], [10]])[0] == pytest.approx(expected[0], abs=1e-9)
    with pytest.raises(ValueError, match="at least one token"):
        log_probabilities(target, prompt, [[9], []])


CONTRARY = """
from dataclasses import dataclass
from typing import ClassVar
from draftboard.methods import Method, register
from draftboard.methods.engine import RootOnly

class Second:
    lossless = False
    def judge(self, tree, scores, sampling, generator):
        return [0], int(scores.logits[0].topk(2).indices[1])

@register("contrary")
@dataclass(frozen=True, slots=True, kw_only=True)
class Contrary(Method):
    \"\"\"Writes what the target finds second best, so that its answers are never the baseline's.\"\"\"
    lossless: ClassVar[bool] = False
    def drafter(self, binding):
        return RootOnly()
    def verifier(self):
        return Second()
"""


@pytest.fixture
def contrary(tmp_path, fresh_registry) -> tuple[str, ...]:
    path = tmp_path / "contrary.py"
    path.write_text(CONTRARY)
    return ("--method", "contrary", "--plugin", str(path), *LIGHT)


def test_with_history_reference_every_method_follows_the_baselines_answers(run, contrary, cli, tmp_path, rows):
    assert run(*contrary, out=tmp_path / "live").code == 0
    assert run(*contrary, "--history", "reference", out=tmp_path / "reference").code == 0

    def distinct(folder, turn, key):
        cells = [row for row in rows(folder / "generations.jsonl") if row["sample"] == "jsonl/3"]
        return len({str(cell["turns"][turn][key]) for cell in cells})

    for folder in (tmp_path / "live", tmp_path / "reference"):
        assert distinct(folder, 0, "token_ids") == 2
    assert distinct(tmp_path / "live", 1, "prompt_sha256") == 2
    assert distinct(tmp_path / "reference", 1, "prompt_sha256") == 1
    assert json.loads((tmp_path / "reference/plan.json").read_text())["history"] == "reference"
    assert "1 of 5 turns not paired" in cli("show", tmp_path / "live", "--json").out
    assert "not paired" not in cli("show", tmp_path / "reference", "--json").out


def test_a_resumed_run_with_history_reference_reads_the_baselines_answers_back(run, contrary, tmp_path, rows):
    asked = (*contrary, "--history", "reference")
    assert run(*asked).code == 0
    path = tmp_path / "run" / "generations.jsonl"
    whole = rows(path)
    kept = [row for row in whole if row["method"] == "autoregressive"]
    path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    assert run(*asked, "--resume").code == 0

    def prompts(cells):
        return {(c["method"], c["sample"]): [t["prompt_sha256"] for t in c["turns"]] for c in cells}

    assert prompts(rows(path)) == prompts(whole)


def test_a_turn_whose_baseline_failed_is_skipped_with_history_reference(run, tmp_path, rows):
    long = [{"question_id": 1, "turns": ["the " * 30, "the " * 60]}, {"question_id": 2, "turns": ["the", "a"]}]
    path = tmp_path / "long.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in long))
    assert run("--method", "pld", "--history", "reference", *LIGHT, suite=path).code == 0
    found = {(row["method"], row["sample"]): row for row in rows(tmp_path / "run/generations.jsonl")}
    assert found["autoregressive", "jsonl/1"]["status"] == "skipped"
    assert found["pld", "jsonl/1"]["status"] == "skipped"
    assert found["pld", "jsonl/2"]["status"] == "ok"


def test_prompts_that_may_become_too_long_are_left_out_and_counted(run, cli, tmp_path, rows):
    # Sample 3 has two turns: its second prompt has 19 tokens without the first answer, which may have 8.
    told = run("--max-prompt-tokens", 22, *LIGHT)
    assert told.code == 0, told.err
    assert [row["sample_id"] for row in rows(tmp_path / "run/samples.jsonl")] == ["1", "2", "4"]
    (suite,) = json.loads((tmp_path / "run/plan.json").read_text())["suites"]
    assert any("1 samples left out" in note and "chat 1" in note for note in suite["notes"])
    assert "left out" in cli("show", tmp_path / "run").err
    told = run("--max-prompt-tokens", 2, *LIGHT, out=tmp_path / "none")
    assert told.code == 2
    assert "no sample of suite jsonl fits" in told.err
    assert not (tmp_path / "none").exists()


def test_a_run_counts_its_texts_as_the_tokenizer_does_and_its_memory(run, tmp_path, rows):
    assert run("--method", "pld", *LIGHT).code == 0
    for row in rows(tmp_path / "run" / "generations.jsonl"):
        assert [turn["text_tokens"] for turn in row["turns"]] == [len(turn["text"].split()) for turn in row["turns"]]
        assert row["peak_rss_bytes"] is None or row["peak_rss_bytes"] > 10_000_000


def test_methods_are_asked_again_once_a_failed_baseline_has_answered(run, tmp_path, rows, monkeypatch):
    from draftboard.worker import Worker

    generate = Worker._generate

    def failing(self, task, index, ids, *, budget):
        if task.entry.label == "autoregressive" and task.key == "jsonl/3":
            raise RuntimeError("out of memory")
        return generate(self, task, index, ids, budget=budget)

    asked = ("--method", "pld", "--history", "reference", *LIGHT)
    path = tmp_path / "run/generations.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(Worker, "_generate", failing)
        assert run(*asked).code == 1
    found = {(row["method"], row["sample"]): row for row in rows(path)}
    assert found["pld", "jsonl/3"]["status"] == "failed"
    assert "the baseline failed" in found["pld", "jsonl/3"]["reason"]
    assert run(*asked, "--resume").code == 0
    found = {(row["method"], row["sample"]): row for row in rows(path)}
    assert {row["status"] for row in found.values()} == {"ok"}
    prompts = [
        [turn["prompt_sha256"] for turn in found[name, "jsonl/3"]["turns"]] for name in ("autoregressive", "pld")
    ]
    assert prompts[0] == prompts[1]


def test_a_special_token_can_be_a_stop_text(run, tmp_path, rows, new_model):
    from transformers import AutoTokenizer

    target = new_model(tmp_path / "marked")
    tokenizer = AutoTokenizer.from_pretrained(target)
    assert run("--method", "pld", *LIGHT, target=str(target), out=tmp_path / "free").code == 0
    first = rows(tmp_path / "free/generations.jsonl")[0]["turns"][0]["token_ids"]
    word = tokenizer.convert_ids_to_tokens(first[2])
    assert word not in tokenizer.convert_ids_to_tokens(first[:2])
    tokenizer.add_special_tokens({"additional_special_tokens": [word]})
    tokenizer.save_pretrained(target)
    assert run("--method", "pld", "--stop", word, *LIGHT, target=str(target)).code == 0
    sample = rows(tmp_path / "free/generations.jsonl")[0]["sample"]
    turns = [row["turns"][0] for row in rows(tmp_path / "run/generations.jsonl") if row["sample"] == sample]
    assert [(turn["token_ids"], turn["finish"]) for turn in turns] == [(first[:3], "stop")] * 2
    assert word not in turns[0]["text"]


CHOICES = """
from draftboard.suites import Raw, Sample, Suite, register_suite

@register_suite("choices", path="never")
def load(path):
    samples = [Sample(sample_id=str(length), suite="choices", domain="likely", category="c", turns=("the " * length,),
                      raw=Raw(), choices=(" one", " {second}"), max_new_tokens=0, timed=False)
               for length in (95, 96, 97)]
    return Suite(name="choices", content_hash="1", source="choices.py", samples=tuple(samples))
"""


@pytest.fixture
def choices(cli, model, tmp_path, monkeypatch):
    """Run or check two choices behind prompts of 95, 96 and 97 tokens; the window has 96."""
    from draftboard.suites import registry

    monkeypatch.setattr(registry, "_registered", dict(registry._registered))

    def call(second, command="run", *tokens):
        path = tmp_path / "choices.py"
        path.write_text(CHOICES.replace("{second}", second))
        return cli(
            command, "--model", model, "--plugin", path, "--suite", "choices", "--device", "cpu", *LIGHT, *tokens
        )

    return call


def test_a_choice_whose_prompt_outgrows_the_window_is_skipped(choices, tmp_path, rows):
    told = choices("two", "run", "--out", tmp_path / "run")
    assert told.code == 0, told.err
    found = {row["sample"]: row for row in rows(tmp_path / "run/generations.jsonl")}
    assert [found[f"choices/{length}"]["status"] for length in (95, 96, 97)] == ["ok", "ok", "skipped"]
    assert found["choices/97"]["reason"] == "turn 1: prompt and choices of 97 tokens, window 96"


def test_choices_that_a_tokenizer_does_not_know_are_refused_before_anything_runs(choices, tmp_path):
    # Of equal ids the first would always be the likeliest.
    for told in (choices("one", "check"), choices("one", "run", "--out", tmp_path / "run")):
        assert told.code == 2
        assert "does not tell the choices of sample 95 apart" in told.err
    assert not (tmp_path / "run").exists()
