import json
from pathlib import Path

import numpy as np
import pytest
import torch

from draftboard.methods.engine import (
    AuxRows,
    Clock,
    Drafter,
    Gates,
    Limits,
    RootOnly,
    Sampling,
    TokenTree,
    decode,
)
from draftboard.methods.errors import MethodError
from draftboard.testing import FakeClock, OracleDrafter, RandomDrafter, TableTarget, replay, tiny_model

DATA = Path(__file__).parents[2] / "data"
PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]


def load(name):
    return json.loads((DATA / name).read_text())


def generate(model, prompt, count, eos=None):
    """The outside oracle."""
    inputs = torch.tensor([prompt])
    output = model.model.generate(inputs, max_new_tokens=count, do_sample=False, eos_token_id=eos)
    return output[0, len(prompt) :].tolist()


def survived(trace):
    """Accepted tokens that became output."""
    return [min(pair) for pair in zip(trace.accepted, trace.kept, strict=True)]


def test_case_3(check_trace):
    case = load("03-trace-chain.json")
    generation = replay(case)
    trace = generation.trace
    wanted = "10 11 12 13 14 15 16 99 30 31 32 40 41 42 43 44 45 46"
    assert generation.token_ids == [int(word) for word in wanted.split()]
    assert survived(trace) == [4, 1, 0, 2, 1, 3]
    assert trace.drafted.tolist() == trace.nodes.tolist() == [4, 4, 2, 4, 1, 3]
    assert trace.kept.tolist() == [5, 2, 1, 3, 2, 4]
    assert sum(trace.kept) / len(trace) == pytest.approx(17 / 6)
    assert sum(survived(trace)) / sum(trace.drafted) == pytest.approx(11 / 18)
    assert len(generation.token_ids) / (len(trace) + 1) == pytest.approx(18 / 7)
    check_trace(generation, Limits(max_new_tokens=64, eos_ids=frozenset({2})))
    taken, drafted = survived(trace), trace.drafted
    assert [sum(a >= k for a in taken) / 6 for k in (1, 2, 3, 4)] == [5 / 6, 3 / 6, 2 / 6, 1 / 6]
    shares = [sum(a >= k for a in taken) / sum(d >= k for d in drafted) for k in (1, 2, 3, 4)]
    assert shares == [5 / 6, 3 / 5, 2 / 4, 1 / 3]


def test_case_5(check_trace):
    case = load("05-trace-eos-in-block.json")
    generation = replay(case)
    trace = generation.trace
    assert generation.token_ids == [5, 6, 7, 8, 9, 10, 2]
    assert generation.finish == "eos"
    assert survived(trace) == [3, 2]
    assert sum(survived(trace)) / sum(trace.drafted) == pytest.approx(0.714286, abs=1e-6)
    assert trace.kept.tolist() == [4, 2]
    assert trace.accepted.tolist() == [3, 4]
    check_trace(generation, Limits(max_new_tokens=64, eos_ids=frozenset({2})))


def test_case_6(check_trace):
    case = load("06-trace-over-limit.json")
    generation = replay(case)
    assert generation.token_ids == list(range(50, 60))
    assert generation.finish == "length"
    assert generation.trace.kept.tolist() == [5, 4]
    check_trace(generation, Limits(max_new_tokens=10))
    target = TableTarget.scripted(list(range(49, 70)), vocab_size=72)
    plain = decode(target, RootOnly(), [49], limits=Limits(max_new_tokens=10))
    assert plain.token_ids == generation.token_ids


@pytest.fixture(scope="module")
def output(model64):
    """What `generate()` writes: every shorter output is a beginning of it."""
    return generate(model64, PROMPT, 60)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 40])
@pytest.mark.parametrize("seed", range(3))
def test_adversarial_drafts_equal_generate(model64, output, check_trace, count, seed):
    truth = output[:count]
    limits = Limits(max_new_tokens=count)
    for known in ((), output):
        drafter = RandomDrafter(12, seed=seed, output=known)
        found = decode(model64, drafter, PROMPT, limits=limits)
        assert found.token_ids == truth
        assert found.finish == "length"
        check_trace(found, limits)


@pytest.mark.parametrize("place", [0, 1, 2, 5, 9, 13])
def test_the_end_inside_an_accepted_block(model64, output, check_trace, place):
    """The id of every place in turn ends the output; everything behind it was drafted, and right."""
    eos = frozenset({output[place]})
    truth = generate(model64, PROMPT, 40, eos=sorted(eos))
    assert truth == output[: output.index(output[place]) + 1]
    limits = Limits(max_new_tokens=40, eos_ids=eos)
    drafters = [RootOnly(), OracleDrafter(output, 6), OracleDrafter(output, 3, decoys=3)]
    drafters += [RandomDrafter(12, seed=seed, output=output) for seed in range(4)]
    for drafter in drafters:
        found = decode(model64, drafter, PROMPT, limits=limits)
        assert found.token_ids == truth
        assert found.finish == "eos"
        check_trace(found, limits)


