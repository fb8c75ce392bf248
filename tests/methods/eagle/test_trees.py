import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.methods.eagle.trees import TREES, StaticTree, chain


def test_the_published_tree_of_eagle_1():
    tree = TREES["mc_sim_7b_63"]
    assert len(tree) == 26
    assert [tree.depths.count(depth) for depth in range(1, 6)] == [4, 8, 8, 3, 2]
    assert tree.widths() == [1, 4, 4, 1, 1]
    assert max(tree.ranks) == 3
    # Five head forwards a step, the root's among them.
    assert tree.depth == len(tree.widths()) == 5


def test_a_chain():
    tree = chain(5)
    assert (tree.parents, tree.depths, set(tree.ranks)) == ((-1, 0, 1, 2, 3, 4), (0, 1, 2, 3, 4, 5), {0})
    assert tree.widths() == [1] * 5


def test_counts_unfold_breadth_first():
    tree = StaticTree.of((2, 1, 2))
    assert tree.parents == (-1, 0, 0, 1, 2, 2)
    assert tree.ranks == (0, 0, 1, 0, 0, 1)
    assert tree.counts == (2, 1, 2, 0, 0, 0)


@pytest.mark.parametrize("counts", [(1, -1), (1, 0, 2), (0, 1)])
def test_counts_that_name_no_tree(counts):
    with pytest.raises(ValueError, match=r"children|child counts"):
        StaticTree.of(counts)


COUNTS = st.lists(st.integers(0, 3), max_size=12).map(
    lambda counts: counts[: next((n for n in range(len(counts)) if sum(counts[:n]) < n), len(counts))]
)


@given(COUNTS, st.integers(1, 30), st.integers(0, 6))
def test_a_cut_tree_is_the_beginning_of_the_whole(counts, nodes, depth):
    tree = StaticTree.of(counts)
    cut = tree.within(nodes=nodes, depth=depth)
    wanted = [n for n in range(len(tree)) if tree.depths[n] <= depth][:nodes]
    assert len(cut) == len(wanted)
    assert [cut.ranks[n] for n in range(len(cut))] == [tree.ranks[n] for n in wanted]
    assert list(cut.parents) == [tree.parents[n] for n in wanted]
    assert cut.depth <= depth
