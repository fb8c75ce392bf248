import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.errors import UserError
from draftboard.foreign.answers import by_method, cut, read_answers


def one(write, *rows, name="a.jsonl"):
    return by_method([read_answers(write(name, rows))])


def test_a_row_becomes_turns_with_their_entries(write, answer):
    (method,) = one(
        write, answer(81, ("hello", [3, 2], 0.5), ("there", [1, 1, 4], 0.25), model="eagle", category="writing")
    )
    row = method.rows["81"]
    assert method.label == "eagle"
    assert row.whole
    assert row.category == "writing"
    first, second = row.choices[0].turns
    assert (first.text, first.new_tokens, first.wall_time_s, first.entries) == ("hello", 5, 0.5, (3, 2))
    assert second.entries == (1, 1, 4)
    assert method.notes == ()
    assert row.meta == {"answer_id": "a81", "tstamp": 1.7e9}


def test_unknown_fields_are_kept(write, answer):
    row = answer(81, ("x", [1], 0.1), extra={"a": [1]})
    row["choices"][0]["note"] = "hm"
    (method,) = one(write, row)
    assert method.rows["81"].meta["extra"] == {"a": [1]}
    assert method.rows["81"].meta["choices"] == [{"note": "hm"}]


def test_the_last_row_of_a_question_counts_and_doubled_ones_are_counted(write, answer):
    (method,) = one(write, *(answer(1, (text, [1], 0.1)) for text in "abc"), answer(2, ("d", [1], 0.1)))
    assert method.duplicates == 2
    assert method.rows["1"].choices[0].turns[0].text == "c"
    assert list(method.rows) == ["1", "2"]
    assert any("2 doubled" in note for note in method.notes)


def test_an_error_row_failed_whatever_its_numbers_say(write, answer):
    (method,) = one(write, answer(1, ("fine", [2], 0.1), ("ERROR", [2], 0.1)), answer(2, ("no ERROR here", [2], 0.1)))
    assert method.rows["1"].choices[0].failure
    assert not method.rows["2"].choices[0].failure
    assert method.failed == 1


@pytest.mark.parametrize(("field", "value"), [("new_tokens", None), ("wall_time", math.nan), ("wall_time", None)])
def test_missing_numbers_are_a_failure(write, answer, field, value):
    row = answer(1, ("x", [2], 0.1))
    row["choices"][0][field] = [value]
    (method,) = one(write, row)
    assert method.rows["1"].choices[0].failure == "numbers are missing"


def test_counts_that_disagree_are_warnings_that_name_the_habit(write, answer):
    trimmed, short = answer(1, ("x", [2, 2], 0.1)), answer(2, ("x", [2, 2], 0.1))
    trimmed["choices"][0]["new_tokens"] = [3]
    short["choices"][0]["decoding_steps"] = [1]
    (method,) = one(write, trimmed, short, answer(3, ("x", [2], 0.1)))
    assert any(note.startswith("m: 1 of 3 rows") and "new_tokens" in note for note in method.notes)
    assert any(note.startswith("m: 1 of 3 rows") and "Recycling" in note for note in method.notes)
    assert method.rows["1"].choices[0].turns[0].entries == (2, 2)
    assert method.rows["2"].choices[0].turns[0].entries == (2, 2)


def test_a_step_short_in_each_turn_is_cut_by_tokens():
    pieces, oddities = cut([1, 3, 2, 1, 4], [2, 1], [6, 5])
    assert pieces == [(1, 3, 2), (1, 4)]
    assert len(oddities) == 1


def test_without_a_way_to_cut_two_turns_have_no_steps():
    pieces, oddities = cut([5, 5], None, [3, 7])
    assert pieces == [None, None]
    assert any("cannot be cut" in text for text in oddities)
    assert cut([5, 5], None, [10])[0] == [(5, 5)]
    assert cut(None, [1], [10])[0] == [None]


@given(st.lists(st.lists(st.integers(1, 9), min_size=1), min_size=1, max_size=3))
def test_entries_are_cut_as_they_were_joined(pieces):
    flat = [entry for piece in pieces for entry in piece]
    tokens = [sum(piece) for piece in pieces]
    whole = [tuple(piece) for piece in pieces]
    assert cut(flat, [len(piece) for piece in pieces], tokens) == (whole, [])
    assert cut(flat, None, tokens) == (whole, [])


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(-3, 9), min_size=1, max_size=3), st.data())
def test_a_cut_never_loses_an_entry(flat, steps, data):
    tokens = data.draw(st.lists(st.integers(0, 20), min_size=len(steps), max_size=len(steps)))
    pieces, _ = cut(flat, steps, tokens)
    assert len(pieces) == len(tokens)
    if None not in pieces:
        assert [entry for piece in pieces for entry in piece or ()] == flat


