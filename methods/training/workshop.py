"""What a method that is trained works with: target, prompts, a budget, and a folder where a second try goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from draftboard.methods.errors import MethodError
from draftboard.methods.training.answers import Progress, TextSide, Writing, write_answers
from draftboard.methods.training.sources import Prompts

__all__ = ["Effort", "Training"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much a training may take: answer tokens or time, one of which is given, and how often it reads them."""

    tokens: int | None = None
    seconds: float | None = None
    epochs: float | None = None
    """Passes over the texts; None leaves them to the method."""

    def __post_init__(self) -> None:
        if (self.tokens is None) == (self.seconds is None):
            raise MethodError("a training needs a budget of tokens or of time, and not of both")
        if self.epochs is not None and (self.seconds is not None or not 0 < self.epochs <= 1000):
            raise MethodError("the epochs of a training lie above 0 and at most at 1,000, beside a budget of tokens")
        if not 0 < (self.tokens if self.tokens is not None else self.seconds or 0) < 1e12:
            raise MethodError("the budget of a training is above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Plain data and callables, so that a method's training is tested with a toy model."""

    target: str
    """The target as the user named it."""
    fingerprint: str
    """Of the target's weights."""
    load_model: Callable[[], Any]
    """Loads the target, a `transformers` causal LM in eval mode on its device. Slow; call it once."""
    text: TextSide
    prompts: Prompts
    writing: Writing
    effort: Effort
    workplace: Path
    """Folder for answers, features and checkpoints; it stays after a break, so that a second try goes on."""
    init: Path | None = None
    """What an earlier training made, to be trained on; None begins with random weights."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Of the answers: target, fingerprint, dtype, template, evaluations kept out, versions."""
    banned: Callable[[str], bool] = lambda text: False
    """Whether a message holds an evaluation's item."""
    say: Callable[[str], None] = lambda text: None
    advance: Callable[[str, float, float, str], None] = lambda stage, done, total, note: None
    """Shows progress: name of the stage, how much of how much is done, and a few words beside it."""

    def answers(self, model: Any, *, tokens: int | None, seconds: float | None = None) -> Path:
        """Write the target's answers, or go on with them; return their folder.

        Ends at `tokens` answer tokens, after `seconds` (one of them is given), or with the prompts. What it will take
        is said as soon as the speed of this machine is known. Raises MethodError as `write_answers` does, and if
        nothing was written.
        """
        folder = self.workplace / "answers"
        told, began = False, monotonic()
        wanted = _NO_END if tokens is None else tokens

        def show(progress: Progress) -> None:
            nonlocal told
            if not told and progress.steps >= _SPEED_KNOWN:
                told = True
                left = progress.left_s if seconds is None else seconds
                more = max(0, wanted - progress.tokens) if seconds is None else round(progress.rate * seconds)
                self.say(
                    f"answers of {self.target}: {progress.rate:.0f} tokens a second, "
                    f"about {max(1, round(left / 60))} min for {more:,} more"
                )
            note = f"{progress.tokens:,} tokens, {progress.rate:.0f} tokens/s"
            if seconds is None:
                self.advance("answers", progress.tokens, wanted, note)
            else:
                self.advance("answers", monotonic() - began, seconds, note)

        end = write_answers(
            folder,
            model,
            self.text,
            self.prompts,
            writing=self.writing,
            tokens=wanted,
            seconds=seconds,
            provenance=self.provenance,
            banned=self.banned,
            progress=show,
        )
        if not end.answers:
            raise MethodError("the target wrote no answers: no prompt fits, or the budget is too small")
        return folder


_NO_END = 1 << 40
_SPEED_KNOWN = 16
"""Steps of the batch after which its speed is told."""
