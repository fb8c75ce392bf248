"""Training a head on features, and telling how much of its drafts the target would take on texts it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from draftboard.methods.eagle.batches import Batches, read_batch
from draftboard.methods.eagle.config import HeadConfig
from draftboard.methods.eagle.heads import Head, make_head
from draftboard.methods.eagle.losses import Aims, Lesson, accepted, walk
from draftboard.methods.training.loop import Precision, Recipe, Trained, train
from draftboard.methods.training.shards import Features

__all__ = ["CHAIN", "Course", "acceptance", "fresh_head", "split_texts", "train_head"]

CHAIN = 4
"""Drafts a step in the chain that training is judged by."""
_HELD_OUT = 40
"""One text in so many is not trained on."""

Report = Callable[[int, int, float, dict[str, float]], None]
"""(step, steps in all, loss, figures of the held-out texts where they were judged)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a head is trained."""

    epochs: float
    rate: float
    batch_tokens: int
    aims: Aims
    seed: int = 0
    precision: Precision = "no"
    evaluate_every: int = 200
    evaluate_texts: int = 64
    """Held-out texts that are judged while training; all of them at the end."""


def fresh_head(config: HeadConfig, target_ids: Tensor | None, embedding: Tensor, lm_head: Tensor, *, seed: int) -> Head:
    """Return a head with small random weights (normal, 0.02, as Llama's), bound to the target's tables."""
    torch.manual_seed(seed)
    head = make_head(config, target_ids)
    for module in head.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    head.to(embedding.device).bind(embedding, lm_head)
    return head


def split_texts(count: int) -> tuple[list[int], list[int]]:
    """Return the places of the texts to train on and of those held out."""
    held = list(range(_HELD_OUT - 1, count, _HELD_OUT)) or [count - 1]
    kept = set(held)
    return [place for place in range(count) if place not in kept] or held, held


def train_head(
    head: Head,
    lm_head: Tensor,
    features: Features,
    taps: Sequence[int],
    course: Course,
    *,
    folder: Path,
    about: Mapping[str, Any],
    report: Report = lambda step, total, loss, figures: None,
) -> Trained:
    """Train `head` in place. `taps`: places of its states among the stored ones; see `train` for the rest."""
    learned, held = split_texts(len(features))
    batches = Batches(features, learned, taps, tokens=course.batch_tokens, seed=course.seed)
    recipe = Recipe(
        steps=max(1, round(course.epochs * batches.per_epoch)),
        rate=course.rate,
        seed=course.seed,
        precision=course.precision,
        evaluate_every=course.evaluate_every,
        save_every=course.evaluate_every,
    )
    return train(
        Lesson(head, lm_head, course.aims),
        batches,
        recipe,
        folder=folder,
        about={**asdict(course), **about},
        evaluate=lambda: acceptance(head, features, held[: course.evaluate_texts], taps),
        report=lambda step, loss, figures: report(step, recipe.steps, loss, figures),
    )


def acceptance(
    head: Head, features: Features, texts: Sequence[int], taps: Sequence[int], *, steps: int = CHAIN
) -> dict[str, float]:
    """Return `accepted_per_step` of a chain of `steps` drafts over these texts, and `first_draft_right`.

    Both are what decoding them would give: the texts are the target's own, so what it would take is what stands there.
    """
    head.eval()
    taken = count = 0
    first = places = 0
    for text in texts:
        batch = read_batch(features, [text], taps).to(head.target_ids.device)
        found, loss = accepted(head, batch, steps)[0].tolist(), batch.loss[0].tolist()
        for step in walk(found, loss):
            taken, count = taken + step, count + 1
        judged = [found[place - 1] > 0 for place in range(1, len(loss) - 1) if loss[place] and loss[place + 1]]
        first, places = first + sum(judged), places + len(judged)
    return {
        "accepted_per_step": taken / count if count else 0.0,
        "first_draft_right": first / places if places else 0.0,
    }
