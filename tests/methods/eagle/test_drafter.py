"""Pairs, positions and the stable cache (native-methods 1.1), and the rules by which drafts are verified."""

import random
from collections import Counter

import pytest
import torch
from told_heads import DEAR, FREE, ToldHead

from draftboard.lossless import chi_square
from draftboard.methods.eagle.drafter import DynamicDrafter, Pairs, StaticDrafter
from draftboard.methods.eagle.sizing import HeadCost, Sizer
from draftboard.methods.eagle.trees import TREES, StaticTree, chain
from draftboard.methods.engine import GREEDY, LOSSLESS, Context, Drafter, Limits, Sampling, TokenTree, decode
from draftboard.methods.engine.cost import FLAT, CostCurve
from draftboard.methods.engine.verify import warp
from draftboard.testing import TableTarget

V = 8
PROMPT = [1, 5, 2, 7, 0]
PART = [0, 2, 3, 5, 6]
"""A reduced draft vocabulary."""


def probabilities(seed, columns=V):
    dice = random.Random(seed)
    rows = [[0.05 + dice.random() ** 3 for _ in range(columns)] for _ in range(V)]
    return [[value / sum(row) for value in row] for row in rows]


def told(seed=4, ids=None):
    table = torch.tensor(probabilities(seed, V if ids is None else len(ids))).log().tolist()
    return ToldHead(table, ids)


def sizer(cost, width=4, nodes=63):
    return Sizer(cost=cost, curve=FLAT, width=width, nodes=nodes)


def static(head, *, tree="mc_sim_7b_63", cost=None, vocab_size=V):
    shape = tree if isinstance(tree, StaticTree) else TREES[tree]
    sized = None if cost is None else sizer(cost, max(shape.counts), len(shape) - 1)
    return StaticDrafter(Pairs(head, vocab_size=vocab_size), sized, shape, logit_width=V)


def dynamic(head, *, levels=3, width=3, nodes=14, cost=None, fixed=False, vocab_size=V):
    sized = None if cost is None else sizer(cost, width, nodes)
    pairs = Pairs(head, vocab_size=vocab_size)
    return DynamicDrafter(pairs, sized, levels=levels, width=width, nodes=nodes, fixed=fixed)


MAKERS = {
    "static": lambda head: static(head),
    "static-auto": lambda head: static(head, cost=FREE),
    "chain": lambda head: static(head, tree=chain(4)),
    "dynamic": lambda head: dynamic(head),
    "dynamic-auto": lambda head: dynamic(head, cost=FREE),
    "dynamic-chain": lambda head: dynamic(head, levels=4, width=1, nodes=5),
    "dynamic-sized": lambda head: dynamic(head, cost=FREE, fixed=True),
}


class Watched(Drafter):
    """Checks what reaches the head in every step; every `others`-th step is served by nonsense."""

    def __init__(self, drafter, head, others=0):
        self.drafter, self.head, self.others = drafter, head, others
        self.wants_hidden = drafter.wants_hidden
        self.stable = []
        self.text = []
        self.steps = self.drafted = 0

    def begin(self, prompt, scores):
        self.drafter.begin(prompt, scores)

    def propose(self, context):
        self.steps += 1
        text = [*context.tokens, context.root]
        if self.others and self.steps % self.others:
            return TokenTree([context.root, *text[:3], 0], [-1, 0, 1, 0, 0])
        before = len(self.head.rows)
        tree = self.drafter.propose(context)
        new = self.head.rows[before:]
        length = len(context.tokens)
        flushed = length - len(self.stable)
        if not new:
            return tree
        self.stable += new[:flushed]
        assert self.drafter._pairs.stable == length == len(self.stable)
        # The root's own pair stands at position n - 1, where n counts the committed tokens.
        assert new[flushed - 1].position == length - 1
        self.check_nodes(new[flushed:], tree, text)
        return tree

    def check_nodes(self, rows, tree, text):
        stable = [(text[place + 1], place) for place in range(len(text) - 1)]
        self.drafted += len(rows)
        for row in rows:
            depth = row.position - len(stable) + 1
            assert depth >= 1
            path = row.sees[len(stable) :]
            assert row.sees[: len(stable)] == stable
            assert [place for _, place in path] == [len(stable) + d for d in range(depth)]
            assert path[-1] == (row.token, row.position)
            # The feature of a node is the output at its parent.
            assert row.feature == (path[-2] if depth > 1 else stable[-1])

    def observe(self, verdict):
        self.drafter.observe(verdict)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=1.0)], ids=["greedy", "sampled"])
@pytest.mark.parametrize("others", [0, 3], ids=["alone", "served-by-others"])
@pytest.mark.parametrize("maker", MAKERS)
def test_pairs_and_positions(maker, others, sampling):
    head = told()
    target = TableTarget.markov(probabilities(4))
    watched = Watched(MAKERS[maker](head), head, others)
    with torch.inference_mode():
        found = decode(
            target,
            watched,
            PROMPT,
            limits=Limits(max_new_tokens=60),
            sampling=sampling,
            generator=torch.Generator().manual_seed(2),
        )
    text = [*PROMPT, *found.token_ids]
    assert len(watched.stable) > 40
    assert watched.drafted > 20
    for place, row in enumerate(watched.stable):
        assert row.feature == (text[place], place)
        assert (row.token, row.position) == (text[place + 1], place)
        assert row.sees == [(text[p + 1], p) for p in range(place + 1)]


