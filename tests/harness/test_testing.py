import random
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise

import pytest
import torch

from draftboard.methods import Binding, Method
from draftboard.methods.engine import Context, Drafter, Limits, RootOnly, Sampling, TokenTree, decode
from draftboard.methods.engine.settings import GREEDY
from draftboard.testing import (
    FakeClock,
    OracleDrafter,
    RandomDrafter,
    ReplayTarget,
    TableTarget,
    replay,
    tiny_model,
    tiny_suite,
)


def test_importing_it_imports_no_torch():
    code = "import sys, draftboard.testing as t; t.tiny_suite(); t.FakeClock()(); print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_a_table_target_scores_every_node_in_its_own_context():
    """Logits that encode the whole context, so that a wrong path shows."""
    target = TableTarget(lambda context: [float(sum(t * 10**k for k, t in enumerate(context))), len(context)])
    first = target.prefill([1, 2])
    assert first.logits.tolist() == [[21, 2]]
    assert target.prefill([1, 2], all_logits=True).logits.tolist() == [[1, 1], [21, 2]]
    scores = target.forward(TokenTree([3, 4, 5, 6], [-1, 0, 0, 2]), hidden=(1,))
    assert scores.logits.tolist() == [[321, 3], [4321, 4], [5321, 4], [65321, 5]]
    assert scores.hidden[1].tolist() == [[3, 2], [4, 3], [5, 3], [6, 4]]
    target.keep([0, 2, 3])
    assert target.ids == [1, 2, 3, 5, 6]
    assert target.length == 5
    target.rewind(2)
    assert target.ids == [1, 2]
    assert target.vocab_size == 2
    assert target.device == torch.device("cpu")


def test_a_markov_target_follows_its_table():
    target = TableTarget.markov([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.0, 0.5]])
    generator = torch.Generator().manual_seed(1)
    found = decode(
        target,
        RandomDrafter(3),
        [0],
        limits=Limits(max_new_tokens=200),
        sampling=Sampling(temperature=1.0),
        generator=generator,
    ).token_ids
    seen = set(pairwise([0, *found]))
    assert seen == {(0, 1), (1, 2), (2, 0), (2, 2)}


def test_a_scripted_target_writes_its_script():
    target = TableTarget.scripted([4, 3, 2, 1], vocab_size=6)
    found = decode(target, RootOnly(), [4, 3], limits=Limits(max_new_tokens=5))
    assert found.token_ids == [2, 1, 0, 0, 0]


def test_a_window_ends_the_turn():
    target = TableTarget.scripted([4, 3, 2, 1], vocab_size=6, window=3)
    found = decode(target, RootOnly(), [4, 3], limits=Limits(max_new_tokens=5))
    assert (found.token_ids, found.finish) == ([2, 1], "window")


def test_a_replay_ends_with_its_trace():
    trace = {
        "prefill_token": 4,
        "eos_token_ids": [9],
        "max_new_tokens": 50,
        "steps": [{"draft": [5, 6], "target": [5, 7, 8]}, {"draft": [], "target": [3]}],
    }
    found = replay(trace)
    assert found.token_ids == [4, 5, 7, 3]
    assert found.trace.accepted.tolist() == [1, 0]
    assert found.finish == "window"


def test_a_replay_takes_drafts_of_ids_that_the_target_never_picks():
    steps = [{"draft": [3, 90], "target": [3, 4, 5]}]
    found = replay({"prefill_token": 1, "eos_token_ids": [2], "max_new_tokens": 9, "steps": steps})
    assert found.token_ids == [1, 3, 4]
    assert found.trace.accepted.tolist() == [1]


def test_a_replay_refuses_another_draft():
    target = ReplayTarget(4, [{"draft": [5], "target": [5, 6]}])
    with pytest.raises(ValueError, match="2 picks for a forward of 1 rows"):
        decode(target, RootOnly(), [0], limits=Limits(max_new_tokens=5))


