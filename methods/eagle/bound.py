"""A head bound to the target of a run: found, loaded, checked, reduced and timed once, and kept with the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Literal

import numpy as np
import torch

from draftboard.methods.artifact import read_artifact
from draftboard.methods.eagle.bundled import bundled_head, bundled_heads
from draftboard.methods.eagle.checkpoint import KIND, VOCABULARY, load_counts, load_head, read_config
from draftboard.methods.eagle.config import HeadConfig, TargetShape
from draftboard.methods.eagle.drafter import Pairs
from draftboard.methods.eagle.heads import Head
from draftboard.methods.eagle.sizing import HeadCost, fastest
from draftboard.methods.eagle.vocabulary import most_frequent
from draftboard.methods.engine.cost import CostCurve
from draftboard.methods.engine.model import LanguageModel
from draftboard.methods.engine.scores import Scores
from draftboard.methods.engine.tree import TokenTree
from draftboard.methods.errors import MethodError
from draftboard.methods.method import Binding, Preflight

__all__ = ["BoundHead", "Wanted", "bound_head", "check_head_fits", "measure_head"]

Kind = Literal["eagle", "eagle3"]

_ROOT_ROWS = (1, 4, 16, 64)
_LEVEL_ROWS = (1, 4, 8, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which head a method asks for."""

    method: str
    kind: Kind
    head: str
    """A folder, a bundled name, a hub id, or `auto`."""
    draft_vocab: int
    """Ids to draft over; 0 for as many as the head does."""
    counts: Path | None
    """How often ids stand in a text, where the head does not say it."""


@dataclass(slots=True, kw_only=True)
class BoundHead:
    """A head that shares its target's tensors."""

    head: Head
    target: LanguageModel
    _cost: HeadCost | None = field(default=None)

    def cost(self, vocab_size: int) -> HeadCost:
        """Return what its forwards cost, measured at the first call."""
        if self._cost is None:
            self._cost = measure_head(self.head, self.target, vocab_size=vocab_size)
        return self._cost


def check_head_fits(wanted: Wanted, known: Preflight) -> None:
    """Raise MethodError, before any weights are loaded, for a head that is not there or is one for another target."""
    folder = _folder(wanted, known.find_folder, lambda record: record.get("target") == known.target, known.target)
    if known.hidden and known.layers:
        shape = TargetShape(
            name=known.target, hidden=known.hidden, vocab=known.vocabulary.logit_width, layers=known.layers
        )
        _check_kind(wanted, read_config(folder, target=shape, say=lambda text: None), folder)
    if wanted.draft_vocab:
        _counts(wanted, folder, known.vocabulary.logit_width)


def bound_head(wanted: Wanted, binding: Binding) -> BoundHead:
    """Return the head, loaded once a target. Raises MethodError for one that does not fit."""
    target = binding.target
    if not isinstance(target, LanguageModel):
        raise MethodError(f"{wanted.method} needs a target whose hidden states and embeddings can be read")
    key = ("eagle", wanted.kind, wanted.head, wanted.draft_vocab, str(wanted.counts))
    if key not in target.attached:
        target.attached[key] = _load(wanted, binding, target)
    found: BoundHead = target.attached[key]
    return found


def _load(wanted: Wanted, binding: Binding, target: LanguageModel) -> BoundHead:
    folder = _folder(
        wanted,
        binding.find_folder,
        lambda record: not binding.fingerprint or record.get("target_fingerprint") == binding.fingerprint,
        "the target",
    )
    shape = TargetShape(
        name=str(getattr(target.config, "name_or_path", "") or "the target"),
        hidden=target.input_embedding.shape[1],
        vocab=target.output_embedding.shape[0],
        layers=int(target.config.num_hidden_layers),
        fingerprint=binding.fingerprint,
    )
    head = load_head(folder, target=shape, dtype=target.dtype, embedding=target.input_embedding)
    _check_kind(wanted, head.config, folder)
    if wanted.draft_vocab and wanted.draft_vocab < len(head.target_ids):
        counts = _counts(wanted, folder, shape.vocab)
        # Only ids that the head drafts already can be chosen.
        masked = torch.full_like(counts, -1)
        masked[head.target_ids] = counts[head.target_ids]
        ends = sorted(binding.eos_ids & set(head.target_ids.tolist()))
        head.restrict(most_frequent(masked, wanted.draft_vocab, always=ends[: wanted.draft_vocab]))
    head = head.to(target.device)
    head.bind(target.input_embedding, target.output_embedding)
    return BoundHead(head=head, target=target)


