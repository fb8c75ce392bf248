"""The target's own scores: at a first difference, and how far rounding moves them on this machine.

Both rest on teacher forcing: one forward over a text that is there already, without a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from draftboard.audit.report import Evidence, Limit
from draftboard.methods.engine.tree import TokenTree

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["look", "measure_limit"]

_LONGEST = 1024
"""Tokens of a text that the limit is measured on: the scores of all its positions stand in memory at once."""
_TOP = 5
_PERCENTILE = 0.999


def look(target: Any, ids: Sequence[int], baseline: int, method: int) -> Evidence | None:
    """Return what the target thinks of two tokens behind `ids`, in one full forward.

    None where it cannot be asked: an id that it does not know before the place, or scores that are not numbers.
    """
    import torch

    if not ids or min(ids) < 0 or max(ids) >= target.vocab_size:
        return None
    with torch.inference_mode():
        logits = target.prefill(ids).logits[-1].double()
    if bool(logits.isnan().any()):
        return None
    best, second = logits.topk(2).values.tolist()

    def below(token: int) -> float | None:
        return _finite(best - float(logits[token])) if 0 <= token < len(logits) else None

    def rank(token: int) -> int | None:
        return 1 + int((logits > logits[token]).sum()) if 0 <= token < len(logits) else None

    return Evidence(
        best=int(logits.argmax()),
        gap=_finite(best - second),
        baseline_below=below(baseline),
        method_below=below(method),
        baseline_rank=rank(baseline),
        method_rank=rank(method),
    )


def measure_limit(
    target: Any,
    texts: Sequence[Sequence[int]],
    *,
    floor: float,
    positions: int = 1000,
    say: Callable[[str], None] = lambda text: None,
) -> Limit:
    """Return theta: twice the 99.9th percentile of |logit difference|, at least `floor` (suites-and-scoring 9.2).

    Each text is read once token by token behind a cached prefix and once in one full forward; the five best tokens of
    each position enter. Every text gives an equal share of the positions, its last ones; one that is too short goes
    on with what the target would write. Raises ValueError without a text of at least one token.
    """
    import torch

    usable = [list(ids)[-min(_LONGEST, target.window) :] for ids in texts if len(ids)]
    if not usable:
        raise ValueError("a limit needs a text to be measured on")
    share = ceil(positions / len(usable))
    found: list[Tensor] = []
    say(f"measuring theta over {positions} positions")
    with torch.inference_mode():
        for ids in _rounds(usable):
            count = sum(len(rows) for rows in found)
            if count >= positions:
                break
            found.append(_moved(target, ids, min(share, positions - count)))
    moved = torch.cat(found).flatten()
    percentile = float(torch.quantile(moved, _PERCENTILE)) if len(moved) else 0.0
    return Limit(
        value=max(2 * percentile, floor) if isfinite(percentile) else floor,
        source="measured" if isfinite(percentile) else "default",
        positions=sum(len(rows) for rows in found),
        percentile=percentile if isfinite(percentile) else None,
    )


def _rounds(texts: Sequence[list[int]]) -> Iterator[list[int]]:
    """Yield every text, then every one without its first token, and so on: the same words at other places."""
    for start in range(max(map(len, texts))):
        yield from (ids[start:] for ids in texts if len(ids) > start)


def _moved(target: Any, ids: list[int], wanted: int) -> Tensor:
    """Return [n, 5]: by how much the best tokens' logits differ between the two ways of reading."""
    import torch

    prefix = max(1, len(ids) - wanted)
    wanted = min(wanted, target.window - prefix)
    scores = target.prefill(ids[:prefix]).logits[-1]
    text, rows = ids[:prefix], []
    for _ in range(wanted):
        text.append(ids[len(text)] if len(text) < len(ids) else int(scores.argmax()))
        target.reserve(len(text) + 1)
        scores = target.forward(TokenTree(text[-1:])).logits[-1]
        target.keep([0])
        rows.append(scores.double())
    if not rows:
        return torch.zeros(0, _TOP, dtype=torch.float64)
    cached = torch.stack(rows)
    whole = target.prefill(text, all_logits=True).logits[prefix:].double()
    top = whole.topk(min(_TOP, whole.shape[-1])).indices
    moved: Tensor = (cached - whole).abs().gather(-1, top).cpu()
    return moved


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
