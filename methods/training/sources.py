"""Where the prompts of training come from: our own stream without end, conversations from elsewhere, or both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from draftboard.methods.errors import MethodError
from draftboard.methods.training.prompts import SHARES, Ask, Passage, make_ask

__all__ = ["Given", "Joined", "Prompts", "Stream"]

_ATTEMPTS = 20


class Prompts(Protocol):
    """A stream of prompts, a function of the index and of earlier answers."""

    @property
    def skipped(self) -> int:
        """Prompts left out because they hold an evaluation's item."""

    def describe(self) -> dict[str, Any]:
        """Return what `meta.json` holds of it."""

    def ask(self, index: int, passages: Sequence[Passage]) -> Ask | None:
        """Return prompt number `index`, or None behind the last one."""


class Stream:
    """Our own prompts, without end."""

    def __init__(
        self,
        seed: int = 0,
        shares: Mapping[str, float] = SHARES,
        banned: Callable[[str], bool] = lambda text: False,
    ) -> None:
        """`banned`: whether a message holds an evaluation's item; another one is then made."""
        self.skipped = 0
        self._seed, self._shares, self._banned = seed, dict(shares), banned
        self._asked: set[tuple[str, ...]] = set()
        make_ask(0, seed=seed, shares=shares)

    def describe(self) -> dict[str, Any]:
        """Return seed and shares."""
        return {"source": "generated", "version": 2, "seed": self._seed, "shares": self._shares}

    def ask(self, index: int, passages: Sequence[Passage]) -> Ask:
        """Return a prompt that holds no item of an evaluation and, if there is one, that was not asked before.

        Prompts are to be asked for in the order of their indices.
        """
        repeated = None
        for attempt in range(_ATTEMPTS):
            ask = make_ask(index, seed=self._seed, passages=passages, shares=self._shares, attempt=attempt)
            if any(map(self._banned, ask.turns)):
                self.skipped += 1
            elif ask.turns in self._asked:
                repeated = ask
            else:
                # A message that the target writes itself is not known yet.
                self._asked.update([ask.turns] if ask.turns else [])
                return ask
        if repeated is None:
            raise MethodError(f"{_ATTEMPTS} prompts in a row are items of an evaluation; exclude less")
        return repeated


class Given:
    """Prompts from elsewhere, each asked once, in their order."""

    def __init__(self, conversations: Sequence[Sequence[str]], description: dict[str, Any]) -> None:
        """`conversations`: the user's messages of each; `description` goes into `meta.json`."""
        self.skipped = 0
        self._conversations, self._description = conversations, description

    def describe(self) -> dict[str, Any]:
        """Return where they are from."""
        return {"source": "given", **self._description}

    def ask(self, index: int, passages: Sequence[Passage]) -> Ask | None:
        """Return the conversation number `index`."""
        if index >= len(self._conversations):
            return None
        return Ask(index=index, kind="given", turns=tuple(self._conversations[index]))


class Joined:
    """Prompts from elsewhere and, behind them, our own."""

    def __init__(self, first: Given, rest: Stream) -> None:
        self._first, self._rest = first, rest

    @property
    def skipped(self) -> int:
        """Prompts of ours that were left out."""
        return self._rest.skipped

    def describe(self) -> dict[str, Any]:
        """Return both descriptions."""
        return {"source": "joined", "first": self._first.describe(), "rest": self._rest.describe()}

    def ask(self, index: int, passages: Sequence[Passage]) -> Ask | None:
        """Return what is given while there is any, then a prompt of our own."""
        return self._first.ask(index, passages) or self._rest.ask(index, passages)
