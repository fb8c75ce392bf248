"""The key/value cache: a committed prefix and, behind it, the rows of the forward that is being judged.

One block of keys and one of values hold all layers, so that moving accepted rows into place is two copies and not two
per layer. Writes are in place; a forward sees views up to its own last row; the prefix is never copied.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from draftboard.methods.errors import MethodError

__all__ = ["TreeCache"]

_GRAIN = 256
"""Capacity grows in steps of this many rows."""


class _Layer(CacheLayerMixin):  # type: ignore[misc]
    """One layer's window into the shared blocks; `transformers` calls `update` in each attention."""

    is_compileable = False
    is_croppable = False

    def __init__(self, store: "TreeCache", index: int) -> None:
        super().__init__()
        self.store = store
        self.index = index

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Reserve the blocks on the first write of the first layer; check later layers against them."""
        self.store.allocate(key_states, value_states)
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write behind the committed prefix and return everything up to the last new row."""
        store = self.store
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start = store.length
        end = start + key_states.shape[2]
        keys, values = store.key_layers[self.index], store.value_layers[self.index]
        keys[:, :, start:end] = key_states
        values[:, :, start:end] = value_states
        return keys[:, :, :end], values[:, :, :end]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return (rows a query block sees, offset of the first)."""
        return self.store.length + query_length, 0

    def get_seq_length(self) -> int:
        """Return the number of committed rows."""
        return self.store.length

    def get_max_length(self) -> int:
        """Return the capacity in rows."""
        return self.store.capacity


class TreeCache(Cache):  # type: ignore[misc]
    """Preallocated cache of batch size 1 for full-attention decoders."""

    def __init__(self, layers: int) -> None:
        super().__init__(layers=[_Layer(self, index) for index in range(layers)])
        self.length = 0
        """Committed rows."""
        self.capacity = 0
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self.key_layers: list[Tensor] = []
        self.value_layers: list[Tensor] = []

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows in all. Committed rows are kept; call it before a generation, not within."""
        if rows <= self.capacity:
            return
        self.capacity = -(-rows // _GRAIN) * _GRAIN
        if self._keys is not None and self._values is not None:
            self._expose(self._grown(self._keys), self._grown(self._values))

    def allocate(self, keys: Tensor, values: Tensor) -> None:
        """Create the blocks for states [1, kv_heads, n, head_dim]. Raises MethodError if layers differ in shape."""
        if self._keys is None or self._values is None:
            layers = len(self.layers)
            self._expose(
                keys.new_empty(layers, keys.shape[1], self.capacity, keys.shape[3]),
                values.new_empty(layers, values.shape[1], self.capacity, values.shape[3]),
            )
        elif keys.shape[1] != self._keys.shape[1] or keys.shape[3] != self._keys.shape[3]:
            raise MethodError("the layers of this model have key/value heads of different shapes; it is not supported")

    def keep(self, path: Sequence[int]) -> None:
        """Commit these rows of the last forward, given in ascending order, and drop the rest."""
        start = self.length
        count = len(path)
        if path[-1] != count - 1 and self._keys is not None and self._values is not None:
            rows = torch.tensor(path, device=self._keys.device).add_(start)
            for block in (self._keys, self._values):
                block[:, :, start : start + count] = block.index_select(2, rows)
        self.length = start + count

    def rewind(self, length: int) -> None:
        """Forget everything behind `length` committed rows."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot rewind {self.length} committed rows to {length}")
        self.length = length

    def nbytes(self) -> int:
        """Return the size of both blocks in bytes."""
        return sum(block.nbytes for block in (self._keys, self._values) if block is not None)

    def _grown(self, block: Tensor) -> Tensor:
        bigger = block.new_empty(*block.shape[:2], self.capacity, block.shape[3])
        bigger[:, :, : self.length] = block[:, :, : self.length]
        return bigger

    def _expose(self, keys: Tensor, values: Tensor) -> None:
        self._keys, self._values = keys, values
        self.key_layers = list(keys.unsqueeze(1).unbind(0))
        self.value_layers = list(values.unsqueeze(1).unbind(0))
