"""Data files of every form: the same rows from each, and every fault with its place."""

import csv
import gzip
import io
import json
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftboard.suites import SuiteError
from draftboard.suites.rows import Fields, RowFile, checked, parse_rows, read_rows

Write = Callable[..., Path]

ROWS: list[dict[str, object]] = [
    {"question": "Why\u2028so?", "n": 1},
    {"question": "Größer, „als“ 3;\ttab", "n": 2},
    {"question": 'He said "no"\nand left', "n": 3},
]


def packed(form: str, rows: list[dict[str, Any]]) -> bytes:
    """The rows as a file of that form."""
    if form in ("jsonl", "ndjson", "gz"):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        return gzip.compress(text) if form == "gz" else text
    if form == "json":
        return json.dumps(rows, indent=1, ensure_ascii=False).encode()
    if form == "parquet":
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), sink)
        return sink.getvalue()
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter={"csv": ",", "tsv": "\t", "semicolon.csv": ";"}[form])
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def values(file: RowFile) -> tuple[tuple[str, int], ...]:
    return checked(file, lambda row: (row.text("question"), row.integer("n")), forms=(("question", "n"),))


def problems_of(file: RowFile, make: Callable[[Fields], object], **settings: Any) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        checked(file, make, **settings)
    return [problem.removeprefix(f"{file.shown}:") for problem in caught.value.problems]


def row(**fields: object) -> RowFile:
    return parse_rows(json.dumps(fields).encode(), "f")


@pytest.mark.parametrize("form", ["jsonl", "ndjson", "gz", "json", "parquet", "csv", "tsv", "semicolon.csv"])
def test_every_form_gives_the_same_rows(tmp_path: Path, form: str) -> None:
    path = tmp_path / (f"rows.{form}" if form != "gz" else "rows.jsonl.gz")
    path.write_bytes(packed(form, ROWS))
    file = read_rows(path)
    assert values(file) == tuple((row["question"], row["n"]) for row in ROWS)
    assert file.columns == ("question", "n")
    assert (file.name, file.shown, file.notes) == (path.name, str(path), ())


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip)


@settings(deadline=None, max_examples=60)
@given(st.lists(texts, min_size=1, max_size=5), st.sampled_from(["jsonl", "json", "csv", "tsv", "parquet"]))
def test_any_text_comes_back_unchanged(questions: list[str], form: str) -> None:
    rows = [{"question": text, "n": number} for number, text in enumerate(questions)]
    file = parse_rows(packed(form, rows), f"rows.{form}")
    assert values(file) == tuple((text, number) for number, text in enumerate(questions))


@settings(deadline=None)
@given(st.binary(max_size=80), st.sampled_from(["jsonl", "json", "csv", "tsv", "parquet", "jsonl.gz"]))
def test_any_bytes_are_read_or_refused(data: bytes, form: str) -> None:
    try:
        file = parse_rows(data, f"f.{form}")
    except SuiteError:
        return
    assert file.rows or file.faults


def test_the_hash_is_of_the_bytes_and_of_what_gzip_holds() -> None:
    plain = packed("jsonl", ROWS)
    assert parse_rows(plain, "a.jsonl").sha256 == sha256(plain).hexdigest()
    assert parse_rows(gzip.compress(plain), "a.jsonl.gz").sha256 == sha256(plain).hexdigest()


def test_gzip_and_parquet_are_known_by_their_first_bytes() -> None:
    assert len(values(parse_rows(gzip.compress(packed("json", ROWS)), "rows.json"))) == 3
    assert len(values(parse_rows(packed("parquet", ROWS), "rows.jsonl"))) == 3


def test_lines_are_counted_from_the_top_of_the_file() -> None:
    data = b'\xef\xbb\xbf\r\n{"a": 1}\r\n \t\r\n\n{"a": 2}\n'
    assert [(row.line, row.fields) for row in parse_rows(data, "f.jsonl").rows] == [(2, {"a": 1}), (5, {"a": 2})]
    listed = b'\xef\xbb\xbf[\n{"a":\n 1},\r\n\n {"a": 2}\n]\n'
    assert [(row.line, row.fields) for row in parse_rows(listed, "f.json").rows] == [(2, {"a": 1}), (5, {"a": 2})]
    cells = b'\xef\xbb\xbfa,b\r\n\r\n"1\n2",x\n3,y\n'
    assert [row.line for row in parse_rows(cells, "f.csv").rows] == [3, 5]


