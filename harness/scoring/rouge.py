"""ROUGE with rouge-score's words and stemmer. Its tokenizer deletes all but a-z and 0-9, so other scripts get ours.

rouge-score reads both texts anew for every measure and fills a table of all word pairs twice; here a text is read
once, a word is stemmed once, and the tables are those of `lcs`. The values stay rouge-score's.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from itertools import pairwise
from typing import Protocol, TypeVar

from draftboard.scoring.lcs import lcs_length, lcs_places, token_places
from draftboard.scoring.records import Answer, Item, Scores, score_each
from draftboard.scoring.registry import register_scorer
from draftboard.scoring.texts import clean, mostly_non_latin, tidy, unicode_tokens

__all__ = ["ROUGE", "rouge_pair", "rouge_tokenizer", "score_rouge", "split_sentences"]

ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
_SENTENCE_END = re.compile(r"(?<=[.!?])[^\S\n]+|(?<=[。！？])(?=[^\n])")
_LATIN = re.compile("[a-z0-9]")

G = TypeVar("G", bound=Hashable)


class _Tokenizer(Protocol):
    by_line: bool
    """Whether the words of a text are those of its lines, one after the other."""

    def tokenize(self, text: str) -> list[str]:
        """Return the words of a text."""


class _UnicodeTokenizer:
    """`unicode_tokens`; a text of signs alone gives its signs."""

    by_line = False

    def tokenize(self, text: str) -> list[str]:
        return unicode_tokens(text) or [char for char in text if not char.isspace()]


class _LatinTokenizer:
    """rouge-score's tokenizer, with a memory for the stems: the same few thousand words come again and again."""

    by_line = True

    def __init__(self, stemmer: bool) -> None:
        from rouge_score.tokenizers import DefaultTokenizer

        theirs = DefaultTokenizer(use_stemmer=stemmer)._stemmer
        self.stem: Callable[[str], str] = lru_cache(maxsize=1 << 16)(theirs.stem) if stemmer else str

    def tokenize(self, text: str) -> list[str]:
        from rouge_score.tokenize import tokenize

        words: list[str] = tokenize(text, self)
        return words


@lru_cache(maxsize=4)
def _tokenizer(name: str, stemmer: bool) -> _Tokenizer:
    return _UnicodeTokenizer() if name == "unicode" else _LatinTokenizer(stemmer)


def split_sentences(text: str) -> str:
    """Put each sentence on its own line: a break after `.`, `!` or `?` and a blank; existing breaks stay."""
    return _SENTENCE_END.sub("\n", text)


def rouge_tokenizer(reference: str) -> str:
    """Return `rouge-score` or, where it would delete most of the reference, `unicode`.

    The reference alone decides, so that all methods are scored alike.
    """
    lost = mostly_non_latin(reference) or not _LATIN.search(reference.lower())
    return "unicode" if lost else "rouge-score"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """A text's words, as a whole and line by line."""

    words: list[str]
    lines: list[list[str]]
    grams: tuple[Counter[str], Counter[tuple[str, str]]]
    """Single words and pairs of neighbours."""

    @classmethod
    def of(cls, text: str, tokenizer: _Tokenizer, *, split: bool) -> "_Text":
        lines = [tokenizer.tokenize(line) for line in (split_sentences(text) if split else text).split("\n") if line]
        words = [word for line in lines for word in line] if tokenizer.by_line else tokenizer.tokenize(text)
        return cls(words=words, lines=lines, grams=(Counter(words), Counter(pairwise(words))))


def _f1(hits: int, hypothesis: int, reference: int) -> float:
    """Return F1 (0-1) by rouge-score's own formula, so that not even the last digit differs."""
    from rouge_score.scoring import fmeasure

    if not hypothesis or not reference:
        return 0.0
    return float(fmeasure(hits / hypothesis, hits / reference))


def _common(left: Counter[G], right: Counter[G]) -> int:
    return sum(min(count, right[gram]) for gram, count in left.items() if gram in right)


