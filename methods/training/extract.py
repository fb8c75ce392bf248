"""Reading texts with the target once and keeping the hidden states that a head learns from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch

from draftboard.methods.training.shards import ShardWriter, Text

__all__ = ["extract"]

Report = Callable[[int], None]
_CHUNK = 256
"""Texts that are sorted by length together, so that little of a batch is padding."""


@torch.inference_mode()
def extract(
    model: Any,
    texts: Sequence[Text],
    taps: Sequence[int],
    writer: ShardWriter,
    *,
    batch_tokens: int = 2048,
    dtype: torch.dtype = torch.bfloat16,
    report: Report = lambda tokens: None,
) -> None:
    """Write the states at `taps` (indices of transformers' hidden states) of every text that is not written yet.

    `model`: a transformers causal LM; its output layer is not run. Texts keep their order. `report` is told the tokens
    of each batch.
    """
    decoder = model.base_model
    remaining = iter(texts[writer.written :])
    while chunk := list(islice(remaining, _CHUNK)):
        states: dict[int, torch.Tensor] = {}
        for places in _batches(chunk, batch_tokens):
            longest = max(len(chunk[place].ids) for place in places)
            ids = torch.zeros(len(places), longest, dtype=torch.int64)
            mask = torch.zeros_like(ids)
            for row, place in enumerate(places):
                count = len(chunk[place].ids)
                ids[row, :count] = torch.tensor(chunk[place].ids)
                mask[row, :count] = 1
            out = decoder(
                input_ids=ids.to(model.device),
                attention_mask=mask.to(model.device),
                output_hidden_states=list(taps),
                use_cache=False,
            )
            found = torch.stack([out.hidden_states[tap] for tap in taps], 2).to("cpu", dtype)
            for row, place in enumerate(places):
                states[place] = found[row, : len(chunk[place].ids)].clone()
            report(int(mask.sum()))
        for place, text in enumerate(chunk):
            writer.add(text, states[place])
    writer.flush()


def _batches(texts: Sequence[Text], tokens: int) -> Iterator[list[int]]:
    """Yield places of texts of like length, so many that a batch has at most `tokens` positions (or one text)."""
    batch: list[int] = []
    for place in sorted(range(len(texts)), key=lambda place: len(texts[place].ids)):
        if batch and (len(batch) + 1) * len(texts[place].ids) > tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
