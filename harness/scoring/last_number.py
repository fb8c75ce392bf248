"""Final answers of word problems: find the number that an answer ends on and compare it by value."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from draftboard.scoring.records import Answer, Item, Scores, score_each
from draftboard.scoring.registry import register_scorer

__all__ = ["final_number", "find_numbers", "gold_number", "number_value", "score_last_number"]

_CURRENCY = r"(?:\\?[$€£¥₹])"
_GROUP = r"[,\u00a0\u202f]"
_SIGNED = rf"[-+]?{_CURRENCY}?"
_WHOLE = rf"{_SIGNED}(?:[0-9]{{1,3}}(?:{_GROUP}[0-9]{{3}})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?"
_BARE = rf"{_SIGNED}\.[0-9]+"
_BEFORE_BARE = r"\s(\[{=:<>~≈+*/$€£¥₹\"'“‘-"
# 2.5.1 is 2.5 alone, and a period behind a letter ends a sentence: "7 boxes.84" is 7 and 84, "x = .5" is .5.
_FIND = re.compile(rf"(?<![0-9])(?<![0-9]\.){_WHOLE}|(?<![^{_BEFORE_BARE}]){_BARE}")
_NOT_DIGITS = re.compile(rf"{_CURRENCY}|{_GROUP}")
# "#### Step 3: …" and "#### 1. First …" are headings of Markdown, not answers.
_COUNTED = re.compile(r"\b(?:step|part|case|question|problem|example|section|method|phase)\s*[#.:]?\s*$", re.IGNORECASE)
_LISTED = re.compile(r"[.)][ \t]+[*_]*[^\W\d_]")
_ANNOUNCES = re.compile(r"\banswer\b|[:=][\s*_]*$", re.IGNORECASE)
_FOLD = str.maketrans("−－﹣＋．＄￥٬٫＃", "---+.$¥,.#")
_SIGNATURE = "rule:hash-or-last|compare:decimal|draftboard:1"


def _folded(text: str) -> str:
    """Replace digits of other scripts, full-width signs and LaTeX separators.

    Not NFKC, which would turn 5² into 52 and 3½ into 31⁄2.
    """
    text = text.translate(_FOLD).replace("{,}", ",").replace("\\,", ",").replace(",\\!", ",")
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(c)) if unicodedata.decimal(c, None) is not None else c for c in text)


def find_numbers(text: str) -> list[str]:
    """Return all numbers of a text as they stand there: `-$5`, `1,234.50`, `.5`."""
    return _FIND.findall(_folded(text))


def number_value(number: str) -> Decimal:
    """Return the value of a number that `find_numbers` or `final_number` returned."""
    return Decimal(_NOT_DIGITS.sub("", number))


def final_number(text: str) -> str | None:
    """Return the number after the last `####`, or else the last number of the text, or None; no currency sign."""
    folded = _folded(text)
    number = _marked_number(folded)
    if number is None:
        number = next(reversed(_FIND.findall(folded)), None)
    return re.sub(_CURRENCY, "", number) if number is not None else None


def _marked_number(folded: str) -> str | None:
    """Return the first number of the line that the last `####` begins, or of the next if that only announces it."""
    _, mark, rest = folded.rpartition("####")
    line, _, below = rest.partition("\n")
    if mark and not _FIND.search(line) and (not line.strip("*_ \t\r") or _ANNOUNCES.search(line)):
        line, _, below = below.lstrip().partition("\n")
    number = _FIND.search(line) if mark else None
    if number is None or _COUNTED.search(line, 0, number.start()):
        return None
    listed = not line[: number.start()].strip("*_ \t") and _LISTED.match(line, number.end())
    return None if listed and _FIND.search(below) else number.group()


def gold_number(reference: str) -> Decimal | None:
    """Return the value of a stored answer: the text after its last `####`, if any, must be one number."""
    tail = re.sub(r"[,\s]", "", _folded(reference).rsplit("####", 1)[-1]).rstrip(".")
    return number_value(tail) if re.fullmatch(f"{_WHOLE}|{_BARE}", tail) else None


@register_scorer("last_number", about="accuracy of the final number: after the last ####, else the last in the text")
def score_last_number(answers: Sequence[Answer]) -> Scores:
    """Score word problems: `accuracy` by the number after the last `####`, or else the last number.

    `extras`: `last_number` (always the last), `hash_number` (what `accuracy` is), `any_number` (an upper
    bound: the right number occurs somewhere), `unparsed_rate`. An answer without a number is wrong and
    counted as `unparsed`.
    """

    def measure(item: Item) -> dict[str, float] | None:
        golds = {gold for gold in map(gold_number, item.references) if gold is not None}
        if not golds:
            return None
        numbers = [number_value(number) for number in find_numbers(item.text)]
        final = final_number(item.text)
        right = float(final is not None and number_value(final) in golds)
        return {
            "accuracy": right,
            "hash_number": right,
            "last_number": float(bool(numbers) and numbers[-1] in golds),
            "any_number": float(not golds.isdisjoint(numbers)),
            "unparsed_rate": float(final is None),
        }

    scores = score_each(
        answers,
        scorer="last_number",
        signature=_SIGNATURE,
        metrics=("accuracy",),
        extras=("hash_number", "last_number", "any_number", "unparsed_rate"),
        measure=measure,
    )
    unparsed = int(sum(scores.per_sample["unparsed_rate"].values()))
    return replace(scores, counts={**scores.counts, "unparsed": unparsed})
