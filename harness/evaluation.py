"""Scoring a stored run: its texts against its own references, without a model or the suite's files."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from draftboard.analysis import domain_labels
from draftboard.errors import UserError
from draftboard.files import write_atomic
from draftboard.records import Cell, SampleRecord, ScoreRecord, Turn
from draftboard.scoring import Answer, RunCode, Scores, Value, require_sandbox, runs_code, score
from draftboard.store import SCORES, StoredRun

__all__ = ["score_run", "scorer_errors"]


def score_run(run: StoredRun, *, run_code: RunCode = False) -> list[ScoreRecord]:
    """Score every method on every scored domain and round, write scores.jsonl anew and return its records.

    A scorer that is not installed or fails takes nothing else with it: its record says why in `scores.error` and has no
    value. Code answers are run only with `run_code`; raises UserError, before anything is written, where they cannot.
    """
    samples = {record.key: record for record in run.samples}
    labels = domain_labels(run.samples)
    groups: dict[tuple[str, str, int, str], list[Cell]] = defaultdict(list)
    for cell in run.cells:
        record = samples.get(cell.sample)
        if record is not None and record.scorer is not None and cell.status != "skipped":
            groups[cell.method, labels[cell.sample], cell.repeat, record.scorer].append(cell)
    if run_code and any(runs_code(scorer) for *_, scorer in groups):
        require_sandbox(run_code)
    found = [
        ScoreRecord(
            method=method,
            domain=domain,
            repeat=repeat,
            scores=_scores(
                [answer for cell in cells for answer in _answers(cell, samples[cell.sample])], scorer, run_code
            ),
        )
        for (method, domain, repeat, scorer), cells in sorted(groups.items())
    ]
    write_atomic(run.path / SCORES, b"".join(msgspec.json.encode(record) + b"\n" for record in found))
    return found


def scorer_errors(records: Iterable[ScoreRecord]) -> list[str]:
    """Return what kept scorers from their work, each fault once with the domains that it left without scores."""
    domains: dict[str, dict[str, None]] = defaultdict(dict)
    for record in records:
        if record.scores.error:
            domains[record.scores.error][record.domain] = None
    return [f"{', '.join(names)} not scored: {error}" for error, names in domains.items()]


def _scores(answers: Sequence[Answer], scorer: str, run_code: RunCode) -> Scores:
    try:
        return score(answers, scorer, run_code=run_code)
    except UserError as error:
        reason = f"{error.where}: {error.what}" if error.where else error.what
        return Scores(
            scorer=scorer,
            signature="",
            values={scorer: Value(value=None, n=0, reason=reason)},
            counts={"answers": len(answers), "scored": 0},
            error=reason,
        )


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
