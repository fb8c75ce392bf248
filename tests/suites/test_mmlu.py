"""MMLU in its four variants, from every form of its files, and the cut to 80 questions."""

import csv
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from draftboard.suites import Suite, SuiteError, SuiteSettings, load_suite, mmlu_rows, part_of, split
from draftboard.suites.hub import HubPlace
from draftboard.suites.mmlu import draw
from draftboard.suites.mmlu_rows import GROUPS, SUBJECTS, Question
from draftboard.suites.rows import RowFile, parse_rows


@pytest.fixture
def folder(published: Callable[[str], Path]) -> Path:
    return published("mmlu")


def load(spec: str, shots: int | None = None, seed: int = 0) -> Suite:
    return load_suite(spec, SuiteSettings(shots=shots, seed=seed))


def rows(per_subject: int, part: str = "test") -> list[dict[str, Any]]:
    """Rows in the columns of cais/mmlu; subjects one after the other."""
    return [
        {
            "question": f"{part} {number} of {subject}?",
            "subject": subject,
            "choices": [f"{letter.lower()}{number}" for letter in "ABCD"],
            "answer": number % 4,
        }
        for subject in sorted(SUBJECTS)
        for number in range(per_subject)
    ]


def write_lines(path: Path, made: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    return path


def write_csv(path: Path, made: list[dict[str, Any]]) -> Path:
    """As published with the benchmark: no header, and the letter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        for row in made:
            csv.writer(file).writerow([row["question"], *row["choices"], "ABCD"[row["answer"]]])
    return path


def write_parquet(path: Path, made: list[dict[str, Any]]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    path.parent.mkdir(parents=True, exist_ok=True)
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(made), path)
    return path


def problems(spec: str, shots: int | None = None) -> tuple[str, ...]:
    with pytest.raises(SuiteError) as caught:
        load(spec, shots)
    return caught.value.problems


def asked(suite: Suite) -> list[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]]]:
    return [(sample.sample_id, sample.turns, sample.references) for sample in suite.samples]


def test_the_groups_are_those_of_the_benchmark(folder: Path) -> None:
    assert {group: len(subjects) for group, subjects in GROUPS.items()} == {
        "stem": 18,
        "humanities": 13,
        "social_sciences": 12,
        "other": 14,
    }
    stored = (json.loads(line) for line in (folder / "mmlu_test_342.jsonl").read_text(encoding="utf-8").splitlines())
    assert {row["subject"]: row["group"] for row in stored} == SUBJECTS


def test_explain_is_the_default_and_asks_for_reasons(folder: Path) -> None:
    suite = load(f"mmlu@{folder}")
    stored = [json.loads(line) for line in (folder / "mmlu_test_342.jsonl").read_bytes().splitlines()]
    assert suite.name == load(f"mmlu/explain@{folder}").name == "mmlu"
    assert [sample.sample_id for sample in suite.samples] == [row["id"] for row in stored]
    assert suite.content_hash == sha256((folder / "mmlu_test_342.jsonl").read_bytes()).hexdigest()
    assert (suite.source, suite.licence) == ("mmlu_test_342.jsonl", "MIT")
    assert suite.notes == ("342 of the 14,042 questions of MMLU's test part",)
    assert suite.domains == ("mmlu",)
    for sample, row in zip(suite.samples, stored, strict=True):
        assert (sample.category, sample.group, sample.scorer) == (row["subject"], row["group"], "letter")
        assert sample.references == ((row["answer_letter"],),)
        assert list(sample.options) == row["choices"]
        assert (sample.max_new_tokens, sample.timed, sample.raw, sample.choices, sample.stop) == (
            1024,
            True,
            None,
            (),
            (),
        )
        lines = sample.turns[0].split("\n")
        assert row["subject"].replace("_", " ") in lines[0]
        assert "Answer: X" in lines[-1]
        options = [f"{letter}. {choice.strip()}" for letter, choice in zip("ABCD", row["choices"], strict=True)]
        assert "\n".join([row["question"].strip(), *options]) in sample.turns[0]
    assert Counter(sample.group for sample in suite.samples) == {
        "stem": 108, "humanities": 78, "social_sciences": 72, "other": 84,
    }  # fmt: skip


def test_letter_asks_for_the_letter_and_measures_no_speed(folder: Path) -> None:
    suite = load(f"mmlu/letter@{folder}")
    assert suite.name == "mmlu/letter"
    assert {(sample.max_new_tokens, sample.timed, sample.suite) for sample in suite.samples} == {
        (16, False, suite.name)
    }
    assert all("Answer: X" not in sample.turns[0] and sample.raw is None for sample in suite.samples)
    assert all("nothing else" in sample.turns[0].split("\n")[-1] for sample in suite.samples)


def test_k_shot_is_the_published_prompt(tmp_path: Path) -> None:
    test = [
        {"question": " Is {x} 1?\n", "choices": ["p", " q", "r ", "{s}"], "answer": 1, "subject": "us_foreign_policy"}
    ]
    dev = [
        {"question": f"Dev {number}", "choices": list("wxyz"), "answer": number, "subject": "us_foreign_policy"}
        for number in (3, 0, 2)
    ]
    write_lines(tmp_path / "test.jsonl", test)
    write_lines(tmp_path / "dev.jsonl", dev)
    suite = load(f"mmlu/k-shot@{tmp_path}", shots=2)
    (sample,) = suite.samples
    assert sample.raw is not None
    prompt = "\n\n".join([sample.raw.header, *sample.raw.examples, sample.turns[0]])
    assert prompt == (
        "The following are multiple choice questions (with answers) about us foreign policy.\n\n"
        "Dev 3\nA. w\nB. x\nC. y\nD. z\nAnswer: D\n\n"
        "Dev 0\nA. w\nB. x\nC. y\nD. z\nAnswer: A\n\n"
        "Is {x} 1?\nA. p\nB. q\nC. r\nD. {s}\nAnswer:"
    )
    assert sample.options == ("p", " q", "r ", "{s}")
    assert (sample.max_new_tokens, sample.stop, sample.timed, sample.choices) == (16, ("\n",), False, ())
    assert suite.name == "mmlu/k-shot"
    assert "2 examples before each question, from dev.jsonl" in suite.notes


def test_loglik_compares_the_four_letters_after_the_same_prompt(folder: Path) -> None:
    likelihood, written = load(f"mmlu/loglik@{folder}"), load(f"mmlu/k-shot@{folder}")
    for one, other in zip(likelihood.samples, written.samples, strict=True):
        assert (one.raw, one.turns) == (other.raw, other.turns)
        assert one.choices == (" A", " B", " C", " D")
        assert (one.max_new_tokens, one.timed, one.stop) == (0, False, ())
    assert all(sample.raw is not None and len(sample.raw.examples) == 5 for sample in likelihood.samples)
    first = json.loads((folder / "mmlu_dev_285.jsonl").read_bytes().split(b"\n")[0])
    examples = likelihood.samples[0].raw.examples if likelihood.samples[0].raw else ()
    assert examples[0].startswith(first["question"])
    assert examples[0].endswith(f"\nAnswer: {first['answer_letter']}")


def test_the_hash_covers_everything_that_a_prompt_is_made_of(tmp_path: Path) -> None:
    test = write_lines(tmp_path / "test.jsonl", rows(1))
    dev = write_lines(tmp_path / "dev.jsonl", rows(5, "dev"))
    spec = f"mmlu/k-shot@{test}"
    hashes = [load(spec, shots=shots).content_hash for shots in (None, 5, 3, 0)]
    assert hashes[0] == hashes[1]
    assert len({*hashes, load(f"mmlu@{test}").content_hash}) == 4
    write_lines(dev, rows(5, "other"))
    assert load(spec).content_hash != hashes[0]
    assert load(spec, shots=0).content_hash == hashes[3]


def test_shots_are_checked(tmp_path: Path) -> None:
    write_lines(tmp_path / "test.jsonl", rows(2))
    dev = [row for row in rows(5, "dev") if row["subject"] != "virology" or row["answer"] < 3]
    dev = [row for row in dev if (row["subject"], row["question"]) != ("virology", "dev 4 of virology?")]
    write_lines(tmp_path / "dev.jsonl", [row for row in dev if row["subject"] != "anatomy"])
    assert problems(f"mmlu/k-shot@{tmp_path}") == ("anatomy: 0", "virology: 3")
    for shots in (-1, 6):
        with pytest.raises(SuiteError, match=f"{shots} examples are asked for; MMLU has 5"):
            load(f"mmlu/loglik@{tmp_path}", shots=shots)
    for variant in ("explain", "letter"):
        with pytest.raises(SuiteError, match=f"mmlu/{variant} takes no examples, but 0 are asked for"):
            load(f"mmlu/{variant}@{tmp_path}", shots=0)
    without = load(f"mmlu/k-shot@{tmp_path}", shots=0)
    assert all(sample.raw is not None and sample.raw.examples == () for sample in without.samples)
    assert "no examples before a question" in without.notes


def test_the_test_part_is_no_source_of_examples(tmp_path: Path) -> None:
    write_lines(tmp_path / "test.jsonl", rows(5))
    write_lines(tmp_path / "dev.jsonl", rows(5))
    with pytest.raises(SuiteError, match="the same rows as the test part"):
        load(f"mmlu/k-shot@{tmp_path}")


def test_examples_lie_beside_the_test_file(tmp_path: Path) -> None:
    test = write_lines(tmp_path / "My-Test_342.jsonl", rows(1))
    tried = (f"tried: {tmp_path}/My-dev_*.jsonl",)
    assert problems(f"mmlu/k-shot@{test}") == tried
    write_lines(tmp_path / "other_dev_285.jsonl", rows(5, "dev"))
    assert problems(f"mmlu/k-shot@{test}") == tried
    write_lines(tmp_path / "My-dev_285.jsonl", rows(5, "dev"))
    assert "5 examples before each question, from My-dev_285.jsonl" in load(f"mmlu/k-shot@{test}").notes
    write_lines(tmp_path / "My-dev_5.jsonl", rows(5, "more"))
    with pytest.raises(SuiteError, match="2 files could be meant"):
        load(f"mmlu/k-shot@{test}")
    odd = write_lines(tmp_path / "questions.jsonl", rows(1))
    assert problems(f"mmlu/k-shot@{odd}") == ("the name questions.jsonl holds no `test` that `dev` could stand for",)


@pytest.mark.parametrize(
    "place", ["{}.jsonl", "mmlu_{}_9.jsonl", "all/{}-00000-of-00001.jsonl", "data/{}/rows.jsonl", "{}/x.json"]
)
def test_a_folder_is_searched_for_both_parts(place: str, tmp_path: Path) -> None:
    for part, number in (("test", 1), ("dev", 5)):
        write_lines(tmp_path / place.format(part), rows(number, part))
    (tmp_path / "README.md").write_text("test")
    (tmp_path / "._test.jsonl").write_bytes(b"\0\1")
    suite = load(f"mmlu/k-shot@{tmp_path}")
    assert len(suite.samples) == 57
    assert suite.samples[0].raw is not None
    assert suite.samples[0].raw.examples[0].startswith("dev 0 of abstract_algebra?")


def test_a_folder_without_the_test_part_tells_what_was_tried(tmp_path: Path) -> None:
    write_lines(tmp_path / "latest.jsonl", rows(1))
    shown = ("*test*", "test/*", "all/*test*", "data/*test*", "data/test/*")
    assert problems(f"mmlu@{tmp_path}") == tuple(f"tried: {tmp_path}/{place}" for place in shown)
    write_lines(tmp_path / "test_a.jsonl", rows(1))
    write_lines(tmp_path / "test_b.jsonl", rows(1))
    with pytest.raises(SuiteError, match="2 files could be meant"):
        load(f"mmlu@{tmp_path}")


def test_the_original_files_have_a_file_a_subject_and_no_header(tmp_path: Path) -> None:
    whole = write_lines(tmp_path / "whole" / "test.jsonl", rows(3))
    write_lines(tmp_path / "whole" / "dev.jsonl", rows(5, "dev"))
    for part, number in (("test", 3), ("dev", 5)):
        for subject in SUBJECTS:
            made = [row for row in rows(number, part) if row["subject"] == subject]
            write_csv(tmp_path / "data" / part / f"{subject}_{part}.csv", made)
    expected = asked(load(f"mmlu/k-shot@{whole}"))
    for place in (tmp_path / "data", tmp_path, tmp_path / "data" / "test"):
        suite = load(f"mmlu/k-shot@{place}")
        assert asked(suite) == expected
        assert suite.source == "abstract_algebra_test.csv and 56 more"
        assert [sample.raw for sample in suite.samples] == [
            sample.raw for sample in load(f"mmlu/k-shot@{whole}").samples
        ]
    one = load(f"mmlu/k-shot@{tmp_path / 'data' / 'test' / 'virology_test.csv'}")
    assert [sample.sample_id for sample in one.samples] == ["virology/0", "virology/1", "virology/2"]
    assert one.notes[0] == "3 of the 14,042 questions of MMLU's test part, from 1 of 57 subjects"
    (tmp_path / "data" / "test" / "virology_test.csv").write_text(
        '"Why, ""so""?\nOr not?",,b,c,d,C\r\nWhy?,a,b,c,d,A\r\n', encoding="utf-8"
    )
    sample = load(f"mmlu@{tmp_path / 'data' / 'test' / 'virology_test.csv'}").samples[0]
    assert (sample.options, sample.references) == (("", "b", "c", "d"), (("C",),))
    assert 'Why, "so"?\nOr not?\nA. \nB. b' in sample.turns[0]


def test_numbered_pieces_are_one_part(tmp_path: Path) -> None:
    made = rows(2)
    for number, piece in enumerate((made[:50], made[50:])):
        write_parquet(tmp_path / "all" / f"test-0000{number}-of-00002.parquet", piece)
    write_parquet(tmp_path / "all" / "dev-00000-of-00001.parquet", rows(5, "dev"))
    write_parquet(tmp_path / "all" / "validation-00000-of-00001.parquet", rows(1))
    suite = load(f"mmlu/k-shot@{tmp_path}")
    assert asked(suite) == asked(load(f"mmlu/k-shot@{write_lines(tmp_path / 'x' / 'test.jsonl', made)}", shots=0))
    with pytest.raises(SuiteError, match="not found"):
        load(f"mmlu/k-shot@{tmp_path / 'x' / 'test.jsonl'}")


def test_the_forms_of_rows_are_equivalent(write: Callable[..., Path], tmp_path: Path) -> None:
    choices = {"A": "w", "B": "x", "C": "y", "D": "z"}
    same = [
        write({"question": "Why?", "subject": "anatomy", "choices": list("wxyz"), "answer": 2}, name="a.jsonl"),
        write({"question": "Why?", "subject": "Anatomy ", "choices": list("wxyz"), "answer": "c"}, name="b.jsonl"),
        write({"question": "Why?", "subject": "anatomy", **choices, "answer": "2"}, name="c.jsonl"),
        write({"input": "Why?", **choices, "target": "C"}, name="anatomy_test.jsonl"),
        write_parquet(tmp_path / "anatomy" / "test.parquet", [{"input": "Why?", **choices, "target": "C"}]),
        write("subject,question,A,B,C,D,answer", "anatomy,Why?,w,x,y,z,C", name="d.csv"),
    ]
    expected = asked(load(f"mmlu@{same[0]}"))
    assert expected[0][0] == "anatomy/0"
    for path in same[1:]:
        assert asked(load(f"mmlu@{path}")) == expected


def test_all_problems_of_a_file_are_told_at_once(write: Callable[..., Path]) -> None:
    good = {"question": "Why?", "subject": "anatomy", "choices": list("wxyz"), "answer": 0}
    path = write(
        {**good, "id": "a"},
        {**good, "id": "a"},
        {**good, "question": " "},
        {**good, "choices": list("vwxyz")},
        {**good, "choices": ["w", None, 3, ""]},
        {**good, "choices": "wxyz"},
        {**good, "answer": 4},
        {**good, "answer": True},
        {**good, "answer": "E"},
        {**good, "answer": None},
        {**good, "answer_letter": "B"},
        {**good, "subject": "anatomie"},
        {**good, "subject": "law"},
        {**good, "subject": "law"},
        {**good, "subject": 5},
        {**good, "subject": None},
        "[]",
    )
    *of_fields, of_text = [problem.removeprefix(f"{path}:") for problem in problems(f"mmlu@{path}")]
    assert of_text.startswith("17: not an object")
    assert of_fields == [
        "2: id a is already used on line 1",
        "3: `question` is blank",
        "4: `choices` is a list of 5; it must be a list of four texts",
        "5: entry 2 of `choices` is null; it must be a string",
        "5: entry 3 of `choices` is the number 3; it must be a string",
        "6: `choices` is a string; it must be a list of four texts",
        "7: `answer` is the number 4; it must be a number from 0 to 3 or a letter from A to D",
        "8: `answer` is true; it must be a number from 0 to 3 or a letter from A to D",
        "9: `answer` is 'E'; it must be a number from 0 to 3 or a letter from A to D",
        "10: no `answer` (nor `target`)",
        "11: `answer` says A but `answer_letter` says B",
        "12: 'anatomie' is none of MMLU's 57 subjects; did you mean anatomy?",
        "13: 'law' is none of MMLU's 57 subjects",
        "15: `subject` is the number 5; it must be a string",
        "16: no `subject`, and no subject of MMLU that the file is named after",
    ]


def test_another_benchmark_is_refused_by_its_columns(write: Callable[..., Path]) -> None:
    pro = {"question_id": 1, "question": "Why?", "options": list("abcdefghij"), "answer": "I", "category": "law"}
    path = write(pro)
    with pytest.raises(SuiteError, match="MMLU-Pro") as caught:
        load(f"mmlu@{path}")
    assert caught.value.problems[0] == "found: question_id, question, options, answer, category"


def test_the_small_set_takes_one_of_each_subject_and_a_second_of_23(folder: Path) -> None:
    whole = load(f"mmlu@{folder}")
    for seed in (0, 5):
        suite = load(f"mmlu_80@{folder}", seed=seed)
        taken = Counter(sample.category for sample in suite.samples)
        assert (suite.name, len(suite.samples), len(taken)) == ("mmlu_80", 80, 57)
        order = sorted(SUBJECTS, key=lambda subject: rank(seed, subject))
        assert [taken[subject] for subject in order] == [2] * 23 + [1] * 34
        for subject, number in taken.items():
            ids = sorted((x.sample_id for x in whole.samples if x.category == subject), key=lambda x: rank(seed, x))
            assert {x.sample_id for x in suite.samples if x.category == subject} == set(ids[:number])
        ids_in_order = [x.sample_id for x in whole.samples if x in {replace(y, suite="mmlu") for y in suite.samples}]
        assert [sample.sample_id for sample in suite.samples] == ids_in_order
        assert suite.domains == ("mmlu",)
        found = split(suite, seed=seed)
        assert (len(part_of(suite, "calibration", found).samples), len(part_of(suite, "test", found).samples)) == (
            16,
            64,
        )
    assert load(f"mmlu_80/letter@{folder}").name == "mmlu_80/letter"
    assert any("drawn with seed 5" in note for note in load(f"mmlu_80@{folder}", seed=5).notes)


def rank(seed: int, text: str) -> str:
    return sha256(f"{seed}:{text}".encode()).hexdigest()


def test_the_small_set_does_not_depend_on_order(folder: Path) -> None:
    questions = [
        Question(question_id=f"{subject}/{number}", subject=subject, text="Why?", choices=tuple("wxyz"), letter="A")
        for subject in SUBJECTS
        for number in range(4)
    ]
    chosen = {question.question_id for question in draw(questions, seed=2)}
    random.Random(1).shuffle(questions)
    assert {question.question_id for question in draw(questions, seed=2)} == chosen
    assert {question.question_id for question in draw(questions, seed=3)} != chosen


def test_the_small_set_needs_enough_of_every_subject(tmp_path: Path) -> None:
    made = [row for row in rows(1) if row["subject"] != "virology"]
    found = problems(f"mmlu_80@{write_lines(tmp_path / 'test.jsonl', made)}")
    order = sorted(SUBJECTS, key=lambda subject: rank(0, subject))
    expected = [f"{subject}: 2 needed, {int(subject != 'virology')} there" for subject in order[:23]]
    if "virology" not in order[:23]:
        expected.append("virology: 1 needed, 0 there")
    assert list(found) == expected


class Hub:
    """The hub's two splits without a network."""

    def __init__(self, test: list[dict[str, Any]], dev: list[dict[str, Any]]) -> None:
        self.asked: list[HubPlace] = []
        self._splits = {"test": test, "dev": dev}

    def rows(self, place: HubPlace, *, suite: str, offline: str) -> RowFile:
        self.asked.append(place)
        data = "\n".join(json.dumps(row) for row in self._splits[place.split]).encode()
        return replace(parse_rows(data, "data"), name=f"{place.name}@abc", notes=(f"rows of hf://{place.name}",))


def test_the_hub_serves_both_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub(rows(1), rows(5, "dev"))
    monkeypatch.setattr(mmlu_rows, "hub_rows", hub.rows)
    suite = load("mmlu/k-shot")
    assert hub.asked == [
        HubPlace(name="cais/mmlu", split="test", usual_config="all"),
        HubPlace(name="cais/mmlu", split="dev", usual_config="all"),
    ]
    assert "rows of hf://cais/mmlu" in suite.notes
    assert suite.source == "cais/mmlu@abc"
    hub.asked.clear()
    assert len(load("mmlu@hf://hails/mmlu_no_train@v1").samples) == 57
    assert [(place.name, place.revision) for place in hub.asked] == [("hails/mmlu_no_train", "v1")]


def test_a_configuration_of_the_hub_may_be_the_subject(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"input": "Why?", "A": "w", "B": "x", "C": "y", "D": "z", "target": "D"}
    monkeypatch.setattr(mmlu_rows, "hub_rows", Hub([row], []).rows)
    (sample,) = load("mmlu@hf://lukaemon/mmlu/anatomy").samples
    assert (sample.sample_id, sample.category, sample.references) == ("anatomy/0", "anatomy", (("D",),))
    with pytest.raises(SuiteError, match="no `subject`"):
        load("mmlu@hf://lukaemon/mmlu")


def test_a_copy_without_a_dev_split_is_no_source_of_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    same = rows(5)
    monkeypatch.setattr(mmlu_rows, "hub_rows", Hub(same, same).rows)
    with pytest.raises(SuiteError, match="the same rows as the test part"):
        load("mmlu/loglik@hf://somebody/mmlu")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="no such file"):
        load(f"mmlu/k-shot@{tmp_path / 'test.jsonl'}")
    with pytest.raises(SuiteError, match="cannot be read"):
        load("mmlu@a\0b")
