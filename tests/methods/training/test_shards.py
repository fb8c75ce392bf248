import json

import pytest
import torch

from draftboard.methods import MethodError
from draftboard.methods.training.shards import Features, ShardWriter, Text

ABOUT = {"target": "tiny", "taps": [2, 4]}


def text(count, start=0):
    return Text(list(range(start, start + count)), [index > 1 for index in range(count)])


def states(count, value=0.0):
    return torch.full((count, 2, 3), value, dtype=torch.bfloat16)


def fill(folder, count, *, tokens=10):
    writer = ShardWriter(folder, ABOUT, tokens=tokens)
    for index in range(writer.written, count):
        writer.add(text(4 + index, index), states(4 + index, float(index)))
    return writer


def test_texts_come_back_as_they_went(tmp_path):
    fill(tmp_path, 5).flush()
    found = Features(tmp_path)
    assert len(found) == 5
    assert found.lengths == [4, 5, 6, 7, 8]
    assert found.generated == [2, 3, 4, 5, 6]
    ids, loss, kept = found.read(3)
    assert ids.tolist() == [3, 4, 5, 6, 7, 8, 9]
    assert ids.dtype == torch.int64
    assert loss.tolist() == [False, False, True, True, True, True, True]
    assert torch.equal(kept, states(7, 3.0))
    assert len(list(tmp_path.glob("shard-*"))) > 1
    counts = found.counts(12)
    assert counts.sum() == sum(found.generated)
    assert counts[:2].sum() == 0


def test_an_interrupted_extraction_goes_on_behind_the_last_whole_shard(tmp_path):
    fill(tmp_path, 3)  # not flushed: what is behind the last whole shard is lost
    (tmp_path / "shard-00009.part").write_bytes(b"torn")
    fill(tmp_path, 6).flush()
    found = Features(tmp_path)
    assert found.lengths == [4, 5, 6, 7, 8, 9]


def test_fewer_texts_can_be_asked_for(tmp_path):
    fill(tmp_path, 5).flush()
    assert Features(tmp_path, texts=2).lengths == [4, 5]


def test_features_of_something_else_are_refused_with_what_differs(tmp_path):
    fill(tmp_path, 2).flush()
    with pytest.raises(MethodError, match=r"taps: there \[2, 4\], now \[1\]"):
        ShardWriter(tmp_path, {**ABOUT, "taps": [1]})


def test_damage_is_told(tmp_path):
    with pytest.raises(MethodError, match="cannot be read"):
        Features(tmp_path)
    fill(tmp_path, 2).flush()
    shard = next(tmp_path.glob("shard-*"))
    shard.write_bytes(shard.read_bytes()[:-3])
    with pytest.raises(MethodError, match=r"shard-00000.safetensors is damaged"):
        Features(tmp_path)
    shard.unlink()
    with pytest.raises(MethodError, match="no texts"):
        Features(tmp_path)
    (tmp_path / "index.json").write_text(json.dumps({"schema": 99}))
    with pytest.raises(MethodError, match="no index"):
        Features(tmp_path)


def test_states_that_do_not_fit_are_a_fault(tmp_path):
    with pytest.raises(ValueError, match="do not fit"):
        ShardWriter(tmp_path, ABOUT).add(text(4), states(3))
