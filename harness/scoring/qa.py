"""Short answers against aliases: exact match, token F1 and containment, after SQuAD's normalisation."""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from draftboard.scoring.records import Answer, Item, Scores, score_each
from draftboard.scoring.registry import register_scorer
from draftboard.scoring.texts import split_spaceless

__all__ = ["QaScore", "qa_score", "qa_tokens", "score_qa"]

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_SIGNATURE = "norm:squad,nfkc|spaceless:letters|multi:max|agg:mean|draftboard:1"


def qa_tokens(text: str, *, articles: bool = False) -> list[str]:
    """Return the normalised tokens: NFKC, lower case, no ASCII punctuation, no a/an/the, split at blanks.

    Text in scripts without blanks is split into letters. `articles` keeps the articles.
    """
    text = unicodedata.normalize("NFKC", text).lower().translate(_PUNCTUATION)
    if not articles:
        text = _ARTICLES.sub(" ", text)
    return split_spaceless(text).split()


def _with_articles(text: str) -> list[str]:
    return qa_tokens(text, articles=True)


def _raw_tokens(text: str) -> list[str]:
    return unicodedata.normalize("NFKC", text).lower().split()


# An alias of articles alone ("The The", "A") or of punctuation alone would match everything after normalisation.
_READINGS = (qa_tokens, _with_articles, _raw_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class QaScore:
    """How one answer fares against its aliases: `em` and `contains` are 0 or 1, `f1` is 0-1."""

    em: float
    f1: float
    contains: float


def _against(answer: Sequence[str], gold: Sequence[str]) -> QaScore:
    size = len(gold)
    common = sum((Counter(answer) & Counter(gold)).values())
    return QaScore(
        em=float(answer == gold),
        f1=2 * common / (len(answer) + size) if size else 0.0,
        contains=float(size > 0 and any(answer[i : i + size] == gold for i in range(len(answer) - size + 1))),
    )


def qa_score(text: str, aliases: Sequence[str]) -> QaScore:
    """Score one answer against alternatives; each figure is that of the alias which suits it best."""
    read: dict[int, list[str]] = {}
    scored = []
    for alias in aliases:
        level, gold = next(
            ((level, gold) for level, reading in enumerate(_READINGS) if (gold := reading(alias))), (0, [])
        )
        if level not in read:
            read[level] = _READINGS[level](text)
        scored.append(_against(read[level], gold))
    return QaScore(
        em=max((s.em for s in scored), default=0.0),
        f1=max((s.f1 for s in scored), default=0.0),
        contains=max((s.contains for s in scored), default=0.0),
    )


@register_scorer("qa", about="short answers against aliases: contains, token F1, exact match")
def score_qa(answers: Sequence[Answer]) -> Scores:
    """Score short answers: `contains` and `em` on 0-1, `f1` on 0-100.

    For chat models `contains` is the headline: a chatty answer has no exact match by construction. It can be gained by
    length, so `extras` hold `mean_words`.
    """

    def measure(item: Item) -> dict[str, float]:
        figures = qa_score(item.text, item.references)
        return {"em": figures.em, "f1": 100 * figures.f1, "contains": figures.contains}

    return score_each(answers, scorer="qa", signature=_SIGNATURE, metrics=("contains", "f1", "em"), measure=measure)
