"""`decode(keep_drafts=True)`: the drafts of a turn, and that keeping them changes nothing."""

import pytest
import torch

from draftboard.methods.engine import Limits, Sampling, decode
from draftboard.testing import OracleDrafter, RandomDrafter, TableTarget

SCRIPT = [1, *range(2, 40)]
OUTPUT = SCRIPT[1:]

DRAFTERS = {
    "chain": lambda: OracleDrafter(OUTPUT, depth=3),
    "tree": lambda: OracleDrafter(OUTPUT, depth=2, decoys=2),
    "random": lambda: RandomDrafter(48, seed=5, output=OUTPUT),
}


def made(drafter, *, keep, eos=(), sampling=None, count=20):
    generator = torch.Generator().manual_seed(3)
    target = TableTarget.scripted(SCRIPT, vocab_size=48)
    limits = Limits(max_new_tokens=count, eos_ids=frozenset(eos))
    return decode(
        target,
        DRAFTERS[drafter](),
        [1],
        limits=limits,
        generator=generator,
        keep_drafts=keep,
        **({"sampling": sampling} if sampling else {}),
    )


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("eos", [(), (9,)])
def test_the_accepted_nodes_are_the_path_that_was_written(drafter, eos):
    generation = made(drafter, keep=True, eos=eos)
    trace, ids = generation.trace, generation.token_ids
    assert len(trace.judged) == len(trace) > 0
    done = 1
    for step, (tokens, parents, path) in enumerate(trace.judged):
        assert tokens[0] == ids[done - 1]
        assert len(tokens) - 1 == trace.nodes[step]
        assert len(path) - 1 == trace.accepted[step]
        assert [parents[node] for node in path] == [-1, *path[:-1]]
        written = ids[done : done + trace.kept[step]]
        assert [tokens[node] for node in path[1:]][: len(written)] == written[: len(path) - 1]
        done += trace.kept[step]
    assert done == len(ids)


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("sampling", [None, Sampling(temperature=1.0)])
def test_keeping_drafts_changes_neither_output_nor_columns(drafter, sampling):
    on, off = (made(drafter, keep=keep, sampling=sampling) for keep in (True, False))
    assert on.token_ids == off.token_ids
    assert off.trace.judged == []
    for name in ("drafted", "nodes", "accepted", "kept"):
        assert getattr(on.trace, name) == getattr(off.trace, name)
    assert set(on.trace.columns()) == set(off.trace.columns())
