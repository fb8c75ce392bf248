import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.lossless import Margin, Turn, chi_square, compare

DATA = Path(__file__).parents[1] / "data"


def load(name):
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {row["question_id"]: [Turn(**turn) for turn in row["turns"]] for row in rows}


def one(reference, method, **settings):
    settings = {"tie_limit": 0.01, **settings}
    return compare({"a": [reference]}, {"a": [method]}, **settings).turns[0]


def test_case_7():
    comparison = compare(load("07-outputs-reference.jsonl"), load("07-outputs-method.jsonl"), tie_limit=0.01)
    found = {(t.key, t.turn): (t.outcome, t.place, t.gap) for t in comparison.turns}
    assert found == {
        (1, 0): ("identical", None, None),
        (2, 0): ("near-tie", 5, 0.0039),
        (3, 0): ("mismatch", 2, 3.1),
        (4, 0): ("near-tie", 2, 0.002),
        (4, 1): ("not-comparable", None, None),
    }
    assert comparison.compared == 4
    assert comparison.counts == {"identical": 1, "near-tie": 2, "mismatch": 1, "not-comparable": 1}
    assert comparison.output == "different"
    for precision in ("exact", "half"):
        verdict = comparison.verdict(precision)
        assert not verdict.passed
        assert "1 turns differ by more than a rounding tie" in verdict.reason


def test_case_7_without_question_3():
    reference, method = load("07-outputs-reference.jsonl"), load("07-outputs-method.jsonl")
    del reference[3], method[3]
    comparison = compare(reference, method, tie_limit=0.01)
    assert comparison.output == "tie-divergent"
    assert comparison.verdict("half").passed
    assert comparison.verdict("half").reason == ""
    assert not comparison.verdict("exact").passed
    assert comparison.verdict("exact").reason == "2 turns differ at a near-tie"


def test_identical():
    comparison = compare({"a": [Turn(token_ids=[1, 2])]}, {"a": [Turn(token_ids=(1, 2))]}, tie_limit=0)
    assert comparison.output == "identical"
    assert comparison.verdict("exact").passed


@pytest.mark.parametrize("longer_side", ["reference", "method"])
def test_pure_length_difference_fails_everywhere(longer_side):
    long, short = Turn(token_ids=[1, 2, 3], top2_gap=[0, 0, 0]), Turn(token_ids=[1, 2], top2_gap=[0, 0])
    pair = (long, short) if longer_side == "reference" else (short, long)
    comparison = compare({"a": [pair[0]]}, {"a": [pair[1]]}, tie_limit=1)
    (turn,) = comparison.turns
    assert (turn.outcome, turn.place) == ("length", 2)
    assert (turn.reference_token, turn.method_token) == ((3, None) if longer_side == "reference" else (None, 3))
    assert comparison.output == "different"
    assert not comparison.verdict("half").passed


@pytest.mark.parametrize("gap", [None, [5.0], [5.0, math.nan]])
def test_unknown_gap_is_neither_tie_nor_mismatch(gap):
    turn = one(Turn(token_ids=[1, 2], top2_gap=gap), Turn(token_ids=[1, 3]))
    assert (turn.outcome, turn.gap) == ("different", None)
    comparison = compare({"a": [Turn(token_ids=[1])]}, {"a": [Turn(token_ids=[2])]}, tie_limit=9)
    assert comparison.output == "different"
    assert "not recorded" in comparison.verdict("half").reason


def test_gap_at_the_limit_is_a_tie():
    reference = Turn(token_ids=[1], top2_gap=[0.5])
    assert one(reference, Turn(token_ids=[2]), tie_limit=0.5).outcome == "near-tie"
    assert one(reference, Turn(token_ids=[2]), tie_limit=0.49).outcome == "mismatch"


def test_margins_take_precedence_over_gaps():
    reference, method = Turn(token_ids=[1], top2_gap=[0.001]), Turn(token_ids=[2])
    third_best = {("a", 0): Margin(reference=0.0, method=4.0)}
    assert one(reference, method, margins=third_best).outcome == "mismatch"
    near = {("a", 0): Margin(reference=0.004, method=0.0)}
    assert one(Turn(token_ids=[1]), method, margins=near).outcome == "near-tie"


