"""Which models the engine can drive, decided from the configuration before anything runs, and told by name."""

import inspect
from typing import Any

from draftboard.methods.errors import MethodError

__all__ = ["attention_for", "check_config", "check_forward"]


def check_config(config: Any) -> None:
    """Raise MethodError if the configuration names something that tree verification cannot do.

    Needed is a decoder-only model whose layers all attend to the whole prefix and keep one key/value row a token.
    """
    name = (getattr(config, "architectures", None) or [type(config).__name__])[0]
    reason = _reason(config)
    if reason:
        raise MethodError(
            f"{name} is not supported: {reason}. draftboard needs a decoder-only model with full attention in every "
            "layer (Llama, Mistral without a window, Qwen2, Qwen3 and the like)"
        )


def _reason(config: Any) -> str:
    if getattr(config, "is_encoder_decoder", False):
        return "it is an encoder–decoder"
    kinds = {kind for kind in getattr(config, "layer_types", None) or () if kind != "full_attention"}
    if kinds:
        return f"it has layers of kind {', '.join(sorted(kinds))}"
    window = getattr(config, "sliding_window", None)
    # Where a kind of model says layer by layer what each attends to, the window of the others means nothing.
    per_layer = hasattr(type(config), "layer_types") and getattr(config, "layer_types", None)
    if window is not None and not per_layer and getattr(config, "use_sliding_window", True):
        return f"it uses sliding-window attention ({window} tokens)"
    if getattr(config, "attention_chunk_size", None):
        return "it uses chunked attention"
    linear = ("ssm_cfg", "state_size", "mamba_d_state", "linear_num_key_heads", "rwkv_version")
    if any(getattr(config, field, None) is not None for field in linear) or "mamba" in str(
        getattr(config, "model_type", "")
    ):
        return "it uses linear attention or a state space, which keeps no key/value row a token"
    if getattr(config, "alibi", False) or getattr(config, "position_embedding_type", "") == "alibi":
        return "its ALiBi positions follow the row order, not the explicit position ids that a tree needs"
    return ""


def check_forward(model: Any) -> None:
    """Raise MethodError if the model's forward lacks an argument that the engine passes."""
    names = inspect.signature(model.forward).parameters
    missing = [arg for arg in ("attention_mask", "position_ids", "cache") if arg not in names]
    if missing:
        raise MethodError(
            f"{type(model).__name__} is not supported: its forward takes no {' and no '.join(missing)}, "
            "which verifying a token tree needs"
        )


def attention_for(config: Any) -> str:
    """Return the attention implementation to load with: sdpa, or eager where scores are soft-capped."""
    return "eager" if getattr(config, "attn_logit_softcapping", None) else "sdpa"
