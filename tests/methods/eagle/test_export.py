"""What we write loads again here, and is the official file to others."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from draftboard.methods.eagle.checkpoint import load_counts, load_head
from draftboard.methods.eagle.config import TargetShape
from draftboard.methods.eagle.export import export_head, save_head
from draftboard.methods.eagle.heads import Head
from draftboard.methods.eagle.vocabulary import from_offsets
from draftboard.methods.errors import MethodError

from made_heads import (
    IDS,
    TARGET,
    head_config,
    made_head,
    outputs_of,
    renamed,
    speculators_settings,
    tensors_of,
    write_head,
)

RECORD = {"target": "tiny", "target_fingerprint": "abc", "data": []}
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("eagle", {"fc_bias": True}),
    ("eagle", {"qkv_bias": True, "input_norms": True, "rope_theta": 5e5}),
    ("eagle", {"draft_vocab": 10}),
    ("eagle3", {}),
    ("eagle3", {"norm_before_residual": True, "norm_before_fc": True, "qk_norm": True, "taps": (1, 2, 3)}),
    ("eagle3", {"fc_norm": True, "norm_output": True, "taps": (1, 5, 7)}),
    ("eagle3", {"hidden": 24, "own_embedding": True, "taps": (0, 2, 3)}),
    ("eagle3", {"draft_vocab": 40, "own_lm_head": False}),
    ("eagle3", {"own_lm_head": False}),
    ("eagle3", {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}),
]


def load(folder: Path, target: TargetShape = TARGET) -> Head:
    return load_head(folder, target=target, dtype=None, say=pytest.fail)


@pytest.mark.parametrize(("kind", "changes"), KINDS)
def test_an_artifact_loads_as_it_was(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    head = made_head(head_config(kind, **changes))
    counts = torch.arange(TARGET.vocab)
    save_head(head, tmp_path / "head", record=RECORD, counts=counts)
    loaded = load(tmp_path / "head")
    assert loaded.config == head.config
    assert loaded.config.rope_scaling == head.config.rope_scaling
    for mine, theirs in zip(outputs_of(head), outputs_of(loaded), strict=True):
        assert torch.equal(mine, theirs)
    found = load_counts(tmp_path / "head")
    assert found is not None
    assert torch.equal(found, counts)
    record = json.loads((tmp_path / "head" / "artifact.json").read_text())
    assert (record["kind"], record["method"], record["target"]) == ("eagle-head", kind, "tiny")


@pytest.mark.parametrize(("kind", "changes"), [case for case in KINDS if case[1] != {"draft_vocab": 10}])
def test_the_files_are_official_ones(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    head = made_head(head_config(kind, **changes))
    save_head(head, tmp_path / "head", record=RECORD)
    (tmp_path / "head" / "artifact.json").unlink()
    assert sorted(path.name for path in (tmp_path / "head").iterdir()) == ["config.json", "model.safetensors"]
    assert load(tmp_path / "head").config == head.config
    tensors = load_file(tmp_path / "head" / "model.safetensors")
    assert sorted(tensors) == sorted(tensors_of(head))
    if "d2t" in tensors:
        assert tensors["d2t"].dtype == torch.int64
        assert torch.equal(from_offsets(tensors["d2t"]), tensors["t2d"].nonzero()[:, 0])
    if kind == "eagle":
        assert not {"d2t", "lm_head.weight", "embed_tokens.weight"} & set(tensors)
    settings = json.loads((tmp_path / "head" / "config.json").read_text())
    assert settings["rope_theta"] == head.config.rope_theta
    assert settings.get("bias", False) == head.config.fc_bias


def test_a_head_that_was_reduced_is_saved_reduced(tmp_path: Path) -> None:
    for kind in ("eagle", "eagle3"):
        head = made_head(head_config(kind))
        head.restrict(IDS[2:6])
        logits = outputs_of(head)[1]
        save_head(head, tmp_path / kind, record=RECORD)
        loaded = load(tmp_path / kind)
        assert torch.equal(loaded.target_ids, IDS[2:6])
        assert torch.equal(outputs_of(loaded)[1], logits)


def test_an_artifact_is_bound_to_the_weights_it_was_made_for(tmp_path: Path) -> None:
    save_head(made_head(head_config("eagle")), tmp_path / "head", record=RECORD)
    other = TargetShape(name="other", hidden=16, vocab=40, layers=8, fingerprint="fed")
    with pytest.raises(MethodError, match=r"trained for tiny \(weights abc\), and the weights of other are fed"):
        load(tmp_path / "head", other)
    load(tmp_path / "head", TargetShape(name="same", hidden=16, vocab=40, layers=8, fingerprint="abc"))
    (tmp_path / "head" / "artifact.json").write_text('{"schema": 1, "kind": "samd-static"}')
    with pytest.raises(MethodError, match="not an artifact of kind 'eagle-head'"):
        load(tmp_path / "head")


def test_a_head_of_another_toolkit_is_exported_with_official_names(tmp_path: Path) -> None:
    config = head_config("eagle3", norm_before_residual=True)
    head = made_head(config)
    settings = speculators_settings(config, eagle_aux_hidden_state_layer_ids=list(config.taps))
    tensors = {
        name: value.bfloat16() if value.is_floating_point() else value for name, value in tensors_of(head).items()
    }
    folder = write_head(tmp_path / "theirs", renamed(tensors, midlayer="layers.0"), settings)
    export_head(folder, tmp_path / "out", target=TARGET)
    written = load_file(tmp_path / "out" / "model.safetensors")
    assert sorted(written) == sorted(tensors)
    assert all(torch.equal(written[name], value) for name, value in tensors.items())
    assert load(tmp_path / "out").config == load(folder).config
    with pytest.raises(MethodError, match="exists already"):
        export_head(folder, tmp_path / "out", target=TARGET)


def test_nothing_is_left_where_it_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    head = made_head(head_config("eagle"))
    with pytest.raises(MethodError, match="cannot be written"):
        save_head(head, tmp_path / "file" / "head", record=RECORD)


def test_a_head_that_borrows_rows_of_its_target_is_exported_with_them(tmp_path: Path) -> None:
    head = made_head(head_config("eagle3", own_lm_head=False))
    save_head(head, tmp_path / "head", record=RECORD)
    with pytest.raises(MethodError, match="rows of tiny's output layer"):
        export_head(tmp_path / "head", tmp_path / "out", target=TARGET)
    outputs, logits = outputs_of(head)
    lm_head = head._target_lm_head
    assert lm_head is not None
    export_head(tmp_path / "head", tmp_path / "out", target=TARGET, lm_head=lm_head)
    stored = load_file(tmp_path / "out" / "model.safetensors")
    assert torch.equal(stored["lm_head.weight"], lm_head[IDS])
    assert "target_lm_head" not in json.loads((tmp_path / "out" / "config.json").read_text())
    found = outputs_of(load(tmp_path / "out"))
    assert torch.equal(found[0], outputs)
    torch.testing.assert_close(found[1], logits)
