"""Many answers of one model at a time: rows of different prompts share each forward, and a row that ends makes room.

The engine of a run decodes one conversation, because that is what is measured. Training text is only wanted fast: the
weights are read once for all rows of a batch. A row keeps its own length, so that no prompt is padded, and a place
that falls free is taken by the next prompt at once.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from draftboard.methods.errors import MethodError
from draftboard.methods.training.row_attention import rows_apart

__all__ = ["BatchWriter", "Row"]

_GRAIN = 128
"""The cache grows in steps of this many positions."""


@dataclass(slots=True, kw_only=True, eq=False)
class Row:
    """One text in the making."""

    key: object
    """Whatever the caller knows it by."""
    prompt: Sequence[int]
    limit: int
    """Most tokens to write, at least 1."""
    temperature: float = 0.0
    draw: Callable[[], float] | None = None
    """Uniform numbers in [0, 1); needed where the temperature is above 0."""
    written: list[int] = field(default_factory=list)
    """The end token included, where one was written."""


class _Layer(CacheLayerMixin):  # type: ignore[misc]
    """One layer's keys and values of all places."""

    is_compileable = False
    is_croppable = False

    def __init__(self, store: "_BatchCache") -> None:
        super().__init__()
        self.store = store
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Create the buffers [places, kv_heads, capacity, head_dim]."""
        shape = (self.store.places, key_states.shape[1], self.store.capacity, key_states.shape[3])
        # Zeros, because what a mask hides is still multiplied: by zero, which leaves NaN as it is.
        self.keys = key_states.new_zeros(shape)
        self.values = value_states.new_zeros(*shape[:3], value_states.shape[3])

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Write a text into its place, or one position of every row, and return what the queries may see."""
        store = self.store
        if getattr(self, "keys", None) is None:
            self.lazy_initialization(key_states, value_states)
        if store.place is not None:
            place, start = store.place, store.start
            end = start + key_states.shape[2]
            self.keys[place, :, start:end] = key_states[0]
            self.values[place, :, start:end] = value_states[0]
            return self.keys[place : place + 1, :, :end], self.values[place : place + 1, :, :end]
        rows = store.lengths.shape[0]
        self.keys[store.rows, :, store.lengths] = key_states[:, :, 0]
        self.values[store.rows, :, store.lengths] = value_states[:, :, 0]
        return self.keys[:rows, :, : store.width], self.values[:rows, :, : store.width]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return (columns, offset of the first); only a text that starts from nothing asks."""
        return query_length, 0

    def get_seq_length(self) -> int:
        """Return 0: positions are given with each forward."""
        return 0

    def get_max_length(self) -> int:
        """Return the capacity in positions."""
        return self.store.capacity


class _BatchCache(Cache):  # type: ignore[misc]
    def __init__(self, layers: int, places: int) -> None:
        self.places = places
        self.capacity = 0
        self.place: int | None = None
        """The one place that is written, from position `start` on; None writes a position of every row."""
        self.start = 0
        self.width = 0
        self.rows = self.lengths = torch.zeros(0, dtype=torch.long)
        super().__init__(layers=[_Layer(self) for _ in range(layers)])

    def reserve(self, positions: int) -> None:
        if positions <= self.capacity:
            return
        self.capacity = -(-positions // _GRAIN) * _GRAIN
        for layer in self.layers:
            for name in ("keys", "values"):
                old = getattr(layer, name, None)
                if old is not None:
                    new = old.new_zeros(*old.shape[:2], self.capacity, old.shape[3])
                    new[:, :, : old.shape[2]] = old
                    setattr(layer, name, new)

    def move(self, source: int, target: int, length: int) -> None:
        for layer in self.layers:
            layer.keys[target, :, :length] = layer.keys[source, :, :length]
            layer.values[target, :, :length] = layer.values[source, :, :length]


class BatchWriter:
    """A causal LM of `transformers` and the rows that it writes at the moment."""

    def __init__(self, model: Any, *, places: int, eos_ids: Collection[int]) -> None:
        """`places`: most rows at a time. `eos_ids`: each of them ends a row."""
        if places < 1:
            raise MethodError("a batch has at least one row")
        self._model = model
        self._device: torch.device = model.device
        self._eos = frozenset(eos_ids)
        self._places = places
        # One place more keeps what all prompts begin with.
        self._cache = _BatchCache(int(model.config.num_hidden_layers), places + 1)
        self._eager = model.config._attn_implementation == "eager"
        self._shared: list[int] = []
        self._rows: list[Row] = []
        self._lengths: list[int] = []

    @property
    def free(self) -> int:
        """Places for further rows."""
        return self._places - len(self.rows)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Rows in the making."""
        return tuple(row for row in self._rows if not self._ended(row))

    def share(self, ids: Sequence[int]) -> None:
        """Read what prompts begin with, such as a system message, once for all of them."""
        self._shared = list(ids)
        if ids:
            self._cache.reserve(len(ids))
            self._read(self._places, self._shared, 0)

    def admit(self, row: Row) -> bool:
        """Read a row's prompt and write its first token. Returns whether the row has ended with that already."""
        self._clear()
        if not self.free:
            raise ValueError("no place is free")
        place = len(self._rows)
        known = min(_alike(self._shared, row.prompt), len(row.prompt) - 1)
        self._cache.reserve(len(row.prompt) + row.limit)
        if known:
            self._cache.move(self._places, place, known)
        self._begin(row, place, known)
        if self._ended(row):
            return True
        self._rows.append(row)
        self._lengths.append(len(row.prompt))
        return False

    def go_on(self, ended: Row, row: Row) -> bool:
        """Let a row follow one that ended in the last step, whose text its prompt mostly repeats; see `admit`."""
        place = self._rows.index(ended)
        known = min(_alike([*ended.prompt, *ended.written[:-1]], row.prompt), len(row.prompt) - 1)
        self._cache.reserve(len(row.prompt) + row.limit)
        self._begin(row, place, known)
        self._rows[place], self._lengths[place] = row, len(row.prompt)
        return self._ended(row)

    def step(self) -> list[Row]:
        """Write one token of every row; return the rows that ended with it."""
        self._clear()
        lengths = torch.tensor(self._lengths, device=self._device)
        ids = torch.tensor([[row.written[-1]] for row in self._rows], device=self._device)
        cache = self._cache
        cache.place = None
        cache.rows = torch.arange(len(self._rows), device=self._device)
        cache.lengths = lengths
        cache.width = max(self._lengths) + 1
        mask = torch.arange(cache.width, device=self._device) <= lengths[:, None]
        with rows_apart(self._model):
            logits = self._forward(ids, self._mask(mask[:, None, None]), lengths[:, None])
        best = logits.argmax(-1).tolist()
        for index, row in enumerate(self._rows):
            self._take(row, logits[index], best[index])
            self._lengths[index] += 1
        return [row for row in self._rows if self._ended(row)]

    def _begin(self, row: Row, place: int, known: int) -> None:
        logits = self._read(place, row.prompt, known)
        self._take(row, logits, 0 if row.temperature else int(logits.argmax()))

    def _read(self, place: int, ids: Sequence[int], known: int) -> Tensor:
        """Read a text into a place that holds its first `known` tokens; return the logits behind it [V]."""
        self._cache.place, self._cache.start = place, known
        rest = torch.tensor([list(ids[known:])], device=self._device)
        if not known:
            return self._forward(rest, None, None)[0]
        at = torch.arange(known, len(ids), device=self._device)
        mask = torch.arange(len(ids), device=self._device) <= at[:, None]
        return self._forward(rest, self._mask(mask[None, None]), at[None])[0]

    def _clear(self) -> None:
        """Take out what has ended; the last row moves into each gap."""
        for index in range(len(self._rows) - 1, -1, -1):
            if not self._ended(self._rows[index]):
                continue
            last = len(self._rows) - 1
            if index != last:
                self._cache.move(last, index, self._lengths[last])
                self._rows[index], self._lengths[index] = self._rows[last], self._lengths[last]
            self._rows.pop()
            self._lengths.pop()

    def _ended(self, row: Row) -> bool:
        return row.written[-1] in self._eos or len(row.written) >= row.limit

    @staticmethod
    def _take(row: Row, logits: Tensor, best: int) -> None:
        if not row.temperature:
            row.written.append(best)
            return
        if row.draw is None:
            raise ValueError("a row that is sampled needs numbers to draw")
        sums = torch.softmax(logits.double() / row.temperature, -1).cumsum(-1)
        token = int(torch.searchsorted(sums, row.draw() * float(sums[-1]), right=True))
        row.written.append(min(token, logits.shape[-1] - 1))

    def _mask(self, mask: Tensor) -> Tensor:
        """Return the bool mask for sdpa, an additive one for eager, which would add a bool mask silently."""
        if not self._eager:
            return mask
        dtype = self._model.dtype
        return torch.zeros(mask.shape, dtype=dtype, device=self._device).masked_fill_(~mask, torch.finfo(dtype).min)

    @torch.no_grad()
    def _forward(self, ids: Tensor, mask: Tensor | None, positions: Tensor | None) -> Tensor:
        out = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            cache=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: Tensor = out.logits[:, -1]
        return logits


def _alike(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many tokens both begin with."""
    pairs = zip(first, second, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))