def test_several_choices_are_repeats(write, answer):
    row = answer(1, ("a", [1], 0.1))
    row["choices"].append(answer(1, ("b", [2], 0.2))["choices"][0])
    (method,) = one(write, row)
    assert [choice.turns[0].text for choice in method.rows["1"].choices] == ["a", "b"]


def test_our_own_exports_say_which_entry_is_the_prefills(write, answer):
    row = answer(1, ("a", [1, 5], 0.1))
    row["choices"][0]["prefill_emits"] = [1]
    (method,) = one(write, row)
    assert method.rows["1"].choices[0].turns[0].prefill_emits == 1
    row["choices"][0]["accept_lengths"] = [2, 4]
    with pytest.raises(UserError, match="first entry is 2"):
        one(write, row)
    row["choices"][0]["prefill_emits"] = [2]
    with pytest.raises(UserError, match="0 or 1"):
        one(write, row)


def test_a_row_without_a_model_has_the_files_name(write, answer):
    (method,) = one(write, answer(1, ("a", [1], 0.1), model=" \n"), name="my-method.jsonl")
    assert method.label == "my-method"


def test_plain_decoding_is_known_by_its_steps_alone(write, answer):
    plain, drafted = answer(1, ("a", [1, 1], 0.1), model="x-eagle"), answer(2, ("a", [1, 2], 0.1), model="vanilla")
    methods = {method.label: method for method in one(write, plain, drafted)}
    assert methods["x-eagle"].is_plain
    assert not methods["vanilla"].is_plain
    bare = answer(1, ("a", [1, 1], 0.1))
    del bare["choices"][0]["accept_lengths"]
    (method,) = one(write, bare)
    assert not method.is_plain
    assert method.rows["1"].choices[0].turns[0].entries is None


def test_a_method_may_be_split_over_files_but_not_answer_twice(write, answer):
    first = read_answers(write("a.jsonl", [answer(1, ("a", [1], 0.1))]))
    second = read_answers(write("b.jsonl", [answer(2, ("b", [1], 0.1))]))
    (method,) = by_method([first, second])
    assert list(method.rows) == ["1", "2"]
    again = read_answers(write("c.jsonl", [answer(1, ("c", [1], 0.1))]))
    with pytest.raises(UserError, match="question 1"):
        by_method([first, again])


def broken(answer, **changes):
    row = answer(1, ("x", [2], 0.1))
    for name, value in changes.items():
        if name in row:
            row[name] = value
        else:
            row["choices"][0][name] = value
    return row


def test_every_row_of_another_form_is_named_at_once(write, answer):
    rows = [
        [1, 2],
        "text",
        broken(answer, question_id=None),
        broken(answer, question_id=True),
        broken(answer, choices=[]),
        broken(answer, turns="text"),
        broken(answer, turns=[]),
        broken(answer, new_tokens=[1, 2]),
        broken(answer, new_tokens=[1.5]),
        broken(answer, new_tokens=[-1]),
        broken(answer, new_tokens=[10**30]),
        broken(answer, wall_time=[-0.1]),
        broken(answer, wall_time=["0.1"]),
        broken(answer, accept_lengths=[-1, 3]),
        broken(answer, accept_lengths=[math.nan]),
        broken(answer, decoding_steps="2"),
        {"question_id": 1, "turns": ["a question, not an answer"]},
        answer(2, ("fine", [1], 0.1)),
    ]
    lines = [row if isinstance(row, dict | list) else f'"{row}"' for row in rows]
    path = write("a.jsonl", lines)
    with pytest.raises(UserError) as told:
        read_answers(path)
    assert [problem.split(": ")[0] for problem in told.value.problems] == [f"{path}:{n}" for n in range(1, 18)]


def test_whole_numbers_may_be_written_as_floats(write, answer):
    row = broken(answer, new_tokens=[2.0], accept_lengths=[2.0])
    (method,) = one(write, row)
    assert method.rows["1"].choices[0].turns[0].new_tokens == 2
