"""Whether a prompt that would train holds an item of an evaluation: such a prompt is not used.

Three rules, from strict to loose, on words (Unicode letters and digits, case and compatibility forms folded):

- the same words: the item itself, whatever its punctuation;
- 13 words in a row that an item has too: the usual test for contamination, since so long a run is hardly chance;
- half of the 8-word runs of the shorter of the two: finds questions that are shorter than 13 words within a longer
  prompt, and items with a few words changed.

Runs that more than ten items share are an evaluation's frame ("Answer the following multiple choice question …") and
not one of its items; they count for nothing. Texts under four words ("Why?") name no item.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Evaluation", "Offence"]

_WORDS = re.compile(r"\w+")
_LONG, _SHORT = 13, 8
_SHARE = 0.5
_FRAME = 10
_FEWEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Offence:
    """A prompt that holds an evaluation's item."""

    index: int
    """Number of the prompt in the list that was checked, counted from 0."""
    prompt: str
    item: str
    """The item that it holds."""
    rule: str
    """Which rule found it."""


class Evaluation:
    """The items of one or several evaluations, indexed by their runs of words."""

    def __init__(self, items: Iterable[str] = ()) -> None:
        self._items: list[str] = []
        self._equal: dict[tuple[str, ...], int] = {}
        self._short: dict[int, list[int]] = defaultdict(list)
        self._long: dict[int, list[int]] = defaultdict(list)
        self._runs: list[int] = []
        for item in items:
            words = _words(item)
            if len(words) < _FEWEST or words in self._equal:
                continue
            number = len(self._items)
            self._equal[words] = number
            self._items.append(item)
            short = set(_grams(words, _SHORT))
            for gram in short:
                self._short[gram].append(number)
            for gram in set(_grams(words, _LONG)):
                self._long[gram].append(number)
            self._runs.append(len(short))
        for index in (self._short, self._long):
            for gram in [gram for gram, found in index.items() if len(found) > _FRAME]:
                del index[gram]

    def __len__(self) -> int:
        return len(self._items)

    def offenders(self, prompts: Iterable[str]) -> list[Offence]:
        """Return every prompt that holds an item, with the first item found."""
        found = []
        for index, prompt in enumerate(prompts):
            told = self._find(prompt)
            if told is not None:
                found.append(Offence(index=index, prompt=prompt, item=self._items[told[0]], rule=told[1]))
        return found

    def holds(self, prompt: str) -> bool:
        """Return whether this prompt holds an item."""
        return self._find(prompt) is not None

    def _find(self, prompt: str) -> tuple[int, str] | None:
        words = _words(prompt)
        if words in self._equal:
            return self._equal[words], "the same words"
        for gram in _grams(words, _LONG):
            if gram in self._long:
                return self._long[gram][0], f"{_LONG} words in a row"
        grams = set(_grams(words, _SHORT))
        hits = Counter(number for gram in grams for number in self._short.get(gram, ()))
        for number, count in hits.items():
            if count >= _SHARE * min(len(grams), self._runs[number]):
                return number, f"half of the runs of {_SHORT} words"
        return None


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORDS.findall(unicodedata.normalize("NFKC", text).casefold()))


def _grams(words: Sequence[str], size: int) -> Iterator[int]:
    for start in range(len(words) - size + 1):
        yield hash(tuple(words[start : start + size]))
