"""Batches of texts of like length from features on disk: by number, the same for the same number."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import torch

from draftboard.methods.eagle.losses import Batch
from draftboard.methods.training.shards import Features

__all__ = ["Batches", "read_batch"]

_POOL = 32
"""Batches whose texts are sorted by length together: little padding, and yet a new mixture in every epoch."""


class Batches:
    """Batches of at most `tokens` positions (or one text), drawn epoch by epoch."""

    def __init__(
        self, features: Features, texts: Sequence[int], taps: Sequence[int], *, tokens: int, seed: int = 0
    ) -> None:
        """`texts`: which of them; `taps`: which of their states are the head's, by place. The last one is the state
        behind the target's final norm."""
        self._features, self._texts, self._taps = features, list(texts), list(taps)
        self._tokens, self._seed = tokens, seed
        self._lengths = features.lengths
        self._drawn: tuple[int, list[list[int]]] = (-1, [])
        self.per_epoch = len(self._epoch(0))

    def __call__(self, place: int) -> Batch:
        """Return batch number `place`, counted over all epochs."""
        # Epochs may differ by a few batches; what they have in common is used of each.
        batches = self._epoch(place // self.per_epoch)
        return read_batch(self._features, batches[place % self.per_epoch % len(batches)], self._taps)

    def _epoch(self, number: int) -> list[list[int]]:
        if self._drawn[0] == number:
            return self._drawn[1]
        random = Random(f"{self._seed} {number}")
        order = list(self._texts)
        random.shuffle(order)
        mean = sum(self._lengths[text] for text in order) / len(order)
        size = max(1, int(_POOL * self._tokens / mean))
        batches: list[list[int]] = []
        for start in range(0, len(order), size):
            batch: list[int] = []
            for text in sorted(order[start : start + size], key=lambda text: self._lengths[text]):
                if batch and (len(batch) + 1) * self._lengths[text] > self._tokens:
                    batches.append(batch)
                    batch = []
                batch.append(text)
            batches.append(batch)
        random.shuffle(batches)
        self._drawn = number, batches
        return batches


def read_batch(features: Features, texts: Sequence[int], taps: Sequence[int]) -> Batch:
    """Return these texts, padded on the right, with their states at `taps` (places among the stored ones)."""
    read = [features.read(text) for text in texts]
    longest = max(len(ids) for ids, _, _ in read)
    ids = torch.zeros(len(read), longest, dtype=torch.int64)
    loss, present = torch.zeros(2, len(read), longest, dtype=torch.bool)
    states = read[0][2].new_zeros(len(read), longest, *read[0][2].shape[1:])
    for row, (text, marks, found) in enumerate(read):
        present[row, : len(text)] = True
        ids[row, : len(text)], loss[row, : len(text)], states[row, : len(text)] = text, marks, found
    taken = tuple(states[:, :, tap] for tap in taps)
    return Batch(ids=ids, loss=loss, present=present, states=taken, last=states[:, :, -1])
