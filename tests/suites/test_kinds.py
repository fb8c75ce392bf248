"""No suite takes the file of another for its own."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from draftboard.suites import SuiteError, load_suite

Write = Callable[..., Path]

ROWS: dict[str, dict[str, object]] = {
    "gsm8k": {"question": "How much is 1 + 1?", "answer": "1 + 1 = 2\n#### 2"},
    "ntrex_de_en": {"de": "Guten Morgen.", "en": "Good morning."},
    "scitldr": {"document": "We do. It works.", "references": ["It works."]},
    "nq_open": {"question": "who wrote it", "answers": ["Ann"]},
    "humaneval": {
        "task_id": "HumanEval/0",
        "prompt": "def one():\n",
        "entry_point": "one",
        "test": "def check(candidate):\n    assert candidate() == 1\n",
    },
    "mmlu": {"question": "Which?", "subject": "anatomy", "choices": ["a", "b", "c", "d"], "answer": 2},
    "spec_bench": {"question_id": 81, "category": "writing", "turns": ["Write."]},
    "speed_bench": {
        "question_id": "0a" * 16,
        "category": "writing",
        "sub_category": "",
        "turns": ["Write."],
        "source": "writing bench",
        "src_id": "7",
    },
}
FORMS = {
    **{name: (name, row) for name, row in ROWS.items()},
    "nq_open, as on the hub": ("nq_open", {"question": "who wrote it", "answer": ["Ann"]}),
    "mmlu, in cells": (
        "mmlu",
        {"question": "Which?", "subject": "anatomy", **dict.fromkeys("ABCD", "x"), "answer": "2"},
    ),
    "scitldr, published": ("scitldr", {"source": ["We do."], "target": ["Done."]}),
    "ntrex, pairs": ("ntrex_de_en", {"translation": {"de": "Ja.", "en": "Yes."}}),
    "speed_bench, messages": (
        "speed_bench",
        {
            "question_id": "0b" * 16,
            "category": "coding",
            "messages": [{"role": "user", "content": "Write."}],
            "source": "x",
            "src_id": "7",
        },
    ),
}


@pytest.mark.parametrize("asked", ROWS)
@pytest.mark.parametrize("form", FORMS)
def test_only_the_suite_itself_takes_its_rows(write: Write, form: str, asked: str) -> None:
    own, row = FORMS[form]
    path = write(row, name="rows.jsonl")
    if own == asked:
        assert len(load_suite(f"{asked}@{path}").samples) == 1
        return
    with pytest.raises(SuiteError) as caught:
        load_suite(f"{asked}@{path}")
    assert str(caught.value).startswith(f"{path}: these look like rows of {own}, not like rows of {asked}\n")
    assert f"Use --suite {own}@{path}" in str(caught.value)


def test_answers_for_qa_questions_are_no_suite(write: Write) -> None:
    path = write({"question_id": 321, "question": "who", "answers": ["Ann"]})
    with pytest.raises(SuiteError, match="answers to qa questions of spec_bench, not like rows of nq_open") as caught:
        load_suite(f"nq_open@{path}")
    assert f"--qa-references {path}" in str(caught.value)


def test_cells_of_multiple_choice_are_no_word_problems(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    path.write_text("question,A,B,C,D,answer\nHow much?,1,2,3,4,2\n")
    for name in ("gsm8k", "nq_open"):
        with pytest.raises(SuiteError, match=f"rows of mmlu, not like rows of {name}"):
            load_suite(f"{name}@{path}")


def test_a_few_odd_rows_change_nothing(write: Write) -> None:
    good = [{"question": f"who wrote {number}", "answers": ["Ann"]} for number in range(3)]
    path = write(*good, {"question": "what comes after #", "answer": "#### is a heading"})
    assert len(load_suite(f"nq_open@{path}").samples) == 4
    mixed = write(ROWS["gsm8k"], ROWS["gsm8k"], good[0], name="mixed.jsonl")
    with pytest.raises(SuiteError, match="rows of gsm8k"):
        load_suite(f"nq_open@{mixed}")


def test_own_rows_with_faults_are_told_by_line(write: Write) -> None:
    path = write({"question": None, "answer": ["x"]}, {"question": 7}, {"answers": None}, "{")
    with pytest.raises(SuiteError, match=f"{path.name}:4: not valid JSON"):
        load_suite(f"nq_open@{path}")


def test_the_examples_of_mmlu_are_not_its_questions(write: Write) -> None:
    path = write(ROWS["mmlu"], name="mmlu_dev_285.jsonl")
    for name in ("mmlu", "mmlu_80"):
        with pytest.raises(SuiteError, match="named after MMLU's dev part"):
            load_suite(f"{name}@{path}")
    path = write(ROWS["mmlu"], name="devices_test.jsonl")
    assert len(load_suite(f"mmlu@{path}").samples) == 1


def test_the_published_files(published: Callable[[str], Path], tmp_path: Path) -> None:
    files = {
        "gsm8k": published("gsm8k/test.jsonl"),
        "humaneval": published("humaneval/HumanEval.jsonl"),
        "mmlu": published("mmlu/mmlu_test_342.jsonl"),
        "nq_open": published("nq-open/nq_open_dev_300.jsonl"),
        "ntrex_de_en": published("ntrex-de-en/ntrex_deu_eng_298.jsonl"),
        "scitldr": published("scitldr/scitldr_a_test_120.jsonl"),
        "spec_bench": published("spec-bench/question.jsonl"),
    }
    for own, path in files.items():
        for asked in ROWS:
            if asked != own:
                with pytest.raises(SuiteError, match=f"these look like rows of {own}"):
                    load_suite(f"{asked}@{path}")
    rows = [json.loads(line) for line in files["spec_bench"].read_bytes().splitlines()]
    part = tmp_path / "writing.jsonl"
    part.write_text("".join(json.dumps(row) + "\n" for row in rows if row["category"] == "writing"))
    with pytest.raises(SuiteError, match="rows of spec_bench, not like rows of speed_bench"):
        load_suite(f"speed_bench@{part}")
