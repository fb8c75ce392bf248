"""Which of several continuations a target finds likeliest: how multiple choice is answered without writing anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from draftboard.methods.engine.model import LanguageModel

__all__ = ["likeliest", "log_probabilities"]


def likeliest(target: LanguageModel, prompt: Sequence[int], continuations: Sequence[Sequence[int]]) -> int:
    """Return the index of the continuation with the largest log probability; the first of equal ones."""
    scores = log_probabilities(target, prompt, continuations)
    return max(range(len(scores)), key=scores.__getitem__)


def log_probabilities(
    target: LanguageModel, prompt: Sequence[int], continuations: Sequence[Sequence[int]]
) -> list[float]:
    """Return log P(continuation | prompt) in nats, one each, summed over its tokens in float64.

    Letters are one token in most vocabularies; they are then read off one forward. Raises ValueError for an empty
    prompt or continuation.
    """
    if not prompt or not all(continuations):
        raise ValueError("a likelihood needs a prompt and continuations of at least one token")
    import torch

    with torch.inference_mode():
        if all(len(ids) == 1 for ids in continuations):
            row = target.prefill(prompt).logits[-1].double().log_softmax(-1)
            return [float(row[ids[0]]) for ids in continuations]
        found = []
        for ids in continuations:
            logits = target.prefill([*prompt, *ids[:-1]], all_logits=True).logits
            rows = logits[len(prompt) - 1 :].double().log_softmax(-1)
            found.append(sum(float(row[token]) for row, token in zip(rows, ids, strict=True)))
        return found
