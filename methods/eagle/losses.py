"""What heads learn from (native-methods 1.7), and how many of their drafts a target would take.

Everything is computed for every prefix of a text at once. At index i the outputs of step j stand for the feature of
position i + 1 + j and predict the token at i + 2 + j.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import smooth_l1_loss

from draftboard.methods.eagle.heads import Head
from draftboard.methods.eagle.unroll import unrolled

__all__ = ["Aims", "Batch", "Lesson", "accepted", "walk"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Texts padded on the right."""

    ids: Tensor
    """int64 [B, L]."""
    loss: Tensor
    """Bool [B, L]: which tokens the target wrote; False for padding."""
    present: Tensor
    """Bool [B, L]: False for padding alone."""
    states: tuple[Tensor, ...]
    """What `Head.feature` takes: one [B, L, Ht] for every tap."""
    last: Tensor
    """The target's states behind its final norm, [B, L, Ht]."""

    def to(self, device: torch.device) -> Batch:
        """Return it on that device."""
        states = tuple(state.to(device) for state in self.states)
        ids, loss, present = (part.to(device) for part in (self.ids, self.loss, self.present))
        return Batch(ids=ids, loss=loss, present=present, states=states, last=self.last.to(device))


@dataclass(frozen=True, slots=True, kw_only=True)
class Aims:
    """Weights of the loss. EAGLE-3 learns by cross-entropy alone, over several steps; EAGLE-1 by both in one step."""

    steps: int = 1
    decay: float = 0.8
    """Weight of each unrolled step relative to the one before."""
    regression: float = 1.0
    """Of smooth-L1 between outputs and the target's own features."""
    cross_entropy: float = 0.1
    """Of cross-entropy with the target's distribution over the head's vocabulary."""
    noise: float = 0.0
    """Uniform noise on the true features, (U(0, 1) - 0.5) * noise * 512 / L; EAGLE-1's published value is 0.2."""
    prompts: bool = True
    """Learn what the target would say within prompts too, and not only where it wrote. Published recipes do not, having
    text enough; here the states are there already, and they are more to learn from."""


class Lesson(nn.Module):
    """A head and its loss, as a module whose forward makes a loss of a batch."""

    places: Tensor
    rows: Tensor

    def __init__(self, head: Head, lm_head: Tensor, aims: Aims) -> None:
        """`lm_head` [V, Ht]: the target's output layer."""
        super().__init__()
        self.head, self.aims = head, aims
        places = torch.full((head.config.vocab,), -1, dtype=torch.int64, device=head.target_ids.device)
        places[head.target_ids] = torch.arange(len(head.target_ids), device=places.device)
        self.register_buffer("places", places, persistent=False)
        self.register_buffer("rows", lm_head[head.target_ids].to(head.dtype), persistent=False)

    def forward(self, batch: Batch) -> Tensor:
        """Return the weighted sum over steps of the means over positions whose predicted token is learned from.

        Cross-entropy counts where that token lies in the head's vocabulary. What the target wrote stands for its
        choice, what stands in a prompt for a likely one, and no product with the whole output layer is needed.
        """
        head, aims = self.head, self.aims
        batch = batch.to(self.rows.device)
        length = batch.ids.shape[1]
        last = batch.last.to(head.dtype)
        features = head.feature(batch.states)
        if aims.noise and self.training:
            features = features + (torch.rand_like(features) - 0.5) * (aims.noise * 512 / length)
        # Aims are kept by the position of the feature that leads to them: t = i + 1 + j.
        marks = batch.present if aims.prompts else batch.loss
        learned = marks[:, 1:] & (self.places[batch.ids[:, 1:]] >= 0)
        with torch.no_grad():
            chances = (last[:, :-1][learned] @ self.rows.T).softmax(-1)
        index = torch.full(learned.shape, -1, dtype=torch.int64, device=learned.device)
        index[learned] = torch.arange(len(chances), device=learned.device)
        total = last.new_zeros(())
        for step, outputs in enumerate(unrolled(head, features, batch.ids, min(aims.steps, length - 2))):
            weight = aims.decay**step
            made = outputs[:, : length - 2 - step]
            taken = learned[:, 1 + step :]
            if aims.cross_entropy and bool(taken.any()):
                logged = head.logits(made[taken]).log_softmax(-1)
                crossed = -(chances[index[:, 1 + step :][taken]] * logged).sum(-1).mean()
                total = total + weight * aims.cross_entropy * crossed
            marked = marks[:, 2 + step :]
            if aims.regression and bool(marked.any()):
                aim = last[:, 1 + step : length - 1]
                total = total + weight * aims.regression * smooth_l1_loss(made[marked], aim[marked])
        return total


@torch.no_grad()
def accepted(head: Head, batch: Batch, steps: int) -> Tensor:
    """Return int64 [B, L]: how many of a chain of `steps` drafts behind root x_{i+1} are what the target wrote."""
    found = torch.zeros_like(batch.ids)
    right = torch.ones_like(batch.loss)
    features = head.feature(batch.states)
    length = batch.ids.shape[1]
    for step, outputs in enumerate(unrolled(head, features, batch.ids, min(steps, length - 2))):
        fits = length - 2 - step
        drafted = head.target_ids[head.logits(outputs[:, :fits]).argmax(-1)]
        right = right[:, :fits] & (drafted == batch.ids[:, 2 + step :]) & batch.loss[:, 2 + step :]
        found[:, :fits] += right
    return found


def walk(found: list[int], loss: list[bool]) -> Iterator[int]:
    """Yield what each step of decoding one text would take, given `accepted` at every index of it.

    A root is a token that the target wrote; where it writes on behind a user's turn, the prefill supplies the first.
    """
    root = 1
    while root < len(loss):
        if not loss[root]:
            root += 1
            continue
        if root + 1 >= len(loss) or not loss[root + 1]:
            # Nothing follows that a step could write.
            root += 1
            continue
        yield found[root - 1]
        root += found[root - 1] + 1
