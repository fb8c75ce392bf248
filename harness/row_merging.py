"""Which rows of a row file speak of one method and one question, and what of them is left out: never without a note."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from draftboard.row_speeds import Row

__all__ = ["by_settings", "last_of_each", "notes_on_steps"]

_NAMED = 5
_LONGEST = 60
"""Characters of settings in a label."""


def by_settings(rows: Sequence[Row], notes: dict[str, None]) -> tuple[list[Row], set[str]]:
    """Return the rows, and the methods of which rows with different settings became methods with labels of their own.

    Other `settings_id`s are other methods, and so are other `settings` of one question. Where settings merely vary
    between questions or rounds, as a seed does, the method stays one.
    """
    mine: dict[str, list[Row]] = {}
    for row in rows:
        mine.setdefault(row.method, []).append(row)
    labels: dict[str, dict[str, str]] = {}
    for method, own in mine.items():
        variants = {key: row for row in own if (key := _settings_key(row))}
        if len(variants) < 2:
            continue
        if any(row.settings_id for row in variants.values()) or _clash(own):
            labels[method] = _labels(variants)
            notes[f"{method}: rows with different settings stand as methods of their own"] = None
        else:
            notes[f"{method}: settings differ between rows; those of the last row are shown"] = None
    labelled = (labels.get(row.method, {}).get(_settings_key(row)) for row in rows)
    found = [
        replace(row, method=f"{row.method} ({label})") if label else row
        for row, label in zip(rows, labelled, strict=True)
    ]
    return found, set(labels)


def last_of_each(rows: Sequence[Row], notes: dict[str, None]) -> list[Row]:
    """Return the rows without those that a later row about the same question replaces, which is noted."""
    kept: dict[tuple[object, ...], Row] = {}
    doubled: dict[str, dict[str, None]] = {}
    for index, row in enumerate(rows):
        key = (*_about(row), index if row.sample is None else None)
        if key in kept and row.sample is not None:
            doubled.setdefault(row.method, {})[row.sample] = None
        kept[key] = row
    for method, samples in doubled.items():
        notes[f"{method}: more than one row for {_questions(samples)}; the last one counts"] = None
    return list(kept.values())


def notes_on_steps(rows: Iterable[Row], *, ranks: bool) -> list[str]:
    """Say which questions have no steps although their row names them.

    With `ranks`, where τ is what ranks, also which methods lack questions that others have.
    """
    notes: list[str] = []
    questions: dict[str, dict[tuple[str, str | None], None]] = {}
    empty: dict[str, dict[str, None]] = {}
    for row in rows:
        questions.setdefault(row.method, {})[row.domain, row.sample] = None
        if row.steps == ():
            empty.setdefault(row.method, {})["" if row.sample is None else row.sample] = None
    for method, samples in empty.items():
        named = f" for {_questions(samples)}" if "" not in samples else ""
        notes.append(f"{method}: `tokens_per_step` is empty{named}, which is left out of τ")
    every = {question for mine in questions.values() for question in mine}
    if ranks and all(sample is not None for _, sample in every):
        for method, mine in questions.items():
            if len(mine) < len(every):
                lacking = len(every) - len(mine)
                notes.append(f"{method}: no row for {lacking} of {len(every)} questions that other methods have")
    return notes


def _about(row: Row) -> tuple[object, ...]:
    return (row.method, row.domain, row.sample, row.part)


def _settings_key(row: Row) -> str:
    """Return what tells the row's settings from others; empty where it names none."""
    if row.settings_id:
        return row.settings_id
    settings = row.about.get("settings")
    return json.dumps(settings, sort_keys=True) if settings else ""


def _clash(rows: Iterable[Row]) -> bool:
    """Whether two rows about the same question have different settings."""
    seen: dict[tuple[object, ...], str] = {}
    return any(key != seen.setdefault(_about(row), key) for row in rows if (key := _settings_key(row)))


def _labels(variants: Mapping[str, Row]) -> dict[str, str]:
    """Return a short label for each kind of settings: its id, or the settings that the others have otherwise."""
    every = [row.about.get("settings", {}) for row in variants.values()]
    labels: dict[str, str] = {}
    for key, row in variants.items():
        settings = row.about.get("settings", {})
        own = {name: value for name, value in settings.items() if any(other.get(name) != value for other in every)}
        told = ", ".join(
            f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in own.items()
        )
        text = row.settings_id or told or json.dumps(settings)
        label = short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        count = 1
        while label in labels.values():
            count += 1
            label = f"{short} #{count}"
        labels[key] = label
    return labels


def _questions(samples: Iterable[str]) -> str:
    names = list(samples)
    named = ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])
    return f"{'questions' if len(names) > 1 else 'question'} {named}"