def test_a_json_file_may_hold_json_lines() -> None:
    assert len(values(parse_rows(packed("jsonl", ROWS), "rows.json"))) == 3


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("f.jsonl", b"", "the file is empty"),
        ("f.jsonl", b"\xef\xbb\xbf \r\n", "no questions, only blank lines"),
        ("f.json", b" [ ] \n", "no questions"),
        ("f.csv", b"question,n\n\n", "no questions"),
        ("f.jsonl", "\ufeff{}".encode("utf-16-le"), "UTF-16, not UTF-8"),
        ("f.jsonl", "\ufeff{}".encode("utf-16-be"), "UTF-16, not UTF-8"),
        ("f.jsonl", "\ufeff{}".encode("utf-32-le"), "UTF-32, not UTF-8"),
        ("f.csv", "\ufeff{}".encode("utf-32-be"), "UTF-32, not UTF-8"),
        ("f.jsonl", '{"a": 1}'.encode("utf-16-le"), "looks like UTF-16 or UTF-32"),
        ("f.jsonl", '{"a": 1}'.encode("utf-32-be"), "looks like UTF-16 or UTF-32"),
        ("f.jsonl", b'{"a": 1}\r{"a": 2}\r', "lines end in CR alone"),
        ("f.csv", b"a,b\r1,2\r", "lines end in CR alone"),
        ("f.jsonl", b'[\n{"a": 1}\n]\n', "one JSON list, not one object a line"),
        ("f.jsonl", b'{\n"a": 1\n}\n', "one JSON object over several lines"),
        ("f.json", b'{"data": [\n{"a": 1}\n]}', "one JSON object over several lines"),
        ("f.jsonl", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a Git LFS pointer"),
        ("f.jsonl", b"\n<!DOCTYPE html>\n<html></html>", "a web page, not a data file"),
        ("f.jsonl.gz", gzip.compress(b'{"a": 1}', mtime=0)[:-6], "not complete gzip data"),
        ("f.jsonl.gz", b"\x1f\x8b\x08\x00broken", "not complete gzip data"),
        ("f.jsonl", b"PK\x03\x04rest", "a zip archive, not the rows themselves"),
        ("f.jsonl", b"\x28\xb5\x2f\xfdrest", "zstd data"),
        ("f.jsonl.gz", gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0), "gzip data inside gzip data"),
        ("f.parquet", b"PAR1 and no more", "no readable Parquet file"),
        ("f.parquet", b"text", "no readable Parquet file"),
        ("f.csv", b"a,b\n1,\xe9\n", "cannot be read"),
        ("f.json", b'[{"a": "\xe9"}]', "cannot be read"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_read_at_all_is_named(name: str, data: bytes, expected: str) -> None:
    with pytest.raises(SuiteError, match=f"^{name.replace('.', '[.]')}: .*{expected}"):
        parse_rows(data, name)


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    data = bytearray(packed("parquet", [{"question": f"Why {number}?", "n": number} for number in range(500)]))
    for cut in (data[: len(data) // 2], data[:-8] + b"\xff" * 4 + data[-4:], bytes([*data[:-8], *bytes(4), *b"PAR1"])):
        path.write_bytes(bytes(cut))
        with pytest.raises(SuiteError, match="no readable Parquet file"):
            read_rows(path)


def test_a_parquet_file_with_two_columns_of_one_name_is_refused() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table([pa.array(["a"]), pa.array(["b"])], names=["question", "question"]), sink)
    with pytest.raises(SuiteError, match=r"columns of the same name\n  'question' twice"):
        parse_rows(sink.getvalue(), "f.parquet")


def test_parquet_values_that_python_does_not_have_are_refused() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"question": ["Why?"], "when": pa.array([2**60], pa.timestamp("us"))}), sink)
    with pytest.raises(SuiteError, match="no readable Parquet file"):
        parse_rows(sink.getvalue(), "f.parquet")