def test_a_clock_moves_when_told():
    clock = FakeClock(tick_ns=2)
    assert [clock(), clock()] == [2, 4]
    clock.advance(10)
    assert clock() == 16
    engine = FakeClock(now_ns=7).clock()
    assert engine.wall() == engine.cpu() == 7


@pytest.mark.parametrize("decoys", [0, 1, 4])
def test_an_oracle_hides_the_answer_among_decoys(decoys):
    output = [3, 0, 1, 2, 4, 1, 0]
    target = TableTarget.scripted([9, *output], vocab_size=10)
    found = decode(target, OracleDrafter(output, 2, decoys=decoys), [9], limits=Limits(max_new_tokens=7))
    assert found.token_ids == output
    assert found.trace.kept.tolist() == [3, 3]
    for tree in target.forwards:
        assert len(tree) == 1 + 2 * (1 + decoys)
        for children in tree.children:
            tokens = [tree.token_list[child] for child in children]
            assert len(set(tokens)) == len(tokens)


def test_random_drafts_are_adversarial_and_repeatable():
    def trees(seed):
        drafter = RandomDrafter(4, seed=seed, nodes=9)
        drafter.begin([1], None)
        context = Context(tokens=[1], root=2, room=5, max_nodes=9, sampling=GREEDY, generator=None)
        return [drafter.propose(context) for _ in range(200)]

    found = trees(1)
    assert [tree.token_list for tree in found] == [tree.token_list for tree in trees(1)]
    assert [tree.token_list for tree in found] != [tree.token_list for tree in trees(2)]
    assert any(len(tree) == 1 for tree in found)
    assert any(len(tree) == 10 for tree in found)
    assert any(tree.is_chain and len(tree) > 2 for tree in found)
    assert any(not tree.is_chain for tree in found)
    assert all(tree.token_list[0] == 2 for tree in found)
    doubled = [
        tree
        for tree in found
        for children in tree.children
        if len({tree.token_list[child] for child in children}) < len(children)
    ]
    assert doubled


def test_a_tiny_model_is_the_same_every_time_and_leaves_the_dice_alone():
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    first = tiny_model(vocab_size=20, layers=1, window=99, seed=3, dtype="float64")
    assert torch.equal(torch.rand(3), wanted)
    second = tiny_model(vocab_size=20, layers=1, window=99, seed=3, dtype="float64")
    assert first.vocab_size == 20
    assert first.window == 99
    assert first.dtype == torch.float64
    limits = Limits(max_new_tokens=20)
    outputs = [decode(model, RootOnly(), [1, 2], limits=limits).token_ids for model in (first, second)]
    assert outputs[0] == outputs[1]
    assert len(set(outputs[0])) > 3
    other = decode(tiny_model(vocab_size=20, layers=1, seed=4), RootOnly(), [1, 2], limits=limits)
    assert other.token_ids != outputs[0]


def test_a_tiny_suite_has_what_suites_have():
    suite = tiny_suite()
    assert suite.counts == {"math": 2, "chat": 2}
    assert {len(sample.turns) for sample in suite.samples} == {1, 2}
    assert any(not sample.references for sample in suite.samples)
    assert suite.content_hash == tiny_suite().content_hash


def test_a_method_of_ones_own_can_be_tested():
    """What the documentation of this module promises, as a user would write it."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Echo(Method):
        def drafter(self, binding):
            class Repeat(Drafter):
                def propose(self, context):
                    return TokenTree([context.root] * 3)

            return Repeat()

    dice = random.Random(0)
    script = [token for _ in range(30) for token in [dice.randrange(5)] * 3]
    target = TableTarget.scripted(script, vocab_size=5)
    binding = Binding(target=target, vocab_size=5, logit_width=5)
    limits = Limits(max_new_tokens=50)
    found = decode(target, Echo().drafter(binding), script[:3], limits=limits)
    assert found.token_ids == script[3:53]
    assert sum(found.trace.accepted) > 25
