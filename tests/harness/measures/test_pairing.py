"""Which turns pair: by sample, round and prompt; rounds are averaged, what diverged is counted."""

from draftboard.measures import pair_up
from draftboard.measures.pairing import matches, wall


def test_turns_pair_until_their_prompts_differ(turn, of):
    base = of(turn(prompt="a"), turn(prompt="b"), turn(prompt="c")) + of(turn(prompt="d"), sample="2")
    own = of(turn(prompt="a"), turn(prompt="x"), turn(prompt="c")) + of(turn(prompt="y"), sample="2")
    found = pair_up(base, own)
    assert [(pair.sample, len(pair.baseline), len(pair.method)) for pair in found.pairs] == [("1", 1, 1)]
    assert found.diverged == {"1": 2, "2": 1}
    assert found.turns == 4


def test_samples_that_one_side_lacks_do_not_pair(turn, of):
    found = pair_up(of(turn()) + of(turn(), sample="2"), of(turn()) + of(turn(), sample="3"))
    assert [pair.sample for pair in found.pairs] == ["1"]
    assert found.alone == ("3",)
    assert pair_up([], of(turn())).alone == ("1",)


def test_rounds_pair_with_their_own_and_are_averaged(turn, of):
    base = of(turn(10, 2.0)) + of(turn(10, 4.0), repeat=1)
    own = of(turn(10, 1.0)) + of(turn(10, 2.0), repeat=1) + of(turn(10, 99.0), repeat=2)
    found = pair_up(base, own)
    rows = matches(found.pairs, wall)
    assert [row.repeat for row in rows] == [0, 1]
    assert [sum(column) for column in zip(*(row.parts for row in rows), strict=True)] == [3.0, 10.0, 1.5, 10.0]
    assert found.pairs[0].rounds == 2


def test_an_unknown_prompt_is_known_by_the_answers_before_it(imported, of):
    def arm(first):
        return of(imported([2], text=first), imported([3], text="later"))

    assert pair_up(arm("one"), arm("one")).diverged == {}
    found = pair_up(arm("one"), arm("two"))
    assert found.diverged == {"1": 1}
    assert len(found.pairs[0].method) == 1


def test_a_shorter_conversation_pairs_as_far_as_it_goes(turn, of):
    found = pair_up(of(turn(), turn(), turn()), of(turn(), turn()))
    assert (found.turns, len(found.pairs[0].baseline), found.diverged) == (2, 2, {})
    assert [pair.sample for pair in found.only(["1", "9"])] == ["1"]
    assert found.only([]) == ()
