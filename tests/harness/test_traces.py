"""Traces of runs: texts that add up, steps that agree with the stored columns, and files that survive crashes."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from draftboard.errors import UserError
from draftboard.methods.engine import Limits, decode
from draftboard.records import TraceRecord
from draftboard.testing import OracleDrafter, TableTarget
from draftboard.traces import Spelling, pieces, read_traces, traced_turn

LIGHT = ("--warmup", "none", "--method", "pld", "--method", "token_recycling")
TEXT = "Hi  there,\n你好 🙂👩‍👩‍👧 é مرحبا \ufffd end"


def byte_level():
    """A tokenizer whose tokens are bytes, as the worst case of byte-level BPE is."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return backend


def blanks_marked():
    """One that marks blanks in front of words, drops the first, and has bytes for what it does not know."""
    words = ["<unk>", "▁", "▁the", "▁ferry", "▁leaves", "s", "?", *(f"<0x{byte:02X}>" for byte in range(256))]
    backend = Tokenizer(
        models.BPE({word: number for number, word in enumerate(words)}, [], unk_token="<unk>", byte_fallback=True)
    )
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return backend


def tidying():
    """One that takes away blanks before full stops and puts words together again."""
    backend = Tokenizer(models.WordPiece({w: i for i, w in enumerate(["a", "##b", ".", "don", "'", "t"])}))
    backend.decoder = decoders.WordPiece(prefix="##", cleanup=True)
    return backend


BYTES, MARKED, TIDY = byte_level(), blanks_marked(), tidying()


def decoder(backend):
    return lambda ids: backend.decode(list(ids), skip_special_tokens=True)


@pytest.mark.parametrize(("backend", "size"), [(BYTES, 256), (MARKED, 263), (TIDY, 6)], ids=["bytes", "marked", "tidy"])
def test_pieces_add_up_to_the_text_whatever_the_ids(backend, size):
    @settings(max_examples=150, deadline=None)
    @given(st.lists(st.integers(0, size - 1), max_size=24))
    def check(ids):
        found = pieces(decoder(backend), ids)
        assert len(found) == len(ids)
        assert "".join(found) == backend.decode(ids)

    check()


def test_a_character_stands_with_the_token_that_completes_it():
    ids = BYTES.encode("a🙂你").ids
    assert pieces(decoder(BYTES), ids) == ["a", "", "", "", "🙂", "", "", "你"]
    ids = BYTES.encode(TEXT).ids
    found = pieces(decoder(BYTES), ids)
    assert "".join(found) == TEXT
    assert all(len(piece) <= 1 or "\ufffd" in piece for piece in found)


def test_an_unfinished_character_at_the_end_is_told_with_the_last_token():
    ids = BYTES.encode("a🙂").ids[:-1]
    found = pieces(decoder(BYTES), ids)
    assert "".join(found) == BYTES.decode(ids) != ""
    assert found[-1] != ""


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_every_text_comes_back_in_pieces(text):
    assert "".join(pieces(decoder(BYTES), BYTES.encode(text).ids)) == text


def test_drafts_are_spelled_behind_what_stands_before_them():
    written = BYTES.encode("ok 🙂").ids
    target = TableTarget.scripted([0, *written, 255], vocab_size=256)
    drafter = OracleDrafter([*written, 255], depth=3, decoys=1)
    limits = Limits(max_new_tokens=len(written) + 1, eos_ids=frozenset({255}))
    made = decode(target, drafter, [0], limits=limits, keep_drafts=True)
    spelling = Spelling(decode=decoder(BYTES), special={255: "<end>"}, eos_ids=frozenset({255}))
    turn = traced_turn("asked", made, spelling)
    assert "".join(turn.pieces) == "ok 🙂"
    assert turn.special == {len(written): "<end>"}
    place = 1
    for step in turn.steps:
        assert step.texts[0] == turn.pieces[place - 1]
        taken = step.path[1:][: step.kept]
        assert [step.texts[node] for node in taken] == turn.pieces[place : place + len(taken)]
        assert all(isinstance(token, int) for token in step.tokens)
        place += step.kept
    assert any("🙂" in step.texts for step in turn.steps)


def test_a_turn_without_generation_has_only_a_prompt():
    turn = traced_turn("asked", None, Spelling(decode=decoder(BYTES), special={}))
    assert (turn.prompt, turn.pieces, turn.steps) == ("asked", [], [])


