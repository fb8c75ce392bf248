"""Whether a head is any good for a target, before any speed is measured.

Every fault of a head (a wrong norm, tap, offset or RoPE base, another target, a bad export) leaves the output lossless
and costs acceptance only, so that no test of the output finds it. Agreement of the head's first draft with the target's
own choice, on given text, finds all of them (native-methods 8, test 8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from math import sqrt
from typing import Literal, Protocol

import torch
from torch import Tensor

from draftboard.methods.eagle.heads import Head
from draftboard.methods.eagle.unroll import unrolled
from draftboard.methods.engine.scores import Scores
from draftboard.methods.engine.settings import HiddenRequest
from draftboard.methods.errors import MethodError

__all__ = ["BROKEN", "DEPTHS", "HEALTHY", "BaseCheck", "Depth", "HeadCheck", "Scorer", "check_head"]

HEALTHY = 0.5
"""Share of right first drafts from which on a head is healthy; 0.6 to 0.8 is usual on text like its training's."""
BROKEN = 0.25
"""Below this something is wrong with the head, and not its training."""
DEPTHS = 5
"""Length of the chains."""
WINDOW = 1_024
"""Longest piece of a text that is read at once, in tokens."""
_BLOCK = 256
"""Rows whose draft logits are held at once."""
_CLEARLY = 3.0
"""Standard errors of a paired difference that make one base clearly better than another."""

Verdict = Literal["healthy", "weak", "broken"]


class Scorer(Protocol):
    """What is needed of a target: `LanguageModel` offers it."""

    window: int
    """Longest text it reads, in tokens."""

    def prefill(self, ids: Sequence[int], *, hidden: HiddenRequest = ..., all_logits: bool = ...) -> Scores:
        """Score every position of a text."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """Drafts at one depth of a chain whose earlier drafts were all accepted."""

    tried: int
    accepted: int

    @property
    def rate(self) -> float:
        """Share accepted; 0 where none was tried."""
        return self.accepted / self.tried if self.tried else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseCheck:
    """The head under one RoPE base."""

    base: float
    of: str
    """Where that base is from: `head`, `default` or `target`."""
    positions: int
    hits: tuple[int, int, int]
    """Positions whose target choice is the head's first, among its first two, among its first three."""
    depths: tuple[Depth, ...]

    @property
    def top(self) -> tuple[float, float, float]:
        """Shares of `hits`."""
        return (self.hits[0] / self.positions, self.hits[1] / self.positions, self.hits[2] / self.positions)

    @property
    def accepted_per_step(self) -> float:
        """Expected accepted drafts of a greedy chain of `DEPTHS`."""
        total, reached = 0.0, 1.0
        for depth in self.depths:
            reached *= depth.rate
            total += reached
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCheck:
    """What was found: the head's own base first."""

    bases: tuple[BaseCheck, ...]
    texts: int
    tokens: int
    draftable: float
    """Share of the target's choices that are in the head's vocabulary."""
    better: float | None
    """Another base under which the head is clearly better."""

    @property
    def own(self) -> BaseCheck:
        """The head as it is run."""
        return self.bases[0]

    @property
    def best(self) -> BaseCheck:
        """The base with the most right first drafts; of equal ones the head's own."""
        return max(self.bases, key=lambda one: one.hits[0])

    @property
    def verdict(self) -> Verdict:
        """How the head does as it is run."""
        share = self.own.top[0]
        return "healthy" if share >= HEALTHY else "weak" if share >= BROKEN else "broken"


class _Tally:
    """Counts of one base over all texts."""

    def __init__(self) -> None:
        self.right: list[Tensor] = []
        self.hits = torch.zeros(3, dtype=torch.long)
        self.tried = [0] * DEPTHS
        self.accepted = [0] * DEPTHS