def test_a_prompt_of_one_token():
    head = told()
    target = TableTarget.markov(probabilities(4))
    watched = Watched(dynamic(head), head)
    decode(target, watched, [6], limits=Limits(max_new_tokens=9))
    assert (watched.stable[0].feature, watched.stable[0].position) == ((6, 0), 0)


def test_pairs_of_steps_that_others_served_are_read_in_one_forward():
    head = told()
    calls = []
    forward = head.forward
    head.forward = lambda features, tokens, **kwargs: (
        calls.append(tokens.shape[1]) or forward(features, tokens, **kwargs)
    )
    target = TableTarget.markov(probabilities(9))
    watched = Watched(dynamic(head, levels=0), head, others=4)
    decode(target, watched, PROMPT, limits=Limits(max_new_tokens=40))
    # One root forward a draft, and nothing between. The last step of all has no room for one.
    assert watched.steps // 4 - len(calls) in (0, 1)
    assert sum(calls) == len(watched.stable)
    assert calls[0] > len(PROMPT)


def context(text, *, sampling=GREEDY, generator=None, room=99, max_nodes=99):
    return Context(
        tokens=text[:-1], root=text[-1], room=room, max_nodes=max_nodes, sampling=sampling, generator=generator
    )


def begun(drafter, target, prompt):
    drafter.begin(prompt, target.prefill(prompt, hidden=drafter.wants_hidden))
    return drafter


@pytest.mark.parametrize(
    ("sampling", "ids"),
    [(Sampling(temperature=1.0), PART), (Sampling(temperature=0.8, top_p=0.8), None)],
    ids=["reduced", "top-p"],
)
@pytest.mark.parametrize("maker", ["static", "static-auto", "chain", "dynamic", "dynamic-auto"])
def test_the_targets_distribution_is_kept(maker, ids, sampling):
    """Two tokens behind one root: the joint distribution is that of plain sampling."""
    head, target = told(5, ids), TableTarget.markov(probabilities(3))
    p = warp(torch.tensor(probabilities(3), dtype=torch.float64).log(), sampling)
    joint = [float(p[0, a] * p[a, b]) for a in range(V) for b in range(V)]
    head.records = False
    generator = torch.Generator().manual_seed(11)
    counts, accepted = Counter(), 0
    with torch.inference_mode():
        drafter = begun(MAKERS[maker](head), target, [1])
        step = context([1, 0], sampling=sampling, generator=generator, room=2)
        root = drafter._read(step, 1)
        for _ in range(600):
            tree = drafter._draft(step, root, 1)
            drafter._pairs.forget()
            assert (tree.proposal is not None) == maker.startswith(("static", "chain"))
            path, bonus = LOSSLESS.judge(tree, target.forward(tree), sampling, generator)
            emitted = [*(tree.token_list[node] for node in path[1:]), bonus]
            accepted += len(path) > 1
            if len(emitted) == 1:
                emitted.append(int(torch.multinomial(p[bonus], 1, generator=generator)))
            counts[tuple(emitted[:2])] += 1
    assert accepted > 60
    result = chi_square([counts[(a, b)] for a in range(V) for b in range(V)], joint)
    assert result.passed, result


def test_sampled_children_come_with_their_distribution():
    sampling = Sampling(temperature=0.7, top_p=0.9)
    head, target = told(5, PART), TableTarget.markov(probabilities(3))
    expected = torch.zeros(V, V, dtype=torch.float64)
    expected[:, PART] = warp(head.table, sampling)
    first = Counter()
    head.records = False
    for seed in range(200):
        drafter = begun(static(head), target, [1])
        generator = torch.Generator().manual_seed(seed)
        tree = drafter.propose(context([1, 0], sampling=sampling, generator=generator))
        assert tree.proposal.q.shape == (len(tree), V)
        for node in range(1, len(tree)):
            q = expected[tree.token_list[tree.parent_list[node]]]
            torch.testing.assert_close(tree.proposal.q[node].double(), q, atol=1e-6, rtol=0)
            assert q[tree.token_list[node]] > 0
        for children in tree.children:
            assert len({tree.token_list[child] for child in children}) == len(children)
        first[tree.token_list[1]] += 1
    assert chi_square([first[token] for token in range(V)], expected[0].tolist()).passed


def test_more_draws_than_the_distribution_has_tokens():
    """Top-k leaves two tokens where the tree has four places; the others stay empty, and so does what is below."""
    head, target = told(), TableTarget.markov(probabilities(3))
    sampling = Sampling(temperature=1.0, top_k=2)
    drafter = begun(static(head), target, PROMPT)
    tree = drafter.propose(context([*PROMPT, 3], sampling=sampling, generator=torch.Generator().manual_seed(0)))
    assert max(len(children) for children in tree.children) == 2
    assert len(tree.children[0]) == 2


