"""The training loop: devices and mixed precision by accelerate, one schedule, checkpoints that go on where they were.

It knows neither heads nor texts: it is handed a module, batches by number, and a loss.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import torch
from torch import Tensor, nn

from draftboard.methods.errors import MethodError

if TYPE_CHECKING:
    from accelerate import Accelerator

__all__ = ["Precision", "Recipe", "Trained", "train"]

Precision = Literal["no", "bf16", "fp16"]
"""accelerate's mixed precision."""

Item = TypeVar("Item")
_STATE = "training.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a module is optimised: AdamW, linear warm-up, then cosine decay to a tenth (or none)."""

    steps: int
    rate: float
    """Largest learning rate."""
    warmup: float = 0.03
    """Part of the steps in which the rate rises from 0."""
    decay: Literal["cosine", "none"] = "cosine"
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    clip: float = 0.5
    """Largest norm of the gradient."""
    seed: int = 0
    precision: Precision = "no"
    evaluate_every: int = 200
    save_every: int = 200

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        warm = max(1, round(self.warmup * self.steps))
        if step < warm:
            return self.rate * (step + 1) / warm
        if self.decay == "none":
            return self.rate
        gone = (step - warm) / max(1, self.steps - warm)
        return self.rate * (0.1 + 0.9 * (1 + math.cos(math.pi * gone)) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a training came to."""

    steps: int
    loss: float
    """Mean over the last tenth of the steps."""
    evaluations: tuple[dict[str, float], ...]
    """What `evaluate` returned, with the `step` that it was asked after."""
    duration_s: float
    """Of all sittings together."""


@dataclass(slots=True)
class _Progress:
    step: int
    losses: list[float]
    evaluations: list[dict[str, float]]
    spent_s: float


class _Loop(Generic[Item]):
    def __init__(self, module: nn.Module, recipe: Recipe, folder: Path, about: dict[str, Any]) -> None:
        from accelerate import Accelerator

        torch.manual_seed(recipe.seed)
        self.accelerator: Accelerator = Accelerator(
            mixed_precision=recipe.precision, cpu=next(module.parameters()).device.type == "cpu"
        )
        optimizer = torch.optim.AdamW(
            (weight for weight in module.parameters() if weight.requires_grad),
            lr=recipe.rate,
            betas=recipe.betas,
            weight_decay=recipe.weight_decay,
        )
        self.module, self.optimizer = self.accelerator.prepare(module, optimizer)
        self.recipe, self.folder = recipe, folder
        self.about = json.loads(json.dumps({**asdict(recipe), **about}))
        self.progress = _Progress(0, [], [], 0.0)

    def resume(self) -> None:
        """Go on where an interrupted training of the same recipe was; refuse one of another."""
        path = self.folder / _STATE
        if not path.exists():
            return
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            about, progress = stored["about"], _Progress(**stored["progress"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MethodError(f"{path} cannot be read ({error}): delete {self.folder} to train anew") from error
        if about != self.about:
            changed = sorted(k for k in about.keys() | self.about.keys() if about.get(k) != self.about.get(k))
            raise MethodError(
                f"{self.folder} holds a training with another {', '.join(changed)}: delete it, or ask for the same"
            )
        self.accelerator.load_state(str(self.folder / stored["state"]))
        self.progress = progress

    def save(self, spent_s: float) -> None:
        """Keep all that going on needs: first the tensors, under a name of their own, then the note that names them."""
        name = f"state-{-(-self.progress.step // self.recipe.save_every) % 2}"
        self.accelerator.save_state(str(self.folder / name))
        stored = {"about": self.about, "state": name, "progress": {**asdict(self.progress), "spent_s": spent_s}}
        unfinished = self.folder / f"{_STATE}.part"
        unfinished.write_text(json.dumps(stored) + "\n", encoding="utf-8")
        unfinished.replace(self.folder / _STATE)

    def step(self, batch: Callable[[int], Item]) -> float:
        """Take one step; return its loss."""
        place = self.progress.step * self.accelerator.num_processes + self.accelerator.process_index
        with self.accelerator.autocast():
            loss: Tensor = self.module(batch(place))
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.rate_at(self.progress.step)
        self.accelerator.backward(loss)
        self.accelerator.clip_grad_norm_(self.module.parameters(), self.recipe.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())


def train(
    module: nn.Module,
    batch: Callable[[int], Item],
    recipe: Recipe,
    *,
    folder: Path,
    about: dict[str, Any],
    evaluate: Callable[[], dict[str, float]],
    report: Callable[[int, float, dict[str, float]], None] = lambda step, loss, figures: None,
) -> Trained:
    """Train `module`, whose forward makes a loss of a batch, in place; return what came of it.

    `batch(place)`: the batch of a step (of a process, where there are several), the same for the same place, so that a
    resumed training sees what it would have seen. `folder`: where checkpoints go; one of the same recipe and `about` is
    taken up, one of another is refused with MethodError. `report` is told each step's loss, and with it the figures of
    `evaluate` where it was asked.
    Raises MethodError where the loss stops being a number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    loop: _Loop[Item] = _Loop(module, recipe, folder, about)
    loop.resume()
    progress, began = loop.progress, monotonic()
    spent_before = progress.spent_s
    while progress.step < recipe.steps:
        loop.module.train()
        value = loop.step(batch)
        if not math.isfinite(value):
            raise MethodError(f"the loss is {value} at step {progress.step}: a smaller learning rate may help")
        progress.step += 1
        progress.losses.append(round(value, 6))
        figures: dict[str, float] = {}
        if progress.step % recipe.evaluate_every == 0 or progress.step == recipe.steps:
            loop.module.eval()
            figures = evaluate()
            progress.evaluations.append({"step": float(progress.step), **figures})
        if progress.step % recipe.save_every == 0 or progress.step == recipe.steps:
            loop.save(spent_before + monotonic() - began)
        report(progress.step, value, figures)
    module.eval()
    tail = progress.losses[-max(1, recipe.steps // 10) :]
    return Trained(
        steps=progress.step,
        loss=sum(tail) / len(tail),
        evaluations=tuple(progress.evaluations),
        duration_s=spent_before + monotonic() - began,
    )
