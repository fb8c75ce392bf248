"""The quick counts are sacrebleu's own, whatever the texts."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from draftboard.scoring.ngrams import QuickBleu, QuickChrf

ANY = st.text(st.characters(codec=None), max_size=30)


def both(hypothesis: str, references: list[str]) -> tuple[list[list[int]], list[list[int]]]:
    streams = [[text] for text in references]
    pairs = [(QuickBleu(force=True), BLEU(force=True)), (QuickChrf(), CHRF())]
    ours, theirs = zip(*pairs, strict=True)
    return (
        [metric._extract_corpus_statistics([hypothesis], streams)[0] for metric in ours],
        [metric._extract_corpus_statistics([hypothesis], streams)[0] for metric in theirs],
    )


@settings(max_examples=200, deadline=None)
@given(
    st.text(alphabet="ab \n", max_size=40), st.lists(st.text(alphabet="ab c\t", max_size=40), min_size=1, max_size=3)
)
def test_small_alphabets(hypothesis, references):
    ours, theirs = both(hypothesis, references)
    assert ours == theirs


@settings(max_examples=100, deadline=None)
@given(ANY, st.lists(ANY, min_size=1, max_size=2))
def test_any_texts(hypothesis, references):
    ours, theirs = both(hypothesis, references)
    assert ours == theirs


@pytest.mark.parametrize("letters", [1, 64, 1200, 1300, 5000])
def test_alphabets_of_any_size(letters):
    """Six characters of more than 1,290 letters do not fit into one number."""
    rng = random.Random(letters)
    text = "".join(chr(0x4E00 + rng.randrange(letters)) for _ in range(6000))
    other = "".join(char if rng.random() < 0.7 else chr(0x4E00) for char in text)
    ours, theirs = both(text, [other, text[:50]])
    assert ours == theirs
    assert {type(count) for counts in ours for count in counts} == {int}


@pytest.mark.parametrize("words", [1, 100, 40_000])
def test_vocabularies_of_any_size(words):
    """Four words of more than 46,340 do not fit into one number."""
    text = " ".join(f"w{i % words}" for i in range(max(words, 300)))
    other = " ".join(f"v{word}" if i % 3 else word for i, word in enumerate(text.split()))
    ours, theirs = both(text, [other])
    assert ours == theirs
