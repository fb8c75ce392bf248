"""Heads of every toolkit load to the same numbers; what is broken or does not fit is refused by name."""

import json
import os
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from draftboard.methods.eagle.checkpoint import load_head, read_config
from draftboard.methods.eagle.config import HeadConfig, TargetShape
from draftboard.methods.eagle.heads import Head
from draftboard.methods.errors import MethodError

from made_heads import (
    IDS,
    TARGET,
    head_config,
    layer_settings,
    made_head,
    outputs_of,
    renamed,
    speculators_settings,
    tensors_of,
    write_head,
)

FIRST = head_config("eagle", fc_bias=True)
THIRD = head_config("eagle3")
NESTED = {"midlayer": "layers.0"}


def load(folder: Path, said: list[str] | None = None, **options: Any) -> Head:
    notices: list[str] = []
    head = load_head(folder, **{"target": TARGET, "dtype": torch.float32, "say": notices.append, **options})
    if said is None:
        assert notices == []
    else:
        said += notices
    return head


def official(config: HeadConfig, **changes: Any) -> dict[str, Any]:
    extra: dict[str, Any] = {} if config.kind == "eagle" else {"draft_vocab_size": config.draft_vocab}
    if config.kind == "eagle3":
        extra["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": [tap - 1 for tap in config.taps]}
    return {**layer_settings(config), **extra, **changes}


def same(head: Head, other: Head) -> None:
    for mine, theirs in zip(outputs_of(head), outputs_of(other), strict=True):
        assert torch.equal(mine, theirs)
    assert torch.equal(head.target_ids, other.target_ids)
    assert head.config == other.config


def third_files(tensors: dict[str, Tensor], config: HeadConfig) -> dict[str, tuple[dict[str, Tensor], dict[str, Any]]]:
    flags = {name: True for name in ("norm_before_residual", "norm_before_fc", "fc_norm") if getattr(config, name)}
    flat = official(config, architectures=["LlamaForCausalLMEagle3"], **flags)
    embedding = {"embed_tokens.weight": torch.zeros(TARGET.vocab, TARGET.hidden)}
    nested = speculators_settings(config, eagle_aux_hidden_state_layer_ids=list(config.taps), **flags)
    top = {**layer_settings(config), **flags, "eagle_aux_hidden_state_layer_ids": list(config.taps)}
    vllm = {f"model.{name}" if name != "lm_head.weight" else name: value for name, value in tensors.items()}
    without = {name: value for name, value in tensors.items() if name != "t2d"}
    return {
        "official": (tensors, flat),
        "specforge": (tensors, {**flat, "norm_output": True, "rope_scaling": None, "torch_dtype": "bfloat16"}),
        "speculators": ({**renamed(without, **NESTED), **embedding}, nested),
        "vllm": (renamed(vllm), top),
    }


@pytest.mark.parametrize(
    "changes",
    [{}, {"norm_before_residual": True}, {"norm_before_fc": True}, {"qkv_bias": True}, {"qk_norm": True}],
)
def test_eagle3_of_every_toolkit_gives_identical_outputs(changes: dict[str, bool], tmp_path: Path) -> None:
    config = head_config("eagle3", window=128, **changes)
    head = made_head(config)
    for toolkit, (tensors, settings) in third_files(tensors_of(head), config).items():
        for file in ("model.safetensors", "pytorch_model.bin"):
            folder = write_head(tmp_path / f"{toolkit}-{file}", tensors, settings, file=file)
            same(load(folder), head)


def test_eagle31_recycles_what_is_behind_the_norm(tmp_path: Path) -> None:
    config = head_config("eagle3", window=128, fc_norm=True, norm_output=True)
    head = made_head(config)
    flat = official(config, fc_norm=True, norm_output=True)
    same(load(write_head(tmp_path / "flat", tensors_of(head), flat)), head)
    top = {"fc_norm": True, "norm_output": True, "eagle_aux_hidden_state_layer_ids": list(config.taps)}
    nested = speculators_settings(config, **top)
    same(load(write_head(tmp_path / "nested", renamed(tensors_of(head), **NESTED), nested)), head)


