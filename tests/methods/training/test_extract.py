import torch

from draftboard.methods.training.extract import extract
from draftboard.methods.training.shards import Features, ShardWriter, Text
from draftboard.testing import tiny_model


def test_states_are_those_of_reading_each_text_alone(tmp_path):
    model = tiny_model(vocab_size=12, dtype="float32", window=64).model
    noise = torch.Generator().manual_seed(3)
    texts = []
    for length in (9, 3, 17, 5, 5, 12):
        ids = torch.randint(12, (length,), generator=noise).tolist()
        texts.append(Text(ids, [True] * length))
    taps = (1, model.config.num_hidden_layers)
    told = []
    extract(
        model,
        texts,
        taps,
        ShardWriter(tmp_path, {}, tokens=20),
        batch_tokens=24,
        dtype=torch.float32,
        report=told.append,
    )
    found = Features(tmp_path)
    assert sum(told) == sum(found.lengths)
    for place, text in enumerate(texts):
        with torch.no_grad():
            out = model(torch.tensor([text.ids]), output_hidden_states=True)
        ids, _, states = found.read(place)
        assert ids.tolist() == text.ids
        for index, tap in enumerate(taps):
            torch.testing.assert_close(states[:, index], out.hidden_states[tap][0], atol=1e-5, rtol=1e-5)
    # A second call finds nothing to do.
    extract(model, texts, taps, ShardWriter(tmp_path, {}, tokens=20), report=told.append)
    assert sum(told) == sum(found.lengths)
