"""Multiple choice: which letter did a free-text answer settle on? Named rules in order; the first wins.

A lone capital A as an article must never count, so that every rule asks for punctuation, a keyword or a line
of its own.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from draftboard.scoring.records import Answer, Item, Scores, Value, mean_value, score_each
from draftboard.scoring.registry import register_scorer
from draftboard.scoring.texts import unicode_tokens

__all__ = ["RULES", "LetterReading", "read_letter", "score_letter"]

RULES = ("boxed", "stated", "declared", "leading", "lone-line", "only-mention", "option-text", "none")
_DELETE = str.maketrans("", "", "*_`$")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_SIGNATURE = "rules:boxed,stated,declared,leading,lone-line,only-mention,option-text|draftboard:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterReading:
    """The letter found (None if none was) and the rule that found it."""

    letter: str | None
    rule: str


def _cleaned(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(_DELETE)


def _last(pattern: str, text: str) -> str | None:
    found = None
    for match in re.finditer(pattern, text, re.MULTILINE):
        found = match
    return next((group for group in found.groups() if group), None) if found else None


def _boxed(text: str, letters: str) -> str | None:
    macro = r"(?:\\[a-z]+\s*\{\s*)?"
    # After the letter only its option may follow ("C. nucleus"): in "A, B" no letter is settled on.
    return _last(rf"\\(?:f?boxed|fbox)\s*\{{\s*{macro}[(\[]?\s*([{letters}])\s*(?:[)\].:][^{{}}]*)?\}}", text)


def _stated(text: str, letters: str) -> str | None:
    lower = letters.lower()
    link = r"\s*(?:is|:|=|equals|would\s+be|should\s+be|must\s+be)"
    again = r"(?:\s*(?:option|choice)\b)?(?:\s*:)?"
    ended = r"(?=[^\S\n]*(?:[)\]}.,:;!?]|$))"
    # Over a line break an article could follow ("Answer:\nA car …"), so there the letter must be closed off.
    closed = rf"\s*[(\[{{]?([{letters}{lower}]){ended}"
    capital = rf"[^\S\n]*[(\[{{]?([{letters}])(?![^\W_])"
    found = _last(rf"\b(?i:(?:answer|choice|option){link}{again})(?:{closed}|{capital})", text)
    return found.upper() if found else None


def _declared(text: str, letters: str) -> str | None:
    return _last(rf"(?<![^\W_])([{letters}])[)\]]?\s+is\s+(?:the\s+)?(?:correct|right|best)\b", text)


def _leading(text: str, letters: str) -> str | None:
    end = r"(?:[^\S\n]*(?:[)\].:,]|$)|[-–—](?=\s)|[^\S\n]+[-–—])"
    match = re.match(rf"\s*[(\[]?([{letters}]){end}", text, re.MULTILINE)
    return match.group(1) if match else None


def _lone_line(text: str, letters: str) -> str | None:
    return _last(rf"^[^\S\n]*[(\[]?([{letters}])[)\]]?\.?[^\S\n]*$", text)


def _mentioned(text: str, letters: str) -> set[str]:
    # With nine options and more, "the answer I would give" holds a pronoun.
    pronoun = r"(?!I[^\S\n]+[a-z])"
    named = rf"\b(?i:option|choice|answer)[^\S\n]+[(\[]?{pronoun}([{letters}])(?![^\W_])|\(([{letters}])\)"
    return {first or second for first, second in re.findall(named, text)}


def _occurs(part: Sequence[str], whole: Sequence[str]) -> bool:
    size = len(part)
    return size > 0 and any(whole[i : i + size] == part for i in range(len(whole) - size + 1))


def _option_letters(text: str, options: Sequence[list[str]]) -> list[str]:
    """Return the letters of the options named in a text, without those that are part of another such."""
    tokens = unicode_tokens(text)
    found = [i for i, option in enumerate(options) if _occurs(option, tokens)]
    return [
        string.ascii_uppercase[i]
        for i in found
        if not any(len(options[i]) < len(options[j]) and _occurs(options[i], options[j]) for j in found)
    ]


def _option_text(text: str, options: Sequence[str]) -> str | None:
    tokens = [unicode_tokens(_cleaned(option)) for option in options]
    found = _option_letters(text, tokens)
    if len(found) > 1:
        sentences = [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]
        found = _option_letters(sentences[-1], tokens)
    return found[0] if len(found) == 1 else None


def read_letter(text: str, options: Sequence[str] = ()) -> LetterReading:
    """Return the letter that an answer settles on; without option texts, A to D.

    Raises ValueError for more than 26 options.
    """
    if len(options) > len(string.ascii_uppercase):
        raise ValueError(f"{len(options)} options, but only 26 letters")
    letters = string.ascii_uppercase[: len(options) or 4]
    cleaned = _cleaned(text).strip()
    mentioned = _mentioned(cleaned, letters)

    def only_mention() -> str | None:
        return next(iter(mentioned)) if len(mentioned) == 1 else None

    tries: tuple[tuple[str, Callable[[], str | None]], ...] = (
        ("boxed", lambda: _boxed(text, letters)),
        ("stated", lambda: _stated(cleaned, letters)),
        ("declared", lambda: _declared(cleaned, letters)),
        ("leading", lambda: _leading(cleaned, letters)),
        ("lone-line", lambda: _lone_line(cleaned, letters)),
        ("only-mention", only_mention),
        ("option-text", lambda: None if mentioned else _option_text(cleaned, options)),
    )
    for rule, attempt in tries:
        letter = attempt()
        if letter:
            return LetterReading(letter=letter, rule=rule)
    return LetterReading(letter=None, rule="none")


def _gold(reference: str, options: Sequence[str]) -> str | None:
    letter = reference.strip().strip("().[]").upper()
    letters = string.ascii_uppercase[: len(options) or 4]
    return letter if len(letter) == 1 and letter in letters else None


def _by_class(
    right: Mapping[str, float], classes: Mapping[str, str], *, signature: str, reason: str
) -> tuple[Value, dict[str, Value]]:
    """Return the mean over classes (its n: all answers that have one) and each class's own mean."""
    members: dict[str, list[float]] = {}
    for key, value in right.items():
        if classes[key]:
            members.setdefault(classes[key], []).append(value)
    each = {name: mean_value(members[name], signature=signature) for name in sorted(members)}
    if not each:
        return Value(value=None, n=0, reason=reason, signature=signature), each
    macro = sum(value.value or 0.0 for value in each.values()) / len(each)
    return Value(value=macro, n=sum(value.n for value in each.values()), signature=signature), each


