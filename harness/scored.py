"""What the scores of a run are of: answers by method, domain, round and scorer, and a hash that knows them again.

Scores are made from a run and can be made anew, but not everywhere: a plug-in may be missing, or code not to be run.
The hash tells whether stored scores are of the answers that the run holds, or of others that stood there before.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from draftboard.records import Cell, SampleRecord, ScoreRecord, Turn
from draftboard.scoring import Answer
from draftboard.wording import named

__all__ = ["GroupKey", "answer_groups", "answers_hash", "current_scores", "domain_labels"]

GroupKey = tuple[str, str, int, str]
"""Method, domain, round, scorer."""


def domain_labels(samples: Iterable[SampleRecord]) -> dict[str, str]:
    """Name each sample's domain; the suite is put before it where two suites use the same word."""
    suites: dict[str, set[str]] = {}
    for record in samples:
        suites.setdefault(record.domain, set()).add(record.suite)
    return {record.key: _domain_label(record, alone=len(suites[record.domain]) == 1) for record in samples}


def _domain_label(record: SampleRecord, *, alone: bool) -> str:
    if alone:
        return record.domain
    # `mmlu: mmlu` and `mmlu/letter: mmlu` would say it twice.
    return record.suite if record.suite.partition("/")[0] == record.domain else f"{record.suite}: {record.domain}"


def answer_groups(samples: Sequence[SampleRecord], cells: Iterable[Cell]) -> dict[GroupKey, list[Answer]]:
    """Return the answers that are scored together, in the order of the cells. Skipped cells give none."""
    records = {record.key: record for record in samples}
    labels = domain_labels(samples)
    groups: dict[GroupKey, list[Answer]] = defaultdict(list)
    for cell in cells:
        record = records.get(cell.sample)
        if record is not None and record.scorer is not None and cell.status != "skipped":
            groups[cell.method, labels[cell.sample], cell.repeat, record.scorer] += _answers(cell, record)
    return dict(groups)


def answers_hash(scorer: str, answers: Iterable[Answer]) -> str:
    """Return a hash of everything that a scorer is given, whatever the order of the answers."""
    ordered = sorted(
        (
            [
                answer.sample_id, answer.turn, answer.text, answer.references, answer.options, answer.language,
                answer.category, answer.group, answer.context,
            ]
            for answer in answers
        ),
        key=lambda fields: fields[:2],
    )  # fmt: skip
    return sha256(json.dumps([scorer, ordered]).encode("ascii")).hexdigest()


def current_scores(
    scores: Sequence[ScoreRecord], samples: Sequence[SampleRecord], cells: Iterable[Cell]
) -> tuple[list[ScoreRecord], str]:
    """Return the scores that are of the answers there, and a word about the others; empty if there are none.

    Scores that do not say what they are of are taken as they are.
    """
    if not any(record.answers_sha256 for record in scores):
        return list(scores), ""
    known = _hashes(answer_groups(samples, cells))
    kept: list[ScoreRecord] = []
    others: list[ScoreRecord] = []
    for record in scores:
        place = record.method, record.domain, record.repeat
        good = not record.answers_sha256 or record.answers_sha256 in known.get(place, ())
        (kept if good else others).append(record)
    if not others:
        return kept, ""
    domains = dict.fromkeys(record.domain for record in others)
    return kept, (
        f"the answers have changed since {named(domains)} was scored, so these scores are left out; draftboard score "
        "makes them anew"
    )


def _hashes(groups: Mapping[GroupKey, Sequence[Answer]]) -> Mapping[tuple[str, str, int], set[str]]:
    found: dict[tuple[str, str, int], set[str]] = defaultdict(set)
    for (method, domain, repeat, scorer), answers in groups.items():
        found[method, domain, repeat].add(answers_hash(scorer, answers))
    return found


def _answers(cell: Cell, record: SampleRecord) -> list[Answer]:
    answers = []
    for turn, references in enumerate(record.references):
        text = _text(cell.turns[turn]) if cell.status == "ok" and turn < len(cell.turns) else None
        answers.append(
            Answer(
                sample_id=cell.sample,
                turn=turn,
                text=text,
                references=tuple(references),
                options=tuple(record.options),
                language=record.language,
                category=record.category,
                group=record.group,
                context=record.context,
            )
        )
    return answers


def _text(turn: Turn) -> str | None:
    """Return what a turn says, None if it failed; an imported one says so by the text ERROR."""
    imported = turn.tokens is not None
    return None if turn.finish == "error" or (imported and turn.text.strip() == "ERROR") else turn.text
