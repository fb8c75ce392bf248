"""Speculative sampling with a small draft model of the same vocabulary (Leviathan et al. 2023, Chen et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from draftboard.methods.budget import MAX_NODES
from draftboard.methods.engine.drafter import Context, Drafter, Verdict
from draftboard.methods.engine.tree import Proposal, TokenTree
from draftboard.methods.errors import MethodError
from draftboard.methods.method import Binding, Method, Preflight, Vocabulary
from draftboard.methods.registry import register

if TYPE_CHECKING:
    from torch import Tensor

    from draftboard.methods.engine.model import LanguageModel
    from draftboard.methods.engine.scores import Scores

__all__ = ["Sps", "check_vocabulary"]


@register("sps")
@dataclass(frozen=True, slots=True, kw_only=True)
class Sps(Method):
    """A chain drafted by another Hugging Face model that shares the target's token table.

    `length="fixed"` drafts `draft_length` tokens; `heuristic` starts there, grows by 2 after a full acceptance and
    shrinks by 1 otherwise, within the turn. `drafts="sampled"` draws from the warped draft distribution when the run
    samples; `greedy` always takes its top choice. Both leave the target's distribution as it is.
    """

    about: ClassVar[str] = "speculative sampling with a small draft model, chain"
    reference: ClassVar[str] = "Leviathan et al. 2023, arXiv:2211.17192; Chen et al. 2023, arXiv:2302.01318"

    draft: str = ""
    """The draft model: an alias, a hub id, a local folder or a .gguf file."""
    draft_length: int = 5
    length: Literal["fixed", "heuristic"] = "fixed"
    drafts: Literal["sampled", "greedy"] = "sampled"

    def __post_init__(self) -> None:
        if not 1 <= self.draft_length <= MAX_NODES:
            raise MethodError(f"sps: draft_length must lie between 1 and {MAX_NODES}")

    def preflight(self, known: Preflight) -> None:
        """Refuse a draft model with another token table, before any weights are read."""
        if not self.draft:
            raise MethodError('sps needs a draft model: give --draft-model, or draft = "NAME" in its method table')
        check_vocabulary(
            known.vocabulary, known.vocabulary_of(self.draft), target_name=known.target, draft_name=self.draft
        )

    def drafter(self, binding: Binding) -> Drafter:
        """Return a drafter around the draft model, which is loaded once a run."""
        if binding.load_model is None:
            raise MethodError("sps needs a run that can load its draft model")
        return _DraftModel(self, binding, binding.load_model(self.draft))


def check_vocabulary(
    target: Vocabulary, draft: Vocabulary, *, target_name: str = "target", draft_name: str = "draft"
) -> None:
    """Raise MethodError unless every id of the target means the same token in the draft's table.

    Logit widths may differ: ids beyond the table are padding and are never proposed.
    """
    pair = f"draft model {draft_name} and target {target_name}"
    ours = {index: token for token, index in target.tokens.items()}
    theirs = {index: token for token, index in draft.tokens.items()}
    differing = sorted(index for index in ours.keys() & theirs.keys() if ours[index] != theirs[index])
    if differing:
        first = differing[0]
        raise MethodError(
            f"{pair} do not share their token table: id {first} is {ours[first]!r} in the target and "
            f"{theirs[first]!r} in the draft ({len(differing)} ids differ). Use a draft model of the same family"
        )
    for missing, where in ((ours.keys() - theirs.keys(), "draft"), (theirs.keys() - ours.keys(), "target")):
        if missing:
            raise MethodError(
                f"{pair} do not share their token table: {_span(sorted(missing))} missing in the {where}. "
                "Use a draft model of the same family, or a method that translates between tables"
            )
    if draft.logit_width < len(draft.tokens):
        raise MethodError(f"{pair}: the draft scores {draft.logit_width} ids but its table has {len(draft.tokens)}")


def _span(ids: list[int]) -> str:
    if len(ids) == 1:
        return f"id {ids[0]} is"
    if ids[-1] - ids[0] == len(ids) - 1:
        return f"ids {ids[0]} to {ids[-1]} are"
    return f"{len(ids)} ids, the first {ids[0]}, are"


class _DraftModel(Drafter):
    """Drafts one token after the other with a model that is fed whatever committed ids its cache lacks."""

    def __init__(self, method: Sps, binding: Binding, model: LanguageModel) -> None:
        self._method = method
        self._model = model
        self._allowed = min(binding.vocab_size, model.vocab_size)
        self._width = binding.logit_width
        self._length = method.draft_length
        self._committed = 0
        """Ids in the model's cache that are known to be committed …"""
        self._tail: list[int] = []
        """… and those behind them, which were fed to draft."""
        self._draft: TokenTree | None = None
        self._reads = True
        """Whether the text so far holds only ids that the model has rows for."""

    def begin(self, prompt: Sequence[int], scores: Scores) -> None:
        """Read the prompt, unless it leaves the draft model no room or holds an id beyond its rows."""
        self._model.rewind(0)
        self._reads = max(prompt) < self._model.vocab_size
        if self._reads and len(prompt) < self._model.window:
            self._model.prefill(prompt)
            self._committed = len(prompt)

    def propose(self, context: Context) -> TokenTree:
        """Return a chain; with sampled drafts, with the distributions that it was drawn from."""
        import torch

        from draftboard.methods.engine.verify import warp

        model = self._model
        self._forget_rejected(context.tokens)
        lacking = len(context.tokens) + 1 - self._committed
        # The last drafted token is not fed.
        fitting = model.window - self._committed - lacking + 1
        length = min(self._length, context.room, context.max_nodes - 1, fitting)
        self._draft = None
        fresh = [*context.tokens[self._committed :], context.root]
        # A target with wider logits may write what the draft model cannot read; behind that it drafts nothing.
        self._reads = self._reads and max(fresh) < model.vocab_size
        if length < 1 or not self._reads:
            return TokenTree([context.root])
        model.reserve(self._committed + lacking + length)
        sampled = self._method.drafts == "sampled" and not context.sampling.greedy
        tokens, rows = [context.root], []
        for _ in range(length):
            logits = model.forward(TokenTree(fresh)).logits[-1]
            model.keep(range(len(fresh)))
            self._tail += fresh
            if sampled:
                q = warp(self._masked(logits), context.sampling)
                token = int(torch.multinomial(q, 1, generator=context.generator))
                rows.append(q)
            else:
                token = int(logits[: self._allowed].argmax())
            tokens.append(token)
            fresh = [token]
        self._draft = TokenTree(tokens, proposal=Proposal(q=_stack(rows, self._width)) if sampled else None)
        return self._draft

    def observe(self, verdict: Verdict) -> None:
        """Adapt the length where asked; within another method the verdict may be on another drafter's draft."""
        if self._method.length == "heuristic" and verdict.tree is self._draft:
            step = 2 if verdict.accepted == len(verdict.tree) - 1 else -1
            self._length = max(1, min(MAX_NODES, self._length + step))

    def _forget_rejected(self, text: list[int]) -> None:
        """Keep of the cache what has become text, whoever drafted it."""
        for token in self._tail:
            if self._committed >= len(text) or text[self._committed] != token:
                break
            self._committed += 1
        self._tail = []
        self._model.rewind(self._committed)

    def _masked(self, logits: Tensor) -> Tensor:
        if self._allowed == logits.shape[-1]:
            return logits
        logits = logits.clone()
        logits[self._allowed :] = -float("inf")
        return logits


def _stack(rows: list[Tensor], width: int) -> Tensor:
    """Return q [n, V] with an unused first row, cut or padded to the target's width."""
    import torch

    q = torch.zeros(len(rows) + 1, width, dtype=rows[0].dtype, device=rows[0].device)
    for index, row in enumerate(rows, 1):
        shared = min(width, len(row))
        q[index, :shared] = row[:shared]
    return q
