"""What a board says of a run's conditions: what was recorded, and nothing that was not."""

from pathlib import Path

from draftboard.conditions import conditions, notes
from draftboard.store import StoredRun

PLAN = {
    "model": "tiny",
    "suites": [{"name": "s", "samples": 2, "content_hash": "f" * 64, "notes": ["two rows left out"]}],
    "methods": [{"label": "autoregressive"}, {"label": "m"}],
    "sampling": {"temperature": 0.0, "top_p": 1.0, "top_k": 0},
    "max_new_tokens": 8,
    "seed": 0,
    "repeats": 1,
    "dtype": "auto",
    "device": "auto",
    "template": "auto",
    "warmup": "auto",
    "profile": False,
    "resolved": {"dtype": "float32", "device": "cpu"},
}


def stored(plan=None, environment=None, **other):
    return StoredRun(
        path=Path("run"), plan={**PLAN, **(plan or {})}, environment=environment or {}, samples=[], cells=[], **other
    )


def test_what_a_run_records():
    environment = {"threads": 2, "packages": {"draftboard": "1", "torch": "2", "numpy": "3", "transformers": None}}
    assert conditions(stored({"model_fingerprint": "0123456789abcdef"}, environment)) == {
        "decoding": "greedy",
        "max new tokens": "8",
        "batch size": "1",
        "dtype": "float32",
        "device": "cpu",
        "threads": "2",
        "template": "auto",
        "seed": "0",
        "rounds": "1",
        "samples": "s 2",
        "suite hash": "s ffffffffffff",
        "weights": "0123456789ab",
        "software": "draftboard 1, torch 2",
    }


def test_sampling_is_named():
    hot = conditions(stored({"sampling": {"temperature": 0.5, "top_p": 0.9, "top_k": 0}}))
    assert hot["decoding"] == "temperature 0.5, top-p 0.9, top-k all"


def test_what_departs_from_the_default_is_shown():
    found = conditions(stored({"history": "reference", "part": "test"}))
    assert (found["history"], found["part"]) == ("reference", "test")
    assert not {"history", "part"} & set(conditions(stored({"history": "live", "part": "all"})))


def test_a_selection_is_shown_where_one_was_made():
    chosen = {"category": ["qa", "rag"], "ids": "mine.txt", "limit": 2, "max_prompt_tokens": 512}
    assert {name: value for name, value in conditions(stored(chosen)).items() if name not in conditions(stored())} == {
        "categories": "qa, rag",
        "ids": "mine.txt",
        "limit": "2 per domain",
        "max prompt tokens": "512",
    }
    assert conditions(stored({"category": [], "ids": None, "limit": None})) == conditions(stored())


def test_an_import_shows_its_files_and_no_made_up_conditions():
    unknown = dict.fromkeys(("sampling", "max_new_tokens", "seed", "threads", "tokenizer"))
    plan = {
        **unknown,
        "dtype": "",
        "device": "",
        "template": "",
        "resolved": None,
        "suites": [{"name": "s", "samples": 2, "content_hash": ""}],
        "imported": {"format": "spec-bench", "files": [{"name": "a.jsonl", "sha256": "0"}, "b.jsonl"]},
    }
    assert conditions(stored(plan)) == {"imported": "spec-bench: a.jsonl, b.jsonl", "rounds": "1", "samples": "s 2"}
    assert conditions(stored({**plan, "imported": {"format": "x"}, "tokenizer": "t"}))["tokenizer"] == "t"


def test_notes_gather_what_a_reader_has_to_know():
    assert notes(stored(warnings=("dropped a line",))) == ("dropped a line", "s: two rows left out")


def test_an_imported_run_brings_its_own_notes(tmp_path):
    from draftboard.records import SampleRecord

    sample = SampleRecord(key="s/1", suite="s", sample_id="1", domain="qa", category="qa", turns=["?"])
    plan = {**stored({"suites": []}).plan, "imported": {"format": "x", "notes": ["m lacks 1 question"]}}
    foreign = StoredRun(path=tmp_path, plan=plan, environment={}, samples=[sample], cells=[])
    assert notes(foreign) == ("m lacks 1 question",)
