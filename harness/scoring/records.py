"""What a scorer takes and gives: answers in, named values out, with everything left out counted and said."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from draftboard.scoring.texts import tidy, unicode_tokens

__all__ = [
    "Answer",
    "Intake",
    "Item",
    "Scores",
    "Value",
    "intake",
    "mean_value",
    "mean_words",
    "nothing_scored",
    "score_each",
]

_WORDS = "words:unicode|draftboard:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One turn's answer and what it is held against."""

    sample_id: str
    turn: int
    text: str | None
    """None for a failed generation: not scored, but counted."""
    references: tuple[str, ...]
    """Alternatives; empty (or only blanks) means that the turn has no reference."""
    options: tuple[str, ...] = ()
    """The texts of a multiple-choice question's options, A first."""
    language: str | None = None
    """Language tag of the *answer* (`de`, `zh-Hans`), never a translation pair."""
    category: str = ""
    """The raw category, for means over categories."""
    group: str | None = None
    """A class between domain and category that accuracies are given for too."""
    context: str = ""
    """What a code answer continues."""

    @property
    def key(self) -> str:
        """`sample_id#turn`, the key of `Scores.per_sample`."""
        return f"{self.sample_id}#{self.turn}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One score and the number of answers it rests on; `reason` says why `value` is None."""

    value: float | None
    n: int
    reason: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """All that one scorer has to say about one set of answers."""

    scorer: str
    signature: str
    values: dict[str, Value]
    """By metric name (`draftboard.metrics`)."""
    extras: dict[str, Value] = field(default_factory=dict)
    """Secondary values: no headline, but needed to read one (answer length, brevity penalty, …)."""
    per_sample: dict[str, dict[str, float]] = field(default_factory=dict)
    """Metric name → `sample_id#turn` → value, in the unit of the aggregate: values and extras alike."""
    statistics: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """Corpus metric → `sample_id#turn` → counts. `pooled_score` of any selection of them is its corpus score, which is
    what resampling needs."""
    counts: dict[str, int] = field(default_factory=dict)
    """`answers`, `scored`, `failed`, `no_reference`, `bad_reference`, `empty`, and what the scorer adds."""
    error: str = ""
    """Why a scorer could not do its work at all; every value is then None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An answer that can be scored: safe, stripped text and at least one reference."""

    key: str
    text: str
    references: tuple[str, ...]
    options: tuple[str, ...]
    language: str | None
    category: str = ""
    group: str | None = None
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """Answers sorted into those that can be scored and counts of the others."""

    items: tuple[Item, ...]
    counts: dict[str, int]


def intake(answers: Sequence[Answer]) -> Intake:
    """Leave out failed answers and those without a reference; empty answers stay.

    Raises ValueError when a sample's turn occurs twice, for one of the two would silently win, and when references are
    one string, which would be read as a list of letters.
    """
    given: list[tuple[str, object]] = [(answer.key, answer.references) for answer in answers]
    flat = [key for key, references in given if isinstance(references, str)]
    if flat:
        raise ValueError(f"references are one string, not a tuple of alternatives: {', '.join(flat[:5])}")
    doubled = [key for key, count in Counter(answer.key for answer in answers).items() if count > 1]
    if doubled:
        raise ValueError(f"answers given twice: {', '.join(sorted(doubled)[:5])}")
    items: list[Item] = []
    counts = {
        "answers": len(answers),
        "scored": 0,
        "failed": 0,
        "no_reference": 0,
        "bad_reference": 0,
        "empty": 0,
    }
    for answer in answers:
        references = tuple(text for text in (tidy(r).strip() for r in answer.references) if text)
        if answer.text is None:
            counts["failed"] += 1
        elif not references:
            counts["no_reference"] += 1
        else:
            text = tidy(answer.text).strip()
            counts["empty"] += not text
            options = tuple(tidy(option) for option in answer.options)
            items.append(
                Item(
                    key=answer.key,
                    text=text,
                    references=references,
                    options=options,
                    language=answer.language,
                    category=answer.category,
                    group=answer.group,
                    context=tidy(answer.context),
                )
            )
    counts["scored"] = len(items)
    return Intake(items=tuple(items), counts=counts)


def nothing_scored(counts: Mapping[str, int]) -> str:
    """Return the reason for a missing score: how many answers were left out, and why."""
    words = {
        "failed": "failed",
        "no_reference": "without reference",
        "bad_reference": "with an unreadable reference",
    }
    parts = [f"{counts[name]} {word}" for name, word in words.items() if counts.get(name)]
    return "nothing to score: " + (", ".join(parts) if parts else "no answers")


def mean_value(values: Iterable[float], *, signature: str = "", reason: str = "") -> Value:
    """Return the plain mean with its n; without any value, None and the reason."""
    listed = list(values)
    if not listed:
        return Value(value=None, n=0, reason=reason, signature=signature)
    return Value(value=sum(listed) / len(listed), n=len(listed), signature=signature)


def mean_words(words: Mapping[str, int], *, reason: str) -> Value:
    """Return the mean answer length; `words` holds each answer's number of words, of any script."""
    return mean_value(words.values(), signature=_WORDS, reason=reason)


def score_each(
    answers: Sequence[Answer],
    *,
    scorer: str,
    signature: str,
    metrics: Sequence[str],
    measure: Callable[[Item], Mapping[str, float] | None],
    extras: Sequence[str] | Mapping[str, str] = (),
) -> Scores:
    """Score every answer by itself and average: the frame of all scorers that need no corpus.

    `measure` returns a value for each of `metrics` and `extras`, or None when the item's reference cannot be
    read; such an item is left out and counted as `bad_reference`. `extras` may map names to signatures of their own.
    """
    taken = intake(answers)
    counts = taken.counts
    per_sample: dict[str, dict[str, float]] = {name: {} for name in (*metrics, *extras)}
    words: dict[str, int] = {}
    for item in taken.items:
        measured = measure(item)
        if measured is None:
            counts["bad_reference"] += 1
            counts["empty"] -= not item.text
            continue
        words[item.key] = len(unicode_tokens(item.text))
        for name, column in per_sample.items():
            column[item.key] = float(measured[name])
    counts["scored"] = len(words)
    reason = nothing_scored(counts)
    signatures = extras if isinstance(extras, Mapping) else {}
    means = {
        name: mean_value(column.values(), signature=signatures.get(name, signature), reason=reason)
        for name, column in per_sample.items()
    }
    return Scores(
        scorer=scorer,
        signature=signature,
        values={name: means[name] for name in metrics},
        extras={**{name: means[name] for name in extras}, "mean_words": mean_words(words, reason=reason)},
        per_sample={**per_sample, "mean_words": {key: float(count) for key, count in words.items()}},
        counts=counts,
    )
