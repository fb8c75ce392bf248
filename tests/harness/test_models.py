"""Models by name: naming, loading, refusals, fingerprints."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import torch
from transformers import BertConfig, T5Config

from draftboard.errors import UserError
from draftboard.models import (
    ModelRef,
    eos_ids,
    fingerprint,
    fingerprint_model,
    load_config,
    load_model,
    load_tokenizer,
    resolve,
    resolve_device,
    resolve_dtype,
    vocabulary,
)

from made_models import WORDS, logits, tiny_model

ALIAS = "smollm2-135m"
pytestmark = pytest.mark.usefixtures("cache")


# Naming


def test_names_of_every_kind(folder: Path, gguf: Path, cache: Path) -> None:
    assert resolve(ALIAS) == ModelRef(name=ALIAS, kind="bundled", path=cache / "models" / ALIAS)
    assert resolve(str(folder)) == ModelRef(name=str(folder), kind="local", path=folder)
    assert resolve(str(gguf)).kind == "gguf"
    assert resolve("Qwen/Qwen3-0.6B", "main") == ModelRef(name="Qwen/Qwen3-0.6B", kind="hub", revision="main")


def test_a_folder_wins_over_a_hub_id(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "owner").mkdir()
    folder.rename(folder.parent / "owner" / "tiny")
    monkeypatch.chdir(folder.parent)
    assert resolve("owner/tiny").kind == "local"


@pytest.mark.parametrize("name", ["smolm2-135m", "SmolLM2-135M", "smollm2"])
def test_a_misspelt_alias_gets_the_nearest(name: str) -> None:
    with pytest.raises(UserError, match=f"Did you mean {ALIAS}"):
        resolve(name)


@pytest.mark.parametrize("name", ["", "gpt2", "./nowhere", "/no/where", "~/nowhere", "a/b/c", "x.gguf"])
def test_what_is_no_model_lists_what_is(name: str) -> None:
    with pytest.raises(UserError, match=r"bundled alias.*Hugging Face id.*local folder.*\.gguf"):
        resolve(name)


def test_a_folder_without_a_config_names_the_gguf_in_it(gguf: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json[\s\S]*It holds tiny\.gguf"):
        resolve(str(gguf.parent))


def test_only_hub_ids_have_revisions(folder: Path) -> None:
    with pytest.raises(UserError, match="no revisions"):
        resolve(str(folder), "main")


# Loading


def test_a_local_folder_loads_as_it_was_saved(folder: Path) -> None:
    ref = resolve(str(folder))
    model = load_model(ref, dtype="float32", device="cpu")
    assert torch.equal(logits(model), logits(tiny_model()))
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert model.config._attn_implementation == "sdpa"
    assert load_tokenizer(ref)("the ferry").input_ids == [3, 4]
    assert load_model(ref, dtype="bfloat16", device="cpu").dtype == torch.bfloat16


def test_a_gguf_file_loads_as_the_model_it_was_made_from(gguf: Path) -> None:
    ref = resolve(str(gguf))
    model = load_model(ref, dtype="float32", device="cpu")
    assert torch.allclose(logits(model), logits(tiny_model()), atol=1e-6)
    assert load_tokenizer(ref)("abc").input_ids
    assert vocabulary(ref).logit_width == 12


def test_vocabulary_needs_no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    found = vocabulary(resolve(str(folder)))
    assert found.tokens == {word: i for i, word in enumerate(WORDS)}
    assert found.logit_width == 12
    assert found.eos_ids == {2, 7}
    (folder / "generation_config.json").unlink()
    assert vocabulary(resolve(str(folder))).eos_ids == {2}


@pytest.mark.parametrize(
    ("made", "told"),
    [(T5Config(), "encoder–decoder"), (BertConfig(architectures=["BertForMaskedLM"]), "BertForMaskedLM")],
)
def test_other_kinds_are_refused_before_weights_are_read(tmp_path: Path, made: object, told: str) -> None:
    made.save_pretrained(tmp_path / "other")  # type: ignore[attr-defined]
    ref = resolve(str(tmp_path / "other"))
    with pytest.raises(UserError, match=told):
        load_model(ref, dtype="float32", device="cpu")
    with pytest.raises(UserError, match="decoder-only"):
        load_config(ref)


@pytest.mark.parametrize("text", ['{"model_type": "abacus"}', "5", '{"model_type": "llama", "hidden_size": null}'])
def test_a_configuration_that_makes_no_sense_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UserError, match="no configuration that transformers understands"):
        load_config(resolve(str(tmp_path)))


def test_missing_weights_are_never_made_up(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"1 missing[\s\S]*layers\.1\.mlp\.up_proj"):
        load_model(resolve(str(folder)), dtype="float32", device="cpu")


def test_weights_of_another_shape_are_named(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "intermediate_size": 7}))
    with pytest.raises(UserError, match=r"0 missing, \d+ of another shape[\s\S]*layers\.0\.mlp\.down_proj"):
        load_model(resolve(str(folder)), dtype="float32", device="cpu")


def test_damaged_or_absent_weights_are_told(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(UserError, match="cannot be loaded"):
        load_model(resolve(str(folder)), dtype="float32", device="cpu")
    path.unlink()
    with pytest.raises(UserError, match="cannot be loaded"):
        load_model(resolve(str(folder)), dtype="float32", device="cpu")


def test_a_folder_without_a_tokenizer_is_told(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(UserError, match="no tokenizer"):
        load_tokenizer(resolve(str(folder)))


def test_an_alias_that_was_not_fetched_names_the_command() -> None:
    with pytest.raises(UserError, match=f"draftboard fetch {ALIAS}"):
        load_config(resolve(ALIAS))


@pytest.mark.parametrize("device", ["cuda:99", "tpu", "cuda:x", "CPU"])
def test_devices_that_are_not_there(device: str) -> None:
    with pytest.raises(UserError, match="device"):
        resolve_device(device)


def test_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    assert resolve_dtype("float16", cpu) == torch.float16
    monkeypatch.setattr("draftboard.hardware.cpu_has_bfloat16", lambda: True)
    assert resolve_dtype("auto", cpu) == torch.bfloat16
    monkeypatch.setattr("draftboard.hardware.cpu_has_bfloat16", lambda: False)
    assert resolve_dtype("auto", cpu) == torch.float32
    cuda = torch.device("cuda:0")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert resolve_dtype("auto", cuda) == torch.bfloat16
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert resolve_dtype("auto", cuda) == torch.float16
    with pytest.raises(UserError, match="Did you mean bfloat16"):
        resolve_dtype("bfloat", cpu)


def test_eos_ids_are_a_set_from_every_source() -> None:
    generation = SimpleNamespace(eos_token_id=[5, 6])
    model = SimpleNamespace(generation_config=generation, config=SimpleNamespace(eos_token_id=9))
    bare = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=None), config=SimpleNamespace(eos_token_id=0))
    assert eos_ids(model, SimpleNamespace(eos_token_id=7)) == {5, 6, 7}
    assert eos_ids(bare) == {0}
    assert eos_ids(generation) == {5, 6}
    assert eos_ids(SimpleNamespace(eos_token_id=None)) == frozenset()


# Fingerprints


def test_a_fingerprint_follows_weights_and_configuration_only(folder: Path, cache: Path) -> None:
    ref = resolve(str(folder))
    first = fingerprint(ref)
    assert fingerprint(ref) == first
    path = folder / "config.json"
    written = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode(written | {"transformers_version": "9", "dtype": "float16"}))
    assert fingerprint(ref) == first
    path.write_bytes(msgspec.json.encode(written | {"rms_norm_eps": 1e-3}))
    assert fingerprint(ref) != first
    path.write_bytes(msgspec.json.encode(written))
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    os.utime(weights, ns=(1, 1))
    assert fingerprint(ref) != first
    assert str(folder) not in "".join(note.read_text() for note in (cache / "hashes").iterdir())


def test_fingerprint_of_a_gguf_and_of_a_model_in_memory(gguf: Path) -> None:
    assert len(fingerprint(resolve(str(gguf)))) == 64
    model = tiny_model()
    first = fingerprint_model(model)
    assert fingerprint_model(tiny_model()) == first
    with torch.no_grad():
        model.model.norm.weight[0] += 1
    assert fingerprint_model(model) != first
    assert fingerprint_model(tiny_model().to(torch.bfloat16)) != first


def test_importing_needs_no_torch() -> None:
    code = (
        "import sys, draftboard.models, draftboard.templates, draftboard.files\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