@pytest.mark.parametrize("changes", [{}, {"fc_bias": False}, {"qkv_bias": True}, {"input_norms": True}])
def test_eagle1_of_every_toolkit_gives_identical_outputs(changes: dict[str, bool], tmp_path: Path) -> None:
    config = head_config("eagle", **{"fc_bias": True, "window": 128, **changes})
    head = made_head(config)
    tensors = tensors_of(head)
    flag = {"add_para_norm": True} if config.input_norms else {}
    hass = {"embedding_layernorm": "embedding_layernorm", "hidden_states_layernorm": "pre_lm_head_layernorm"}
    nested = renamed(tensors, fc="fusion_fc", layers="layers", **hass)
    nested = {name.replace("layers.0.", "transformer."): value for name, value in nested.items()}
    enorm = renamed(tensors, embedding_layernorm="enorm", hidden_states_layernorm="hnorm")
    rotary = {"layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3)}
    embedding = {"embed_tokens.weight": torch.zeros(TARGET.vocab, TARGET.hidden)}
    files = {
        "official": ({**tensors, **embedding}, official(config, **flag)),
        "speculators": (nested, speculators_settings(config, fusion_bias=config.fc_bias)),
        "vllm": ({f"model.{name}": value for name, value in {**enorm, **rotary}.items()}, official(config, **flag)),
    }
    for toolkit, (found, settings) in files.items():
        same(load(write_head(tmp_path / toolkit, found, settings, file="pytorch_model.bin")), head)


def test_parameters_that_were_saved_with_their_gradients_load(tmp_path: Path) -> None:
    head = made_head(FIRST)
    parameters = {name: torch.nn.Parameter(value) for name, value in tensors_of(head).items()}
    loaded = load(write_head(tmp_path / "head", parameters, official(FIRST), file="pytorch_model.bin"))
    assert torch.equal(outputs_of(loaded)[1], outputs_of(head)[1])
    assert not any(parameter.requires_grad for parameter in loaded.parameters())


def test_shards_of_both_formats_load(tmp_path: Path) -> None:
    head = made_head(THIRD)
    tensors = tensors_of(head)
    half = len(tensors) // 2
    for suffix, index in ((".safetensors", "model.safetensors"), (".bin", "pytorch_model.bin")):
        folder = tmp_path / suffix[1:]
        parts = dict(list(tensors.items())[:half]), dict(list(tensors.items())[half:])
        weight_map = {}
        for number, part in enumerate(parts):
            write_head(folder, part, official(THIRD), file=f"part-{number}{suffix}")
            weight_map |= dict.fromkeys(part, f"part-{number}{suffix}")
        (folder / f"{index}.index.json").write_text(json.dumps({"weight_map": weight_map}))
        assert torch.equal(outputs_of(load(folder))[1], outputs_of(head)[1])
        (folder / f"part-1{suffix}").unlink()
        with pytest.raises(MethodError, match=f"lacks part-1{suffix}"):
            load(folder)


def test_a_reduced_vocabulary_of_an_eagle1_head(tmp_path: Path) -> None:
    tensors = {**tensors_of(made_head(FIRST)), "token_map": IDS.flip(0)}
    head = load(write_head(tmp_path / "head", tensors, official(FIRST)))
    assert torch.equal(head.target_ids, IDS)
    assert outputs_of(head)[1].shape[-1] == len(IDS)


def test_an_eagle3_head_of_another_width_brings_its_embedding(tmp_path: Path) -> None:
    config = head_config("eagle3", hidden=24, own_embedding=True)
    head = made_head(config)
    settings = official(config, target_hidden_size=TARGET.hidden)
    same(load(write_head(tmp_path / "head", tensors_of(head), {**settings, "max_position_embeddings": 2048})), head)
    lacking = {name: value for name, value in tensors_of(head).items() if name != "embed_tokens.weight"}
    with pytest.raises(MethodError, match=r"has no embed_tokens\.weight, and its width 24 is not the target's 16"):
        load(write_head(tmp_path / "lacking", lacking, settings))


def test_an_eagle3_file_without_lm_head(tmp_path: Path) -> None:
    lacking = {name: value for name, value in tensors_of(made_head(THIRD)).items() if name != "lm_head.weight"}
    with pytest.raises(MethodError, match=r"has no lm_head\.weight, and with 10 of 40 ids the target's"):
        load(write_head(tmp_path / "reduced", lacking, official(THIRD)))
    whole = head_config("eagle3", draft_vocab=TARGET.vocab, own_lm_head=False)
    head = made_head(whole)
    loaded = load(write_head(tmp_path / "whole", tensors_of(head), official(whole, max_position_embeddings=2048)))
    same(loaded, head)
    assert not loaded.config.own_lm_head


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (TargetShape(name="t", hidden=32, vocab=40, layers=8), "width 16 and 40 ids, where t has width 32 and 40 ids"),
        (TargetShape(name="t", hidden=16, vocab=41, layers=8), "width 16 and 40 ids, where t has width 16 and 41 ids"),
        (TargetShape(name="t", hidden=16, vocab=40, layers=4), r"reads states \[2, 4, 5\] and t has layers 1 to 4"),
        (TargetShape(name="t", hidden=16, vocab=40, layers=5), "behind the last layer and before the final norm"),
    ],
)
def test_a_head_for_another_target(target: TargetShape, said: str, tmp_path: Path) -> None:
    folder = write_head(tmp_path / "head", tensors_of(made_head(THIRD)), official(THIRD))
    with pytest.raises(MethodError, match=said):
        load(folder, target=target)
    if "layer" not in said:
        folder = write_head(tmp_path / "first", tensors_of(made_head(FIRST)), official(FIRST))
        with pytest.raises(MethodError, match=f"is a head for another target: {said}"):
            load(folder, target=target)


