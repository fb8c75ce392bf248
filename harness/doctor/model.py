"""The part that needs a model: its memory, its cost curve and the A/A measurement. Imports torch when it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from draftboard import models
from draftboard.doctor.noise import Times, Timing, measure_pairs
from draftboard.doctor.sign import Sign, fine, missing

if TYPE_CHECKING:
    import torch

    from draftboard.methods.engine.cost import CostCurve
    from draftboard.methods.engine.model import LanguageModel

__all__ = ["Pairs", "Size", "measure_noise", "memory_sign", "model_size", "size_of"]

ROUNDS = 4
"""Even, so that either arm is first as often as the other."""
PROMPT = 16
_TURN = 2_048
"""Tokens of a turn that the cache is counted for."""
_LEAST_S = 0.5
"""A generation this long is well above what clocks and schedulers do to it."""
_OVERHEAD = 1.2
"""Working buffers beside weights and cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Bytes that a model needs."""

    weight_bytes: int
    cache_bytes: int
    """Keys and values of one turn of 2,048 tokens, or of the model's window where that is shorter."""

    @property
    def need_bytes(self) -> int:
        """Weights, cache, and a fifth on top for working buffers."""
        return int(_OVERHEAD * (self.weight_bytes + self.cache_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """An A/A measurement: how it was made, and its times by round and sample."""

    rounds: int
    samples: int
    tokens: int
    """Written by each generation."""
    wall: Times
    cpu: Times


def model_size(ref: models.ModelRef, *, dtype: torch.dtype) -> Size:
    """Count a model's bytes from its configuration alone: it is built without memory for its weights."""
    import torch
    from transformers import AutoModelForCausalLM

    config = models.load_config(ref)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    text = config.get_text_config()
    heads = int(getattr(text, "num_key_value_heads", None) or text.num_attention_heads)
    width = int(getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads)
    turn = min(_TURN, int(getattr(text, "max_position_embeddings", 0) or _TURN))
    return size_of(
        sum(parameter.nbytes for parameter in model.parameters()),
        layers=int(text.num_hidden_layers),
        heads=heads,
        width=width,
        turn=turn,
        element_bytes=dtype.itemsize,
    )


def size_of(weight_bytes: int, *, layers: int, heads: int, width: int, turn: int, element_bytes: int) -> Size:
    """Return a model's size from its shape: a key and a value of `width` for every head, layer and token."""
    return Size(weight_bytes=weight_bytes, cache_bytes=2 * layers * heads * width * turn * element_bytes)


def memory_sign(size: Size, available_bytes: int | None, *, place: str) -> Sign:
    """Judge what a model needs against what is free; `place` names the memory."""
    if available_bytes is None:
        return missing("memory", "machine", f"free {place} is not told")
    told = f"the model needs about {_gib(size.need_bytes)}, {_gib(available_bytes)} of {place} are free"
    share = size.need_bytes / max(1, available_bytes)
    if share <= 0.8:
        return fine("memory", "machine", told, size.need_bytes, "bytes")
    return Sign(
        name="memory",
        group="machine",
        state="unreliable" if share > 1 else "note",
        told=told,
        value=size.need_bytes,
        unit="bytes",
        advice=f"Free {place}, or choose a smaller model or dtype.",
    )


def measure_noise(target: LanguageModel, curve: CostCurve, *, seconds: float, say: Callable[[str], None]) -> Pairs:
    """Let the baseline decode the same prompt in pairs for about `seconds`, in at least 4 rounds of 3 pairs.

    A generation is as many tokens as take half a second, 16 to 256; fewer, at least 4, where the model is so slow that
    the pairs would not fit into the time.
    """
    from draftboard.methods.engine import Limits, RootOnly, decode

    prompt = [1] * max(1, min(PROMPT, target.window // 4))
    room = max(1, target.window - len(prompt))
    tokens, samples = _amount(curve, seconds, prompt=len(prompt), room=room)
    limits = Limits(max_new_tokens=tokens)

    def work() -> Timing:
        made = decode(target, RootOnly(), prompt, limits=limits)
        return Timing(made.end_ns / 1e9, made.cpu_ns / 1e9)

    work()
    wall, cpu = measure_pairs(work, rounds=ROUNDS, samples=samples, say=say)
    return Pairs(rounds=ROUNDS, samples=samples, tokens=tokens, wall=wall, cpu=cpu)


def _amount(curve: CostCurve, seconds: float, *, prompt: int, room: int) -> tuple[int, int]:
    """Return (tokens of a generation, pairs of a round)."""
    step = curve.one_row_s
    prefill = step * curve.at(prompt)
    most = seconds / (2 * ROUNDS * 3)
    tokens = max(16, min(256, ceil(_LEAST_S / step)))
    if prefill + step * tokens > most:
        tokens = max(4, int((most - prefill) / step))
    tokens = min(tokens, room)
    pairs = int(seconds / (2 * ROUNDS * (prefill + step * tokens)))
    return tokens, max(3, min(12, pairs))


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
