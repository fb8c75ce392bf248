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


def _raw_tokens(text: str) -> list[str]:
    return unicodedata.normalize("NFKC", text).lower().split()


@dataclass(frozen=True, slots=True, kw_only=True)
class QaScore:
    """How one answer fares against its aliases: `em` and `contains` are 0 or 1, `f1` is 0-1."""

    em: float
    f1: float
    contains: float


def _against(text: str, alias: str) -> QaScore:
    answer, gold = qa_tokens(text), qa_tokens(alias)
    if not gold:  # "The The", "A": an alias of articles alone, or of punctuation alone, would match everything
        answer, gold = qa_tokens(text, articles=True), qa_tokens(alias, articles=True)
    if not gold:
        answer, gold = _raw_tokens(text), _raw_tokens(alias)
    common = sum((Counter(answer) & Counter(gold)).values())
    size = len(gold)
    return QaScore(
        em=float(answer == gold),
        f1=2 * common / (len(answer) + size) if size else 0.0,
        contains=float(size > 0 and any(answer[i : i + size] == gold for i in range(len(answer) - size + 1))),
    )


def qa_score(text: str, aliases: Sequence[str]) -> QaScore:
    """Score one answer against alternatives; each figure is that of the alias which suits it best."""
    scored = [_against(text, alias) for alias in aliases]
    return QaScore(
        em=max((s.em for s in scored), default=0.0),
        f1=max((s.f1 for s in scored), default=0.0),
        contains=max((s.contains for s in scored), default=0.0),
    )


@register_scorer("qa", about="short answers against aliases: contains, token F1, exact match")
def score_qa(answers: Sequence[Answer]) -> Scores:
    """Score short answers: `em` and `contains` on 0-1, `f1` on 0-100.

    For chat models `contains` is the headline. It can be gained by length, so `extras` hold `mean_words`.
    """

    def measure(item: Item) -> dict[str, float]:
        figures = qa_score(item.text, item.references)
        return {"em": figures.em, "f1": 100 * figures.f1, "contains": figures.contains}

    return score_each(answers, scorer="qa", signature=_SIGNATURE, metrics=("em", "f1", "contains"), measure=measure)
