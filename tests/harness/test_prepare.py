"""`draftboard prepare`: a static automaton for samd, made once, bound to a vocabulary, used by a run."""

import json
import shutil

import pytest

from draftboard.errors import UserError
from draftboard.preparing import read_documents

LIGHT = ("--warmup", "none")


@pytest.fixture
def corpus(run, tmp_path, rows):
    """Texts that the model is known to write, so that the automaton has something to offer."""
    assert run(*LIGHT, "--temperature", 0, out=tmp_path / "before").code == 0
    path = tmp_path / "corpus.jsonl"
    texts = [turn["text"] for row in rows(tmp_path / "before" / "generations.jsonl") for turn in row["turns"]]
    lines = [{"text": texts[0]}, {"prompt": texts[1]}, {"turns": texts[2:]}, texts[3]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def prepared(cli, corpus, model, tmp_path):
    told = cli("prepare", "samd", corpus, "--out", tmp_path / "static", "--model", model)
    assert told.code == 0, told.err
    assert told.out == f"{tmp_path / 'static'}\n"
    return tmp_path / "static"


def plan(tmp_path, static):
    path = tmp_path / "plan.toml"
    path.write_text(
        f'[[methods]]\nmethod = "samd[none]"\nlabel = "samd-static"\nstatic = "{static}"\nstatic_bias = 0\n'
        # What pays on a machine that others use too would decide whether anything is drafted.
        'budget = "paper"\n'
    )
    return path


def test_an_artifact_says_where_it_is_from_and_a_run_uses_it(prepared, run, tmp_path, corpus, outputs, rows):
    record = json.loads((prepared / "artifact.json").read_text())
    assert record["kind"] == "samd-static"
    assert record["documents"] == 4
    assert record["data"][0]["file"] == "corpus.jsonl"
    assert len(record["data"][0]["sha256"]) == 64
    assert str(tmp_path) not in json.dumps(record["data"])
    told = run(plan(tmp_path, prepared), *LIGHT, "--method", "samd[none]")
    assert told.code == 0, told.err
    shutil.rmtree(tmp_path / "run")
    told = run(plan(tmp_path, prepared), *LIGHT)
    assert told.code == 0, told.err
    found = outputs(tmp_path / "run")
    assert all(ids == found["autoregressive", sample, r] for (_, sample, r), ids in found.items())
    stored = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert stored["methods"][1]["settings"]["static"] == "static"
    accepted = [
        sum(turn["steps"]["accepted"])
        for row in rows(tmp_path / "run" / "generations.jsonl")
        if row["method"] == "samd-static"
        for turn in row["turns"]
    ]
    assert sum(accepted) > 0


def test_an_artifact_for_another_vocabulary_is_refused_before_loading(prepared, run, new_model, tmp_path):
    other = new_model(tmp_path / "other", words=["<unk>", "<s>", "</s>", "one", "two"])
    (other / "model.safetensors").write_bytes(b"garbage")
    told = run(plan(tmp_path, prepared), *LIGHT, target=str(other))
    assert told.code == 2
    assert "samd-static: " in told.err
    assert "token table differs" in told.err
    assert not (tmp_path / "run").exists()


def test_missing_and_damaged_artifacts_are_refused(prepared, run, tmp_path):
    def refused(what):
        told = run(plan(tmp_path, prepared), *LIGHT)
        assert told.code == 2
        assert what in told.err
        assert not (tmp_path / "run").exists()

    (prepared / "automaton.safetensors").rename(prepared / "kept")
    refused("automaton.safetensors cannot be read: No such file")
    record = json.loads((prepared / "artifact.json").read_text())
    for change, what in (({"schema": 9}, "upgrade draftboard"), ({"kind": "head"}, "not an artifact of kind")):
        (prepared / "artifact.json").write_text(json.dumps({**record, **change}))
        refused(what)
    (prepared / "artifact.json").write_text("{")
    refused("cannot be read")
    shutil.rmtree(prepared)
    refused("is no artifact")


def test_an_automaton_that_cannot_be_read_fails_before_the_run(prepared, run, tmp_path):
    (prepared / "automaton.safetensors").write_bytes(b"garbage")
    told = run(plan(tmp_path, prepared), *LIGHT)
    assert told.code == 2
    assert "automaton.safetensors" in told.err
    assert not (tmp_path / "run").exists()


def test_an_existing_out_is_refused_before_the_corpus_is_read(cli, tmp_path, model):
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "mine").write_text("mine")
    told = cli("prepare", "samd", tmp_path / "nowhere.jsonl", "--out", tmp_path / "static", "--model", model)
    assert told.code == 2
    assert "exists already; choose another --out" in told.err
    assert (tmp_path / "static" / "mine").read_text() == "mine"


def test_all_broken_lines_of_all_files_are_told(cli, tmp_path, model):
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text('{"text": "fine"}\n{"text": \n\n[1]\n{"texts": "x"}\n')
    second.write_text('{"turns": ["a", 1]}\n{"prompt": "fine"}\n')
    told = cli("prepare", "samd", first, second, tmp_path / "none.txt", "--out", tmp_path / "static", "--model", model)
    assert told.code == 2
    for where in (
        f"{first}:2: ",
        f"{first}:4: ",
        f"{first}:5: ",
        f"{second}:1: ",
        f"{tmp_path / 'none.txt'}: cannot be read",
    ):
        assert where in told.err
    assert f"{first}:1:" not in told.err
    assert not (tmp_path / "static").exists()


def test_what_else_cannot_be_prepared(cli, tmp_path, model):
    text = tmp_path / "text.txt"
    text.write_text("the ferry leaves")
    blank = tmp_path / "blank.txt"
    blank.write_text(" \n")
    out = ("--out", tmp_path / "static", "--model", model)
    for tokens, what in (
        (("pld", text), "pld needs nothing prepared"),
        (("smad", text), "did you mean 'samd'?"),
        (("samd", blank), "the corpus holds no text"),
        (("samd",), "CORPUS"),
    ):
        told = cli("prepare", *tokens, *out)
        assert told.code == 2
        assert what in told.err
    assert not (tmp_path / "static").exists()


def test_a_full_disk_leaves_no_artifact(cli, corpus, model, tmp_path, monkeypatch):
    from draftboard.methods.samd.static import StaticAutomaton

    def full(self, path):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(StaticAutomaton, "save", full)
    told = cli("prepare", "samd", corpus, "--out", tmp_path / "static", "--model", model)
    assert told.code == 2
    assert "static cannot be written: No space left on device" in told.err
    assert not [path for path in tmp_path.iterdir() if "static" in path.name]


def test_documents_of_text_and_jsonl_files(tmp_path):
    text = tmp_path / "one.txt"
    text.write_bytes("\ufeffdie Fähre\nlegt ab\n".encode())
    assert list(read_documents(text)) == ["die Fähre\nlegt ab\n"]
    lines = tmp_path / "many.jsonl"
    lines.write_text('"a"\n\n{"text": "b\\u2028c"}\n{"prompt": "d"}\r\n{"turns": ["e", "f"]}', encoding="utf-8")
    assert list(read_documents(lines)) == ["a", "b\u2028c", "d", "e\nf"]
    text.write_bytes(b"\xff")
    with pytest.raises(UserError, match="not UTF-8"):
        list(read_documents(text))
