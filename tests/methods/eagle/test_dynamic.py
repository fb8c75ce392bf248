"""The dynamic tree against a brute force in plain Python, on a table that stands for the head."""

import random
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftboard.methods.eagle.dynamic import Ranked, grow

ROOT = 3


class Table:
    """A head whose log-probabilities are a function of the path, and which keeps what it was asked."""

    def __init__(self, vocab, kind, seed=0):
        self.vocab, self.kind, self.seed = vocab, kind, seed
        self.blocks = [[()]]
        self.nodes = []

    def row(self, path):
        dice = random.Random(f"{self.seed}{path}")
        if self.kind == "zero":
            return [0.0] * self.vocab
        if self.kind == "coarse":
            return [-float(dice.randrange(3)) for _ in range(self.vocab)]
        weights = [dice.random() ** 4 + 1e-6 for _ in range(self.vocab)]
        return [float(np.float32(log(weight / sum(weights)))) for weight in weights]

    def ranked(self, paths, k):
        rows = [self.row(path) for path in paths]
        order = [sorted(range(self.vocab), key=lambda token, row=row: -row[token])[:k] for row in rows]
        found = [[row[token] for token in best] for row, best in zip(rows, order, strict=True)]
        return Ranked(np.array(order), np.array(found))

    def expand(self, k):
        def run(rows, tokens, seen):
            paths = [(*self.blocks[-1][row], token) for row, token in zip(rows.tolist(), tokens, strict=True)]
            self.blocks.append(paths)
            self.nodes += paths
            # A node attends to what lies on its path, and to nothing else.
            for path, row in zip(paths, seen.tolist(), strict=True):
                assert len(row) == len(self.nodes)
                assert [n for n, sees in enumerate(row) if sees] == [
                    n for n, other in enumerate(self.nodes) if path[: len(other)] == other
                ]
            return self.ranked(paths, k)

        return run


def brute_force(table, k, depth, count):
    """Native-methods 1.4, word by word; nodes are paths."""
    candidates = []

    def children(path, score):
        row = table.row(path)
        best = sorted(range(table.vocab), key=lambda token: -row[token])[:k]
        return [((*path, token), score + row[token]) for token in best]

    level = children((), 0.0)
    candidates += level
    for _ in range(depth):
        frontier = sorted(level, key=lambda node: -node[1])[:k]
        level = [child for path, score in frontier for child in children(path, score)]
        candidates += level
    order = sorted(range(len(candidates)), key=lambda n: -candidates[n][1])[: count - 1]
    return [candidates[n][0] for n in sorted(order)]


def paths_of(tree):
    found = [()]
    for token, parent in zip(tree.token_list[1:], tree.parent_list[1:], strict=True):
        found.append((*found[parent], token))
    return found[1:]


SIZES = [(10, 7, 60), (10, 5, 60), (4, 8, 32), (1, 4, 6), (3, 0, 4), (2, 3, 100), (5, 2, 2)]


@pytest.mark.parametrize(("k", "depth", "count"), SIZES)
@pytest.mark.parametrize("kind", ["smooth", "coarse", "zero"])
def test_it_equals_the_brute_force(k, depth, count, kind):
    for seed in range(4):
        table = Table(12, kind, seed)
        growth = grow(table.ranked([()], k), table.expand(k), width=k, levels=depth)
        tree = growth.best(count - 1, ROOT)
        assert paths_of(tree) == brute_force(table, k, depth, count)
        assert tree.token_list[0] == ROOT
        assert len(table.blocks) == depth + 1
        seen = k + sum(k * len(block) for block in table.blocks[1:])
        assert len(tree) == min(count, 1 + seen)


@given(st.integers(1, 6), st.integers(0, 5), st.integers(1, 80), st.integers(0, 9), st.booleans())
@settings(max_examples=60, deadline=None)
def test_kept_nodes_form_a_tree_and_scores_never_rise(k, depth, count, seed, storm):
    table = Table(7, "zero" if storm else "coarse", seed)
    growth = grow(table.ranked([()], k), table.expand(k), width=k, levels=depth)
    tree = growth.best(count, ROOT, chances=True)
    paths = paths_of(tree)
    assert len(set(paths)) == len(paths)
    assert all(len(path) == 1 or path[:-1] in paths[:place] for place, path in enumerate(paths))
    for node in range(1, len(tree)):
        assert tree.chances[node] <= tree.chances[tree.parent_list[node]]
    assert tree.depth <= depth + 1


def test_growth_stops_where_it_is_told_to():
    table = Table(9, "smooth")
    widths = iter([3, 2, 0])
    growth = grow(table.ranked([()], 4), table.expand(4), width=4, levels=7, go_on=lambda growth: next(widths))
    assert [len(block) for block in table.blocks] == [1, 3, 2]
    assert growth.depth == 3
    assert len(growth.scores()) == 4 + 3 * 4 + 2 * 4


def test_scores_are_weighed_by_depth():
    table = Table(9, "smooth")
    growth = grow(
        table.ranked([()], 2), table.expand(2), width=2, levels=1, weigh=lambda depth, logprobs: logprobs * 0 - depth
    )
    assert growth.scores().tolist() == [-1, -1, -3, -3, -3, -3]


def test_walking_along_what_was_emitted():
    table = Table(9, "smooth")
    growth = grow(table.ranked([()], 3), table.expand(3), width=1, levels=2)
    best = table.blocks[2][0]
    ranks = [rank for _, rank in growth.walk([*best, 99])]
    # The last level was ranked behind `best`, and 99 is not in it.
    assert ranks == [0, 0, None]
    second = int(table.ranked([()], 3).tokens[0, 1])
    [(logprobs, rank)] = growth.walk([second, 0])
    assert rank == 1
    assert logprobs.tolist() == table.ranked([()], 3).logprobs[0].tolist()
    assert growth.walk([99])[0][1] is None


def test_scores_that_are_no_numbers_still_give_a_tree():
    ranked = Ranked(np.array([[1, 2, 3]]), np.array([[np.nan, -1.0, np.nan]]))
    growth = grow(
        ranked,
        lambda rows, tokens, seen: Ranked(*(np.repeat(x, len(tokens), 0) for x in (ranked.tokens, ranked.logprobs))),
        width=3,
        levels=3,
    )
    assert len(growth.best(20, ROOT)) == 21
