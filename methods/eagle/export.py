"""Writing heads: our artifact, whose files are official ones, and official files alone.

The official naming is what all toolkits read, so that a head trained here goes anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from draftboard.methods.artifact import check_free, write_artifact
from draftboard.methods.eagle.checkpoint import KIND, VOCABULARY, load_head
from draftboard.methods.eagle.config import HeadConfig, TargetShape
from draftboard.methods.eagle.heads import Eagle3Head, Head, make_head
from draftboard.methods.eagle.naming import TARGET_LM_HEAD
from draftboard.methods.eagle.vocabulary import kept, to_offsets
from draftboard.methods.errors import MethodError

__all__ = ["export_head", "official_settings", "save_head"]


def save_head(head: Head, folder: Path, *, record: Mapping[str, Any], counts: Tensor | None = None) -> None:
    """Make the artifact: official files, `artifact.json` with `record`, and the vocabulary where there is more to say.

    `record` may name `target`, `target_fingerprint` and the provenance; kind and method are added. `counts` int64 [V]
    says how often each of the target's ids stood in the training text. Raises MethodError if `folder` exists or cannot
    be written.
    """
    method = "eagle" if head.config.kind == "eagle" else "eagle3"

    def fill(place: Path) -> None:
        from safetensors.torch import save_file

        _write(head, place)
        extra: dict[str, Tensor] = {}
        if counts is not None:
            extra["token_counts"] = counts.detach().long().cpu().contiguous()
        if head.config.kind == "eagle" and len(head.target_ids) < head.config.vocab:
            extra["target_ids"] = head.target_ids.detach().cpu().contiguous()
        if extra:
            save_file(extra, place / VOCABULARY)

    write_artifact(folder, {"kind": KIND, "method": method, **record}, fill)


def export_head(folder: Path, out: Path, *, target: TargetShape, lm_head: Tensor | None = None) -> None:
    """Write the head of any toolkit's folder with official names: `config.json` and `model.safetensors`.

    The dtype stays the file's. A reduced vocabulary of an EAGLE-1 head is left out: official files have none. An
    EAGLE-3 head that drafts by rows of its target's output layer gets them as its own, of `lm_head` [V, Ht].
    Raises MethodError as `load_head` does, where `lm_head` is needed, and if `out` exists or cannot be written.
    """
    check_free(out)
    head = load_head(folder, target=target, dtype=None)
    if isinstance(head, Eagle3Head) and not head.config.own_lm_head and len(head.target_ids) < head.config.vocab:
        if lm_head is None:
            raise MethodError(f"{folder} drafts by rows of {target.name}'s output layer, which have to be given")
        head = _with_rows(head, lm_head)
    try:
        out.mkdir(parents=True)
        _write(head, out)
    except OSError as error:
        raise MethodError(f"{out} cannot be written: {error.strerror or error}") from error


def _with_rows(head: Eagle3Head, lm_head: Tensor) -> Head:
    config = replace(head.config, own_lm_head=True)
    made = make_head(config, head.target_ids)
    rows = lm_head.detach().cpu()[head.target_ids]
    made.to(head.dtype).load_state_dict({**head.state_dict(), "lm_head.weight": rows.to(head.dtype)})
    return made


def official_settings(config: HeadConfig, draft_vocab: int) -> dict[str, Any]:
    """Return the head's `config.json`: the fields that official code reads, and the switches of the variants.

    The states that an EAGLE-3 head reads stand there in both ways of counting: as indices into the hidden states, which
    vLLM reads, and in `eagle_config` as layers whose output they are, which SGLang reads.
    """
    third = config.kind == "eagle3"
    settings: dict[str, Any] = {
        "architectures": ["LlamaForCausalLMEagle3" if third else "LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": config.hidden,
        "intermediate_size": config.intermediate,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "hidden_act": config.act,
        "rms_norm_eps": config.eps,
        "rope_theta": config.rope_theta,
        "rope_scaling": config.rope_scaling,
        "max_position_embeddings": config.window,
        "vocab_size": config.vocab,
        "tie_word_embeddings": False,
        "qkv_bias": config.qkv_bias,
    }
    if not third:
        return {**settings, "bias": config.fc_bias, **({"add_para_norm": True} if config.input_norms else {})}
    taps = list(config.taps)
    settings |= {"draft_vocab_size": draft_vocab, "eagle_aux_hidden_state_layer_ids": taps}
    if min(taps) >= 1:
        outputs = [index - 1 for index in taps]
        settings["eagle_config"] = {"use_aux_hidden_state": True, "eagle_aux_hidden_state_layer_ids": outputs}
    if config.hidden != config.target_hidden:
        settings["target_hidden_size"] = config.target_hidden
    if config.norm_output:
        settings["eagle_config"] = {**settings.get("eagle_config", {}), "return_hidden_post_norm": True}
    if not config.own_lm_head:
        settings[TARGET_LM_HEAD] = True
    switches = ("norm_before_residual", "norm_before_fc", "fc_norm")
    return {**settings, **{name: True for name in switches if getattr(config, name)}}


def _write(head: Head, place: Path) -> None:
    from safetensors.torch import save_file

    config, ids = head.config, head.target_ids.detach().cpu()
    tensors = {name: value.detach().cpu().contiguous() for name, value in head.state_dict().items()}
    if config.kind == "eagle3" and len(ids) < config.vocab:
        tensors |= {"d2t": to_offsets(ids), "t2d": kept(ids, config.vocab)}
    save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})
    text = json.dumps(official_settings(config, len(ids)), indent=2, allow_nan=False)
    (place / "config.json").write_text(text + "\n", encoding="utf-8")