@pytest.mark.parametrize(
    ("d2t", "said"),
    [
        (IDS, "it looks like a table of target ids"),
        (torch.zeros(10, dtype=torch.int64) - torch.arange(10) * 2, "beyond the target's 40"),
        (torch.tensor([0, 1, 1, 4, 0, 7, 14, 18, 25, 30]), "ids that do not ascend"),
        (torch.tensor([0, 1, 1, 4, 7, 7, 14, 18, 25, 31]), "1 ids beyond the target's 40"),
        (torch.tensor([0, 1, 1, 4]), r"d2t has shape \[4\]"),
        (torch.tensor([0, 1, 1, 4, 7, 7, 14, 18, 25, 30.0]), "d2t holds float32 values"),
        (torch.tensor([0, 1, 1, 4, 7, 7, 14, 18, 25, 29]), "t2d marks 10 ids, which are not the 10 of d2t"),
    ],
)
def test_a_wrong_d2t(d2t: Tensor, said: str, tmp_path: Path) -> None:
    tensors = {**tensors_of(made_head(THIRD)), "d2t": d2t}
    with pytest.raises(MethodError, match=said) as told:
        load(write_head(tmp_path / "head", tensors, official(THIRD)))
    assert str(tmp_path / "head") in str(told.value)


def test_either_vocabulary_table_is_enough_and_none_is_not(tmp_path: Path) -> None:
    tensors = tensors_of(made_head(THIRD))
    for name in ("d2t", "t2d"):
        only = {key: value for key, value in tensors.items() if key not in ("d2t", "t2d") or key == name}
        assert torch.equal(load(write_head(tmp_path / name, only, official(THIRD))).target_ids, IDS)
    neither = {key: value for key, value in tensors.items() if key not in ("d2t", "t2d")}
    with pytest.raises(MethodError, match="10 of 40 ids and has neither d2t nor t2d"):
        load(write_head(tmp_path / "neither", neither, official(THIRD)))


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("keep", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_file(file: str, keep: float, tmp_path: Path) -> None:
    folder = write_head(tmp_path / "head", tensors_of(made_head(THIRD)), official(THIRD), file=file)
    data = (folder / file).read_bytes()
    (folder / file).write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(MethodError, match=f"{file} cannot be read: .*damaged or was not copied whole"):
        load(folder)


def test_a_truncated_file_of_the_older_format(tmp_path: Path) -> None:
    folder = write_head(tmp_path / "head", {}, official(FIRST), file="pytorch_model.bin")
    path = folder / "pytorch_model.bin"
    torch.save(tensors_of(made_head(FIRST)), path, _use_new_zipfile_serialization=False)
    same_outputs = outputs_of(load(folder))[1]
    assert torch.equal(same_outputs, outputs_of(made_head(FIRST))[1])
    data = path.read_bytes()
    for share in (0.05, 0.3, 0.7, 0.98):
        path.write_bytes(data[: int(len(data) * share)])
        with pytest.raises(MethodError, match=r"pytorch_model\.bin"):
            load(folder)


class _Touch:
    """A pickle that makes a file when it is executed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("plain", [True, False])
def test_a_pickle_that_is_not_tensors_is_not_executed(plain: bool, tmp_path: Path) -> None:
    folder = write_head(tmp_path / "head", {}, official(FIRST), file="pytorch_model.bin")
    content = {"fc.weight": _Touch(tmp_path / "executed")}
    path = folder / "pytorch_model.bin"
    if plain:
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path)
    with pytest.raises(MethodError, match=r"something else than plain tensors.*it is not read") as told:
        load(folder)
    assert "weights_only" not in str(told.value)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"state_dict": {"fc.weight": torch.zeros(2)}, "epoch": 3}, "more than named tensors ('state_dict' is a dict)"),
        ([torch.zeros(2)], "holds a list where named tensors are expected"),
        ({}, "holds nothing where named tensors are expected"),
    ],
)
def test_a_bin_file_of_other_things(content: object, said: str, tmp_path: Path) -> None:
    folder = write_head(tmp_path / "head", {}, official(FIRST), file="pytorch_model.bin")
    torch.save(content, folder / "pytorch_model.bin")
    with pytest.raises(MethodError, match=re.escape(said)):
        load(folder)


def test_values_beyond_the_dtype_are_refused_with_the_dtypes_that_hold_them(tmp_path: Path) -> None:
    tensors = tensors_of(made_head(THIRD))
    tensors["midlayer.mlp.up_proj.weight"][3, 4] = -1.2e5
    folder = write_head(tmp_path / "head", tensors, official(THIRD))
    with pytest.raises(MethodError, match=r"range of float16 .*up_proj.weight \(up to 1.2e\+05\).*--dtype bfloat16"):
        load(folder, dtype=torch.float16)
    assert torch.isfinite(next(load(folder, dtype=torch.bfloat16).parameters())).all()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_no_numbers(value: float, tmp_path: Path) -> None:
    tensors = tensors_of(made_head(FIRST))
    tensors["fc.weight"][0, :3] = value
    folder = write_head(tmp_path / "head", tensors, official(FIRST))
    with pytest.raises(MethodError, match=r"no finite numbers: fc.weight \(3 of 512\)"):
        load(folder)


def test_quantised_and_misshapen_tensors(tmp_path: Path) -> None:
    tensors = tensors_of(made_head(THIRD))
    tensors["midlayer.mlp.up_proj.weight"] = torch.zeros(24, 16, dtype=torch.int8)
    tensors["norm.weight"] = torch.zeros(17)
    folder = write_head(tmp_path / "head", tensors, official(THIRD))
    with pytest.raises(MethodError) as told:
        load(folder)
    assert "midlayer.mlp.up_proj.weight is int8: a quantised head" in str(told.value)
    assert "norm.weight is [17] and must be [16]" in str(told.value)


def test_an_embedding_that_is_not_the_targets_is_not_used(tmp_path: Path) -> None:
    theirs = torch.randn(TARGET.vocab, TARGET.hidden, generator=torch.Generator().manual_seed(1))
    said: list[str] = []
    for name, own in (("same", theirs.to(torch.bfloat16)), ("random", theirs.flip(0)), ("small", theirs[:, :8])):
        tensors = {**tensors_of(made_head(THIRD)), "embed_tokens.weight": own.contiguous()}
        head = load(write_head(tmp_path / name, tensors, official(THIRD)), said, embedding=theirs)
        assert "embed_tokens.weight" not in head.state_dict()
    assert [Path(text.split(":")[0]).name for text in said] == ["random", "small"]
    assert "is not the target's (relative distance" in said[0]


def test_the_dtype_is_cast_for_floats_alone_and_kept_on_request(tmp_path: Path) -> None:
    tensors = {k: v.bfloat16() if v.is_floating_point() else v for k, v in tensors_of(made_head(THIRD)).items()}
    folder = write_head(tmp_path / "head", tensors, official(THIRD))
    assert load(folder, dtype=None).dtype == torch.bfloat16
    head = load(folder, dtype=torch.float16)
    assert head.dtype == torch.float16
    assert torch.equal(head.target_ids, IDS)
    assert head.rotary_emb.inv_freq.dtype == torch.float32
    assert not head.rotary_emb.inv_freq.is_meta


def test_folders_without_a_part(tmp_path: Path) -> None:
    folder = tmp_path / "head"
    with pytest.raises(MethodError, match="is no folder"):
        load(folder)
    folder.mkdir()
    with pytest.raises(MethodError, match=r"has no config.json"):
        load(folder)
    write_head(folder, tensors_of(made_head(FIRST)), official(FIRST))
    (folder / "model.safetensors").unlink()
    with pytest.raises(MethodError, match="holds no weights"):
        load(folder)
    for text, said in (
        ("{,", "is not readable JSON"),
        ("[1]", "holds a list where an object is expected"),
        ("\ud800", ""),
    ):
        (folder / "config.json").write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(MethodError, match=f"config.json {said}"):
            load(folder)


@pytest.mark.parametrize("scaling", [{"rope_type": "bogus"}, {"type": "linear"}, {"rope_type": "yarn", "factor": "x"}])
def test_a_scaling_that_transformers_does_not_know(scaling: dict[str, Any], tmp_path: Path) -> None:
    folder = write_head(tmp_path / "head", tensors_of(made_head(FIRST)), official(FIRST, rope_scaling=scaling))
    with pytest.raises(MethodError, match="does not know such a RoPE scaling"):
        load(folder)


@pytest.mark.parametrize("settings", [{"hidden_act": "swoosh"}, {"num_attention_heads": 3, "num_key_value_heads": 2}])
def test_messages_name_the_head(settings: dict[str, Any], tmp_path: Path) -> None:
    folder = write_head(tmp_path / "head", tensors_of(made_head(FIRST)), official(FIRST, **settings))
    with pytest.raises(MethodError) as told:
        load(folder)
    assert str(told.value).startswith(str(folder))


def test_a_pointer_of_git_lfs_is_told(tmp_path: Path) -> None:
    folder = write_head(tmp_path / "head", tensors_of(made_head(FIRST)), official(FIRST))
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(MethodError, match="git lfs pull"):
        load(folder)


def test_an_index_does_not_lead_out_of_its_folder(tmp_path: Path) -> None:
    folder = write_head(tmp_path / "head", tensors_of(made_head(FIRST)), official(FIRST))
    (folder / "model.safetensors").rename(tmp_path / "other.safetensors")
    index = {"weight_map": {"fc.weight": "../other.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(MethodError, match="outside its folder"):
        load(folder)


def test_reading_the_configuration_reads_no_values(tmp_path: Path) -> None:
    tensors = tensors_of(made_head(THIRD))
    tensors["fc.weight"][:] = float("nan")
    folder = write_head(tmp_path / "head", tensors, official(THIRD, max_position_embeddings=2048))
    assert read_config(folder, target=TARGET, say=lambda text: None) == THIRD
