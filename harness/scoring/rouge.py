"""ROUGE by rouge-score. Its tokenizer deletes all but a-z and 0-9, so other scripts get one of ours."""

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from draftboard.scoring.records import Answer, Item, Scores, score_each
from draftboard.scoring.registry import register_scorer
from draftboard.scoring.texts import mostly_non_latin, tidy, unicode_tokens

__all__ = ["ROUGE", "rouge_pair", "rouge_tokenizer", "score_rouge", "split_sentences"]

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
_SENTENCE_END = re.compile(r"(?<=[.!?])[^\S\n]+|(?<=[。！？])(?=[^\n])")
_LATIN = re.compile("[a-z0-9]")


class _UnicodeTokenizer:
    """`unicode_tokens` in the form that rouge-score wants; a text of signs alone gives its signs."""

    def tokenize(self, text: str) -> list[str]:
        return unicode_tokens(text) or [char for char in text if not char.isspace()]


@lru_cache(maxsize=4)
def _scorer(tokenizer: str, stemmer: bool) -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    own = _UnicodeTokenizer() if tokenizer == "unicode" else None
    return RougeScorer(list(ROUGE), use_stemmer=stemmer, tokenizer=own)


def split_sentences(text: str) -> str:
    """Put each sentence on its own line: a break after `.`, `!` or `?` and a blank; existing breaks stay."""
    return _SENTENCE_END.sub("\n", text)


def rouge_tokenizer(reference: str) -> str:
    """Return `rouge-score` or, where it would delete most of the reference, `unicode`.

    The reference alone decides, so that all methods are scored alike.
    """
    lost = mostly_non_latin(reference) or not _LATIN.search(reference.lower())
    return "unicode" if lost else "rouge-score"


def rouge_pair(
    hypothesis: str,
    reference: str,
    *,
    stemmer: bool = True,
    split: bool = False,
    tokenizer: str | None = None,
) -> dict[str, float]:
    """Return the four F1 values (0-1) of one pair; 0 where a side is empty.

    `split` puts sentences on own lines first, which changes ROUGE-Lsum only; without it the line breaks of
    the texts count as they are. `tokenizer` is `rouge-score` or `unicode` (which never stems), by default as
    `rouge_tokenizer` says.
    """
    hypothesis, reference = tidy(hypothesis), tidy(reference)
    name = tokenizer or rouge_tokenizer(reference)
    if name not in ("rouge-score", "unicode"):
        raise ValueError(f"unknown ROUGE tokenizer {name!r}: rouge-score or unicode")
    if split:
        hypothesis, reference = split_sentences(hypothesis), split_sentences(reference)
    result = _scorer(name, stemmer).score(reference, hypothesis)
    return {metric: float(result[metric].fmeasure) for metric in ROUGE}


def _signature(tokenizers: set[str], *, stemmer: bool, split: bool) -> str:
    tokenizer = "+".join(sorted(tokenizers)) or "rouge-score"
    return (
        f"rouge1,2,L,Lsum|stem:{'yes' if stemmer else 'no'}|split:{'punct' if split else 'lf'}"
        f"|tok:{tokenizer}|agg:mean|multi:max|rouge-score:{version('rouge-score')}"
    )


@register_scorer("rouge", about="ROUGE-1, -2, -L, -Lsum F1 (rouge-score, stemmer on), mean over samples")
def score_rouge(answers: Sequence[Answer], *, stemmer: bool = True, split: bool = True) -> Scores:
    """Score summaries: mean F1 over samples × 100, best reference per measure and sample."""
    used = {rouge_tokenizer(tidy(text)) for answer in answers for text in answer.references if text.strip()}

    def measure(item: Item) -> dict[str, float]:
        pairs = [rouge_pair(item.text, text, stemmer=stemmer, split=split) for text in item.references]
        return {name: 100 * max(pair[name] for pair in pairs) for name in ROUGE}

    signature = _signature(used, stemmer=stemmer, split=split)
    return score_each(answers, scorer="rouge", signature=signature, metrics=ROUGE, measure=measure)
