"""Rows that share forwards write what each would write alone."""

import random

import pytest
import torch

from draftboard.methods import MethodError
from draftboard.methods.training.batching import BatchWriter, Row
from draftboard.testing import tiny_model

EOS = 5


@pytest.fixture(scope="module", params=["sdpa", "eager"])
def model(request):
    model = tiny_model().model
    before = model.config._attn_implementation
    model.set_attn_implementation(request.param)
    yield model
    model.set_attn_implementation(before)


def alone(model, prompt, limit):
    """Greedy, without any cache."""
    ids = list(prompt)
    with torch.inference_mode():
        while len(ids) < len(prompt) + limit:
            ids.append(int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] == EOS:
                break
    return ids[len(prompt) :]


def prompts_of(model, count, *, shared=()):
    draw = random.Random(3)
    return [
        [*shared, *(draw.randrange(model.config.vocab_size) for _ in range(draw.randint(1, 12)))] for _ in range(count)
    ]


@pytest.mark.parametrize("places", [1, 3, 16])
@pytest.mark.parametrize("shared", [(), (7, 8, 9)])
def test_every_row_is_what_it_would_be_alone(model, places, shared):
    prompts = prompts_of(model, 9, shared=shared)
    writer = BatchWriter(model, places=places, eos_ids={EOS})
    writer.share([*shared, 11] if shared else ())
    waiting = [Row(key=i, prompt=prompt, limit=1 + 5 * (i % 4)) for i, prompt in enumerate(prompts)]
    rows = list(waiting)
    while waiting or writer.rows:
        while waiting and writer.free:
            row = waiting.pop(0)
            assert writer.admit(row) == (row.limit == 1 or row.written == [EOS])
        assert len(writer.rows) + writer.free == places
        if writer.rows:
            for row in writer.step():
                assert row.written[-1] == EOS or len(row.written) == row.limit
    for row in rows:
        assert row.written == alone(model, row.prompt, row.limit)


def test_a_row_goes_on_in_the_place_of_one_that_ended(model):
    first = [Row(key=i, prompt=prompt, limit=4) for i, prompt in enumerate(prompts_of(model, 3))]
    writer = BatchWriter(model, places=3, eos_ids={EOS})
    for row in first:
        assert not writer.admit(row)
    ended = []
    while not ended:
        ended = writer.step()
    then = []
    for number, row in enumerate(ended):
        # One repeats all that was written, one a part of it, one nothing.
        kept = [[*row.prompt, *row.written], [*row.prompt, *row.written[:1]], [3]][number]
        then.append(Row(key="then", prompt=[*kept, 1, 2], limit=6))
        writer.go_on(row, then[-1])
    while writer.rows:
        writer.step()
    for row in [*first, *then]:
        assert row.written == alone(model, row.prompt, row.limit)


def test_sampled_rows_follow_their_numbers_and_their_temperature(model):
    prompt = [1, 2, 3]
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([prompt])).logits[0, -1]
    wanted = torch.softmax(logits / 1.5, -1)
    writer = BatchWriter(model, places=1, eos_ids=())
    counts = torch.zeros_like(wanted)
    for step in range(400):
        row = Row(key=0, prompt=prompt, limit=1, temperature=1.5, draw=lambda u=(step + 0.5) / 400: u)
        assert writer.admit(row)
        counts[row.written[0]] += 1
    assert (counts / 400 - wanted).abs().max() <= 1 / 400 + 1e-4
    edge = Row(key=0, prompt=prompt, limit=1, temperature=1.0, draw=lambda: 1 - 2**-53)
    writer.admit(edge)
    assert 0 <= edge.written[0] < model.config.vocab_size
    with pytest.raises(ValueError, match="numbers to draw"):
        writer.admit(Row(key=0, prompt=prompt, limit=2, temperature=1.0))


def test_no_place_is_no_batch(model):
    with pytest.raises(MethodError, match="at least one row"):
        BatchWriter(model, places=0, eos_ids=())
    writer = BatchWriter(model, places=1, eos_ids=())
    writer.admit(Row(key=0, prompt=[1], limit=3))
    with pytest.raises(ValueError, match="no place is free"):
        writer.admit(Row(key=1, prompt=[1], limit=3))
