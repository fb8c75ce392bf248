"""Question files: what is read, and that every fault is told in one go."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftboard.suites import SuiteError, load_suite
from draftboard.suites.jsonl import QuestionFile, load_jsonl, parse_questions, read_questions

Write = Callable[..., Path]


def question(number: object = 1, **fields: object) -> dict[str, object]:
    """A valid line, with fields replaced or, where the value is ..., left out."""
    line: dict[str, object] = {"question_id": number, "category": "qa", "turns": ["Why?"], **fields}
    return {key: value for key, value in line.items() if value is not ...}


def problems_of(path: Path) -> tuple[str, ...]:
    with pytest.raises(SuiteError) as caught:
        read_questions(path)
    for problem in caught.value.problems:
        assert problem in str(caught.value)
    return tuple(problem.removeprefix(f"{path}:") for problem in caught.value.problems)


def test_case_1_all_problems_are_listed_at_once(cases: Path) -> None:
    path = cases / "01-questions-with-problems.jsonl"
    found = problems_of(path)
    assert [int(problem.split(":")[0]) for problem in found] == [2, 3, 4, 5, 6]
    assert "not valid JSON" in found[0]
    assert "101" in found[1]
    assert "line 1" in found[1]
    assert "no `turns`" in found[2]
    assert "`turns` is empty" in found[3]
    assert "blank" in found[4]


def test_case_2_bom_crlf_blank_lines_and_line_separator(cases: Path) -> None:
    path = cases / "02-questions-bom-crlf.jsonl"
    suite = load_suite(f"jsonl@{path}")
    assert [sample.sample_id for sample in suite.samples] == ["201", "202", "203", "204"]
    assert [[len(turn) for turn in sample.turns] for sample in suite.samples] == [[28], [53], [10, 8], [68]]
    assert "\u2028" in suite.samples[1].turns[0]
    assert suite.notes == ()
    assert suite.content_hash == sha256(path.read_bytes()).hexdigest()
    assert suite.source == "02-questions-bom-crlf.jsonl"


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_lf_ends_a_line(write: Write, separator: str) -> None:
    raw = json.dumps(question(turns=[f"a{separator}b"]), ensure_ascii=separator < " ")
    (read,) = read_questions(write(raw)).questions
    assert read.turns == (f"a{separator}b",)


def test_fields_of_a_full_line(write: Write) -> None:
    line = question(
        "q-7",
        category="trivia",
        turns=["Which?\nA. one\nB. two", "Sure?"],
        references=[["B"], []],
        scorer="letter",
        language="pt-BR",
        options=["one", "two"],
        system="Be brief.",
        group="stem",
        max_new_tokens=16,
        stop=["\n", "END"],
        difficulty=3,
        id="other",
    )
    (sample,) = load_jsonl(str(write(line))).samples
    assert sample.sample_id == "q-7"
    assert (sample.suite, sample.domain, sample.category) == ("jsonl", "trivia", "trivia")
    assert sample.turns == ("Which?\nA. one\nB. two", "Sure?")
    assert sample.references == (("B",), ())
    assert (sample.references_of(0), sample.references_of(1)) == (("B",), ())
    assert (sample.scorer, sample.language, sample.options) == ("letter", "pt-BR", ("one", "two"))
    assert sample.system == "Be brief."
    assert (sample.group, sample.max_new_tokens, sample.stop) == ("stem", 16, ("\n", "END"))
    assert sample.meta == {"difficulty": 3, "id": "other"}


def test_a_bare_line_gets_the_default_domain_and_no_scorer(write: Write) -> None:
    (sample,) = load_jsonl(str(write({"id": 5, "prompt": "Hello"}))).samples
    assert (sample.sample_id, sample.domain, sample.turns) == ("5", "default", ("Hello",))
    assert (sample.scorer, sample.language, sample.system, sample.references) == (None, None, None, ((),))
    assert (sample.group, sample.max_new_tokens, sample.stop) == (None, None, ())
    assert sample.meta == {}


@pytest.mark.parametrize("key", ["reference", "references"])
@pytest.mark.parametrize(
    ("value", "turns", "expected"),
    [
        ("yes", 1, (("yes",),)),
        (["yes"], 1, (("yes",),)),
        ([["yes", "aye"]], 1, (("yes", "aye"),)),
        (["first", "second"], 2, (("first",), ("second",))),
        (["first", ""], 2, (("first",), ())),
        ([None, ["a", "b"]], 2, ((), ("a", "b"))),
        (None, 2, ((), ())),
        ([], 1, ((),)),
        ([], 2, ((), ())),
        ([[], []], 2, ((), ())),
    ],
)
def test_shapes_of_references(write: Write, key: str, value: object, turns: int, expected: object) -> None:
    path = write(question(turns=["Why?"] * turns, **{key: value}))
    assert read_questions(path).questions[0].references == expected


@pytest.mark.parametrize(("value", "expected"), [("END", ("END",)), ("\n", ("\n",)), ([], ()), (None, ())])
def test_shapes_of_stop(write: Write, value: object, expected: tuple[str, ...]) -> None:
    assert read_questions(write(question(stop=value))).questions[0].stop == expected


def test_questions_in_a_table(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text('id,category,prompt,reference,max_new_tokens\n1,qa,"Why, then?",Because.,8\n2,,How?,,\n')
    one, two = load_jsonl(str(path)).samples
    assert (one.sample_id, one.domain, one.turns, one.references) == ("1", "qa", ("Why, then?",), (("Because.",),))
    assert (one.max_new_tokens, two.max_new_tokens) == (8, None)
    assert (two.domain, two.references) == ("default", ((),))


def test_messages_give_system_and_turns_in_order(write: Write) -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "Two"},
    ]
    suite = load_jsonl(str(write(question(turns=..., messages=messages))))
    assert suite.samples[0].system == "Be kind."
    assert suite.samples[0].turns == ("One", "Two")
    assert suite.notes == ("1 assistant messages are not used: each method gives its own answers",)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"question_id": ...}, "no `question_id`"),
        ({"question_id": None}, "`question_id` is null"),
        ({"question_id": True}, "`question_id` is true"),
        ({"question_id": 1.0}, "`question_id` is the number 1.0"),
        ({"question_id": [1]}, "`question_id` is a list"),
        ({"question_id": " "}, "`question_id` is blank"),
        ({"question_id": ..., "id": False}, "`id` is false"),
        ({"turns": "Why?"}, "`turns` is a string; it must be a list of strings"),
        ({"turns": None}, "`turns` is null"),
        ({"turns": {"a": 1}}, "`turns` is an object"),
        ({"turns": ["Why?", 3]}, "turn 2 is the number 3"),
        ({"turns": ["Why?", "\u3000\t\n"]}, "turn 2 is blank"),
        ({"prompt": "Why?"}, "`turns` and `prompt` are given"),
        ({"turns": ..., "prompt": ["Why?"]}, "`prompt` is a list"),
        ({"turns": ..., "prompt": ""}, "`prompt` is blank"),
        ({"turns": ..., "messages": "Why?"}, "`messages` is a string"),
        ({"turns": ..., "messages": ["Why?"]}, "message 1 is a string"),
        ({"turns": ..., "messages": [{"role": "usr", "content": "x"}]}, "did you mean user?"),
        ({"turns": ..., "messages": [{"role": 1, "content": "x"}]}, "message 1 has the role 1"),
        ({"turns": ..., "messages": [{"role": "user", "content": None}]}, "`content` of message 1 is null"),
        ({"turns": ..., "messages": [{"role": "user", "content": " "}]}, "message 1 (user) is blank"),
        ({"turns": ..., "messages": [{"role": "system", "content": "x"}]}, "no user message"),
        (
            {
                "turns": ...,
                "messages": [{"role": "user", "content": "x"}, {"role": "system", "content": "y"}],
            },
            "message 2 is a system message",
        ),
        (
            {
                "turns": ...,
                "system": "a",
                "messages": [{"role": "system", "content": "b"}, {"role": "user", "content": "x"}],
            },
            "`system` is given twice",
        ),
        ({"category": 3}, "`category` is the number 3"),
        ({"category": " "}, "`category` is blank"),
        ({"system": ["x"]}, "`system` is a list"),
        ({"group": ""}, "`group` is blank"),
        ({"group": 3}, "`group` is the number 3"),
        ({"max_new_tokens": 0}, "`max_new_tokens` is the number 0; it must be an integer of at least 1"),
        ({"max_new_tokens": True}, "`max_new_tokens` is true"),
        ({"max_new_tokens": 1.5}, "`max_new_tokens` is the number 1.5"),
        ({"max_new_tokens": 2**31}, "`max_new_tokens` is the number 2147483648"),
        ({"max_new_tokens": "many"}, "`max_new_tokens` is a string"),
        ({"stop": ["a", ""]}, "`stop` must be a text or a list of texts, none of them empty"),
        ({"stop": 3}, "`stop` must be"),
        ({"scorer": "blue"}, "unknown scorer 'blue'; did you mean bleu?"),
        ({"scorer": 4}, "`scorer` is the number 4"),
        ({"language": "German"}, "`language` is 'German'"),
        ({"options": "A or B"}, "`options` must be"),
        ({"options": ["only one"]}, "`options` must be"),
        ({"options": ["one", 2]}, "`options` must be"),
        ({"reference": 4}, "`reference` is the number 4"),
        ({"reference": [4]}, "`reference` of turn 1 must be"),
        ({"reference": [["a", None]]}, "`reference` of turn 1 must be"),
        ({"reference": ["a", "b"]}, "`reference` has 2 entries, but there is 1 turn"),
        ({"turns": ["a", "b"], "references": "c"}, "`references` has 1 entry, but there are 2 turns"),
        ({"reference": "a", "references": "a"}, "`reference` and `references` are given"),
        ({"scorer": "letter", "options": ["x", "y"], "reference": "C"}, "'C' is no letter from A to B"),
        ({"scorer": "letter", "reference": "AB"}, "'AB' is no letter from A to Z"),
    ],
)
def test_wrong_fields(write: Write, fields: dict[str, object], expected: str) -> None:
    (problem,) = problems_of(
        write(
            question(0),
            question(**fields)
            if "question_id" not in fields
            else {**question(...), **{key: value for key, value in fields.items() if value is not ...}},
        )
    )
    assert problem.startswith("2: ")
    assert expected in problem


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"[1, 2]", "not an object"),
        (b'"text"', "not an object"),
        (b"null", "not an object"),
        (b'{"question_id": 2, "turns": ["a"]} {}', "not valid JSON"),
        (b'{"question_id": 2, "turns": ["a"], "x": NaN}', "NaN is no JSON number"),
        (b'{"question_id": 2, "turns": ["a"], "x": 1e999}', "too large"),
        (b'{"question_id": 2, "turns": ["a"], "x": ' + b"1" * 5000 + b"}", "not valid JSON"),
        (b'{"question_id": 2, "turns": ["a"], "turns": ["b"]}', "'turns' stands twice"),
        (b'{"question_id": 2, "turns": ["a\tb"]}', "not valid JSON"),
        (b'{"question_id": 2, "turns": ["a\xe9"]}', "not UTF-8: byte 32 of the line is 0xE9"),
        (b'{"question_id": 2, "turns": ["\\ud83d"]}', "`turns` holds half a surrogate pair (U+D83D)"),
        (b'{"question_id": 2, "turns": ["a"], "x": {"\\udc00": 1}}', "`x` holds half a surrogate pair"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\0" * 300, "only NUL bytes (300)"),
        (b'{"question_id": 2, "turns": ["a"]}' + b"\0" * 7, "ends in NUL bytes (7)"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_broken_lines(write: Write, line: bytes, expected: str) -> None:
    (problem,) = problems_of(write(question(1), line))
    assert problem.startswith("2: ")
    assert expected in problem


def test_a_whole_surrogate_pair_is_one_character(write: Write) -> None:
    (read,) = read_questions(write(r'{"question_id": 1, "turns": ["\ud83d\ude00"]}')).questions
    assert read.turns == ("\U0001f600",)


def test_several_problems_of_one_line_are_all_told(write: Write) -> None:
    found = problems_of(write(question(1), question("1", turns=[""], scorer="x", system=3)))
    assert [problem.split(":")[0] for problem in found] == ["2"] * 4
    assert "question_id 1 is already used on line 1" in found[-1]


def test_an_id_counts_as_used_even_on_a_faulty_line(write: Write) -> None:
    found = problems_of(write(question(1, turns=[]), question(1), question(1)))
    assert [problem.split(":")[0] for problem in found] == ["1", "2", "3"]
    assert "line 1" in found[1]
    assert "line 1" in found[2]


def test_problems_can_always_be_printed(write: Write) -> None:
    bad = '{"question_id": "\\ud800", "turns": ["a"], "scorer": "\\udfff"}'
    assert "\n".join(problems_of(write(bad, bad))).encode()


@pytest.mark.parametrize("content", [b"", b"\n \r\n\t\n", b"\xef\xbb\xbf"])
def test_no_questions(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(content)
    with pytest.raises(SuiteError, match=r"q\.jsonl: (the file is empty|no questions, only blank lines)"):
        read_questions(path)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_other_encodings_are_named(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes("\ufeff{}".encode(encoding))
    with pytest.raises(SuiteError, match=f"{encoding[:6].upper()}, not UTF-8"):
        read_questions(path)


def test_line_ends_of_old_macs_are_named(write: Write) -> None:
    path = write('{"id": 1, "prompt": "a"}\r{"id": 2, "prompt": "b"}\r')
    with pytest.raises(SuiteError, match="lines end in CR alone"):
        read_questions(path)
    assert len(read_questions(write('{"id": 1, "prompt": "a"}\r')).questions) == 1


def test_missing_file_directory_and_impossible_path(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="no such file"):
        read_questions(tmp_path / "absent.jsonl")
    with pytest.raises(SuiteError, match="is a directory"):
        read_questions(tmp_path)
    with pytest.raises(SuiteError, match="cannot be read"):
        read_questions("a\0b")
    (tmp_path / "file").write_text("x")
    with pytest.raises(SuiteError, match="cannot be read"):
        read_questions(tmp_path / "file" / "q.jsonl")


def test_home_is_expanded_and_never_stored(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(question())
    monkeypatch.setenv("HOME", str(tmp_path))
    suite = load_suite("jsonl@~/questions.jsonl")
    assert suite.source == "questions.jsonl"
    assert str(tmp_path) not in repr(suite)


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text.strip())


@settings(deadline=None)
@given(
    rows=st.lists(st.lists(texts, min_size=1, max_size=3), min_size=1, max_size=6),
    bom=st.booleans(),
    ending=st.sampled_from(["\n", "\r\n", "\n\n", "\r\n \t\r\n"]),
    escape=st.booleans(),
)
def test_any_text_comes_back_unchanged(rows: list[list[str]], bom: bool, ending: str, escape: bool) -> None:
    lines = [json.dumps({"question_id": i, "turns": turns}, ensure_ascii=escape) for i, turns in enumerate(rows)]
    data = (b"\xef\xbb\xbf" if bom else b"") + ending.join([*lines, ""]).encode()
    read = parse_questions(data, "f")
    assert [question.turns for question in read.questions] == [tuple(turns) for turns in rows]


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def read_or_problems(data: bytes) -> tuple[QuestionFile | None, tuple[str, ...]]:
    try:
        return parse_questions(data, "f"), ()
    except SuiteError as error:
        return None, error.problems


field_names = ["question_id", "id", "category", "turns", "prompt", "messages", "system", "reference"]
field_names += ["references", "scorer", "language", "options", "other"]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(field_names), json_values))
def test_any_object_is_read_or_refused_with_its_line(record: dict[str, Any]) -> None:
    read, problems = read_or_problems(json.dumps(record).encode())
    assert (read is None) == bool(problems)
    assert all(problem.startswith("f:1: ") for problem in problems)
    if read is not None:
        assert len(read.questions[0].references) == len(read.questions[0].turns) > 0


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with pytest.raises(SuiteError):
        parse_questions(data, "f")


def test_a_file_of_another_kind_is_told_by_its_columns_and_not_line_by_line() -> None:
    data = b"".join(b'{"question": "%d", "answer": "1"}\n' % number for number in range(30))
    with pytest.raises(SuiteError, match="not the columns expected") as caught:
        parse_questions(data, "f.jsonl")
    assert caught.value.problems[0] == "found: question, answer"
    assert "question_id, turns or question_id, prompt" in caught.value.problems[1]


def test_ids_with_control_characters_are_told_as_escapes() -> None:
    data = b'{"id": "\\u001b[2J\\n", "prompt": "x"}\n' * 2
    with pytest.raises(SuiteError) as caught:
        parse_questions(data, "f.jsonl")
    assert caught.value.problems == (r"f.jsonl:2: question_id \x1b[2J\n is already used on line 1",)
