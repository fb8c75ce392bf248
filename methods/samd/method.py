"""SAM-Decoding: retrieval from a suffix automaton, and another drafter when the match is short (Hu et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from draftboard.methods.budget import MatchEstimate, best_chain, merged
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
    unites the chain with the auxiliary's draft and cuts the union to the size that pays on this machine. The budget
    also rules the auxiliary.
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
        if self.draft_length < 2 or self.min_match < 1 or self.static_bias < 0 or not 0 < self.alpha < inf:
            raise MethodError("samd: draft_length >= 2, min_match >= 1, static_bias >= 0 and alpha > 0 are needed")
        if self.auxiliary is not None and not self.auxiliary.lossless:
            raise MethodError(f"samd[{self.auxiliary.name}]: the auxiliary must leave verification to the target")
        if self.auxiliary is not None:
            object.__setattr__(self, "auxiliary", self.auxiliary.with_budget(self.budget))

    def preflight(self, known: Preflight) -> None:
        """Check the auxiliary and that the static automaton is there and was made with this vocabulary."""
        if self.auxiliary is not None:
            self.auxiliary.preflight(known)
        if self.static is not None:
            from draftboard.methods.samd.artifact import check_corpus

            check_corpus(self.static, known.vocabulary.sha256, known.target)

    def measure(self, binding: Binding) -> dict[str, Any]:
        """Let the auxiliary measure."""
        found = self.auxiliary.measure(binding) if self.auxiliary is not None else {}
        return {"auxiliary": found} if found else {}

    @classmethod
    def prepare(cls, workshop: Workshop) -> dict[str, Any]:
        """Make a static automaton of the corpus."""
        from draftboard.methods.samd.artifact import prepare_corpus

        return prepare_corpus(workshop)

    def drafter(self, binding: Binding) -> Drafter:
        """Return a drafter with an empty dynamic automaton."""
        within = replace(binding, measured=binding.measured.get("auxiliary", {}))
        inner = self.auxiliary.drafter(within) if self.auxiliary else None
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
        self._inner_tells = True
        self._inner_drafted = False
        # What an auxiliary gave that cannot say how likely its nodes are; it starts with the benefit of the doubt.
        self._inner_steps, self._inner_emitted, self._inner_rows = 3, 6.0, 12.0
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
        chain = best_chain(context.root, found, estimate, match, longest=longest, curve=self._curve)
        if self._inner is None or estimate.chance(match) >= _SURE or not self._worth_asking(chain):
            return chain
        other = self._inner.propose(context)
        self._inner_tells = other.chances is not None and other.proposal is None and other.aux is None
        draft = merged(chain, other, nodes=context.max_nodes - 1, curve=self._curve) if self._inner_tells else other
        if draft.token_list[1:] != found[: len(draft) - 1]:
            context.signals["auxiliary"] = 1.0
            self._inner_drafted = True
        return draft

    def _worth_asking(self, chain: TokenTree) -> bool:
        """Whether the auxiliary should draft: one that tells its chances adds to the chain, another one replaces it
        and has to have given more tokens per cost so far.
        """
        if self._inner_tells:
            return True
        emitted, rows = (total / self._inner_steps for total in (self._inner_emitted, self._inner_rows))
        return emitted / self._curve.at(round(rows)) >= (chain.expected or 1.0) / self._curve.at(len(chain))

    def observe(self, verdict: Verdict) -> None:
        """Learn from the verdict; the auxiliary sees every step, asked or not."""
        estimate, match, found = self._guess
        if match:
            estimate.learn(match, found, verdict.emitted)
        self._guess = (self._estimate, 0, [])
        if self._inner_drafted:
            self._inner_steps += 1
            self._inner_emitted += len(verdict.emitted)
            self._inner_rows += len(verdict.tree)
            self._inner_drafted = False
        if self._inner is not None:
            self._inner.observe(verdict)

    def _published(self, context: Context, match: int, found: list[int]) -> TokenTree:
        method = self._method
        if self._inner is None:
            rows = min(method.draft_length, 1 + int(method.alpha * match))
            if self._corpus is not None and self._guess[0] is self._static_estimate:
                return self._branching(context, self._corpus, rows)
            return TokenTree([context.root, *found[: rows - 1]])
        if match >= method.min_match:
            return TokenTree([context.root, *found])
        context.signals["auxiliary"] = 1.0
        return self._inner.propose(context)

    def _branching(self, context: Context, corpus: StaticAutomaton, rows: int) -> TokenTree:
        """Without an auxiliary a corpus offers its likeliest continuations as a tree, not only the first one."""
        match = corpus.advance(self._static_match, [context.root])
        tokens, parents = corpus.best_first_tree(match, min(rows, context.max_nodes) - 1)
        return TokenTree([context.root, *tokens], [-1, *(parent + 1 for parent in parents)])

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
        return (
            self._estimate,
            dynamic.length,
            self._text.draft(dynamic, method.draft_length - 1, to_ancestor=to_ancestor),
        )

    def _read(self, text: list[int]) -> None:
        new = text[self._seen :]
        self._text.extend_all(new)
        if self._corpus is not None:
            self._static_match = self._corpus.advance(self._static_match, new)
        self._seen = len(text)


_SURE = 0.85
"""From this chance on the chain is taken without asking the auxiliary what it would add."""