def test_metadata_of_other_libraries_plays_no_part() -> None:
    table = pa.table({"question": ["Why?"], "n": [4]}).replace_schema_metadata(
        {b"huggingface": b'{"info": {"features": {"question": {"_type": "NoSuchType"}}}}', b"pandas": b"{]"}
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)
    assert values(parse_rows(sink.getvalue(), "f.parquet")) == (("Why?", 4),)


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("f.json", b'[{"a": 1},\n3,\n{"a": NaN},\n{"a": 1, "a": 2}, {"a": 1}\n]', [
            "2: not an object: an entry of the list must be of the form {…}",
            "3: not valid JSON: NaN is no JSON number",
            "4: not valid JSON: the key 'a' stands twice in one object",
        ]),
        ("f.json", b'[{"a": 1},\n{"a": }]', ["2: not valid JSON: Expecting value, column 7"]),
        ("f.json", b'[{"a": 1}\n{"a": 2}]', ["2: not valid JSON: Expecting ',' or ']', column 1"]),
        ("f.json", b'[{"a": 1},\n]', ["2: not valid JSON: Expecting value, column 1"]),
        ("f.json", b'[{"a": 1}]\n[]', ["2: not valid JSON: Extra data, column 1"]),
        ("f.json", b'[{"a": 1}', ["1: not valid JSON: Expecting ',' or ']', column 10"]),
        ("f.json", b'[\n{"a": ' + b"1" * 5000 + b"}]", ["2: not valid JSON: Exceeds the limit"]),
        ("f.json", b"[" * 100_000, ["1: nested too deeply"]),
        ("f.json", b'[{"a": "\\ud800"}]', ["1: `a` holds half a surrogate pair (U+D800), which is no character"]),
        ("f.csv", b"a,b\n1,2\n1\n1,2,3\n", ["3: 1 cells, but 2 columns", "4: 3 cells, but 2 columns"]),
        ("f.csv", b"a,a\n1,2\n", ["1: the column 'a' stands twice"]),
        ("f.csv", b'a,b\n"1"x,2\n3,4\n', ["2: not valid comma-separated values: "]),
        ("f.csv", b'a,b\n1,2\n"3,4\n', ["3: not valid comma-separated values: "]),
        ("f.csv", b"a,b\n1,2\n\0\0\0", ["3: NUL bytes (3); the file was not written to its end"]),
        ("f.json", b'[{"a": 1}]\n\0', ["2: NUL bytes (1); the file was not written to its end"]),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_faults_have_their_lines(name: str, data: bytes, expected: list[str]) -> None:
    with pytest.raises(SuiteError) as caught:
        checked(parse_rows(data, name), lambda row: row.line)
    found = [problem.removeprefix(f"{name}:") for problem in caught.value.problems]
    assert len(found) == len(expected)
    assert all(problem.startswith(start) for problem, start in zip(found, expected, strict=True)), found


def test_faults_of_text_and_fields_are_told_in_the_order_of_lines() -> None:
    file = parse_rows(b'{"a": 1}\nnonsense\n{"a": "x"}\n{"b": 1}\n', "f.jsonl")
    assert [problem.split(":")[0] for problem in problems_of(file, lambda row: row.text("a"))] == ["1", "2", "4"]


def test_an_empty_cell_is_a_field_that_is_not_there() -> None:
    (one,) = parse_rows(b"a,b\n,x\n", "f.csv").rows
    assert one.fields == {"b": "x"}


def test_a_cell_may_be_long_and_the_library_keeps_its_limit() -> None:
    before = csv.field_size_limit()
    text = "x" * (before + 10)
    (one,) = parse_rows(f"a\n{text}\n".encode(), "f.csv").rows
    assert one.fields == {"a": text}
    assert csv.field_size_limit() == before


def test_comma_separated_values_without_names() -> None:
    names = ("question", "A", "B", "answer")
    expected = {"question": "Why?", "A": "x", "B": "y", "answer": "A"}
    for data, line in ((b"Why?,x,y,A\n", 1), (b"Question,A,B,answer\nWhy?,x,y,A\n", 2)):
        (one,) = parse_rows(data, "f.csv", headless=names).rows
        assert (one.line, list(one.fields.values())) == (line, list(expected.values()))


def test_a_folder_is_searched_in_order(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="this directory holds no toy file") as caught:
        read_rows(tmp_path, what="toy file", files=("a/b.jsonl", "c.jsonl"))
    assert caught.value.problems == ("tried: a/b.jsonl", "tried: c.jsonl")
    (tmp_path / "c.jsonl").write_text('{"n": 1}')
    assert read_rows(tmp_path, files=("a/b.jsonl", "c.jsonl")).name == "c.jsonl"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.jsonl").write_text('{"n": 2}')
    file = read_rows(tmp_path, files=("a/b.jsonl", "c.jsonl"))
    assert (file.name, file.shown) == ("b.jsonl", str(tmp_path / "a" / "b.jsonl"))
    with pytest.raises(SuiteError, match="this is a directory, not a toy file"):
        read_rows(tmp_path, what="toy file")


def test_home_stays_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f.jsonl").write_text('{"n": 1}')
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_rows("~/f.jsonl").shown == "~/f.jsonl"
    assert read_rows("~/", files=("f.jsonl",)).shown == "~/f.jsonl"


def test_other_columns_are_named_once() -> None:
    file = parse_rows(b'{"prompt": "a", "label": 1}\nnonsense\n{"prompt": "b"}\n', "f.jsonl")
    with pytest.raises(SuiteError) as caught:
        checked(file, lambda row: row.text("question"), forms=(("question", "answer"), ("source", "target")))
    assert caught.value.problems == (
        "found: prompt, label",
        "expected: question, answer or source, target",
        "f.jsonl:2: not valid JSON: Expecting value, column 1",
    )