def test_two_end_ids_and_the_limit_together(model64, output):
    for count in range(1, 12):
        eos = frozenset(output[6:8])
        limits = Limits(max_new_tokens=count, eos_ids=eos)
        plain = decode(model64, RootOnly(), PROMPT, limits=limits)
        oracle = decode(model64, OracleDrafter(output, 5), PROMPT, limits=limits)
        assert plain.token_ids == generate(model64, PROMPT, count, eos=sorted(eos))
        assert (oracle.token_ids, oracle.finish) == (plain.token_ids, plain.finish)


def test_a_stop_rule_cuts_where_single_tokens_would(model64, output, check_trace):
    for place in range(1, 15, 2):
        pair = tuple(output[place - 1 : place + 1])

        def stop(ids, pair=pair):
            ends = [k + 2 for k in range(len(ids) - 1) if tuple(ids[k : k + 2]) == pair]
            return ends[0] if ends else None

        limits = Limits(max_new_tokens=40, stop=stop)
        plain = decode(model64, RootOnly(), PROMPT, limits=limits)
        assert plain.finish == "stop"
        assert tuple(plain.token_ids[-2:]) == pair
        for drafter in (OracleDrafter(output, 7), RandomDrafter(12, seed=place, output=output)):
            found = decode(model64, drafter, PROMPT, limits=limits)
            assert (found.token_ids, found.finish) == (plain.token_ids, "stop")
            check_trace(found, limits)


@pytest.mark.parametrize("left", [0, 1, 2, 3, 9])
def test_a_nearly_full_window(check_trace, left):
    model = tiny_model(vocab_size=12, dtype="float64", window=40)
    prompt = [n % 12 for n in range(40 - left)]
    limits = Limits(max_new_tokens=30)
    plain = decode(model, RootOnly(), prompt, limits=limits)
    assert plain.finish == "window"
    assert len(plain.token_ids) == left + 1
    drafters = [OracleDrafter(plain.token_ids, 5, decoys=1)]
    drafters += [RandomDrafter(12, seed=seed, nodes=20, output=plain.token_ids) for seed in range(5)]
    for drafter in drafters:
        found = decode(model, drafter, prompt, limits=limits)
        assert (found.token_ids, found.finish) == (plain.token_ids, "window")
        assert model.length == 40
        check_trace(found, limits)


class Fixed(Drafter):
    """Hands out what a function makes of the root."""

    def __init__(self, make):
        self.make = make
        self.verdicts = []

    def propose(self, context):
        return self.make(context.root)

    def observe(self, verdict):
        self.verdicts.append(verdict)


def test_a_draft_larger_than_the_room_is_cut():
    target = TableTarget.scripted(list(range(40)), vocab_size=41, window=12)
    limits = Limits(max_new_tokens=30)
    drafter = Fixed(lambda root: TokenTree(list(range(root, root + 6))))
    found = decode(target, drafter, [0, 1, 2], limits=limits)
    assert [len(tree) for tree in target.forwards] == [6, 3]
    assert found.token_ids == list(range(3, 13))
    assert found.finish == "window"


def test_aux_rows_give_way_first():
    aux = AuxRows(
        tokens=torch.tensor([7, 8]),
        positions=torch.tensor([1, 2]),
        mask=torch.tensor([[1, 1, 0], [1, 1, 1]], dtype=torch.bool),
    )
    target = TableTarget.scripted(list(range(40)), vocab_size=41, window=10)
    drafter = Fixed(lambda root: TokenTree([root, root + 1, root + 2], aux=aux))
    found = decode(target, drafter, [0, 1], limits=Limits(max_new_tokens=30))
    assert found.token_ids == list(range(2, 11))
    assert [(len(tree), tree.aux is not None) for tree in target.forwards] == [
        (3, True),
        (3, True),
        (2, False),
    ]
    assert drafter.verdicts[0].scores.aux_logits.shape == (2, 41)
    # The first aux row stands behind the root alone: three ids in the context, so the script's fourth.
    assert drafter.verdicts[0].scores.aux_logits.argmax(-1).tolist() == [4, 5]
    assert drafter.verdicts[0].scores.logits.shape == (3, 41)


