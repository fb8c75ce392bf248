"""A head of a few weights learns a language that is easy to learn, and the figures say so."""

import pytest
import torch

from draftboard.methods.eagle.batches import Batches
from draftboard.methods.eagle.losses import Aims
from draftboard.methods.eagle.train import Course, acceptance, fresh_head, split_texts, train_head
from draftboard.methods.training.shards import Features, ShardWriter, Text

from bound_heads import BASE, THREE, H, V


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Texts that count upwards; states say what comes next."""
    folder = tmp_path_factory.mktemp("features")
    torch.manual_seed(0)
    lm_head = torch.randn(V, H)
    writer = ShardWriter(folder, {}, tokens=400)
    for text in range(60):
        ids = [(text + step) % V for step in range(8 + text % 7)]
        following = torch.tensor([(token + 1) % V for token in ids])
        last = lm_head[following] * 0.5
        writer.add(Text(ids, [step > 2 for step in range(len(ids))]), torch.stack([last.flip(-1), last], 1))
    writer.flush()
    return lm_head, Features(folder)


@pytest.mark.parametrize(
    ("config", "taps", "aims"),
    [
        (BASE, [1], Aims(cross_entropy=1.0)),
        (THREE, [0, 0, 1], Aims(steps=3, regression=0.0, cross_entropy=1.0)),
    ],
)
def test_a_head_learns_to_draft(features, tmp_path, config, taps, aims):
    lm_head, texts = features
    head = fresh_head(config, None, torch.randn(V, H), lm_head, seed=1)
    course = Course(epochs=25, rate=1e-2, batch_tokens=120, aims=aims, evaluate_every=1000)
    _, held = split_texts(len(texts))
    before = acceptance(head, texts, held, taps)
    told = []
    made = train_head(
        head, lm_head, texts, taps, course, folder=tmp_path, about={}, report=lambda *row: told.append(row)
    )
    after = acceptance(head, texts, held, taps)
    assert before["accepted_per_step"] < 0.5
    assert after["first_draft_right"] > 0.9
    assert after["accepted_per_step"] > 1.5
    assert made.evaluations[-1]["first_draft_right"] == after["first_draft_right"]
    assert told[-1][2] < told[0][2]
    assert told[-1][:2] == (made.steps, made.steps)


def test_held_out_texts_are_few_and_not_trained_on():
    learned, held = split_texts(100)
    assert held == [39, 79]
    assert sorted(learned + held) == list(range(100))
    assert split_texts(1) == ([0], [0])


def test_batches_are_the_same_for_the_same_number_and_cover_an_epoch(features):
    _, texts = features
    places = list(range(50))
    made = Batches(texts, places, [0, 1], tokens=100, seed=3)
    again = Batches(texts, places, [0, 1], tokens=100, seed=3)
    seen = 0
    for number in range(made.per_epoch):
        batch = made(number)
        assert torch.equal(batch.ids, again(number).ids)
        assert batch.ids.numel() <= 100
        assert torch.equal(batch.last, batch.states[1])
        assert not batch.loss[:, :3].any()
        assert torch.equal(batch.present, batch.last.abs().sum(-1) > 0)
        seen += int((batch.last.abs().sum(-1) > 0).sum())
    assert seen == sum(texts.lengths[place] for place in places)
    assert not torch.equal(made(made.per_epoch).ids[:, :4], made(0).ids[:, :4])
