"""Corpus BLEU and chrF from sums of sacrebleu's counts, for many resamples at once.

`draftboard.scoring.pooled_score` is the same for one selection of answers, by sacrebleu itself.
"""

from collections.abc import Sequence

from draftboard.statistics import Floats

__all__ = ["corpus_bleu_of", "corpus_chrf_of", "corpus_formula"]


def corpus_formula(name: str, sums: Sequence[Floats]) -> Floats:
    """Return the corpus score of that name (`bleu`, `chrf`, either with `_clean`), 0-100, from sums of its counts."""
    return corpus_bleu_of(sums) if name.startswith("bleu") else corpus_chrf_of(sums)


def corpus_bleu_of(sums: Sequence[Floats]) -> Floats:
    """Return BLEU with exponential smoothing: lengths of answers and references, then matches and totals by order."""
    import numpy as np

    own, reference = np.asarray(sums[0], float), np.asarray(sums[1], float)
    orders = (len(sums) - 2) // 2
    right, total = np.stack(sums[2 : 2 + orders]), np.stack(sums[2 + orders :])
    with np.errstate(all="ignore"):
        # The k-th order without a match counts as half as much of one as the one before it.
        missed = np.cumsum(right == 0, axis=0)
        precision = np.where(right > 0, right / total, 1 / (2.0**missed * total))
        brevity = np.where(own < reference, np.exp(1 - reference / own), 1.0)
        score = 100 * brevity * np.exp(np.log(precision).mean(axis=0))
    some = (right > 0).any(axis=0) & (total > 0).all(axis=0) & (own > 0)
    return np.where(some, np.minimum(score, 100.0), 0.0)


def corpus_chrf_of(sums: Sequence[Floats]) -> Floats:
    """Return chrF2: of each order the n-grams of the answers, of the references, and their matches."""
    import numpy as np

    own, reference, right = (np.stack(sums[part::3]) for part in range(3))
    used = (own > 0) & (reference > 0)
    orders = used.sum(axis=0)
    with np.errstate(all="ignore"):
        precision = np.where(used, right / own, 0.0).sum(axis=0) / orders
        recall = np.where(used, right / reference, 0.0).sum(axis=0) / orders
        score = 100 * 5 * precision * recall / (4 * precision + recall)
    return np.where((orders > 0) & (precision + recall > 0), np.minimum(score, 100.0), 0.0)