@pytest.mark.parametrize(
    ("fields", "read", "expected"),
    [
        ({}, lambda row: row.text("a"), "no `a`"),
        ({}, lambda row: row.text("a", "b"), "no `a` (nor `b`)"),
        ({"a": None}, lambda row: row.text("a"), "`a` is null"),
        ({"a": 3}, lambda row: row.text("a"), "`a` is the number 3; it must be a string"),
        ({"a": " \u3000"}, lambda row: row.text("a"), "`a` is blank"),
        ({"a": ["x"]}, lambda row: row.text("a", default=""), "`a` is a list; it must be a string"),
        ({"a": "x"}, lambda row: row.texts("a"), "`a` is a string; it must be a list of strings"),
        ({"a": []}, lambda row: row.texts("a"), "`a` is empty"),
        ({"a": ["x", 3]}, lambda row: row.texts("a"), "entry 2 of `a` is the number 3; it must be a string"),
        ({"a": ["x", ""]}, lambda row: row.texts("a"), "entry 2 of `a` is blank"),
        ({"a": ["", " "]}, lambda row: row.texts("a", blanks=True), "`a` is empty"),
        ({"a": ["x"]}, lambda row: row.texts("a", count=4), "`a` has 1 entries; it must have 4"),
        ({"a": True}, lambda row: row.integer("a"), "`a` is true; it must be an integer"),
        ({"a": 1.0}, lambda row: row.integer("a"), "`a` is the number 1.0; it must be an integer"),
        ({"a": "1e3"}, lambda row: row.integer("a"), "`a` is a string; it must be an integer"),
        ({"a": 4}, lambda row: row.integer("a", low=0, high=3), "`a` is 4; it must be from 0 to 3"),
        ({"a": -1}, lambda row: row.integer("a", low=0), "`a` is -1; it must be at least 0"),
        ({"a": 9}, lambda row: row.integer("a", high=3), "`a` is 9; it must be at most 3"),
        ({"a": {}}, lambda row: row.identifier("a"), "`a` is an object; it must be an integer or a string"),
        ({"a": True}, lambda row: row.identifier("a"), "`a` is true; it must be an integer or a string"),
        ({"a": ""}, lambda row: row.identifier("a", "x"), "`a` is blank"),
        ({"a": {"b": 3}}, lambda row: row.inside(row.fields["a"]).text("b"), "`b` is the number 3"),
    ],
)
def test_readers_keep_what_is_wrong(fields: dict[str, object], read: Callable[[Fields], object], expected: str) -> None:
    (problem,) = problems_of(row(**fields, other=1), read)
    assert problem.startswith(f"1: {expected}")


@pytest.mark.parametrize(
    ("fields", "read", "expected"),
    [
        ({"b": "x"}, lambda row: row.text("a", "b"), "x"),
        ({"a": None, "b": "x"}, lambda row: row.text("a", "b"), "x"),
        ({"a": None}, lambda row: row.text("a", default="d"), "d"),
        ({"a": "x"}, lambda row: row.texts("a", alone=True), ("x",)),
        ({"a": ["", "x"]}, lambda row: row.texts("a", blanks=True), ("x",)),
        ({"a": "-7"}, lambda row: row.integer("a"), -7),
        ({"a": 7}, lambda row: row.identifier("a"), "7"),
        ({"a": "q"}, lambda row: row.identifier("a"), "q"),
        ({"a": None}, lambda row: row.identifier("a", "row-0"), "row-0"),
        ({"a": "x"}, lambda row: (row.has("a"), row.has("b"), row.position, row.line), (True, False, 0, 1)),
    ],
)
def test_readers_give_what_is_there(
    fields: dict[str, object], read: Callable[[Fields], object], expected: object
) -> None:
    assert checked(row(**fields, other=1), read) == (expected,)


def test_an_id_is_used_once() -> None:
    file = parse_rows(b'{"id": 1}\n{"id": "1", "bad": 1}\n{"id": 2}\n{"id": 1}\n', "f.jsonl")
    assert problems_of(file, lambda row: row.identifier("id")) == [
        "2: id 1 is already used on line 1",
        "4: id 1 is already used on line 1",
    ]
    table = parse_rows(packed("parquet", [{"id": "a"}, {"id": "a"}]), "f.parquet")
    assert problems_of(table, lambda row: row.identifier("id")) == ["row 2: id a is already used on row 1"]


def test_a_file_of_the_wrong_kind_does_not_fill_the_screen() -> None:
    file = parse_rows(b'{"a": 1}\n' * 2000, "f.jsonl")
    with pytest.raises(SuiteError, match="and 1,500 more") as caught:
        checked(file, lambda row: row.text("a"))
    assert len(caught.value.problems) == 2000


def test_reading_text_needs_no_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    (tmp_path / "f.csv").write_text("a\n1\n")
    assert len(read_rows(tmp_path / "f.csv").rows) == 1
