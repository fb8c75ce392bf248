import json
import math
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from draftboard.lossless import chi_square
from draftboard.methods.engine import (
    GREEDY,
    LOSSLESS,
    Proposal,
    Sampling,
    Scores,
    TokenTree,
    Typical,
    verify,
)
from draftboard.methods.engine.verify import choose, warp

DATA = Path(__file__).parents[2] / "data"
V = 8
DRAWS = 20_000
WARPS = [Sampling(temperature=1.0), Sampling(temperature=0.7, top_k=6, top_p=0.8)]
WARP_IDS = ["plain", "warped"]


def table(seed):
    """Rows of probabilities, none so small that its cell of a joint table stays empty."""
    dice = random.Random(seed)
    rows = [[0.15 + dice.random() ** 2 for _ in range(V)] for _ in range(V)]
    return [[value / sum(row) for value in row] for row in rows]


P, Q = table(1), table(2)
LOGITS = torch.tensor(P, dtype=torch.float64).log()
DRAFT_LOGITS = torch.tensor(Q, dtype=torch.float64).log()


@pytest.fixture
def _warp_once(monkeypatch):
    """The toy target has eight rows: warping each draw's afresh would be most of the time of these tests."""
    known = {}

    def remembered(logits, sampling):
        row = float(logits[0]), sampling
        if row not in known:
            known[row] = warp(logits, sampling)
        return known[row]

    monkeypatch.setattr(verify, "warp", remembered)


@torch.inference_mode()
def pairs_of(propose, sampling, seed, draws=DRAWS):
    """Count the first two tokens behind token 0, over many steps that each judge a fresh draft."""
    generator = torch.Generator().manual_seed(seed)
    counts = Counter()
    for _ in range(draws):
        tree = propose(generator)
        path, bonus = LOSSLESS.judge(tree, Scores(LOGITS[tree.token_list]), sampling, generator)
        emitted = [*(tree.token_list[node] for node in path[1:]), bonus]
        if len(emitted) == 1:
            emitted.append(choose(LOGITS[emitted[0]], sampling, generator))
        counts[tuple(emitted[:2])] += 1
    return counts


def assert_target_distribution(counts, sampling):
    p = warp(LOGITS, sampling)
    cells = [(a, b) for a in range(V) for b in range(V)]
    joint = [float(p[0, a] * p[a, b]) for a, b in cells]
    result = chi_square([counts[cell] for cell in cells], joint)
    assert result.passed, result


class DraftModel:
    """Draws trees from q with dice of its own. Nodes of one place are drawn in order, without replacement."""

    def __init__(self, sampling, widths):
        self.q = warp(DRAFT_LOGITS, sampling).float()
        self.weights = self.q.tolist()
        self.widths = widths
        self.dice = random.Random(7)
        self.made = {}

    def draw(self, token, count):
        weights, drawn = list(self.weights[token]), []
        for _ in range(count):
            drawn += self.dice.choices(range(V), weights)
            weights[drawn[-1]] = 0.0
        return drawn

    def __call__(self, generator):
        tokens, parents, level = [0], [-1], [0]
        for width in self.widths:
            above, level = level, []
            for parent in above[:2]:
                level += range(len(tokens), len(tokens) + width)
                tokens += self.draw(tokens[parent], width)
                parents += [parent] * width
        tree = tuple(tokens)
        if tree not in self.made:
            rows = self.q[[tokens[max(0, parent)] for parent in parents]]
            self.made[tree] = TokenTree(tokens, parents, proposal=Proposal(q=rows))
        return self.made[tree]


@pytest.mark.usefixtures("_warp_once")
@pytest.mark.parametrize("sampling", WARPS, ids=WARP_IDS)
def test_a_fixed_tree_keeps_the_distribution(sampling):
    # Two levels, siblings doubled, the likeliest and the least likely tokens among them.
    tree = TokenTree([0, 1, 5, 5, 3, 0, 2, 7, 7, 4], [-1, 0, 0, 0, 1, 1, 2, 2, 2, 3])
    assert_target_distribution(pairs_of(lambda generator: tree, sampling, 1), sampling)


@pytest.mark.usefixtures("_warp_once")
@pytest.mark.parametrize("sampling", WARPS, ids=WARP_IDS)
def test_a_chain_drawn_from_the_draft_keeps_the_distribution(sampling):
    assert_target_distribution(pairs_of(DraftModel(sampling, (1, 1)), sampling, 2), sampling)


