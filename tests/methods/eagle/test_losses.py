"""The losses written out position by position, and acceptance held to drafting one chain after the other."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import smooth_l1_loss

from draftboard.methods.eagle.losses import Aims, Batch, Lesson, accepted, walk
from draftboard.methods.eagle.unroll import unrolled

from bound_heads import BASE, THREE, H, V, bound_head


def made_batch(taps, *, seed=5):
    noise = torch.Generator().manual_seed(seed)
    ids = torch.randint(V, (2, 8), generator=noise)
    loss = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1, 0, 0]]).bool()
    last = torch.randn(2, 8, H, generator=noise, dtype=torch.float64)
    states = (last,) if taps == 1 else tuple(torch.randn(2, 8, H, generator=noise).double() for _ in range(taps))
    present = torch.tensor([[1] * 8, [1] * 6 + [0] * 2]).bool()
    return Batch(ids=ids, loss=loss, present=present, states=states, last=last)


@pytest.mark.parametrize(
    ("config", "aims"),
    [
        (BASE, Aims()),
        (BASE, Aims(prompts=False)),
        (BASE, Aims(steps=3, decay=0.5, regression=0.7, cross_entropy=0.4)),
        (THREE, Aims(steps=4, regression=0.0, cross_entropy=1.0)),
        (THREE, Aims(steps=2, regression=0.0, cross_entropy=1.0, prompts=False)),
    ],
)
@pytest.mark.parametrize("ids", [None, [0, 2, 3, 5, 7, 11, 13, 17, 18, 19]])
def test_the_loss_is_the_formula(config, aims, ids):
    chosen = None if ids is None else torch.tensor(ids)
    head = bound_head(replace(config, draft_vocab=V if ids is None else len(ids)), chosen)
    lm_head = torch.randn(V, H).double()
    batch = made_batch(len(config.taps))
    kept = head.target_ids.tolist()
    marks = batch.present if aims.prompts else batch.loss
    expected = torch.zeros(()).double()
    for step, outputs in enumerate(unrolled(head, head.feature(batch.states), batch.ids, aims.steps)):
        regressions, crossed = [], []
        for row in range(2):
            for i in range(8 - 2 - step):
                token = int(batch.ids[row, i + 2 + step])
                if not marks[row, i + 2 + step]:
                    continue
                aim = batch.last[row, i + 1 + step]
                regressions.append(smooth_l1_loss(outputs[row, i], aim))
                if token in kept:
                    p = (lm_head[kept] @ aim).softmax(-1)
                    crossed.append(-(p * head.logits(outputs[row, i]).log_softmax(-1)).sum())
        if aims.regression:
            expected += aims.decay**step * aims.regression * torch.stack(regressions).mean()
        if crossed:
            expected += aims.decay**step * aims.cross_entropy * torch.stack(crossed).mean()
    torch.testing.assert_close(Lesson(head, lm_head, aims)(batch), expected)


def test_noise_belongs_to_training_alone():
    lesson = Lesson(bound_head(BASE), torch.randn(V, H).double(), Aims(noise=0.2))
    batch = made_batch(1)
    lesson.eval()
    assert torch.equal(lesson(batch), lesson(batch))
    lesson.train()
    assert not torch.equal(lesson(batch), lesson(batch))


def test_only_the_head_learns():
    head = bound_head(THREE).requires_grad_(True)
    lesson = Lesson(head, torch.randn(V, H).double(), Aims(steps=2, regression=0.0, cross_entropy=1.0))
    lesson(made_batch(3)).backward()
    assert {name for name, _ in lesson.named_parameters()} == {f"head.{name}" for name, _ in head.named_parameters()}
    assert all(weight.grad is not None and bool(weight.grad.any()) for weight in head.parameters())


@pytest.mark.parametrize("config", [BASE, THREE])
def test_accepted_is_what_a_chain_gets_right(config):
    head = bound_head(config)
    batch = made_batch(len(config.taps))
    features = head.feature(batch.states)
    # Texts that the head itself agrees with for a while, so that there is something to count.
    steps = list(unrolled(head, features, batch.ids, 3))
    ids = batch.ids.clone()
    ids[:, 2:] = head.logits(steps[0]).argmax(-1)[:, :6]
    batch = replace(batch, ids=ids, loss=torch.ones_like(batch.loss))
    steps = list(unrolled(head, features, batch.ids, 3))
    found = accepted(head, batch, 3)
    for row in range(2):
        for i in range(8):
            count = 0
            while count < 3 and i + 2 + count < 8:
                drafted = head.logits(steps[count][row, i]).argmax()
                if drafted != batch.ids[row, i + 2 + count]:
                    break
                count += 1
            assert found[row, i] == count
    assert int(found.sum()) > 0


def test_what_the_target_did_not_write_is_not_accepted():
    head = bound_head(BASE)
    batch = replace(made_batch(1), loss=torch.zeros(2, 8).bool())
    assert not accepted(head, batch, 3).any()


@given(st.lists(st.integers(0, 3), min_size=4, max_size=40), st.integers(1, 3))
def test_a_walk_covers_every_written_token_once(found, prompt):
    loss = [False] * prompt + [True] * (len(found) - prompt)
    steps = list(walk(found, loss))
    # The prefill gives the first token, every step what it took and one more; the last may reach beyond the end.
    assert len(found) - prompt - 1 <= sum(steps) + len(steps) <= len(found) - prompt - 1 + 3


def test_a_walk_begins_anew_behind_a_users_turn():
    loss = [False, True, True, False, False, True, True, True]
    assert list(walk([0, 0, 0, 0, 1, 0, 0, 0], loss)) == [0, 1]