def test_an_oracle_gets_depth_plus_one(model64, output):
    output = output[:41]
    for depth, decoys in ((1, 0), (3, 0), (4, 2), (7, 1)):
        found = decode(model64, OracleDrafter(output, depth, decoys=decoys), PROMPT, limits=Limits(max_new_tokens=41))
        assert found.token_ids == output
        assert set(found.trace.kept[:-1]) == {depth + 1}
        assert set(found.trace.nodes[:-1]) == {depth * (1 + decoys)}
        assert found.trace.accepted == found.trace.drafted


def test_drafting_nothing_gives_one_token_a_step(model64):
    found = decode(model64, RootOnly(), PROMPT, limits=Limits(max_new_tokens=20))
    assert found.trace.kept.tolist() == [1] * 19
    assert sum(found.trace.drafted) == sum(found.trace.nodes) == sum(found.trace.accepted) == 0


class Watching(OracleDrafter):
    wants_hidden = (0, 5)
    wants_prompt_logits = True

    def begin(self, prompt, scores):
        super().begin(prompt, scores)
        self.prefill = scores
        self.contexts = []
        self.verdicts = []

    def propose(self, context):
        self.contexts.append((list(context.tokens), context.root, context.room, context.max_nodes))
        context.signals["depth"] = len(self.contexts)
        return super().propose(context)

    def observe(self, verdict):
        self.verdicts.append(verdict)


def test_a_drafter_sees_what_it_asks_for():
    script = list(range(20, 40))
    target = TableTarget.scripted(script, vocab_size=41, window=100)
    drafter = Watching(script[3:], 2, decoys=1)
    found = decode(target, drafter, script[:3], limits=Limits(max_new_tokens=9))
    assert found.token_ids == script[3:12]
    assert drafter.prefill.logits.argmax(-1).tolist() == script[1:4]
    assert drafter.prefill.hidden[0].tolist() == [[20, 0], [21, 1], [22, 2]]
    assert set(drafter.prefill.hidden) == {0, 5}
    assert drafter.contexts == [
        (script[:3], 23, 7, 97),
        (script[:6], 26, 4, 94),
        (script[:9], 29, 1, 91),
    ]
    first = drafter.verdicts[0]
    assert first.tree is target.forwards[0]
    assert first.path == [0, 2, 4]
    assert first.emitted == [24, 25, 26]
    assert (first.accepted, first.bonus) == (2, 26)
    assert first.scores.hidden[5].tolist() == [[23, 3], [0, 4], [24, 4], [0, 5], [25, 5]]
    # The last step ended the turn: nobody is told.
    assert len(drafter.verdicts) == 2
    assert found.trace.signals["depth"].tolist() == [1, 2, 3]


def test_a_turn_that_ends_with_its_first_token_makes_no_step():
    class Untouched(RootOnly):
        def begin(self, prompt, scores):
            raise AssertionError("nothing is left to draft")

    target = TableTarget.scripted([5, 6, 7], vocab_size=9)
    for limits in (Limits(max_new_tokens=1), Limits(max_new_tokens=9, eos_ids=frozenset({6}))):
        found = decode(target, Untouched(), [5], limits=limits)
        assert found.token_ids == [6]
        assert len(found.trace) == 0
        assert found.finish == ("eos" if limits.eos_ids else "length")
        assert found.prompt_tokens == 1


def test_times_are_where_they_belong(check_trace):
    clock = FakeClock(now_ns=1_000_000)
    script = list(range(20, 60))

    class Slow(OracleDrafter):
        def begin(self, prompt, scores):
            clock.advance(3)
            super().begin(prompt, scores)

        def propose(self, context):
            clock.advance(7)
            return super().propose(context)

        def observe(self, verdict):
            clock.advance(5)

    class SlowTarget(TableTarget):
        def prefill(self, ids, **options):
            clock.advance(1000)
            return super().prefill(ids, **options)

        def keep(self, path):
            clock.advance(2)
            super().keep(path)

    target = SlowTarget.scripted(script, vocab_size=60, on_forward=lambda rows: clock.advance(100 * rows))
    limits = Limits(max_new_tokens=9)
    found = decode(target, Slow(script[2:], 3), script[:2], limits=limits, clock=clock.clock())
    trace = found.trace
    assert found.prefill_ns == found.first_ns == found.first_cpu_ns == 1000
    assert trace.kept.tolist() == [4, 4]
    assert trace.draft_ns.tolist() == [12, 7]
    assert trace.verify_ns.tolist() == [400, 400]
    assert trace.other_ns.tolist() == [2, 2]
    assert trace.end_ns.tolist() == [1000 + 3 + 7 + 400 + 2, 1412 + 5 + 7 + 400 + 2]
    assert found.end_ns == found.cpu_ns == 1826
    check_trace(found, limits)