@pytest.mark.usefixtures("_warp_once")
@pytest.mark.parametrize("sampling", WARPS, ids=WARP_IDS)
def test_siblings_drawn_without_replacement_keep_the_distribution(sampling):
    assert_target_distribution(pairs_of(DraftModel(sampling, (3, 1)), sampling, 3), sampling)


@pytest.mark.usefixtures("_warp_once")
def test_the_distribution_test_sees_a_wrong_rule():
    """The draft model's top choice, passed off as drawn from its distribution."""
    sampling = WARPS[0]
    q = warp(DRAFT_LOGITS, sampling)
    tokens = [0, int(q[0].argmax())]
    tokens.append(int(q[tokens[1]].argmax()))
    tree = TokenTree(tokens, proposal=Proposal(q=torch.stack([q[0], q[0], q[tokens[1]]])))
    with pytest.raises(AssertionError):
        assert_target_distribution(pairs_of(lambda generator: tree, sampling, 4, draws=4000), sampling)


def test_a_draft_model_that_is_the_target_is_always_accepted():
    sampling = WARPS[1]
    p = warp(LOGITS, sampling)
    generator = torch.Generator().manual_seed(5)
    for _ in range(500):
        tokens = [0]
        for _ in range(3):
            tokens.append(int(torch.multinomial(p[tokens[-1]], 1, generator=generator)))
        tree = TokenTree(tokens, proposal=Proposal(q=torch.stack([p[0], *(p[t] for t in tokens[:-1])])))
        path, _ = LOSSLESS.judge(tree, Scores(LOGITS[tokens]), sampling, generator)
        assert path == [0, 1, 2, 3]


@pytest.mark.usefixtures("_warp_once")
@torch.inference_mode()
def test_case_8():
    case = json.loads((DATA / "08-sampling.json").read_text())
    p, q = case["target_probabilities"], case["draft_probabilities"]
    logits = torch.tensor([p, p], dtype=torch.float64).log()
    rows = torch.tensor([q, q], dtype=torch.float64)
    sampling = Sampling(temperature=1.0)
    generator = torch.Generator().manual_seed(8)
    dice = random.Random(8)
    output, corrected = Counter(), Counter()
    for _ in range(case["draws"]):
        token = dice.choices(range(3), q)[0]
        tree = TokenTree([0, token], proposal=Proposal(q=rows))
        path, bonus = LOSSLESS.judge(tree, Scores(logits), sampling, generator)
        if len(path) == 2:
            output[token] += 1
        else:
            output[bonus] += 1
            corrected[bonus] += 1
    assert sum(min(a, b) for a, b in zip(p, q, strict=True)) == pytest.approx(0.7)
    rejected = sum(corrected.values())
    assert chi_square([case["draws"] - rejected, rejected], [0.7, 0.3]).passed
    assert set(corrected) == {0}
    assert chi_square([output[i] for i in range(3)], p).passed
    known = {"sample-1": (0.088267, True), "sample-2": (10400, False), "sample-3": (78.875, False)}
    for observed in case["observed"]:
        result = chi_square(observed["counts"], p)
        assert result.limit == pytest.approx(13.816, abs=5e-4)
        assert (pytest.approx(result.statistic, abs=1e-6), result.passed) == known[observed["name"]]