def test_greedy_children_are_the_heads_best_by_rank():
    head, target = told(), TableTarget.markov(probabilities(3))
    tree = begun(static(head), target, PROMPT).propose(context([*PROMPT, 3]))
    assert len(tree) == 26
    shape = TREES["mc_sim_7b_63"]
    assert tuple(tree.parent_list) == shape.parents
    for node in range(1, 26):
        ranked = head.table[tree.token_list[tree.parent_list[node]]].argsort(descending=True)
        assert tree.token_list[node] == ranked[shape.ranks[node]]


def test_ids_that_the_tokenizer_does_not_know_are_never_drafted():
    head = told()
    head.table[:, 6:] += 5
    target = TableTarget.markov(probabilities(3))
    for make in (static, dynamic):
        for sampling in (GREEDY, Sampling(temperature=1.0)):
            drafter = begun(make(head, vocab_size=6), target, PROMPT)
            generator = torch.Generator().manual_seed(0)
            tree = drafter.propose(context([*PROMPT, 3], sampling=sampling, generator=generator))
            assert len(tree) > 5
            assert max(tree.token_list) < 6


@pytest.mark.parametrize(("limits", "depth", "nodes"), [({"room": 2}, 2, 99), ({"max_nodes": 4}, 9, 3)])
@pytest.mark.parametrize("maker", MAKERS)
def test_drafts_heed_room_and_nodes(maker, limits, depth, nodes):
    drafter = begun(MAKERS[maker](told()), TableTarget.markov(probabilities(3)), PROMPT)
    tree = drafter.propose(context([*PROMPT, 3], **limits))
    assert 0 < tree.depth <= depth
    assert len(tree) - 1 <= nodes


@pytest.mark.parametrize("limits", [{"room": 0}, {"max_nodes": 1}])
@pytest.mark.parametrize("maker", MAKERS)
def test_without_room_the_head_rests(maker, limits):
    head = told()
    drafter = begun(MAKERS[maker](head), TableTarget.markov(probabilities(3)), PROMPT)
    assert drafter.propose(context([*PROMPT, 3], **limits)).token_list == [3]
    assert head.rows == []


@pytest.mark.parametrize("make", [static, dynamic])
def test_a_head_that_never_pays_rests_but_for_rare_tries(make):
    head = told()
    drafter = make(head, cost=DEAR)
    calls = []
    forward = head.forward
    head.forward = lambda features, tokens, **kwargs: (
        calls.append(tokens.shape[1]) or forward(features, tokens, **kwargs)
    )
    found = decode(TableTarget.markov(probabilities(3)), drafter, PROMPT, limits=Limits(max_new_tokens=400))
    assert sum(found.trace.nodes) == 0
    # After 32 tokens, then at half the rate each time.
    assert calls == [32, 64, 128]
    assert found.trace.signals["expected"].tolist() == [1.0] * len(found.trace)


@pytest.mark.parametrize("maker", ["chain", "dynamic-chain"])
def test_a_try_finds_a_head_that_is_right_after_all(maker):
    """At first a draft is not expected to pay; the text that came then says that the head is always right."""
    table = [[0.999 if column == (row + 1) % V else 0.001 / (V - 1) for column in range(V)] for row in range(V)]
    head = ToldHead(torch.tensor(table).log().tolist())
    cost = HeadCost(root=CostCurve(rows=(1,), cost=(1.2,)), level=CostCurve(rows=(1,), cost=(0.01,)))
    if maker == "chain":
        drafter = static(head, tree=chain(4), cost=cost)
    else:
        drafter = dynamic(head, levels=4, width=1, cost=cost)
    found = decode(TableTarget.markov(table), drafter, PROMPT, limits=Limits(max_new_tokens=200))
    nodes = found.trace.nodes.tolist()
    assert sum(nodes[:20]) == 0
    assert min(nodes[40:-6]) > 2
    assert len(found.trace) < 90


def test_what_was_expected_is_noted():
    head = told(3)
    found = decode(
        TableTarget.markov(probabilities(3)), dynamic(head, cost=FREE), PROMPT, limits=Limits(max_new_tokens=30)
    )
    signals = found.trace.signals
    assert set(signals) == {"depth", "nodes", "expected"}
    assert signals["nodes"].tolist() == found.trace.nodes.tolist()
    assert signals["depth"].tolist() == found.trace.drafted.tolist()
    assert max(signals["expected"]) > 1.2


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=1.0)])
@pytest.mark.parametrize("maker", MAKERS)
def test_a_head_of_nonsense_costs_speed_only(maker, sampling):
    head = told()
    head.table[:] = float("nan")
    target = TableTarget.markov(probabilities(3))
    found = decode(
        target,
        MAKERS[maker](head),
        PROMPT,
        limits=Limits(max_new_tokens=12),
        sampling=sampling,
        generator=torch.Generator().manual_seed(1),
    )
    assert len(found.token_ids) == 12
