"""Which prompts hold an evaluation's item."""

import pytest

from draftboard.methods.training.overlap import Evaluation

QUESTION = "Who was the first keeper of the old lighthouse at Gull Point, and why did he leave it?"
LONG = " ".join(f"word{i}" for i in range(60))


@pytest.mark.parametrize(
    ("prompt", "rule"),
    [
        (QUESTION, "the same words"),
        (QUESTION.upper().replace("?", " !"), "the same words"),
        ("ｗｈｏ was the first keeper of the old lighthouse at gull point and why did he leave it", "the same words"),
        (f"Please answer. {QUESTION} Thank you.", "13 words in a row"),
        ("Tell me: who was the first keeper of the old lighthouse at Gull Point?", "half of the runs of 8 words"),
        (QUESTION.replace("leave", "sell"), "13 words in a row"),
        (QUESTION.replace("Point", "Rock"), None),
        (f"Who kept it? {LONG}"[:200], "13 words in a row"),
        ("Which lighthouse at Gull Point was the first one, and why did the old keeper leave it?", None),
        ("Who was the first keeper of the new harbor at Sandy Bay, and why did he leave it?", None),
        ("Why?", None),
        ("", None),
        ("  \n", None),
    ],
)
def test_what_holds_an_item(prompt, rule):
    evaluation = Evaluation([QUESTION, LONG, "Why?", "Why?", ""])
    assert len(evaluation) == 2
    found = evaluation.offenders(["a harmless prompt of a few words", prompt])
    assert [(offence.index, offence.rule) for offence in found] == ([(1, rule)] if rule else [])
    assert evaluation.holds(prompt) == bool(rule)
    if rule:
        assert found[0].prompt == prompt
        assert found[0].item in (QUESTION, LONG)


def test_a_frame_that_many_items_share_is_none_of_them():
    frame = "Answer the following multiple choice question and end your answer with the letter of your choice:"
    evaluation = Evaluation(
        f"{frame} question {i} about item{i} thing{i} place{i} year{i} name{i} and colour{i}" for i in range(20)
    )
    assert not evaluation.holds(f"{frame} something of my own that nobody has asked before in this way")
    assert evaluation.holds("question 3 about item3 thing3 place3 year3 name3 and colour3")
    few = Evaluation([f"{frame} item{i}" for i in range(3)])
    assert few.holds(f"{frame} something of my own")


def test_without_items_everything_may_train():
    assert Evaluation().offenders([QUESTION, LONG]) == []
