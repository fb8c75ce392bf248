"""What a head's tensors are called, in every toolkit's files, and which of them a head of a kind has to have.

Works on names alone. The official names are those of `Head.state_dict()`; the other toolkits rename a few of them,
nest all of them, or add tensors that nothing needs (native-methods 1.2, 1.5 and 1.6).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from draftboard.methods.eagle.config import HeadConfig
from draftboard.methods.errors import MethodError

__all__ = [
    "EMBEDDING",
    "LM_HEAD",
    "MAPS",
    "TARGET_LM_HEAD",
    "Kind",
    "Naming",
    "check_names",
    "name_tensors",
    "parameter_names",
]

Kind = Literal["eagle", "eagle3"]

EMBEDDING = "embed_tokens.weight"
LM_HEAD = "lm_head.weight"
TARGET_LM_HEAD = "target_lm_head"
"""In `config.json`: the head drafts by the target's output layer, by those of its rows that its vocabulary names."""
MAPS = ("d2t", "t2d", "token_map")
"""Vocabulary tables: EAGLE-3's offsets and marks, and the ids that vLLM's EAGLE-1 files may be reduced to."""

_NESTING = re.compile(r"^(?:module\.|draft_model\.|model\.)+")
_RENAMED = (
    (re.compile(r"^(?:fusion_fc|projection_layer)\."), "fc."),
    (re.compile(r"^transformer\."), "layers.0."),
    (re.compile(r"^(?:embed_layernorm|enorm)\."), "embedding_layernorm."),
    (re.compile(r"^(?:pre_lm_head_layernorm|hnorm)\."), "hidden_states_layernorm."),
    (re.compile(r"^draft_id_to_target_id$"), "d2t"),
)
_UNNEEDED = re.compile(r"(?:^|\.)rotary_emb\.(?:inv_freq|cos_cached|sin_cached)$|^verifier_(?:lm_head|norm)\.weight$")
"""Rotary tables, which a head makes itself, and copies of the target's own last layers."""
_QUANTISED = re.compile(r"\.(?:qweight|qzeros|g_idx|weight_scale(?:_inv)?|weight_packed|scales|absmax|quant_map)$")
_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The tensors of a file under their official names."""

    kind: Kind
    found: dict[str, str]
    """Official name to the file's name: parameters, `embed_tokens.weight` and `lm_head.weight` where they are there,
    vocabulary tables, and everything that no head has."""
    dropped: tuple[str, ...]
    """The file's names of what nothing needs."""

    @property
    def layers(self) -> int:
        """How many decoder layers the file has; at least 1."""
        numbers = [int(found[1]) for name in self.found if (found := re.match(r"layers\.(\d+)\.", name))]
        return 1 + max(numbers, default=0)

    def has(self, name: str) -> bool:
        """Return whether the file holds the tensor of that official name."""
        return name in self.found


def name_tensors(names: Iterable[str]) -> Naming:
    """Tell the kind of head from a file's tensor names and rename them. Raises MethodError for two of one meaning."""
    renamed: list[tuple[str, str]] = []
    dropped: list[str] = []
    for name in sorted(names):
        official = _NESTING.sub("", name)
        if _UNNEEDED.search(official):
            dropped.append(name)
            continue
        for pattern, replacement in _RENAMED:
            official = pattern.sub(replacement, official)
        renamed.append((official, name))
    third = any(name.startswith("midlayer.") or name.endswith(".hidden_norm.weight") for name, _ in renamed)
    found: dict[str, str] = {}
    for plain, name in renamed:
        official = re.sub(r"^layers\.0\.", "midlayer.", plain) if third else plain
        if official in found:
            raise MethodError(f"{found[official]} and {name} are both {official}; a head has one")
        found[official] = name
    return Naming(kind="eagle3" if third else "eagle", found=found, dropped=tuple(dropped))


def parameter_names(config: HeadConfig) -> tuple[str, ...]:
    """Return the official names of the tensors that a head of this configuration is made of."""
    if config.kind == "eagle":
        names = ["fc.weight", *(["fc.bias"] if config.fc_bias else [])]
        if config.input_norms:
            names += ["embedding_layernorm.weight", "hidden_states_layernorm.weight"]
        for index in range(config.layers):
            names += _layer(f"layers.{index}.", config, ["input_layernorm"] if index else [])
        return tuple(names)
    names = ["fc.weight", *(["fc.bias"] if config.fc_bias else []), "norm.weight"]
    if config.norm_before_fc:
        names.append("input_norm.weight")
    if config.fc_norm:
        names += [f"fc_norm.{index}.weight" for index in range(len(config.taps))]
    names += _layer("midlayer.", config, ["hidden_norm", "input_layernorm"])
    names += [*([LM_HEAD] if config.own_lm_head else []), *([EMBEDDING] if config.own_embedding else [])]
    return tuple(names)


def _layer(prefix: str, config: HeadConfig, norms: list[str]) -> list[str]:
    names = [f"self_attn.{part}_proj.weight" for part in "qkvo"]
    names += [f"self_attn.{part}_proj.bias" for part in "qkv" if config.qkv_bias]
    names += [f"self_attn.{part}_norm.weight" for part in "qk" if config.qk_norm]
    names += [f"mlp.{part}_proj.weight" for part in ("gate", "up", "down")]
    names += [f"{norm}.weight" for norm in (*norms, "post_attention_layernorm")]
    return [prefix + name for name in names]


def check_names(naming: Naming, config: HeadConfig, where: str) -> None:
    """Raise MethodError unless the file has what the head is made of and nothing that it is not; all at once.

    An embedding may be there for every kind, a reduced vocabulary's tables too.
    """
    wanted = parameter_names(config)
    allowed = {*wanted, EMBEDDING, *(MAPS[:2] if config.kind == "eagle3" else MAPS[2:])}
    missing = [name for name in wanted if name not in naming.found]
    strange = [_told(official, name) for official, name in naming.found.items() if official not in allowed]
    if not missing and not strange:
        return
    label = "EAGLE-1" if config.kind == "eagle" else "EAGLE-3"
    told = [f"is not a head that draftboard knows as {label}"]
    told += [f"missing: {_listed(missing)}"] if missing else []
    told += [f"unexpected: {_listed(strange)}"] if strange else []
    raise MethodError(f"{where} {'; '.join(told)}{_reason(missing, strange, naming)}")


def _told(official: str, name: str) -> str:
    return name if name == official else f"{name} ({official})"


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(sorted(names)[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"


def _reason(missing: list[str], strange: list[str], naming: Naming) -> str:
    """Return what the likeliest cause is, where the names give it away."""
    if any(_QUANTISED.search(name) for name in naming.found):
        return ". The weights are quantised; use the unquantised head"
    if "layers.0.input_layernorm.weight" in naming.found:
        return (
            ". Its first layer has an input norm, which EAGLE-1 has not: it is a plain decoder layer, or a head that "
            "speculators trained with layernorms = true, which is another architecture"
        )
    if len(missing) > _SHOWN or "fc.weight" in missing:
        return ". It looks like a whole model or an adapter and not like a head"
    if any(name.startswith("layers.1.") for name in naming.found) and naming.kind == "eagle3":
        return ". An EAGLE-3 head has one layer"
    return ""