def test_profiling_synchronises_at_every_reading():
    counted = []

    class Counting(TableTarget):
        def synchronize(self):
            counted.append(1)

    def run(profile):
        counted.clear()
        target = Counting.scripted(list(range(9)), vocab_size=9)
        decode(target, RootOnly(), [0], limits=Limits(max_new_tokens=4), clock=Clock(profile=profile))
        return len(counted)

    assert run(False) == 3
    assert run(True) == 3 + 3 * 5


def test_gates_reach_every_verification_and_not_the_prefill(model64):
    gates = Gates(layers=frozenset({1}))
    seen = []

    class Recording(TableTarget):
        def forward(self, tree, *, gates, hidden):
            seen.append(gates)
            return super().forward(tree, gates=gates, hidden=hidden)

    decode(
        Recording.scripted([1, 2, 3, 4], vocab_size=5),
        RootOnly(),
        [1],
        limits=Limits(max_new_tokens=3),
        gates=gates,
    )
    assert seen == [gates, gates]
    sparse = decode(model64, RootOnly(), PROMPT, limits=Limits(max_new_tokens=12), gates=gates)
    dense = decode(model64, RootOnly(), PROMPT, limits=Limits(max_new_tokens=12))
    assert sparse.token_ids[0] == dense.token_ids[0]
    assert sparse.token_ids != dense.token_ids


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match="at least one token"):
        decode(TableTarget.scripted([1], vocab_size=2), RootOnly(), [], limits=Limits(max_new_tokens=1))


def test_a_draft_behind_another_token_is_refused():
    target = TableTarget.scripted([1, 2, 3], vocab_size=5)
    with pytest.raises(MethodError, match="Fixed drafted behind token 4: node 0 must be the root, 2"):
        decode(target, Fixed(lambda root: TokenTree([4])), [1], limits=Limits(max_new_tokens=5))


def test_the_seed_alone_decides_a_sampled_turn(model64):
    limits, sampling = Limits(max_new_tokens=25), Sampling(temperature=0.9, top_p=0.95)

    def run(seed, drafter):
        generator = torch.Generator().manual_seed(seed)
        return decode(model64, drafter, PROMPT, limits=limits, sampling=sampling, generator=generator).token_ids

    first = run(1, RootOnly())
    assert run(2, RootOnly()) != first
    run(3, RandomDrafter(12))
    assert run(1, RootOnly()) == first
    # A fixed tree costs one draw a token, whatever it holds: the very same output, not only the same distribution.
    assert run(1, RandomDrafter(12, output=first)) == first


def test_a_sampled_end_is_cut_like_a_greedy_one(model64, check_trace):
    limits = Limits(max_new_tokens=30, eos_ids=frozenset({4, 7}))
    for seed in range(12):
        generators = [torch.Generator().manual_seed(seed) for _ in range(2)]
        sampling = Sampling(temperature=1.5)
        plain, random = (
            decode(model64, drafter, PROMPT, limits=limits, sampling=sampling, generator=generator)
            for drafter, generator in zip((RootOnly(), RandomDrafter(12)), generators, strict=True)
        )
        assert random.token_ids == plain.token_ids
        check_trace(random, limits)


@pytest.mark.parametrize("kind", [np.int64, torch.tensor, bool])
def test_ids_of_any_integer_kind_become_plain_output(kind):
    target = TableTarget.scripted([3, 1, 0, 1, 0, 1], vocab_size=5)
    generation = decode(
        target,
        Fixed(lambda root: TokenTree([root, kind(0), kind(1)], [-1, 0, 0])),
        [2],
        limits=Limits(max_new_tokens=5),
    )
    assert generation.token_ids == [1, 0, 1, 0, 1]
    assert {type(token) for token in generation.token_ids} == {int}
    assert sum(generation.trace.accepted) > 0


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (lambda root: TokenTree([root, -1]), "drafted token -1; the target knows 0 to 4"),
        (lambda root: TokenTree([root, 3, 5]), "drafted token 5; the target knows 0 to 4"),
        (lambda root: None, "returned NoneType, not a TokenTree"),
        (lambda root: [root], "returned list, not a TokenTree"),
    ],
)
def test_a_draft_that_cannot_be_verified_is_refused_by_name(draft, said):
    target = TableTarget.scripted([1, 2, 3], vocab_size=5)
    with pytest.raises(MethodError, match=f"Fixed.*{said}"):
        decode(target, Fixed(draft), [1], limits=Limits(max_new_tokens=5))