def test_a_traced_run_agrees_with_its_cells_and_writes_what_an_untraced_one_does(run, tmp_path, rows, outputs):
    traced, plain = tmp_path / "traced", tmp_path / "plain"
    assert run(*LIGHT, "--traces", "--repeats", 2, out=traced).code == 0
    assert run(*LIGHT, "--repeats", 2, out=plain).code == 0
    assert outputs(traced) == outputs(plain)
    assert not (plain / "traces.jsonl").exists()
    assert "traces" not in json.loads((plain / "plan.json").read_text())
    assert json.loads((traced / "plan.json").read_text())["traces"] is True
    cells = {(row["method"], row["sample"]): row for row in rows(traced / "generations.jsonl") if row["repeat"] == 0}
    traces = read_traces(traced, [])
    assert {(trace.method, trace.sample) for trace in traces} == set(cells)
    assert len(rows(traced / "traces.jsonl")) == len(cells)
    for trace in traces:
        turns = cells[trace.method, trace.sample]["turns"]
        for ours, stored in zip(trace.turns, turns, strict=True):
            assert "".join(ours.pieces).strip() == stored["text"]
            assert len(ours.pieces) == len(stored["token_ids"])
            columns = stored["steps"]
            assert [step.kept for step in ours.steps] == columns["kept"]
            assert [step.accepted for step in ours.steps] == columns["accepted"]
            assert [len(step.tokens) - 1 for step in ours.steps] == columns["nodes"]
            assert [step.verify_ns for step in ours.steps] == columns["verify_ns"]
            assert "assistant :" in ours.prompt


def test_a_resumed_run_keeps_whole_traces(run, tmp_path, rows):
    assert run(*LIGHT, "--traces").code == 0
    folder = tmp_path / "run"
    whole = {(t.method, t.sample): [turn.pieces for turn in t.turns] for t in read_traces(folder, [])}
    # A crash in the middle of a trace: its cell is not there yet.
    for name, torn in (("traces.jsonl", b'{"method":"pld","sam'), ("generations.jsonl", b"")):
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        (folder / name).write_bytes(b"".join(lines[:5]) + torn)
    told = []
    assert len(read_traces(folder, told)) == 5
    assert len(told) == 1
    assert run(*LIGHT, "--traces", "--resume").code == 0
    found = {(t.method, t.sample): [turn.pieces for turn in t.turns] for t in read_traces(folder, told[:0])}
    assert found == whole
    assert len(rows(folder / "traces.jsonl")) == len(whole)


@pytest.mark.parametrize(("first", "second"), [(("--traces",), ()), ((), ("--traces",))])
def test_a_run_is_traced_as_a_whole_or_not_at_all(run, first, second):
    assert run(*LIGHT, *first).code == 0
    told = run(*LIGHT, *second, "--resume")
    assert told.code == 2
    assert "traces: the run has" in told.err


def test_a_failed_cell_has_no_trace_and_its_page_says_so(run, cli, tmp_path, rows, breaking):
    plugin = breaking("ValueError('no <luck>')")
    assert run("--plugin", plugin, "--method", "breaking", "--warmup", "none", "--traces").code == 1
    folder, site = tmp_path / "run", tmp_path / "site"
    failed = {row["sample"] for row in rows(folder / "generations.jsonl") if row["status"] != "ok"}
    assert failed
    assert failed.isdisjoint(trace.sample for trace in read_traces(folder, []) if trace.method == "breaking")
    assert cli("render", folder, "-o", site).code == 0
    said = [path.read_text() for path in (site / "traces").glob("1-*.html")]
    assert sum("ValueError: no &lt;luck&gt;. There is no trace of it." in page for page in said) == len(failed)


def test_render_leads_to_the_traces_and_tells_what_it_leaves_out(run, cli, tmp_path):
    assert run("--method", "pld", "--warmup", "none", "--traces").code == 0
    site = tmp_path / "site"
    told = cli("render", tmp_path / "run", "-o", site)
    assert str(site / "traces" / "index.html") in told.out.splitlines()
    assert 'href="traces/index.html"' in (site / "index.html").read_text()
    assert len(list((site / "traces").glob("*.html"))) == 5
    told = cli("render", tmp_path / "run", "-o", site, "--traces", 2)
    assert "2 traced samples have no page" in told.err
    assert len(list((site / "traces").glob("*.html"))) == 3
    assert cli("render", tmp_path / "run", "-o", site, "--traces", 0).code == 0
    assert list((site / "traces").glob("*.html")) == []
    assert 'href="traces/' not in (site / "index.html").read_text()
    assert cli("render", tmp_path / "run", "-o", site, "--traces", -1).code == 2


BROKEN = {
    "not-a-tree": ('"parents":[-1', '"parents":[7'),
    "off-the-path": ('"path":[0', '"path":[0,99'),
    "another-count": ('"pieces":[', '"pieces":["more",'),
    "newer": ('"schema":1', '"schema":99'),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_trace_that_cannot_be_is_refused_with_its_line(run, cli, tmp_path, fault):
    assert run("--warmup", "none", "--traces").code == 0
    path = tmp_path / "run" / "traces.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    old, new = BROKEN[fault]
    assert old in lines[1]
    path.write_text("".join([lines[0], lines[1].replace(old, new, 1), *lines[2:]]), encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(f"{path}:2")):
        read_traces(tmp_path / "run", [])
    assert cli("render", tmp_path / "run", "-o", tmp_path / "site").code == 2


def test_a_later_trace_of_a_cell_counts(run, tmp_path):
    assert run("--warmup", "none", "--traces").code == 0
    path = tmp_path / "run" / "traces.jsonl"
    row = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    row["turns"][0]["prompt"] = "later"
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    found = [trace for trace in read_traces(tmp_path / "run", []) if trace.sample == row["sample"]]
    assert [trace.turns[0].prompt for trace in found] == ["later"]
    assert isinstance(found[0], TraceRecord)
