"""Known figures on published data: they change if a scorer, a tokenizer or a library does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from draftboard.scoring import Answer, gold_number, score
from draftboard.scoring.code_text import entry_point
from draftboard.suites import load_suite

Published = Callable[[str], Path]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def answer(key: object, text: str, *references: str, **more: Any) -> Answer:
    return Answer(sample_id=str(key), turn=0, text=text, references=references, **more)


def test_german_handed_in_as_its_translation(published: Published):
    pairs = rows(published("ntrex-de-en/ntrex_deu_eng_298.jsonl"))
    scores = score([answer(row["id"], row["de"], row["en"], language="en") for row in pairs], "bleu")
    assert scores.values["bleu"].value == pytest.approx(4.21, abs=0.005)
    assert (scores.values["bleu"].n, "|tok:13a|" in scores.signature) == (298, True)
    own = score([answer(row["id"], row["en"], row["en"], language="en") for row in pairs], "bleu")
    assert {value.value for value in own.values.values()} == {100.0}


def test_first_sentence_handed_in_as_the_summary(published: Published):
    papers = rows(published("scitldr/scitldr_a_test_120.jsonl"))
    answers = [answer(row["id"], row["document"].split(". ")[0], *row["references"]) for row in papers]
    scores = score(answers, "rouge")
    assert scores.values["rougeL"].value == pytest.approx(26.02, abs=0.005)
    assert scores.values["rougeL"].n == 120
    assert "|stem:yes|" in scores.signature


def test_worked_solutions_end_on_their_own_number(published: Published):
    solutions = [row["answer"] for row in rows(published("gsm8k/test.jsonl"))]
    assert sum(gold_number(text) is not None for text in solutions) == 1319
    answers = [answer(i, text, text) for i, text in enumerate(solutions)]
    scores = score(answers, "last_number")
    assert (scores.values["accuracy"].value, scores.values["accuracy"].n) == (1, 1319)
    assert (scores.extras["last_number"].value, scores.extras["any_number"].value) == (1, 1)
    unmarked = score([answer(i, text.split("####")[0], text) for i, text in enumerate(solutions)], "last_number")
    assert 0.9 < unmarked.values["accuracy"].value < 1


def test_conversations_about_mathematics_are_not_scored(published: Published):
    suite = load_suite(f"spec_bench@{published('spec-bench/question.jsonl')}")
    by_domain = {sample.domain: sample.scorer for sample in suite.samples}
    assert by_domain["math_reasoning"] == "last_number"
    assert {s.scorer for s in suite.samples if s.domain == "mt_bench"} == {None}
    aliases = [answer(s.sample_id, s.references[0][-1], *s.references[0]) for s in suite.samples if s.domain == "rag"]
    scores = score(aliases, "qa")
    assert {name: (value.value, value.n) for name, value in scores.values.items()} == {
        "contains": (1, 80), "f1": (100, 80), "em": (1, 80),
    }  # fmt: skip


def test_answers_of_natural_questions_said_in_a_sentence(published: Published):
    questions = rows(published("nq-open/nq_open_dev_300.jsonl"))
    scores = score(
        [answer(row["id"], f"I think it is {row['answers'][-1]}.", *row["answers"]) for row in questions], "qa"
    )
    assert (scores.values["contains"].value, scores.values["em"].value, scores.values["em"].n) == (1, 0, 300)


@pytest.mark.parametrize(
    "form", ["{letter}", "({letter})", "The answer is ({letter}).", "Because.\n\nAnswer: {letter}"]
)
def test_every_letter_is_read(published: Published, form: str):
    questions = rows(published("mmlu/mmlu_test_342.jsonl"))
    answers = [
        answer(
            row["id"],
            form.format(letter=row["answer_letter"]),
            row["answer_letter"],
            options=tuple(row["choices"]),
            category=row["subject"],
            group=row["group"],
        )
        for row in questions
    ]
    scores = score(answers, "letter")
    assert scores.values["accuracy"].value == scores.extras["accuracy_macro"].value == 1
    sizes = {name.partition("/")[2]: value.n for name, value in scores.extras.items() if "/" in name}
    assert sizes == {"stem": 108, "humanities": 78, "social_sciences": 72, "other": 84}
    assert scores.extras["accuracy_macro"].signature.endswith("|macro:57 categories")


def test_the_tested_function_is_known(published: Published):
    for row in rows(published("humaneval/HumanEval.jsonl")):
        assert entry_point(row["prompt"], "") == row["entry_point"]
        assert entry_point(row["prompt"], f"{row['test']}\ncheck({row['entry_point']})") == row["entry_point"]


@pytest.mark.usefixtures("sandbox")
def test_published_solutions_pass_in_every_form(published: Published):
    problems = rows(published("humaneval/HumanEval.jsonl"))[::20]
    answers = []
    for i, row in enumerate(problems):
        whole = row["prompt"] + row["canonical_solution"]
        forms = (f"```python\n{whole}```", row["canonical_solution"].strip(), f"```\n{row['canonical_solution']}```")
        tests = f"{row['test']}\ncheck({row['entry_point']})"
        answers.append(answer(row["task_id"], forms[i % 3], tests, context=row["prompt"]))
        answers.append(answer(f"{row['task_id']}/wrong", "return None", tests, context=row["prompt"]))
    scores = score(answers, "pass_at_1", run_code=True)
    assert scores.values["pass_at_1"].n == 2 * len(problems)
    assert {key for key, value in scores.per_sample["pass_at_1"].items() if value} == {
        f"{row['task_id']}#0" for row in problems
    }
