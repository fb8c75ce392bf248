"""The counts of BLEU and chrF by arrays: those of sacrebleu in a third of the time, which thousands of answers need.

Words or characters become numbers, and an n-gram one number to the base of the two texts' vocabulary, so that counting
n-grams is sorting numbers. Only the counting is ours: tokenizers, formulas and signatures stay sacrebleu's, which also
counts where the numbers would not fit 62 bits.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

__all__ = ["QuickBleu", "QuickChrf"]

_FEW = 4096
"""Up to so many possible n-grams counting beats sorting."""

_Ids = NDArray[np.int64]


class QuickBleu(BLEU):
    """sacrebleu's BLEU; answers with several references are counted by it."""

    def _extract_reference_info(self, refs: Any) -> dict[str, Any]:
        if len(refs) == 1:
            return {"reference": refs[0].split()}
        return dict(super()._extract_reference_info(refs))

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[int]:
        reference: list[str] | None = ref_kwargs.get("reference")
        if reference is None:
            return list(super()._compute_segment_statistics(hypothesis, ref_kwargs))
        words = hypothesis.split()
        ids = {word: i for i, word in enumerate(dict.fromkeys((*words, *reference)))}
        base = max(len(ids), 1)
        if base**self.max_ngram_order >= 2**62:
            info = super()._extract_reference_info([" ".join(reference)])
            return list(super()._compute_segment_statistics(hypothesis, info))
        ours, theirs = (np.array([ids[word] for word in side], dtype=np.int64) for side in (words, reference))
        orders = list(_orders(ours, theirs, base, self.max_ngram_order))
        correct = [common for _, _, common in orders]
        total = [ours for ours, _, _ in orders]
        return [len(words), len(reference), *correct, *total]


class QuickChrf(CHRF):
    """sacrebleu's chrF without words."""

    def _extract_reference_info(self, refs: Any) -> dict[str, Any]:
        return {"ref_ngrams": list(refs)}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[int]:
        best: list[int] = []
        best_score = -1.0
        for reference in ref_kwargs["ref_ngrams"]:
            counts = self._counts("".join(hypothesis.split()), "".join(reference.split()))
            score = self._compute_f_score(counts)
            if score > best_score:
                best, best_score = counts, score
        return best

    def _counts(self, hypothesis: str, reference: str) -> list[int]:
        """Return hypothesis, reference and common n-grams of each order in turn."""
        points = np.frombuffer((hypothesis + reference).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        alphabet, ids = np.unique(points, return_inverse=True)
        base = max(len(alphabet), 1)
        if base**self.char_order >= 2**62:
            info = super()._extract_reference_info([reference])
            return list(super()._compute_segment_statistics(hypothesis, info))
        orders = _orders(ids[: len(hypothesis)], ids[len(hypothesis) :], base, self.char_order)
        # Without n-grams in the reference those of the hypothesis do not count.
        return [count for ours, theirs, common in orders for count in (ours if theirs else 0, theirs, common)]


def _orders(ours: _Ids, theirs: _Ids, base: int, highest: int) -> Iterator[tuple[int, int, int]]:
    """Give for each order the n-grams of both sides and how many they have in common."""
    left, right = ours, theirs
    for order in range(1, highest + 1):
        if order > 1:
            left, right = left[:-1] * base + ours[order - 1 :], right[:-1] * base + theirs[order - 1 :]
        yield len(left), len(right), _common(left, right)


def _common(left: _Ids, right: _Ids) -> int:
    """Return the size of the intersection as multisets."""
    if not len(left) or not len(right):
        return 0
    bins = int(max(left.max(), right.max())) + 1
    if bins <= _FEW:
        return int(np.minimum(np.bincount(left, minlength=bins), np.bincount(right, minlength=bins)).sum())
    # The lowest bit tells the side, so that one sort brings equal n-grams of both sides together.
    both = np.sort(np.concatenate((left * 2, right * 2 + 1)))
    grams, side = both >> 1, both & 1
    starts = np.concatenate(([0], np.flatnonzero(grams[1:] != grams[:-1]) + 1))
    sizes = np.diff(np.append(starts, len(grams)))
    theirs = np.add.reduceat(side, starts)
    return int(np.minimum(theirs, sizes - theirs).sum())
