"""Bypassing decoder layers, or their attention or MLP halves, for one forward.

A bypassed half adds nothing to the residual stream; a bypassed layer hands its input on. The weights stay as they
are. Hooks are installed on first use and look at one shared state, so that dense forwards cost nothing before that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from draftboard.methods.errors import MethodError

__all__ = ["DENSE", "GateSwitch", "Gates"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Indices of the decoder layers whose parts are bypassed."""

    layers: frozenset[int] = frozenset()
    attention: frozenset[int] = frozenset()
    mlp: frozenset[int] = frozenset()

    @property
    def dense(self) -> bool:
        """Whether nothing is bypassed."""
        return not (self.layers or self.attention or self.mlp)


DENSE = Gates()


class GateSwitch:
    """Applies `Gates` to one model. `layers` is the model's list of decoder layers."""

    def __init__(self, layers: nn.ModuleList) -> None:
        self._active = DENSE
        self._count = len(layers)
        for index, layer in enumerate(layers):
            attention, mlp = getattr(layer, "self_attn", None), getattr(layer, "mlp", None)
            if attention is None or mlp is None:
                raise MethodError(
                    f"{type(layer).__name__} has no self_attn and mlp: its parts cannot be bypassed one by one"
                )
            self._wrap(layer, index, "layers")
            self._wrap(attention, index, "attention")
            self._wrap(mlp, index, "mlp")

    @contextmanager
    def set(self, gates: Gates) -> Iterator[None]:
        """Bypass what `gates` names while the block runs. Raises MethodError for a layer that does not exist."""
        for index in gates.layers | gates.attention | gates.mlp:
            if not 0 <= index < self._count:
                raise MethodError(f"there is no layer {index}: the model has layers 0 to {self._count - 1}")
        before, self._active = self._active, gates
        try:
            yield
        finally:
            self._active = before

    def _wrap(self, module: nn.Module, index: int, part: str) -> None:
        original = module.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            if index not in getattr(self._active, part):
                return original(*args, **kwargs)
            states: torch.Tensor = args[0] if args else kwargs["hidden_states"]
            if part == "layers":
                return states
            zeros = torch.zeros_like(states)
            return (zeros, None) if part == "attention" else zeros

        module.forward = forward