def _union_hits(hypothesis: _Text, reference: _Text) -> int:
    """Return the words of ROUGE-Lsum: per reference line the union over the hypothesis's lines, none counted twice."""
    lines = [(token_places(line), len(line)) for line in hypothesis.lines]
    ours: Counter[str] = Counter(word for line in hypothesis.lines for word in line)
    theirs: Counter[str] = Counter(word for line in reference.lines for word in line)
    hits = 0
    for line in reference.lines:
        places = {place for columns, width in lines for place in lcs_places(line, columns, width)}
        for place in sorted(places):
            word = line[place]
            if ours[word] > 0 and theirs[word] > 0:
                hits += 1
                ours[word] -= 1
                theirs[word] -= 1
    return hits


def _f1s(hypothesis: _Text, reference: _Text) -> dict[str, float]:
    ours, theirs = len(hypothesis.words), len(reference.words)
    lengths = sum(map(len, hypothesis.lines)), sum(map(len, reference.lines))
    longest = lcs_length(reference.words, token_places(hypothesis.words), ours)
    return {
        "rouge1": _f1(_common(hypothesis.grams[0], reference.grams[0]), ours, theirs),
        "rouge2": _f1(_common(hypothesis.grams[1], reference.grams[1]), max(ours - 1, 0), max(theirs - 1, 0)),
        "rougeL": _f1(longest, ours, theirs),
        "rougeLsum": _f1(_union_hits(hypothesis, reference), *lengths),
    }


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
    words = _tokenizer(name, stemmer)
    return _f1s(_Text.of(hypothesis, words, split=split), _Text.of(reference, words, split=split))


def _best(texts: Sequence[str], references: Sequence[str], *, stemmer: bool, split: bool) -> list[dict[str, float]]:
    """Return for each text and measure the F1 (0-100) of the reference that suits it best."""
    names = [rouge_tokenizer(reference) for reference in references]
    named = [
        (name, _Text.of(reference, _tokenizer(name, stemmer), split=split))
        for name, reference in zip(names, references, strict=True)
    ]
    best = []
    for text in texts:
        read = {name: _Text.of(text, _tokenizer(name, stemmer), split=split) for name in set(names)}
        pairs = [_f1s(read[name], reference) for name, reference in named]
        best.append({measure: 100 * max(pair[measure] for pair in pairs) for measure in ROUGE})
    return best


def _signature(answers: Sequence[Answer], *, stemmer: bool, split: bool) -> str:
    used = {rouge_tokenizer(tidy(text)) for answer in answers for text in answer.references if text.strip()}
    stem = "yes" if stemmer and used != {"unicode"} else "no"
    return (
        f"rouge1,2,L,Lsum|stem:{stem}|split:{'punct' if split else 'lf'}"
        f"|tok:{'+'.join(sorted(used)) or 'rouge-score'}|agg:mean|multi:max|rouge-score:{version('rouge-score')}"
    )


@register_scorer("rouge", about="ROUGE-1, -2, -L, -Lsum F1 (rouge-score, stemmer on), mean over samples")
def score_rouge(answers: Sequence[Answer], *, stemmer: bool = True, split: bool = True) -> Scores:
    """Score summaries: mean F1 over samples × 100, best reference per measure and sample.

    `extras` with `_clean` are the same after `clean`, which is meant for summaries of one sentence.
    """
    signature = _signature(answers, stemmer=stemmer, split=split)

    def measure(item: Item) -> dict[str, float]:
        texts = list(dict.fromkeys((item.text, clean(item.text))))
        best = _best(texts, item.references, stemmer=stemmer, split=split)
        return {**best[0], **{f"{name}_clean": value for name, value in best[-1].items()}}

    return score_each(
        answers,
        scorer="rouge",
        signature=signature,
        metrics=ROUGE,
        extras={f"{name}_clean": f"text:clean|{signature}" for name in ROUGE},
        measure=measure,
    )
