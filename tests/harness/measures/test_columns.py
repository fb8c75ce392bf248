"""Tables of turns against the facts of each single turn, whatever was recorded of it."""

import math
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.measures import Cells, Turns, facts
from draftboard.measures.columns import Steps, shared_tables
from draftboard.records import Cell

SUMS = ("count", "kept", "entries", "accepted", "accepted_raw", "drafted", "drafting", "nodes", "draft_ns", "verify_ns")
STEP = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
LOST = st.sets(st.sampled_from(["drafted", "nodes", "draft_ns", "verify_ns", "other_ns", "end_ns"]), max_size=3)


@pytest.fixture(scope="module")
def made(turn, imported):
    """A turn of ours with some columns lost, or one imported."""

    def make(steps, tokens, lost, foreign, emits, untimed):
        if foreign:
            return imported([kept for *_, kept in steps] if "nodes" not in lost else None, tokens, emits=emits)
        found = turn(tokens, 2.0, steps=steps, first=1.0, emits=emits, finish="eos" if tokens % 2 else "length")
        found = replace(found, steps={name: found.steps[name] for name in found.steps if name not in lost})
        found = replace(found, steps={}) if len(lost) == 3 else found
        return replace(found, first_ns=None, cpu_ns=None, prefill_ns=None) if untimed else found

    return make


TURN = st.tuples(st.lists(STEP, max_size=4), st.integers(0, 9), LOST, st.booleans(), st.integers(0, 2), st.booleans())


def known(values):
    return [None if math.isnan(value) else value for value in values.tolist()]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), TURN), max_size=6), st.data())
def test_a_table_says_what_the_facts_say(made, of, drawn, data):
    every = [fact for sample, repeat, parts in drawn for fact in of(made(*parts), sample=sample, repeat=repeat)]
    table = Turns.of(every)
    picked = data.draw(st.lists(st.integers(0, len(every) - 1), max_size=5) if every else st.just([]))
    import numpy as np

    part = table.take(np.array(picked, np.int64))
    for turns, found in ((every, table), ([every[row] for row in picked], part)):
        assert list(found.samples) == [turn.sample for turn in turns]
        assert found.repeat.tolist() == [turn.repeat for turn in turns]
        assert found.records.tolist() == [turn.turn for turn in turns]
        assert found.imported.tolist() == [turn.imported for turn in turns]
        assert found.ends_at_once.tolist() == [turn.ends_at_once for turn in turns]
        assert found.seconds.tolist() == [turn.seconds for turn in turns]
        assert known(found.first_tokens) == [turn.first_tokens for turn in turns]
        decode = [turn.decode or (None, None) for turn in turns]
        assert list(zip(*map(known, found.decode), strict=True)) == decode
        for name in ("cpu_ns", "prefill_ns", "first_ns", "end_ns", "text_tokens", "prompt_tokens"):
            assert known(getattr(found, name)) == [getattr(turn.turn, name) for turn in turns]
        for name in (*SUMS, "total_ns"):
            assert known(getattr(found, name)) == [turn.steps and getattr(turn.steps, name) for turn in turns], name
        kept = [kept for turn in turns if turn.steps for kept in turn.turn.steps.get("kept", ())]
        assert found.steps.kept.tolist() == kept


def test_numbers_beyond_64_bits_are_read(turn, of):
    huge = replace(turn(3, steps=((1, 1, 2),)), end_ns=10**30)
    huge.steps["draft_ns"][0] = 10**25
    table = Turns.of(of(huge))
    assert (table.seconds.tolist(), table.draft_ns.tolist()) == ([1e21], [1e25])


def test_tables_that_are_compared_share_their_names(turn, of):
    first, second = shared_tables(of(turn(), sample="a"), of(turn(), sample="b") + of(turn(), sample="a"))
    assert first.names is second.names
    assert second.sample.tolist() == [1, 0]
    with pytest.raises(ValueError, match="no names in common"):
        shared_tables(first, of(turn()))


def test_turns_of_cells_are_those_that_ended_well(turn):
    cells = [
        Cell(method="m", sample="a", turns=[turn(), turn()]),
        Cell(method="m", sample="b", status="failed", turns=[turn()]),
    ]
    places, names = {"b": 0, "a": 1}, ("b", "a")
    table = Turns.of_cells(cells, places, names)
    assert table.records.tolist() == [fact.turn for fact in facts(cells)]
    assert list(table.samples) == ["a", "a"]
    assert Cells.of(cells, places).sample.tolist() == [1, 0]


def test_a_table_takes_a_number_of_eight_bytes_for_each_figure_of_a_turn_and_step(turn, of):
    def size(count, steps):
        table = Turns.of([fact for _ in range(count) for fact in of(turn(9, steps=((2, 1, 2),) * steps))])
        owners = [table, table.steps]
        arrays = [getattr(owner, field.name) for owner in owners for field in fields(owner)]
        return sum(array.nbytes for array in arrays if hasattr(array, "nbytes"))

    a_turn = size(3, 0) - size(2, 0)
    assert a_turn <= 8 * len(fields(Turns))
    assert size(3, 5) - size(2, 5) - a_turn == 5 * 8 * len(fields(Steps))
