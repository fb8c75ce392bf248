"""What it costs to score 10,000 generations of 60 to 150 words.

    pytest tests/benchmarks -k scoring --benchmark-enable --benchmark-columns=min,median,rounds

`extra_info` (in the JSON of `--benchmark-json FILE`) holds the process-CPU seconds of the fastest round. The texts are
made up: words by Zipf's law with English endings, the answers a noisy copy of their references, every fifth with a
preamble, so that cleaned text is scored apart.
"""

import time
from typing import Any

import numpy as np
import pytest

from draftboard.scoring import Answer, score

ANSWERS = 10_000
FEW = 40
"""Answers under `--benchmark-disable`, where only the code is tried."""

_SYLLABLES = ["ba", "den", "fo", "gri", "ka", "lu", "mo", "nar", "pe", "sti", "ra", "to", "ven", "wil", "zo"]
_ENDINGS = ("", "", "", "s", "ed", "ing", "ly", "ness", "ation")
_OPTIONS = ("the first kind", "the second kind", "neither of them", "both of them")


def make_texts(number: int, seed: int = 1) -> list[tuple[str, str]]:
    """Return pairs of an answer and its reference."""
    rng = np.random.default_rng(seed)
    stems = ["".join(rng.choice(_SYLLABLES, rng.integers(1, 4))) for _ in range(4000)]
    words = np.array([stem + ending for stem in dict.fromkeys(stems) for ending in _ENDINGS])
    rng.shuffle(words)
    weights = 1.0 / np.arange(1, len(words) + 1)
    weights /= weights.sum()
    pairs = []
    for i in range(number):
        length = int(rng.integers(60, 151))
        reference = rng.choice(words, length, p=weights).astype(object)
        answer = reference.copy()
        changed = rng.random(length) < 0.4
        answer[changed] = rng.choice(words, int(changed.sum()), p=weights)
        for text in (reference, answer):
            for end in range(int(rng.integers(8, 25)), length - 1, int(rng.integers(8, 25))):
                text[end] = f"{text[end]}."
        preamble = "Here is the translation:\n\n" if i % 5 == 0 else ""
        pairs.append((f"{preamble}{' '.join(answer)}.", f"{' '.join(reference)}."))
    return pairs


def make_answers(scorer: str, number: int) -> list[Answer]:
    """Return answers with references of the kind that the scorer reads."""
    answers = []
    for i, (text, reference) in enumerate(make_texts(number)):
        references: tuple[str, ...] = (reference,)
        if scorer == "qa":
            references = (" ".join(reference.split()[:3]), reference.split()[5])
        elif scorer == "letter":
            text, references = f"{text}\nThe answer is {'ABCD'[i % 4]}.", ("ABCD"[i % 3],)
        elif scorer == "last_number":
            text, references = f"{text} That makes {i % 7} of 1,200.\n#### {i}", (f"#### {i}",)
        answers.append(
            Answer(
                sample_id=str(i),
                turn=0,
                text=text,
                references=references,
                options=_OPTIONS if scorer == "letter" else (),
                language="en",
                category=str(i % 57),
                group=str(i % 4),
            )
        )
    return answers


@pytest.mark.parametrize("scorer", ["bleu", "rouge", "qa", "letter", "last_number"])
@pytest.mark.benchmark(group="scoring 10,000 generations")
def test_scoring(benchmark: Any, scorer: str) -> None:
    answers = make_answers(scorer, ANSWERS if benchmark.enabled else FEW)
    score(answers[:2], scorer)
    spent: list[float] = []

    def timed() -> int:
        begun = time.process_time()
        scores = score(answers, scorer)
        spent.append(time.process_time() - begun)
        return scores.counts["scored"]

    assert benchmark.pedantic(timed, rounds=1) == len(answers)
    benchmark.extra_info.update(answers=len(answers), cpu_s=min(spent))
