import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from draftboard.methods.engine import AuxRows, Proposal, TokenTree


@st.composite
def trees(draw):
    size = draw(st.integers(1, 20))
    tokens = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    parents = [-1, *(draw(st.integers(0, node - 1)) for node in range(1, size))]
    return TokenTree(tokens, parents)


def ancestry(parents, node):
    line = [node]
    while parents[line[-1]] >= 0:
        line.append(parents[line[-1]])
    return line


@given(trees())
def test_a_tree_agrees_with_brute_force(tree):
    parents = tree.parent_list
    lines = [ancestry(parents, node) for node in range(len(tree))]
    assert tree.depths == [len(line) - 1 for line in lines]
    assert tree.depth == max(tree.depths)
    expected = torch.tensor([[column in line for column in range(len(tree))] for line in lines])
    assert torch.equal(tree.ancestors(), expected)
    for node, children in enumerate(tree.children):
        assert children == [other for other in range(len(tree)) if parents[other] == node]
    assert tree.is_chain == all(parent == node - 1 for node, parent in enumerate(parents))
    assert tree.tokens.tolist() == tree.token_list
    assert tree.parents.tolist() == parents
    assert tree.tokens.dtype == tree.parents.dtype == torch.int64


@given(trees(), st.integers(-1, 25))
def test_a_shortened_tree_is_a_tree_of_the_first_nodes(tree, nodes):
    short = tree.shortened(nodes)
    count = min(len(tree), max(1, nodes))
    assert short.token_list == tree.token_list[:count]
    assert short.parent_list == tree.parent_list[:count]
    assert short.depths == tree.depths[:count]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
def test_a_chain_is_the_tree_without_branches(tokens):
    chain = TokenTree(tokens)
    tree = TokenTree(tokens, list(range(-1, len(tokens) - 1)))
    assert chain.is_chain
    assert tree.is_chain
    assert chain.parent_list == tree.parent_list
    assert chain.depths == tree.depths
    assert chain.depth == tree.depth == len(tokens) - 1
    assert chain.children == tree.children
    assert torch.equal(chain.ancestors(), tree.ancestors())


@pytest.mark.parametrize(
    ("tokens", "parents"),
    [
        ([], None),
        ([], []),
        ([1, 2], [-1]),
        ([1], [-1, 0]),
        ([1, 2], [0, 0]),
        ([1, 2], [-1, -1]),
        ([1, 2, 3], [-1, 2, 0]),
        ([1, 2, 3], [-1, 0, 2]),
        ([1, 2], [-1, 5]),
    ],
)
def test_what_is_no_tree_is_refused(tokens, parents):
    with pytest.raises(ValueError, match=r"form no tree|a parent stands before its child"):
        TokenTree(tokens, parents)


def test_shortening_cuts_the_proposal_and_drops_aux_rows():
    q = torch.rand(4, 5)
    aux = AuxRows(tokens=torch.tensor([1]), positions=torch.tensor([1]), mask=torch.ones(1, 2, dtype=torch.bool))
    tree = TokenTree([1, 2, 3, 4], [-1, 0, 0, 1], proposal=Proposal(q=q), aux=aux)
    short = tree.shortened(3)
    assert torch.equal(short.proposal.q, q[:3])
    assert short.aux is None
    assert tree.shortened(9).aux is None
    assert len(tree.shortened(9)) == 4
    assert TokenTree([1, 2]).shortened(2).token_list == [1, 2]
