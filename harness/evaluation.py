"""Scoring a stored run: its texts against its own references, without a model or the suite's files."""

from collections import defaultdict

import msgspec

from draftboard.analysis import domain_labels
from draftboard.files import write_atomic
from draftboard.records import Cell, SampleRecord, ScoreRecord
from draftboard.scoring import Answer, score
from draftboard.store import SCORES, StoredRun

__all__ = ["score_run"]


def score_run(run: StoredRun) -> list[ScoreRecord]:
    """Score every method on every scored domain and round, write scores.jsonl anew and return its records."""
    samples = {record.key: record for record in run.samples}
    labels = domain_labels(run.samples)
    groups: dict[tuple[str, str, int, str], list[Cell]] = defaultdict(list)
    for cell in run.cells:
        record = samples.get(cell.sample)
        if record is not None and record.scorer is not None and cell.status != "skipped":
            groups[cell.method, labels[cell.sample], cell.repeat, record.scorer].append(cell)
    found = [
        ScoreRecord(
            method=method,
            domain=domain,
            repeat=repeat,
            scores=score([answer for cell in cells for answer in _answers(cell, samples[cell.sample])], scorer),
        )
        for (method, domain, repeat, scorer), cells in sorted(groups.items())
    ]
    write_atomic(run.path / SCORES, b"".join(msgspec.json.encode(record) + b"\n" for record in found))
    return found


def _answers(cell: Cell, record: SampleRecord) -> list[Answer]:
    answers = []
    for turn, references in enumerate(record.references):
        if not references:
            continue
        text = cell.turns[turn].text if cell.status == "ok" and turn < len(cell.turns) else None
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
