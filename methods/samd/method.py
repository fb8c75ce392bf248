"""SAM-Decoding: retrieval from a suffix automaton, and another drafter when the match is short (Hu et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from draftboard.methods.budget import MatchEstimate, best_chain
from draftboard.methods.engine.drafter import Context, Drafter, Verdict
from draftboard.methods.engine.tree import TokenTree
from draftboard.methods.errors import MethodError
from draftboard.methods.method import Binding, Budget, Method, Preflight
from draftboard.methods.registry import register
from draftboard.methods.token_recycling import TokenRecycling

if TYPE_CHECKING:
    from draftboard.methods.artifact import Workshop
    from draftboard.methods.engine.scores import Scores
    from draftboard.methods.samd.static import StaticAutomaton

__all__ = ["Samd"]


@register("samd")
@dataclass(frozen=True, slots=True, kw_only=True)
class Samd(Method):
    """The longest suffix of the text that stood in it before (dynamic) or in a corpus (static), continued as a chain.

    Published setting (`budget="paper"`): a chain of up to `draft_length` rows when the match has at least `min_match`
    tokens, otherwise the auxiliary drafter's tree; without an auxiliary a chain of `1 + alpha * match` rows. `auto`
    sizes the chain to the machine and takes whichever of chain and auxiliary promises more tokens per cost.
    """

    about: ClassVar[str] = "suffix-automaton retrieval, auxiliary drafter for short matches"
    reference: ClassVar[str] = "Hu et al. 2024, arXiv:2411.10666"
    inside: ClassVar[str | None] = "auxiliary"

    auxiliary: Method | None = field(default_factory=lambda: TokenRecycling(tree="samd-60"))
    draft_length: int = 40
    """Rows of a chain, the root included."""
    min_match: int = 5
    """Shortest match, the root included, for which a chain is drafted."""
    static_bias: int = 5
    """How much longer a static match must be than a dynamic one."""
    alpha: float = 4.0
    """Rows per matched token in the mode without an auxiliary."""
    static: Path | None = None
    """Folder of a static automaton made by `draftboard prepare samd`."""
    budget: Budget = "auto"

    def __post_init__(self) -> None:
        if self.draft_length < 2 or self.min_match < 1 or self.static_bias < 0 or self.alpha <= 0:
            raise MethodError("samd: draft_length >= 2, min_match >= 1, static_bias >= 0 and alpha > 0 are needed")
        if self.auxiliary is not None and not self.auxiliary.lossless:
            raise MethodError(f"samd[{self.auxiliary.name}]: the auxiliary must leave verification to the target")

    def preflight(self, known: Preflight) -> None:
        """Check the auxiliary and that the static automaton is there and was made with this vocabulary."""
        if self.auxiliary is not None:
            self.auxiliary.preflight(known)
        if self.static is not None:
            from draftboard.methods.samd.artifact import check_corpus

            check_corpus(self.static, known.vocabulary.sha256, known.target)

    @classmethod
    def prepare(cls, workshop: Workshop) -> dict[str, Any]:
        """Make a static automaton of the corpus."""
        from draftboard.methods.samd.artifact import prepare_corpus

        return prepare_corpus(workshop)

    def drafter(self, binding: Binding) -> Drafter:
        """Return a drafter with an empty dynamic automaton."""
        inner = self.auxiliary.with_budget(self.budget).drafter(binding) if self.auxiliary else None
        corpus = None
        if self.static is not None:
            from draftboard.methods.samd.artifact import load_corpus

            corpus = load_corpus(self.static)
        return _Retrieval(self, binding, inner, corpus)


class _Retrieval(Drafter):
    def __init__(self, method: Samd, binding: Binding, inner: Drafter | None, corpus: StaticAutomaton | None) -> None:
        # numpy comes with it, and listing methods should not wait for that.
        from draftboard.methods.samd.automaton import Match, SuffixAutomaton

        self._method = method
        self._curve = binding.curve
        self._inner = inner
        self._corpus = corpus
        self._text = SuffixAutomaton()
        self._estimate = MatchEstimate()
        self._static_estimate = MatchEstimate()
        self._static_match = Match(0, 0)
        self._seen = 0
        self._guess: tuple[MatchEstimate, int, list[int]] = (self._estimate, 0, [])
        if inner is not None:
            self.wants_hidden = inner.wants_hidden
            self.wants_prompt_logits = inner.wants_prompt_logits

    def begin(self, prompt: Sequence[int], scores: Scores) -> None:
        """Read the prompt into the automaton."""
        self._read(list(prompt))
        if self._inner is not None:
            self._inner.begin(prompt, scores)

    def propose(self, context: Context) -> TokenTree:
        """Return a chain from the better match, or the auxiliary's draft."""
        self._read(context.tokens)
        estimate, match, found = self._lookup(context)
        self._guess = (estimate, match, found)
        context.signals["match"] = match
        longest = min(len(found), context.room, context.max_nodes - 1)
        if self._method.budget == "paper":
            return self._published(context, match, found[:longest])
        size, expected = best_chain(estimate, match, longest, self._curve)
        if self._inner is not None and estimate.chance(match) < _SURE:
            other = self._inner.propose(context)
            promise = other.expected if other.expected is not None else 1.0 + 0.4 * (len(other) > 1)
            if promise / self._curve.at(len(other)) >= expected / self._curve.at(1 + size):
                context.signals["auxiliary"] = 1.0
                return other
        return TokenTree([context.root, *found[:size]], expected=expected)

    def observe(self, verdict: Verdict) -> None:
        """Learn from the verdict; the auxiliary sees every step, asked or not."""
        estimate, match, found = self._guess
        if match:
            estimate.learn(match, found, verdict.emitted)
        self._guess = (self._estimate, 0, [])
        if self._inner is not None:
            self._inner.observe(verdict)

    def _published(self, context: Context, match: int, found: list[int]) -> TokenTree:
        method = self._method
        if self._inner is None:
            rows = min(method.draft_length, 1 + int(method.alpha * match))
            return TokenTree([context.root, *found[: rows - 1]])
        if match >= method.min_match:
            return TokenTree([context.root, *found])
        context.signals["auxiliary"] = 1.0
        return self._inner.propose(context)

    def _lookup(self, context: Context) -> tuple[MatchEstimate, int, list[int]]:
        """Return (estimate, match length with the root, continuation) of the dynamic or the static automaton."""
        method = self._method
        dynamic = self._text.lookup(context.root)
        if self._corpus is not None:
            static = self._corpus.advance(self._static_match, [context.root])
            if static.length - method.static_bias > dynamic.length:
                found = self._corpus.draft(static, method.draft_length - 1)
                return self._static_estimate, static.length - method.static_bias, found
        to_ancestor = self._inner is not None
        return self._estimate, dynamic.length, self._text.draft(dynamic, method.draft_length - 1, to_ancestor=to_ancestor)

    def _read(self, text: list[int]) -> None:
        new = text[self._seen :]
        self._text.extend_all(new)
        if self._corpus is not None:
            self._static_match = self._corpus.advance(self._static_match, new)
        self._seen = len(text)


_SURE = 0.85
"""From this chance on a chain is taken without asking the auxiliary what it would draft."""
