"""A head's own, smaller vocabulary. The output layer is most of a small head's cost, and few tokens are most of a text.

EAGLE-3 is trained on one; FR-Spec (Zhao et al. 2025, arXiv:2502.14856) takes rows out of the target's output layer for
EAGLE-2. A token outside it can never be drafted, which costs speed and never correctness.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from draftboard.methods.errors import MethodError

__all__ = ["check_maps", "from_offsets", "kept", "most_frequent", "ranked", "to_offsets"]


def from_offsets(d2t: Tensor) -> Tensor:
    """Return target ids int64 [Vd] of `d2t` int64 [Vd], which holds offsets: target id - draft id."""
    return d2t + torch.arange(len(d2t), device=d2t.device)


def to_offsets(ids: Tensor) -> Tensor:
    """Return `d2t` int64 [Vd] of target ids int64 [Vd]."""
    return ids - torch.arange(len(ids), device=ids.device)


def kept(ids: Tensor, vocab: int) -> Tensor:
    """Return `t2d` bool [V]: which target ids can be drafted."""
    mask = torch.zeros(vocab, dtype=torch.bool)
    mask[ids] = True
    return mask


def check_maps(d2t: Tensor, t2d: Tensor | None, vocab: int, draft_vocab: int) -> None:
    """Raise MethodError unless `d2t` holds ascending ids as offsets and `t2d`, where there is one, marks the same."""
    if d2t.dtype.is_floating_point or d2t.dtype == torch.bool:
        raise MethodError(f"d2t holds {str(d2t.dtype).removeprefix('torch.')} values; it is a table of whole numbers")
    if d2t.shape != (draft_vocab,):
        raise MethodError(f"d2t has shape {list(d2t.shape)} where the draft vocabulary has {draft_vocab} ids")
    ids = from_offsets(d2t.long())
    strays = int(((ids < 0) | (ids >= vocab)).sum())
    falls = int((ids.diff() <= 0).sum())
    if strays or falls:
        # The commonest fault: the table of ids itself. It ascends by itself, which offsets need not do strictly.
        plain = bool((d2t.diff() > 0).all()) and int(d2t.min()) >= 0 and int(d2t.max()) < vocab
        what = f"{strays} ids beyond the target's {vocab}" if strays else f"{falls} ids that do not ascend"
        hint = "; it looks like a table of target ids, and offsets (target id - draft id) are needed" if plain else ""
        raise MethodError(f"d2t gives {what}{hint}")
    if t2d is None:
        return
    if t2d.dtype != torch.bool or t2d.shape != (vocab,):
        kind = str(t2d.dtype).removeprefix("torch.")
        raise MethodError(f"t2d is {kind} {list(t2d.shape)} where bool [{vocab}] marks the ids that can be drafted")
    if not torch.equal(t2d.nonzero()[:, 0], ids):
        raise MethodError(f"t2d marks {int(t2d.sum())} ids, which are not the {draft_vocab} of d2t")


def ranked(counts: Tensor) -> Tensor:
    """Return all ids int64 [V], the most frequent first; equally frequent ones by id. `counts`: whole numbers [V]."""
    return counts.argsort(descending=True, stable=True)


def most_frequent(counts: Tensor, size: int, always: Iterable[int] = ()) -> Tensor:
    """Return `size` target ids, ascending: those in `always` (end of sequence, say) and the most frequent others.

    Raises MethodError if `size` is not between 1 and the vocabulary's.
    """
    if not 1 <= size <= len(counts):
        raise MethodError(f"a draft vocabulary of {size} ids cannot be taken from {len(counts)}")
    first = dict.fromkeys(always)
    rest = [index for index in ranked(counts)[: size + len(first)].tolist() if index not in first]
    return torch.tensor(sorted([*first, *rest][:size]))
