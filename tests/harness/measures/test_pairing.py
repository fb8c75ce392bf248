"""Which turns pair: by sample, round and prompt; rounds are averaged, what diverged is counted."""

from hypothesis import given
from hypothesis import strategies as st

from draftboard.measures import pair_up
from draftboard.measures.pairing import matches, wall


def rows(pairs):
    """Sample, round and prompt of both sides of each pair of turns."""
    arms = (pairs.baseline, pairs.method)
    assert [list(arm.samples) for arm in arms] == [list(pairs.method.samples)] * 2
    prompts = ([turn.prompt_sha256 for turn in arm.records] for arm in arms)
    return list(zip(pairs.method.samples, pairs.method.repeat.tolist(), *prompts, strict=True))


def test_turns_pair_until_their_prompts_differ(turn, of):
    base = of(turn(prompt="a"), turn(prompt="b"), turn(prompt="c")) + of(turn(prompt="d"), sample="2")
    own = of(turn(prompt="a"), turn(prompt="x"), turn(prompt="c")) + of(turn(prompt="y"), sample="2")
    found = pair_up(base, own)
    assert rows(found.pairs) == [("1", 0, "a", "a")]
    assert found.diverged == {"1": 2, "2": 1}
    assert found.turns == 4


def test_samples_that_one_side_lacks_do_not_pair(turn, of):
    found = pair_up(of(turn()) + of(turn(), sample="2"), of(turn()) + of(turn(), sample="3"))
    assert rows(found.pairs) == [("1", 0, "p", "p")]
    assert found.alone == ("3",)
    assert pair_up([], of(turn())).alone == ("1",)


def test_rounds_pair_with_their_own_and_are_averaged(turn, of):
    base = of(turn(10, 2.0)) + of(turn(10, 4.0), repeat=1)
    own = of(turn(10, 1.0)) + of(turn(10, 2.0), repeat=1) + of(turn(10, 99.0), repeat=2)
    pairs = pair_up(base, own).pairs
    found = matches(pairs, wall(pairs.baseline), wall(pairs.method))
    assert found.repeat.tolist() == [0, 1]
    assert [part.sum() for part in found.parts] == [3.0, 10.0, 1.5, 10.0]
    assert pairs.rounds.tolist() == [2, 2]


def test_an_unknown_prompt_is_known_by_the_answers_before_it(imported, of):
    def arm(first):
        return of(imported([2], text=first), imported([3], text="later"))

    assert pair_up(arm("one"), arm("one")).diverged == {}
    found = pair_up(arm("one"), arm("two"))
    assert found.diverged == {"1": 1}
    assert len(found.pairs.method) == 1


def test_a_shorter_conversation_pairs_as_far_as_it_goes(turn, of):
    found = pair_up(of(turn(), turn(), turn()), of(turn(), turn()))
    assert (found.turns, len(found.pairs.baseline), found.diverged) == (2, 2, {})


TURN = st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["x", "y"]))
ARM = st.dictionaries(st.tuples(st.sampled_from("123"), st.integers(0, 2)), st.lists(TURN, max_size=3), max_size=5)


@given(ARM, ARM)
def test_pairs_are_those_found_turn_by_turn(imported, of, base, own):
    def turns(arm):
        return [
            fact
            for (sample, repeat), asked in arm.items()
            for fact in of(*(imported([2], prompt=p, text=t) for p, t in asked), sample=sample, repeat=repeat)
        ]

    wanted, diverged = [], {}
    for key, mine in own.items():
        agree, open_ = True, True
        for (p, t), (q, u) in zip(base.get(key, ()), mine, strict=False):
            open_ = open_ and (p == q if p and q else agree)
            agree = agree and t == u
            if open_:
                wanted.append((*key, p, q))
            else:
                diverged[key[0]] = diverged.get(key[0], 0) + 1
    found = pair_up(turns(base), turns(own))
    assert sorted(rows(found.pairs)) == sorted(wanted)
    assert found.diverged == diverged
    paired = {row[:2] for row in wanted}
    rounds = [sum(sample == other for other, _ in paired) for sample in found.pairs.method.samples]
    assert found.pairs.rounds.tolist() == rounds
    lone = {sample for (sample, _), mine in own.items() if mine} - {
        sample for (sample, _), asked in base.items() if asked
    }
    assert set(found.alone) == lone
