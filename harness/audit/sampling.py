"""The checks of sampling (suites-and-scoring 9.3): on a toy vocabulary, on the run's model, and draft = target.

On the model the first token of a generation comes from the prefill, before anything is drafted, so that it says
nothing about a method. What is drawn here is therefore the token behind it: a stored prompt with a part of its answer
is the prompt, the answer's next token is given, and the token that the first step writes is counted.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from draftboard.audit.fit import LEVEL, fit, holm
from draftboard.audit.report import ModelCheck, PromptCheck, SamplingAudit, SelfCheck
from draftboard.errors import UserError
from draftboard.methods import Method, MethodError, build
from draftboard.outputs import tie_limit

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from draftboard.audit.run import Wish
    from draftboard.methods.engine import Sampling, Scores, TokenTree
    from draftboard.methods.engine.gates import Gates
    from draftboard.methods.engine.settings import HiddenRequest
    from draftboard.session import Session

__all__ = ["Asked", "check_sampling"]

_NEW = 4
"""Tokens of a draw: the given one, the counted one, and room for a draft behind it."""
_SELF_TOKENS = 32
_MOST_REJECTED = 0.5
"""Share that rounding is never taken to explain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A stored prompt and the baseline's answer to it, as ids."""

    sample: str
    prompt: list[int]
    answer: tuple[int, ...]

    @property
    def place(self) -> int:
        """The last place of the answer whose token stands in the text before it, so that methods which copy have
        something to draft; else the middle."""
        known = set(self.prompt)
        found = len(self.answer) // 2
        for place, token in enumerate(self.answer):
            if token in known:
                found = place
            known.add(token)
        return found

    @property
    def text(self) -> list[int]:
        """The prompt and the answer up to that place."""
        return [*self.prompt, *self.answer[: self.place]]

    @property
    def given(self) -> int:
        """The token at that place."""
        return self.answer[self.place]


def check_sampling(
    tables: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any],
    session: Session | None,
    asked: Sequence[Asked],
    wish: Wish,
    say: Callable[[str], None],
) -> SamplingAudit:
    """Check every method of a run; a greedy run's at temperature 1. Without a session the model is not asked."""
    from draftboard.audit.toy import check_itself, check_verifiers
    from draftboard.methods.engine import Sampling

    sampling = Sampling(**settings)
    if sampling.greedy:
        sampling = replace(sampling, temperature=1.0)
    built = [(str(table["label"]), bool(table.get("lossless", True)), _built(table)) for table in tables]
    say("checking sampling on a toy vocabulary")
    verifiers = [(label, claim, m.verifier()) for label, claim, m in built if isinstance(m, Method)]
    toy = check_verifiers(verifiers, sampling, draws=wish.toy_draws)
    itself: list[SelfCheck] = [check_itself(sampling)]
    chosen: list[Asked] = []
    skipped = "the model was not loaded"
    if session is not None:
        window = session.reader.window
        fitting = [one for one in asked if one.answer and len(one.text) + _NEW <= window]
        chosen = fitting[: wish.prompts]
        skipped = "" if chosen else "no prompt of the run can be made again with room behind it"
    found = []
    for label, claim, method in built:
        if isinstance(method, str):
            found.append(ModelCheck(method=label, lossless=claim, draws=wish.draws, reason=method))
        elif session is not None and chosen:
            say(f"checking sampling of {label} on the model")
            found.append(_on_model(label, claim, method, session, sampling, chosen, wish.draws))
    if session is not None and chosen:
        itself.append(_itself(session, sampling, chosen))
    return SamplingAudit(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        level=LEVEL,
        toy=toy,
        model=tuple(found),
        itself=tuple(itself),
        skipped=skipped,
    )


def _built(table: Mapping[str, Any]) -> Method | str:
    """Return the method of a stored plan, or why it cannot be made again."""
    try:
        return build({"method": table.get("method") or table["label"], **(table.get("settings") or {})})
    except MethodError as error:
        return f"cannot be made again from the run: {error}"


def _on_model(
    label: str,
    claim: bool,
    method: Method,
    session: Session,
    sampling: Sampling,
    chosen: Sequence[Asked],
    draws: int,
) -> ModelCheck:
    found = []
    try:
        for one in chosen:
            found.append(_prompt(label, method, session, sampling, one, draws))
    except (MethodError, UserError) as error:
        return ModelCheck(method=label, lossless=claim, draws=draws, reason=f"cannot be made again: {error}")
    except Exception as error:  # noqa: BLE001 - a method is anybody's code; its failure is a result
        reason = f"{type(error).__name__}: {error}"
        return ModelCheck(method=label, lossless=claim, draws=draws, reason=reason)
    adjusted = holm([one.p_value for one in found])
    checks = tuple(replace(one, adjusted=p) for one, p in zip(found, adjusted, strict=True))
    idle = not any(one.drafted for one in checks)
    return ModelCheck(
        method=label,
        lossless=claim,
        draws=draws,
        prompts=checks,
        passed=all(p > LEVEL for p in adjusted),
        reason="nothing was drafted at these places" if idle else "",
    )