@register_scorer("letter", about="accuracy of the option letter that a multiple-choice answer settles on")
def score_letter(answers: Sequence[Answer]) -> Scores:
    """Score multiple choice: `accuracy` per answer; `counts` hold `unparsed` and a `rule:<name>` for each rule used.

    A reference is the right letter. `extras`: `accuracy_macro` (the mean of the categories' accuracies),
    `accuracy/<group>` for each group, and `unparsed_rate`, to be shown beside the accuracy: a method can gain or
    lose by format alone.
    """
    rules: Counter[str] = Counter()
    categories = {answer.key: answer.category for answer in answers}
    groups = {answer.key: answer.group or "" for answer in answers}

    def measure(item: Item) -> dict[str, float] | None:
        if len(item.options) > len(string.ascii_uppercase):
            return None  # no letter stands for the 27th
        golds = {gold for gold in (_gold(text, item.options) for text in item.references) if gold}
        if not golds:
            return None
        reading = read_letter(item.text, item.options)
        rules[reading.rule] += 1
        return {"accuracy": float(reading.letter in golds), "unparsed_rate": float(reading.letter is None)}

    scores = score_each(
        answers,
        scorer="letter",
        signature=_SIGNATURE,
        metrics=("accuracy",),
        extras=("unparsed_rate",),
        measure=measure,
    )
    right = scores.per_sample["accuracy"]
    reason = scores.values["accuracy"].reason or "the answers have no category"
    macro, by_category = _by_class(right, categories, signature=_SIGNATURE, reason=reason)
    signature = f"{_SIGNATURE}|macro:{len(by_category)} categories"
    _, by_group = _by_class(right, groups, signature=_SIGNATURE, reason=reason)
    return replace(
        scores,
        extras={
            "accuracy_macro": replace(macro, signature=signature),
            **{f"accuracy/{name}": value for name, value in by_group.items()},
            **scores.extras,
        },
        counts={
            **scores.counts,
            "unparsed": rules["none"],
            **{f"rule:{rule}": rules[rule] for rule in RULES if rules[rule]},
        },
    )