def test_missing_turns_and_samples_are_counted_and_fail():
    turn = Turn(token_ids=[1])
    comparison = compare({"a": [turn, turn], "b": [turn]}, {"c": [turn], "a": [turn]}, tie_limit=0)
    assert [(t.key, t.turn, t.outcome) for t in comparison.turns] == [
        ("a", 0, "identical"), ("a", 1, "missing"), ("b", 0, "missing"), ("c", 0, "missing"),
    ]  # fmt: skip
    assert comparison.compared == 1
    assert comparison.output == "identical"
    assert comparison.verdict("half").reason == "3 turns are missing on one side"


def test_nothing_compared_never_passes():
    comparison = compare({}, {}, tie_limit=0)
    assert comparison.output == ""
    assert comparison.verdict("half").reason == "no turn could be compared"


def test_prompts_decide_where_both_are_known():
    def turns(*pairs):
        return [Turn(token_ids=ids, prompt=prompt) for ids, prompt in pairs]

    same = compare({"a": turns(([1], "p"), ([2], "q"))}, {"a": turns(([9], "p"), ([2], "q"))}, tie_limit=0)
    assert [t.outcome for t in same.turns] == ["different", "identical"]
    other = compare({"a": turns(([1], "p"), ([2], "q"))}, {"a": turns(([1], "p"), ([2], "r"))}, tie_limit=0)
    assert [t.outcome for t in other.turns] == ["identical", "not-comparable"]


@pytest.mark.parametrize("limit", [-0.1, math.nan])
def test_bad_limit(limit):
    with pytest.raises(ValueError, match="tie_limit"):
        compare({}, {}, tie_limit=limit)


TURNS = st.lists(
    st.lists(st.integers(0, 3), max_size=5).map(lambda ids: Turn(token_ids=ids, top2_gap=[0.0] * len(ids))),
    max_size=3,
)


@given(st.dictionaries(st.integers(0, 4), TURNS), st.dictionaries(st.integers(0, 4), TURNS))
def test_every_turn_of_either_side_has_one_outcome(reference, method):
    comparison = compare(reference, method, tie_limit=0)
    expected = sum(max(len(reference.get(k, ())), len(method.get(k, ()))) for k in {*reference, *method})
    assert len(comparison.turns) == sum(comparison.counts.values()) == expected
    mirrored = compare(method, reference, tie_limit=0)
    assert mirrored.counts == comparison.counts
    if comparison.verdict("exact").passed:
        assert {k: [list(t.token_ids) for t in v] for k, v in reference.items() if v} == {
            k: [list(t.token_ids) for t in v] for k, v in method.items() if v
        }


CASE_8 = json.loads((DATA / "08-sampling.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "statistic", "passed"),
    [("sample-1", 0.088267, True), ("sample-2", 10400, False), ("sample-3", 78.875, False)],
)
def test_case_8(name, statistic, passed):
    counts = next(entry["counts"] for entry in CASE_8["observed"] if entry["name"] == name)
    result = chi_square(counts, CASE_8["target_probabilities"])
    assert result.statistic == pytest.approx(statistic, abs=1e-6)
    assert result.limit == pytest.approx(13.816, abs=1e-3)
    assert (result.degrees, result.passed) == (2, passed)
    assert (result.p_value > 0.001) == passed


def test_impossible_outcomes():
    assert chi_square([50, 50, 0], [0.5, 0.5, 0]).degrees == 1
    drawn = chi_square([50, 49, 1], [0.5, 0.5, 0])
    assert (drawn.statistic, drawn.p_value, drawn.passed) == (math.inf, 0, False)


@pytest.mark.parametrize(
    ("counts", "probabilities", "message"),
    [
        ([1, 2], [1.0], "2 counts but 1"),
        ([1, -1], [0.5, 0.5], "counts must"),
        ([0, 0], [0.5, 0.5], "counts must"),
        ([1, 1], [0.5, 0.6], "add up to 1"),
        ([1, 1], [math.nan, 0.5], "probabilities must"),
        ([1, 1], [1.5, -0.5], "probabilities must"),
        ([1, 0], [1.0, 0.0], "at least two"),
    ],
)
def test_bad_chi_square_input(counts, probabilities, message):
    with pytest.raises(ValueError, match=message):
        chi_square(counts, probabilities)


def test_bad_level():
    with pytest.raises(ValueError, match="level"):
        chi_square([1, 1], [0.5, 0.5], level=1)