@torch.inference_mode()
def check_head(
    head: Head,
    target: Scorer,
    texts: Sequence[Sequence[int]],
    *,
    starts: Sequence[int] | None = None,
    target_base: float | None = None,
    advance: Callable[[int], None] = lambda tokens: None,
) -> HeadCheck:
    """Compare the head's greedy drafts with the target's choices at every position of these texts.

    The head must be bound to the target. `texts`: token ids; `starts`: for each the first position that counts (its
    answer's first token; without it all). Drafts at depth d count where the text went as the target chose for d - 1
    tokens, so that what the target would say behind them is known. `target_base` is the target's RoPE base, tried too.
    `advance` is told the tokens of each piece that is done. Raises MethodError if there is no position to look at.
    """
    bases = {head.config.rope_theta: "head"}
    bases.setdefault(10000.0, "default")
    if target_base is not None:
        bases.setdefault(float(target_base), "target")
    tallies = {base: _Tally() for base in bases}
    positions = draftable = tokens = 0
    vocabulary = torch.zeros(head.config.vocab, dtype=torch.bool)
    vocabulary[head.target_ids.cpu()] = True
    for ids, start in _pieces(texts, starts or [0] * len(texts), min(WINDOW, target.window)):
        scores = target.prefill(ids, hidden=head.config.taps, all_logits=True)
        choices = scores.logits.argmax(-1)
        features = head.feature([scores.hidden[index] for index in head.config.taps])[None]
        given = torch.tensor([list(ids)], device=choices.device)
        rows = torch.arange(max(0, start - 1), len(ids) - 1, device=choices.device)
        for base, tally in tallies.items():
            with _rotating(head, base):
                _judge(head, features, given, choices, rows, tally)
        positions += len(rows)
        draftable += int(vocabulary[choices[rows + 1].cpu()].sum())
        tokens += len(ids)
        advance(len(ids))
    if not positions:
        raise MethodError("the text is too short to check a head on: two tokens at least are needed")
    found = tuple(
        BaseCheck(
            base=base,
            of=bases[base],
            positions=positions,
            hits=(int(tally.hits[0]), int(tally.hits[1]), int(tally.hits[2])),
            depths=tuple(Depth(tried=t, accepted=a) for t, a in zip(tally.tried, tally.accepted, strict=True)),
        )
        for base, tally in tallies.items()
    )
    right = {base: torch.cat(tally.right) for base, tally in tallies.items()}
    return HeadCheck(
        bases=found,
        texts=len(texts),
        tokens=tokens,
        draftable=draftable / positions,
        better=_clearly_better(right),
    )


def _pieces(texts: Sequence[Sequence[int]], starts: Sequence[int], size: int) -> Iterator[tuple[Sequence[int], int]]:
    """Cut texts into pieces that are read at once; the first keeps its start, later ones count from their second."""
    for ids, start in zip(texts, starts, strict=True):
        for offset in range(0, len(ids), size):
            piece = ids[offset : offset + size]
            first = max(0, start - offset)
            if len(piece) >= 2 and first < len(piece):
                yield piece, first


def _judge(head: Head, features: Tensor, given: Tensor, choices: Tensor, rows: Tensor, tally: _Tally) -> None:
    """Add one piece. At index i, step j drafts what follows position i + 1 + j, and the target chose that there."""
    length = given.shape[1]
    for step, outputs in enumerate(unrolled(head, features, given, DEPTHS)):
        rows = rows[rows + 1 + step < length]
        if step:
            # The target's choice behind the last draft is known where the text holds that very draft.
            rows = rows[given[0, rows + 1 + step] == choices[rows + step]]
        if not len(rows):
            break
        parts = [rows[begin : begin + _BLOCK] for begin in range(0, len(rows), _BLOCK)]
        found = torch.cat([_first_three(head, outputs[0, part]) for part in parts])
        match = (found == choices[rows + 1 + step, None]).cumsum(1) > 0
        if step == 0:
            tally.hits += match.sum(0).cpu()
            tally.right.append(match[:, 0].cpu())
        tally.tried[step] += len(rows)
        tally.accepted[step] += int(match[:, 0].sum())
        rows = rows[match[:, 0]]


def _first_three(head: Head, outputs: Tensor) -> Tensor:
    """Return the three likeliest target ids [n, 3] (the last repeated in a smaller vocabulary)."""
    logits = head.logits(outputs)
    best = logits.topk(min(3, logits.shape[-1]), dim=-1).indices
    ids = head.target_ids.to(best.device)[best]
    return torch.cat([ids, ids[:, -1:].expand(-1, 3 - ids.shape[1])], 1)


@contextmanager
def _rotating(head: Head, base: float) -> Iterator[None]:
    """Let the head rotate by another base for a while; its scaling stays."""
    kept = head.rotary_emb
    if base == head.config.rope_theta:
        yield
        return
    config = deepcopy(kept.config)
    config.rope_parameters = {**config.rope_parameters, "rope_theta": base}
    head.rotary_emb = type(kept)(config).to(head.target_ids.device)
    try:
        yield
    finally:
        head.rotary_emb = kept


def _clearly_better(right: dict[float, Tensor]) -> float | None:
    """Return the best other base whose gains over the head's own outweigh its losses by more than chance would."""
    own, *others = right
    found: tuple[float, float] | None = None
    for base in others:
        gained = int((right[base] & ~right[own]).sum())
        lost = int((right[own] & ~right[base]).sum())
        if gained - lost > _CLEARLY * sqrt(gained + lost) and (found is None or gained - lost > found[0]):
            found = (gained - lost, base)
    return None if found is None else found[1]
