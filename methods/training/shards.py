"""Texts with a model's hidden states on disk, in shards: written as a stream, read back without filling the memory.

A shard is a safetensors file of whole texts: `ids` int32 [N], `loss` bool [N] (which tokens the target itself wrote),
`starts` int64 [texts + 1], and `states` [N, taps, Ht]. `index.json` says what they are of. Shards appear under their
names when they are complete, so an extraction that was cut off goes on behind the last one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from draftboard.methods.errors import MethodError

__all__ = ["Features", "ShardWriter", "Text"]

SCHEMA = 1
_INDEX = "index.json"


@dataclass(frozen=True, slots=True)
class Text:
    """Token ids, and for each whether the target wrote it (and not a template or a user)."""

    ids: list[int]
    loss: list[bool]


class ShardWriter:
    """Writes texts and their states behind what the folder holds already."""

    def __init__(self, folder: Path, about: dict[str, Any], *, tokens: int = 1 << 16) -> None:
        """`about`: what the states are of; a folder that says otherwise is refused. `tokens`: size of a shard."""
        self._folder, self._tokens = folder, tokens
        self._texts: list[Text] = []
        self._states: list[Tensor] = []
        self._pending = 0
        folder.mkdir(parents=True, exist_ok=True)
        index = folder / _INDEX
        told = {"schema": SCHEMA, **about}
        if index.exists():
            _agree(index, told)
        else:
            index.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        self._shard = 0
        self.written = 0
        """Texts in whole shards."""
        for path in _shards(folder):
            self.written += _count(path)
            self._shard += 1

    def add(self, text: Text, states: Tensor) -> None:
        """Take a text of n tokens and its states [n, taps, Ht]."""
        if len(states) != len(text.ids) or len(text.loss) != len(text.ids):
            raise ValueError(f"{len(text.ids)} tokens, {len(text.loss)} marks and {len(states)} states do not fit")
        self._texts.append(text)
        self._states.append(states)
        self._pending += len(states)
        if self._pending >= self._tokens:
            self.flush()

    def flush(self) -> None:
        """Write what has been taken as a shard of its own."""
        if not self._texts:
            return
        lengths = torch.tensor([0, *(len(text.ids) for text in self._texts)])
        path = self._folder / f"shard-{self._shard:05d}.safetensors"
        unfinished = path.with_suffix(".part")
        save_file(
            {
                "ids": torch.tensor([i for text in self._texts for i in text.ids], dtype=torch.int32),
                "loss": torch.tensor([i for text in self._texts for i in text.loss]),
                "starts": lengths.cumsum(0),
                "states": torch.cat(self._states).contiguous(),
            },
            unfinished,
        )
        unfinished.rename(path)
        self.written += len(self._texts)
        self._shard += 1
        self._texts, self._states, self._pending = [], [], 0


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    start: int
    end: int
    generated: int


class Features:
    """The texts of a folder of shards, by index; states are read when asked for."""

    def __init__(self, folder: Path, *, texts: int | None = None) -> None:
        """`texts`: use only so many, from the first on. Raises MethodError for a damaged or empty folder."""
        self.about = _index(folder / _INDEX)
        self._places: list[_Place] = []
        for path in _shards(folder):
            with _opened(path) as shard:
                starts, loss = shard.get_tensor("starts").tolist(), shard.get_tensor("loss")
            for start, end in pairwise(starts):
                self._places.append(_Place(path, start, end, int(loss[start:end].sum())))
        self._places = self._places[:texts]
        if not self._places:
            raise MethodError(f"{folder} holds no texts to train on")
        self._open: dict[Path, Any] = {}

    def __len__(self) -> int:
        return len(self._places)

    @property
    def lengths(self) -> list[int]:
        """Tokens of each text."""
        return [place.end - place.start for place in self._places]

    @property
    def generated(self) -> list[int]:
        """Tokens of each text that the target wrote."""
        return [place.generated for place in self._places]

    def read(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return ids int64 [n], loss bool [n] and states [n, taps, Ht] of a text."""
        place = self._places[index]
        if place.path not in self._open:
            self._open[place.path] = _opened(place.path)
        shard = self._open[place.path]
        ids, loss, states = (shard.get_slice(name)[place.start : place.end] for name in ("ids", "loss", "states"))
        return ids.long(), loss, states

    def counts(self, vocab: int) -> Tensor:
        """Return how often the target wrote each id, int64 [vocab]."""
        found = torch.zeros(vocab, dtype=torch.int64)
        for ids, loss in self._written():
            found += torch.bincount(ids[loss].long(), minlength=vocab)
        return found

    def _written(self) -> Iterator[tuple[Tensor, Tensor]]:
        for index in range(len(self)):
            ids, loss, _ = self.read(index)
            yield ids, loss


def _shards(folder: Path) -> Sequence[Path]:
    return sorted(folder.glob("shard-*.safetensors"))


def _opened(path: Path) -> Any:
    try:
        return safe_open(path, "pt")
    except (OSError, SafetensorError) as error:
        raise MethodError(f"{path} is damaged ({error}): delete it, and it is made anew") from error


def _count(path: Path) -> int:
    with _opened(path) as shard:
        return len(shard.get_tensor("starts")) - 1


def _index(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MethodError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise MethodError(f"{path} is no index of features that this draftboard reads")
    return found


def _agree(path: Path, told: dict[str, Any]) -> None:
    found = _index(path)
    differing = sorted(name for name in found.keys() | told.keys() if found.get(name) != told.get(name))
    if differing:
        what = "; ".join(f"{name}: there {found.get(name)!r}, now {told.get(name)!r}" for name in differing)
        raise MethodError(f"{path.parent} holds features of something else ({what}): use another folder")
