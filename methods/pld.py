"""Prompt lookup decoding: what followed the last few tokens when they stood in the text before (Saxena 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from draftboard.methods.budget import MatchEstimate, best_chain
from draftboard.methods.engine.drafter import Context, Drafter, Verdict
from draftboard.methods.engine.tree import TokenTree
from draftboard.methods.errors import MethodError
from draftboard.methods.method import Binding, Budget, Method
from draftboard.methods.registry import register

if TYPE_CHECKING:
    from draftboard.methods.engine.scores import Scores

__all__ = ["Pld"]


@register("pld")
@dataclass(frozen=True, slots=True, kw_only=True)
class Pld(Method):
    """The continuation of the first earlier occurrence of the longest matching n-gram, as a chain.

    The rule is that of `transformers`: the continuation may be cut short by the end of the text and before an
    end-of-sequence id, and without a match there is no draft. `budget="paper"` drafts `draft_length` tokens always;
    `auto` sizes the chain.
    """

    about: ClassVar[str] = "prompt lookup: n-gram match in the text so far, chain"
    reference: ClassVar[str] = "Saxena 2023, prompt-lookup-decoding"
    max_ngram: int = 3
    draft_length: int = 10
    budget: Budget = "auto"

    def __post_init__(self) -> None:
        if self.max_ngram < 1 or self.draft_length < 1:
            raise MethodError("pld: max_ngram and draft_length must be at least 1")

    def drafter(self, binding: Binding) -> Drafter:
        """Return a drafter with an empty index."""
        return _PromptLookup(self, binding)


class _PromptLookup(Drafter):
    """Keeps, for every n-gram of each length, where it first ended: O(max_ngram) work a token."""

    def __init__(self, method: Pld, binding: Binding) -> None:
        self._method = method
        self._curve = binding.curve
        self._eos_ids = binding.eos_ids
        self._ends: list[dict[tuple[int, ...], int]] = [{} for _ in range(method.max_ngram + 1)]
        self._indexed = 0
        self._estimate = MatchEstimate()
        self._guess: tuple[int, list[int]] = (0, [])

    def begin(self, prompt: Sequence[int], scores: Scores) -> None:
        """Index the prompt."""
        self._index(list(prompt))

    def propose(self, context: Context) -> TokenTree:
        """Return the root and the continuation found for it."""
        text = context.tokens
        self._index(text)
        method = self._method
        length = method.draft_length
        if method.budget == "auto":
            length = max(length, _LOOK_AHEAD)
        match, found = self._find(
            [*text[1 - method.max_ngram :], context.root] if method.max_ngram > 1 else [context.root], text, length
        )
        self._guess = (match, found)
        context.signals["match"] = match
        wanted = min(len(found), context.room, context.max_nodes - 1)
        if method.budget == "paper":
            return TokenTree([context.root, *found[:wanted]])
        return best_chain(context.root, found, self._estimate, match, longest=wanted, curve=self._curve)

    def observe(self, verdict: Verdict) -> None:
        """Learn how far the continuation held, drafted or not."""
        match, found = self._guess
        if match:
            self._estimate.learn(match, found, verdict.emitted)
        # Inside another method the next verdict may come without a question.
        self._guess = (0, [])

    def _index(self, text: list[int]) -> None:
        for end in range(self._indexed + 1, len(text) + 1):
            for size in range(1, min(self._method.max_ngram, end) + 1):
                self._ends[size].setdefault(tuple(text[end - size : end]), end)
        self._indexed = len(text)

    def _find(self, tail: list[int], text: list[int], length: int) -> tuple[int, list[int]]:
        """Return (n, continuation): the text as it stands has the root behind it, which no index entry reaches."""
        whole = len(text)
        for size in range(min(len(tail), self._method.max_ngram), 0, -1):
            end = self._ends[size].get(tuple(tail[-size:]))
            if end is not None:
                found = text[end : end + length]
                if end + len(found) == whole and len(found) < length:
                    found = [*found, tail[-1]]
                return size, self._before_eos(found)
        return 0, []

    def _before_eos(self, found: list[int]) -> list[int]:
        """Cut a continuation where an earlier answer ended; the target adds the end itself."""
        return next((found[:index] for index, token in enumerate(found) if token in self._eos_ids), found)


_LOOK_AHEAD = 32
"""Under `auto` the continuation may be longer than published: the estimate decides how much of it is drafted."""