def _folder(
    wanted: Wanted,
    find: Callable[[str], Path] | None,
    fits: Callable[[dict[str, object]], bool],
    target: str,
) -> Path:
    if wanted.head == "auto":
        for name in bundled_heads():
            folder = bundled_head(name)
            if folder is not None:
                record = read_artifact(folder, KIND)
                if record.get("method") == wanted.kind and fits(record):
                    return folder
        raise MethodError(
            f"{wanted.method}: no head for {target} comes with draftboard; name one (head = a folder or a hub id), or "
            f"train one with draftboard prepare {wanted.kind} --model {target}"
        )
    return find(wanted.head) if find is not None else Path(wanted.head)


def _check_kind(wanted: Wanted, config: HeadConfig, folder: Path) -> None:
    if config.kind != wanted.kind:
        others = "eagle3" if config.kind == "eagle3" else "eagle or eagle2"
        raise MethodError(f"{folder} is a head for the method {others}, and not for {wanted.method}")


def _counts(wanted: Wanted, folder: Path, vocab: int) -> torch.Tensor:
    path = wanted.counts or folder
    counts = load_counts(path) if path.is_dir() else None
    if counts is None:
        raise MethodError(
            f"{wanted.method}: draft_vocab = {wanted.draft_vocab} needs to know how often tokens occur, and {path} "
            f"does not say it; set counts to a head's folder with {VOCABULARY}, or leave draft_vocab at 0"
        )
    if counts.shape != (vocab,):
        raise MethodError(f"{wanted.method}: {path} counts {len(counts)} ids; the target has {vocab}")
    return counts


def measure_head(
    head: Head, target: LanguageModel, *, vocab_size: int, clock: Callable[[], int] = perf_counter_ns
) -> HeadCost:
    """Time the head's forwards beside a one-row forward of the target, all behind the same prefix.

    They take turns and each keeps its fastest run, as the target's own curve is measured.
    """
    prefix = max(1, min(200, target.window // 2))
    pairs = Pairs(head, vocab_size=vocab_size)
    width = min(10, pairs.count)

    def states(rows: int) -> Scores:
        shape = rows, head.config.target_hidden
        zero = torch.zeros(shape, dtype=target.dtype, device=target.device)
        return Scores(zero, dict.fromkeys(head.config.taps, zero))

    def root(rows: int) -> None:
        pairs.queue(states(rows))
        pairs.rank(pairs.flush([1] * rows, 1)[-1:], width)
        pairs.rewind(prefix)

    def level(rows: int) -> None:
        outputs = torch.zeros(rows, head.config.hidden, dtype=target.dtype, device=target.device)
        seen = np.eye(rows, dtype=np.bool_)
        pairs.rank(pairs.expand(outputs, [1] * rows, 1, seen), width)
        pairs.forget()

    with torch.inference_mode():
        target.reserve(prefix + 1)
        target.prefill([1] * prefix)
        pairs.queue(states(prefix))
        pairs.flush([1] * prefix, max(_ROOT_ROWS))
        took = fastest(
            {
                "target": lambda: target.forward(TokenTree([1])).best(),
                **{("root", rows): partial(root, rows) for rows in _ROOT_ROWS},
                **{("level", rows): partial(level, rows) for rows in _LEVEL_ROWS},
            },
            synchronize=target.synchronize,
            clock=clock,
        )
    one = took["target"]

    def curve(kind: str, rows: tuple[int, ...]) -> CostCurve:
        cost = np.maximum.accumulate([took[kind, count] / one for count in rows])
        return CostCurve(rows=rows, cost=tuple(round(float(value), 4) for value in cost))

    return HeadCost(root=curve("root", _ROOT_ROWS), level=curve("level", _LEVEL_ROWS))
