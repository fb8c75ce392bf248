import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.scoring import Answer, final_number, find_numbers, gold_number, number_value, score

CASE = json.loads((Path(__file__).parents[2] / "data" / "19-final-answers.json").read_text(encoding="utf-8"))


def answer(key: str, text: str | None, *references: str) -> Answer:
    return Answer(sample_id=key, turn=0, text=text, references=references)


@pytest.mark.parametrize("item", CASE["items"], ids=lambda item: item["id"])
def test_case_19_items(item):
    found = final_number(item["response"])
    if item["extracted"] is None:
        assert found is None
    else:
        assert number_value(found) == Decimal(item["extracted"].replace(",", ""))
    stored = (item["answer"],) if item["answer"] is not None else ()
    scores = score([answer(item["id"], item["response"], *stored)], "last_number")
    expected = {} if item["correct"] is None else {f"{item['id']}#0": float(item["correct"])}
    assert scores.per_sample["accuracy"] == expected


def test_case_19_together():
    answers = [answer(i["id"], i["response"], *([i["answer"]] if i["answer"] else [])) for i in CASE["items"]]
    scores = score(answers, "last_number")
    assert scores.values["accuracy"].value == pytest.approx(7 / 11)
    assert scores.values["accuracy"].n == 11
    assert (scores.counts["unparsed"], scores.counts["no_reference"], scores.counts["empty"]) == (2, 1, 1)
    assert scores.extras["unparsed_rate"].value == pytest.approx(2 / 11)
    assert scores.extras["any_number"].value == pytest.approx(8 / 11)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("5-3=2", ["5", "3", "2"]),
        ("The total is $1,234.50.", ["1234.50"]),
        ("He gains -7 points.", ["-7"]),
        ("1,2,3", ["1", "2", "3"]),
        ("12,34", ["12", "34"]),
        ("2,000,000", ["2000000"]),
        ("-$5", ["-5"]),
        ("x = .5", [".5"]),
        ("version 2.5.1", ["2.5"]),
        ("$<<600+400=1000>>1000", ["600", "400", "1000", "1000"]),
        ("No number here", []),
        ("−5 and －６ and -€7", ["-5", "-6", "-7"]),
        ("７２ or ٧٢ or १२", ["72", "72", "12"]),
        ("5² is not 52, and 3½ is not 31", ["5", "52", "3", "31"]),
        (r"70{,}000 or \$1,\!250 or 70\,000", ["70000", "1250", "70000"]),
        ("1\u202f234\u00a0567", ["1234567"]),
        ("1,2345", ["1", "2345"]),
        ("The total is...72", ["72"]),
        ("That is 7 boxes.84 pens", ["7", "84"]),
        ("Rs.500", ["500"]),
        ("(.5), $.75, 3-.5 and '.25'", [".5", ".75", "3", ".5", ".25"]),
    ],
)
def test_numbers(text, values):
    assert [number_value(number) for number in find_numbers(text)] == [Decimal(value) for value in values]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("#### 84 (that is 7*12)", "84"),
        ("#### Answer: 84\nThis used 3 steps.", "84"),
        ("#### **$1,234.50**", "1234.50"),
        ("####84", "84"),
        ("#### Step 3: adding up\nThe result is 15.", "15"),
        ("#### 4\nThen again.\n#### 15", "15"),
        ("#### -5", "-5"),
        ("#### nothing to add after 7", "7"),
        ("#### The answer is 42 (6*7)", "42"),
        ("#### Total: $84 (7*12)", "84"),
        ("#### 84 = 7*12", "84"),
        ("####\r\n84\r\n(7*12)", "84"),
        ("#### **Final answer:**\n\n**84** (7 boxes of 12)", "84"),
        ("##### 84", "84"),
        ("#### 1. First the boxes\n7*12 = 84", "84"),
        ("#### 84. That is all.", "84"),
        ("#### Part 2:\nso it is 9", "9"),
        ("#### Explanation\n7 boxes make 84.", "84"),
    ],
)
def test_marked_number(text, value):
    assert number_value(final_number(text)) == Decimal(value)


@pytest.mark.parametrize(
    ("reference", "value"),
    [("He has 3 + 4 = 7.\n#### 1,007", "1007"), ("#### -10", "-10"), ("$18.", "18"), ("2 000", "2000")],
)
def test_gold(reference, value):
    assert gold_number(reference) == Decimal(value)


@pytest.mark.parametrize("reference", ["see the notes", "#### about 7 apples", "NaN", "Infinity", "1e5", ""])
def test_unreadable_gold(reference):
    assert gold_number(reference) is None


@pytest.mark.parametrize("piece", ["9", "9,", "1,234", "-$", "####", "#### answer\n", "step 3 ", "#### 1. a\n", ". "])
def test_long_texts(piece):
    """A text of a model that repeats itself, in time that grows with the length alone."""
    text = piece * 50_000
    scores = score([answer("a", text, "9")], "last_number")
    assert scores.counts["unparsed"] == (not any(char.isdigit() for char in piece))


def test_which_answers_had_no_number_is_kept():
    scores = score([answer("a", "none", "7"), answer("b", "7", "7")], "last_number")
    assert scores.per_sample["unparsed_rate"] == {"a#0": 1, "b#0": 0}
    assert scores.extras["unparsed_rate"].value == 0.5


def test_unreadable_reference_is_left_out_and_counted():
    scores = score([answer("a", "7", "seven"), answer("b", "7", "7")], "last_number")
    assert (scores.values["accuracy"].value, scores.values["accuracy"].n) == (1.0, 1)
    assert (scores.counts["bad_reference"], scores.counts["scored"]) == (1, 1)


def test_headline_follows_the_mark_and_last_number_does_not():
    scores = score([answer("a", "#### 84\n(7 boxes of 12)", "84")], "last_number")
    assert scores.values["accuracy"].value == scores.extras["hash_number"].value == 1
    assert scores.extras["last_number"].value == 0
    assert scores.extras["any_number"].value == 1


@given(st.text(alphabet="0123456789.,-+$# \n−７²a\ud800\0", max_size=60))
def test_any_text_is_read_without_error(text):
    assert all(number_value(number).is_finite() for number in find_numbers(text))
    assert (final_number(text) is None) == (not find_numbers(text))


@given(st.decimals(min_value=-(10**9), max_value=10**9, places=2), st.booleans())
def test_a_written_number_is_found_by_value(value, commas):
    text = f"{value:,}" if commas else f"{value}"
    assert number_value(final_number(f"2 apples and then {text}.")) == value


def test_the_final_number_has_no_currency_sign():
    for text in ("So the order costs $29.00.", "Cost: -€29.00", r"\\#### \$29.00"):
        assert final_number(text) in ("29.00", "-29.00")
