"""The seam of every method: something that proposes tokens and learns from the verdict. Free of torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from draftboard.methods.engine.settings import NONE, HiddenRequest, Sampling
from draftboard.methods.engine.tree import TokenTree

if TYPE_CHECKING:
    import torch

    from draftboard.methods.engine.scores import Scores

__all__ = ["Context", "Drafter", "RootOnly", "Verdict"]


@dataclass(slots=True, kw_only=True)
class Context:
    """What a drafter may look at when it proposes. `tokens` is the engine's own list: read it, do not change it."""

    tokens: list[int]
    """Committed ids: the prompt and what was generated, without the root."""
    root: int
    """The token that the target has already chosen; node 0 of the draft."""
    room: int
    """Longest drafted path that can still become output."""
    max_nodes: int
    """Rows that the forward may have, the root included. A larger draft is cut to it."""
    sampling: Sampling
    generator: torch.Generator
    """The only source of randomness of this turn."""
    signals: dict[str, float] = field(default_factory=dict)
    """A drafter may note here what it knew; it is stored with the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a draft was judged."""

    tree: TokenTree
    path: list[int]
    """Accepted nodes in order, the root (0) first."""
    emitted: list[int]
    """The accepted drafted tokens and, last, the bonus."""
    scores: Scores
    """Of every node of the tree."""

    @property
    def accepted(self) -> int:
        """Number of drafted tokens that were taken."""
        return len(self.path) - 1

    @property
    def bonus(self) -> int:
        """The token that the target itself supplied; the next root."""
        return self.emitted[-1]


class Drafter(ABC):
    """Proposes drafts for one conversation turn. A fresh object is made for every turn."""

    wants_hidden: HiddenRequest = NONE
    """Hidden states that `begin` and `observe` need."""
    wants_prompt_logits: bool = False
    """Whether `begin` needs the logits of every prompt position and not only of the last."""

    def begin(self, prompt: Sequence[int], scores: Scores) -> None:  # noqa: B027 - an optional step
        """See the prompt and the prefill's scores."""

    @abstractmethod
    def propose(self, context: Context) -> TokenTree:
        """Return the draft of this step; node 0 is `context.root`. The root alone is a valid draft."""

    def observe(self, verdict: Verdict) -> None:  # noqa: B027 - an optional step
        """See what came of the draft."""


class RootOnly(Drafter):
    """Autoregressive decoding: the draft is the root alone."""

    def propose(self, context: Context) -> TokenTree:
        """Return the root."""
        return TokenTree([context.root])
