"""What a head is made of, as plain data: read from any toolkit's files, or chosen for training. Free of torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from draftboard.methods.errors import MethodError

__all__ = ["HeadConfig", "TargetShape", "default_taps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetShape:
    """What a head has to fit."""

    name: str
    hidden: int
    vocab: int
    """Columns of the target's logits."""
    layers: int
    fingerprint: str = ""
    """Of the target's weights; empty where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadConfig:
    """Sizes and switches of a head.

    `kind` "eagle" is the head of EAGLE-1 and EAGLE-2 (native-methods 1.2), "eagle3" that of EAGLE-3 (1.5). The
    switches from `input_norms` on are variants of other toolkits (1.6); all are off in official files.
    """

    kind: Literal["eagle", "eagle3"]
    hidden: int
    """Width of the head, H."""
    target_hidden: int
    """Width of the target, Ht."""
    vocab: int
    """Columns of the target's logits, V."""
    draft_vocab: int
    """Ids that the head can draft, Vd; equal to `vocab` where it is not reduced."""
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    taps: tuple[int, ...]
    """Indices into the target's hidden states that `Head.feature` takes; see `HiddenRequest`."""
    own_lm_head: bool
    own_embedding: bool = False
    eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = field(default=None, hash=False)
    """Further `rope_parameters` of transformers, `rope_type` among them."""
    window: int = 2048
    """Positions that the head was made for."""
    act: str = "silu"
    fc_bias: bool = False
    qkv_bias: bool = False
    qk_norm: bool = False
    layers: int = 1
    input_norms: bool = False
    """RMSNorms on the embedding and on the feature before `fc` (HASS, `add_para_norm`)."""
    norm_before_residual: bool = False
    """The residual stream starts at the normalised feature."""
    norm_before_fc: bool = False
    """One RMSNorm over the concatenated target states."""
    fc_norm: bool = False
    """One RMSNorm for each of the target states."""
    norm_output: bool = False
    """What is recycled is the state behind the final norm."""

    def __post_init__(self) -> None:
        sizes = (self.hidden, self.target_hidden, self.draft_vocab, self.heads, self.kv_heads, self.intermediate)
        if min(*sizes, self.head_dim, self.layers, len(self.taps)) < 1 or self.draft_vocab > self.vocab:
            raise MethodError(f"a head cannot have these sizes: {self}")
        if self.heads % self.kv_heads:
            raise MethodError(f"a head of {self.heads} attention heads cannot share {self.kv_heads} key/value heads")
        if self.kind == "eagle" and (self.hidden != self.target_hidden or self.own_lm_head or len(self.taps) != 1):
            raise MethodError("an EAGLE-1 head has the target's width and output layer, and one state to start from")
        if self.kind == "eagle3" and self.layers != 1:
            raise MethodError(f"an EAGLE-3 head has one layer, not {self.layers}")
        if self.norm_before_fc and self.fc_norm:
            raise MethodError("norm_before_fc and fc_norm exclude each other")


def default_taps(layers: int) -> tuple[int, int, int]:
    """Return the states that EAGLE-3 reads of a target with that many layers: those entering an early, a middle and a
    late layer (native-methods 1.5).

    Raises MethodError below seven layers, where the three would not be distinct: name them then.
    """
    taps = (2, layers // 2, layers - 3)
    if not taps[0] < taps[1] < taps[2]:
        raise MethodError(f"a target of {layers} layers has no default states for EAGLE-3: name three of 1 to {layers}")
    return taps
