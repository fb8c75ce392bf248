"""Answers for Spec-Bench's qa questions from a file beside it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from draftboard.suites import Suite, SuiteError, SuiteSettings, limited, load_suite, of_categories

Write = Callable[..., Path]


def questions(write: Write) -> Path:
    return write(
        {"question_id": 1, "category": "qa", "turns": ["Who wrote “Ann’s Book”?"]},
        {"question_id": 2, "category": "qa", "turns": ["Where is it?"]},
        {"question_id": 3, "category": "writing", "turns": ["Write.", "Again."]},
        {"question_id": 4, "category": "qa", "turns": ["When?"], "reference": [["today"]]},
        name="question.jsonl",
    )


def load(prompts: Path, answers: Path) -> Suite:
    return load_suite(f"spec_bench@{prompts}", SuiteSettings(qa_references=str(answers)))


def test_some_questions_get_answers(write: Write) -> None:
    prompts = questions(write)
    answers = write(
        {"question_id": 1, "question": "WHO wrote  ann's book", "answers": ["Ann", "A. N."], "row": 7}, name="a.jsonl"
    )
    suite = load(prompts, answers)
    plain = load_suite(f"spec_bench@{prompts}")
    assert [sample.scorer for sample in plain.samples] == [None, None, None, "qa"]
    assert [sample.scorer for sample in suite.samples] == ["qa", None, None, "qa"]
    assert suite.samples[0].references == (("Ann", "A. N."),)
    assert suite.samples[1:] == plain.samples[1:]
    assert suite.content_hash == plain.content_hash
    (note,) = set(suite.all_notes) - set(plain.all_notes)
    assert note.startswith("qa: 2 of 3 questions asked are scored, with answers from a.jsonl (sha256 ")
    assert note.endswith("…) where the suite has none; the other 1 is left out of the score")


@pytest.mark.parametrize(
    ("limit", "told"),
    [(1, "1 of 1 question asked is scored"), (2, "1 of 2 questions asked are scored"), (9, "1 of 3 questions asked")],
)
def test_the_count_is_of_the_samples_chosen(write: Write, limit: int, told: str) -> None:
    prompts = write(
        *({"question_id": number, "category": "qa", "turns": [f"Who is {number}?"]} for number in (1, 2, 3)),
        {"question_id": 4, "category": "rag", "turns": ["Who?"]},
        name="question.jsonl",
    )
    chosen = limited(load_suite(f"spec_bench@{prompts}"), 1, 0).samples[0].sample_id
    suite = load(prompts, write({"question_id": int(chosen), "answers": ["Ann"]}, name="a.jsonl"))
    (note,) = [note for note in limited(suite, limit, 0).all_notes if note.startswith("qa: ")]
    assert told in note
    assert ("left out" in note) == (limit > 1)
    assert not [note for note in of_categories(suite, ["rag"]).all_notes if "a.jsonl" in note]


def test_every_fault_is_told_with_its_line(write: Write) -> None:
    answers = write(
        {"question_id": 99, "answers": ["x"]},
        {"question_id": 3, "answers": ["x"]},
        {"question_id": 4, "answers": ["x"]},
        {"question_id": 1, "question": "Who wrote Anna's book?", "answers": ["x"]},
        {"question_id": 1, "answers": ["x"]},
        {"question_id": 2, "answers": 7},
        {"question_id": 2.5, "answers": ["x", " "], "question": 3},
        {"answers": []},
        "{",
        {"question_id": "two", "answers": ["x"]},
        name="a.jsonl",
    )
    with pytest.raises(SuiteError) as caught:
        load(questions(write), answers)
    assert [problem.removeprefix(f"{answers}:") for problem in caught.value.problems] == [
        "1: question.jsonl has no question 99",
        "2: question 3 is of category writing, not qa",
        "3: question 4 has references in question.jsonl already",
        "4: question 1 of question.jsonl is another one: 'Who wrote “Ann’s Book”?'",
        "5: question_id 1 is already used on line 4",
        "6: `answers` is the number 7; it must be a list of strings",
        "7: `question_id` is the number 2.5; it must be an integer or a string",
        "7: entry 2 of `answers` is blank",
        "7: `question` is the number 3; it must be a string",
        "8: no `question_id`",
        "8: `answers` is empty",
        "9: not valid JSON: Expecting property name enclosed in double quotes, column 2",
        "10: question.jsonl has no question two; known: 1, 2, 3, 4",
    ]


def test_a_file_that_is_not_there(write: Write, tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="no such file"):
        load(questions(write), tmp_path / "absent.jsonl")
    with pytest.raises(SuiteError, match="this is a directory, not a file of qa references"):
        load(questions(write), tmp_path)


def test_the_published_files(spec_bench_folder: Path, published: Callable[[str], Path]) -> None:
    suite = load(spec_bench_folder, published("nq-open") / "spec_bench_qa_references_43.jsonl")
    qa = [sample for sample in suite.samples if sample.domain == "qa"]
    scored = [sample for sample in qa if sample.scorer == "qa"]
    assert (len(qa), len(scored)) == (80, 43)
    assert all(sample.references == ((),) for sample in qa if sample.scorer is None)
    assert scored[0].sample_id == "321"
    assert suite.content_hash == load_suite(f"spec_bench@{spec_bench_folder}").content_hash
    assert suite.all_notes == (
        "qa: 43 of 80 questions asked are scored, with answers from spec_bench_qa_references_43.jsonl (sha256 "
        "c885573c2cdf…) where the suite has none; the other 37 are left out of the score",
    )


def test_an_unknown_id_does_not_list_all_the_others(write: Write) -> None:
    asked = [{"question_id": f"q{number}", "category": "qa", "turns": ["x"]} for number in range(200)]
    path = write(*asked, name="question.jsonl")
    answers = write({"question_id": "q7x", "answers": ["y"]}, name="answers.jsonl")
    with pytest.raises(SuiteError, match="q59 and 140 more") as caught:
        load_suite(f"spec_bench@{path}", SuiteSettings(qa_references=str(answers)))
    assert "q150" not in str(caught.value)
