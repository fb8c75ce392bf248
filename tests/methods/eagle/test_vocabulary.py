import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from draftboard.methods import MethodError
from draftboard.methods.eagle.vocabulary import check_maps, from_offsets, kept, most_frequent, ranked, to_offsets


@given(st.sets(st.integers(0, 40), min_size=1))
def test_offsets_go_there_and_back(chosen):
    ids = torch.tensor(sorted(chosen))
    d2t = to_offsets(ids)
    assert torch.equal(from_offsets(d2t), ids)
    check_maps(d2t, kept(ids, 41), 41, len(ids))
    check_maps(d2t, None, 41, len(ids))


@pytest.mark.parametrize(
    ("d2t", "t2d", "told"),
    [
        ([1.0, 2.0], None, "float32"),
        ([1, 1, 1], None, r"shape \[3\]"),
        ([1, 0], None, "do not ascend"),
        ([0, 9], None, "1 ids beyond the target's 10"),
        ([-1, 3], None, "1 ids beyond"),
        ([4, 9], None, "looks like a table of target ids"),
        ([0, 3], [True, True, *[False] * 8], "not the 2 of d2t"),
        ([0, 3], [True, False, False, False, True], "marks the ids"),
    ],
)
def test_maps_that_disagree_are_told(d2t, t2d, told):
    with pytest.raises(MethodError, match=told):
        check_maps(torch.tensor(d2t), None if t2d is None else torch.tensor(t2d), 10, 2)


def test_the_most_frequent_with_those_that_must_be_in():
    counts = torch.tensor([5, 0, 9, 5, 1])
    assert ranked(counts).tolist() == [2, 0, 3, 4, 1]
    assert most_frequent(counts, 2).tolist() == [0, 2]
    assert most_frequent(counts, 3, always=[1]).tolist() == [0, 1, 2]
    assert most_frequent(counts, 5, always=[1]).tolist() == [0, 1, 2, 3, 4]
    for size in (0, 6):
        with pytest.raises(MethodError, match="cannot be taken"):
            most_frequent(counts, size)