def _prompt(label: str, method: Method, session: Session, sampling: Sampling, one: Asked, draws: int) -> PromptCheck:
    import torch

    from draftboard.methods.engine import Limits, decode
    from draftboard.methods.engine.verify import warp

    with torch.inference_mode():
        row = session.target.prefill([*one.text, one.given]).logits[-1]
        chances = warp(row, sampling).double()
        chances /= chances.sum()
    probabilities = {token: p for token, p in enumerate(chances.tolist()) if p > 0}
    generator = torch.Generator(device=session.target.device).manual_seed(_seed(label, one.sample))
    target = _Given(session.target, one.given)
    counts: Counter[int] = Counter()
    drafted = 0
    for _ in range(draws):
        made = decode(
            target,
            method.drafter(session.binding(label)),
            one.text,
            limits=Limits(max_new_tokens=_NEW),
            sampling=sampling,
            verifier=method.verifier(),
            generator=generator,
        )
        counts[made.token_ids[1]] += 1
        drafted += made.trace.columns()["drafted"][0] > 0
    result = fit(counts, probabilities)
    return PromptCheck(
        sample=one.sample,
        statistic=result.statistic if isfinite(result.statistic) else None,
        degrees=result.degrees,
        p_value=result.p_value,
        adjusted=result.p_value,
        drafted=drafted,
    )


class _Given:
    """A target whose first token is given, and which reads a prompt that it has read already from its cache."""

    def __init__(self, target: Any, token: int) -> None:
        self._target = target
        self._token = token
        self._read: dict[tuple[tuple[int, ...], HiddenRequest, bool], Scores] = {}

    @property
    def device(self) -> torch.device:
        """Where logits are."""
        found: torch.device = self._target.device
        return found

    @property
    def room(self) -> int:
        """Rows that a draft may have now."""
        return int(self._target.room)

    def reserve(self, rows: int) -> None:
        """Make room."""
        self._target.reserve(rows)

    def prefill(self, ids: Sequence[int], *, hidden: HiddenRequest = (), all_logits: bool = False) -> Scores:
        """Read the prompt; its last row leaves the given token alone."""
        from draftboard.methods.engine import Scores

        at = (tuple(ids), hidden, all_logits)
        if at not in self._read:
            # One prompt's cache stands at a time.
            self._read.clear()
            scores = self._target.prefill(ids, hidden=hidden, all_logits=all_logits)
            self._read[at] = Scores(self._forced(scores.logits), scores.hidden)
        else:
            self._target.rewind(len(ids))
        return self._read[at]

    def _forced(self, logits: Tensor) -> Tensor:
        import torch

        forced = logits.clone()
        forced[-1] = -torch.inf
        forced[-1, self._token] = 0.0
        return forced

    def forward(self, tree: TokenTree, *, gates: Gates | None = None, hidden: HiddenRequest = ()) -> Scores:
        """Score every node."""
        from draftboard.methods.engine.gates import DENSE

        scores: Scores = self._target.forward(tree, gates=gates or DENSE, hidden=hidden)
        return scores

    def keep(self, path: Sequence[int]) -> None:
        """Commit these nodes."""
        self._target.keep(path)

    def synchronize(self) -> None:
        """Wait until the device is idle."""
        self._target.synchronize()


def _itself(session: Session, sampling: Sampling, chosen: Sequence[Asked]) -> SelfCheck:
    """Draft with the target itself. Only rounding can reject: at most the least theta of the dtype / temperature."""
    import torch

    from draftboard.methods.engine import Limits, decode
    from draftboard.methods.engine.model import LanguageModel

    twin = LanguageModel(session.target.model)
    binding = session.binding()
    # The draft may hold whatever the target may choose, ids beyond the tokenizer's table included.
    binding = replace(binding, vocab_size=binding.logit_width, load_model=lambda name: twin)
    method = build({"method": "sps", "draft": "itself"})
    dtype = str(session.target.dtype).removeprefix("torch.")
    allowed = min(_MOST_REJECTED, tie_limit(dtype) / sampling.temperature)
    accepted = rejected = 0
    for one in chosen:
        generator = torch.Generator(device=session.target.device).manual_seed(_seed("itself", one.sample))
        made = decode(
            session.target,
            method.drafter(binding),
            one.text,
            limits=Limits(max_new_tokens=min(_SELF_TOKENS, session.reader.window - len(one.text))),
            sampling=sampling,
            generator=generator,
        )
        columns = made.trace.columns()
        accepted += sum(columns["accepted"])
        # What stands behind a rejected token was not judged.
        rejected += sum(a < d for a, d in zip(columns["accepted"], columns["drafted"], strict=True))
    judged = accepted + rejected
    return SelfCheck(
        where=session.plan.model,
        drafted=judged,
        accepted=accepted,
        allowed=allowed,
        passed=rejected <= allowed * judged,
    )


def _seed(*words: str) -> int:
    return int.from_bytes(hashlib.sha256("\n".join(words).encode()).digest()[:7], "big")