def test_a_sibling_that_cannot_have_been_drawn_is_skipped():
    """A doubled sibling has left q, a padded one was never in it; neither changes what follows."""
    p = torch.tensor([[0.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    q = torch.tensor([0.5, 0.0, 0.0, 0.5], dtype=torch.float64)
    tree = TokenTree([0, 3, 3, 1, 0], [-1, 0, 0, 0, 0], proposal=Proposal(q=q.repeat(5, 1)))
    scores = Scores(p.log().repeat(5, 1))
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        assert LOSSLESS.judge(tree, scores, Sampling(temperature=1.0), generator) == ([0], 1)


@st.composite
def greedy_cases(draw):
    size = draw(st.integers(1, 14))
    tokens = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    parents = [-1, *(draw(st.integers(0, node - 1)) for node in range(1, size))]
    picks = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    return TokenTree(tokens, parents), picks


def agreeing(tree, picks, node):
    """Length of the longest path below a node on which the target agrees with every token."""
    return max([0, *(1 + agreeing(tree, picks, c) for c in tree.children[node] if tree.token_list[c] == picks[node])])


@given(greedy_cases())
def test_greedy_descends_as_far_as_the_first_agreeing_children_go(case):
    tree, picks = case
    scores = Scores(torch.nn.functional.one_hot(torch.tensor(picks), 3).double())
    path, bonus = LOSSLESS.judge(tree, scores, GREEDY, torch.Generator())
    assert path[0] == 0
    for parent, child in pairwise(path):
        assert tree.parent_list[child] == parent
        assert tree.token_list[child] == picks[parent]
        twins = [c for c in tree.children[parent] if tree.token_list[c] == picks[parent]]
        assert child == twins[0]
    assert bonus == picks[path[-1]]
    assert not any(tree.token_list[c] == bonus for c in tree.children[path[-1]])
    distinct = all(len({tree.token_list[c] for c in siblings}) == len(siblings) for siblings in tree.children)
    if distinct:
        assert len(path) - 1 == agreeing(tree, picks, 0)


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=1.0),
        Sampling(temperature=0.4),
        Sampling(temperature=1.0, top_k=5),
        Sampling(temperature=1.0, top_p=0.7),
        Sampling(temperature=1.7, top_k=20, top_p=0.9),
        Sampling(temperature=1.0, top_k=500, top_p=0.01),
    ],
    ids=str,
)
def test_the_warp_is_that_of_transformers(sampling):
    logits = torch.randn(50, 40, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 3
    expected = TemperatureLogitsWarper(sampling.temperature)(None, logits)
    if sampling.top_k:
        expected = TopKLogitsWarper(sampling.top_k)(None, expected)
    if sampling.top_p < 1:
        expected = TopPLogitsWarper(sampling.top_p)(None, expected)
    found = warp(logits, sampling)
    torch.testing.assert_close(found, expected.softmax(-1), atol=1e-12, rtol=0)
    torch.testing.assert_close(warp(logits[7], sampling), found[7], atol=0, rtol=0)


@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_probabilities_are_at_least_float32(dtype, result):
    found = warp(torch.tensor([1.0, 2.0, 3.0], dtype=dtype), Sampling(temperature=0.8, top_p=0.95))
    assert found.dtype == result
    assert float(found.sum()) == pytest.approx(1, abs=1e-6)


def test_choosing_is_the_argmax_or_a_draw():
    generator = torch.Generator().manual_seed(0)
    assert choose(torch.tensor([1.0, 3.0, 2.0]), GREEDY, generator) == 1
    counts = Counter(choose(LOGITS[3], WARPS[0], generator) for _ in range(5000))
    assert chi_square([counts[i] for i in range(V)], P[3]).passed


def test_the_same_seed_draws_the_same():
    tree = TokenTree([0, 1, 5, 3], [-1, 0, 0, 1])
    scores = Scores(LOGITS[tree.token_list])

    def verdicts(seed):
        generator = torch.Generator().manual_seed(seed)
        return [LOSSLESS.judge(tree, scores, WARPS[0], generator) for _ in range(40)]

    assert verdicts(1) == verdicts(1)
    assert verdicts(1) != verdicts(2)


def test_typical_acceptance_says_that_it_is_lossy():
    assert LOSSLESS.lossless
    assert not Typical().lossless


def test_typical_acceptance_takes_the_longest_likely_path():
    # Rows: a sharp root, a flat node 1, a sharp node 2.
    p = torch.tensor([[0.55, 0.4, 0.05, 0.0], [0.25, 0.25, 0.25, 0.25], [0.0, 0.02, 0.0, 0.98], [1.0, 0.0, 0.0, 0.0]])
    tree = TokenTree([9, 0, 1, 3, 2], [-1, 0, 0, 2, 0])
    rule = Typical(epsilon=0.2, alpha=0.9)
    scores = Scores(torch.cat([p, p[3:]]).log())
    for row, token, taken in ((0, 0, True), (0, 1, True), (0, 2, False)):
        entropy = -sum(x * math.log(x) for x in p[row].tolist() if x > 0)
        assert (float(p[row, token]) > min(0.2, 0.9 * math.exp(-entropy))) == taken
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        path, bonus = rule.judge(tree, scores, Sampling(temperature=1.0), generator)
        assert path == [0, 2, 3]
        assert bonus == 0
    short = TokenTree([9, 0, 1, 2], [-1, 0, 0, 0])
    assert rule.judge(short, scores, Sampling(temperature=1.0), generator)[0] == [0, 1]
    assert rule.judge(TokenTree([9, 2]), scores, Sampling(temperature=1.0), generator)[0] == [0]


def test_typical_acceptance_is_exact_when_greedy():
    tree = TokenTree([0, 1, 2])
    scores = Scores(LOGITS[tree.token_list])
    assert Typical().judge(tree, scores, GREEDY, torch.Generator()) == LOSSLESS.judge(
        tree, scores, GREEDY, torch.Generator()
    )
