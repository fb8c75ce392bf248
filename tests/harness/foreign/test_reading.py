import bz2
import gzip
import json
import lzma
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.errors import UserError
from draftboard.foreign.reading import last_of_each, plain, read_document, read_rows, unsurrogated


def test_bom_crlf_blank_lines_and_separators_inside_text(write):
    path = write("a.jsonl", [{"a": 1}, "", {"a": "x\u2028y"}, "  "], end=b"\r\n", start=b"\xef\xbb\xbf")
    file = read_rows(path)
    assert file.rows == ((1, {"a": 1}), (3, {"a": "x\u2028y"}))
    assert file.notes == ()
    assert file.name == "a.jsonl"


def test_a_last_row_without_a_line_end_counts(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": 2}')
    assert [row for _, row in read_rows(path).rows] == [{"a": 1}, {"a": 2}]
    assert read_rows(path).notes == ()


@pytest.mark.parametrize("torn", [b'{"a": ', b'{"a": "\xc3', b"nonsense", b"[" * 100_000])
def test_a_broken_last_line_is_told_and_skipped(tmp_path: Path, torn):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n' + torn + b"\n\n")
    file = read_rows(path)
    assert file.rows == ((1, {"a": 1}),)
    assert len(file.notes) == 1
    assert "line 2 is unfinished" in file.notes[0]


def test_nul_bytes_are_skipped_and_told(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n\0\0\0\n\0\0{"a": 2}\n' + b"\0" * 4096)
    file = read_rows(path)
    assert [row for _, row in file.rows] == [{"a": 1}, {"a": 2}]
    assert file.notes == ("a.jsonl: skipped 4101 NUL bytes, which a crash leaves behind",)


@pytest.mark.parametrize("place", [1, 2])
def test_a_byte_order_mark_in_the_middle_is_named_and_drops_no_row(write, place):
    rows = [json.dumps({"a": n}).encode() for n in range(3)]
    rows[place] = b"\xef\xbb\xbf" + rows[place]
    with pytest.raises(UserError) as told:
        read_rows(write("a.jsonl", rows))
    (problem,) = told.value.problems
    assert f"a.jsonl:{place + 1}: a byte-order mark (U+FEFF) in the middle of the file, at column 1" in problem
    with pytest.raises(UserError, match="byte-order mark"):
        read_document(write("a.json", [b'{"a": \xef\xbb\xbf1}']))


@pytest.mark.parametrize(
    ("start", "what"),
    [
        (gzip.compress(b"{}", mtime=0), "gzip-compressed"),
        (bz2.compress(b"{}"), "bzip2-compressed"),
        (lzma.compress(b"{}"), "xz-compressed"),
        (b"\x28\xb5\x2f\xfd\x00", "zstd-compressed"),
        (b"PK\x03\x04\x14", "a zip archive"),
    ],
)
def test_packed_files_are_named(write, start, what):
    for read in (read_rows, read_document):
        with pytest.raises(UserError, match=f"is {what}\nUnpack it"):
            read(write("a.jsonl", [start]))


def test_every_broken_inner_line_is_named(write):
    path = write("a.jsonl", ["{", {"a": 1}, b'"\xff"', "[1,", {"a": 2}])
    with pytest.raises(UserError) as told:
        read_rows(path)
    assert [problem.partition(": ")[0] for problem in told.value.problems] == [f"{path}:{n}" for n in (1, 3, 4)]
    assert "not UTF-8" in told.value.problems[1]


def test_a_file_of_another_form_is_told_in_a_few_lines(write):
    with pytest.raises(UserError) as told:
        read_rows(write("a.jsonl", ["not json"] * 1000))
    # The last one is taken for a torn line.
    assert told.value.what == "999 line(s) that are not JSON"
    assert len(told.value.problems) == 31
    assert told.value.problems[-1] == "and 969 more"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "empty"),
        (b"\n \n\0\0\n", "no row"),
        (b"\xff\xfe{\0}\0", "UTF-16"),
        (b'{"a": ', "not JSON"),
        (b"9" * 5000 + b"\n1\n", "not JSON"),
    ],
)
def test_files_without_a_row_are_refused(tmp_path: Path, content, what):
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match=what) as told:
        read_rows(path)
    assert str(path) in str(told.value)


def test_folders_and_missing_files_are_refused(tmp_path: Path):
    with pytest.raises(UserError, match="folder"):
        read_rows(tmp_path)
    with pytest.raises(UserError, match="No such file"):
        read_rows(tmp_path / "no.jsonl")


def test_a_document_may_take_many_lines(tmp_path: Path):
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps([{"a": 1}], indent=4).encode() + b"\n\0\0")
    file = read_document(path)
    assert file.rows == ((1, [{"a": 1}]),)
    assert "NUL" in file.notes[0]
    path.write_text('{\n"a": 1,\n"b" 2\n}')
    with pytest.raises(UserError, match=":3"):
        read_document(path)
    path.write_text(" \n")
    with pytest.raises(UserError, match="is empty"):
        read_document(path)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers())))
def test_the_last_of_each_key_stays_in_order_of_the_first(pairs):
    kept, doubled = last_of_each(pairs, lambda pair: pair[0])
    assert [key for key, _ in kept] == list(dict.fromkeys(key for key, _ in pairs))
    assert dict(kept) == dict(pairs)
    assert doubled == len(pairs) - len(kept)


@given(st.text(st.characters()))
def test_text_can_be_written_as_utf8_and_is_else_unchanged(text):
    clean = unsurrogated(text)
    clean.encode()
    assert clean == text or any("\ud800" <= character <= "\udfff" for character in text)


def test_half_surrogates_become_replacement_characters():
    assert unsurrogated("a\ud800b") == "a\ufffdb"
    assert unsurrogated("\U0001f600") == "\U0001f600"


def test_unknown_data_is_made_strict():
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]
    made = plain({"a": math.nan, "b": [math.inf, 1], "c": "\ud800", "d": deep, "e": None})
    assert made["a"] is None
    assert made["b"] == [None, 1]
    assert made["c"] == "\ufffd"
    assert "too deeply" in json.dumps(made, allow_nan=False)
