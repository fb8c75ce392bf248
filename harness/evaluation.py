"""Scoring a stored run: its texts against its own references, without a model or the suite's files."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from draftboard.errors import UserError
from draftboard.files import write_atomic
from draftboard.records import ScoreRecord
from draftboard.scored import answer_groups, answers_hash
from draftboard.scoring import Answer, RunCode, Scores, Value, require_sandbox, runs_code, score
from draftboard.scoring.execution import NOT_RUN
from draftboard.store import SCORES, StoredRun
from draftboard.wording import named

__all__ = ["kept_scores", "score_run", "scorer_errors", "unfinished"]


def score_run(run: StoredRun, *, run_code: RunCode = False) -> list[ScoreRecord]:
    """Score every method on every scored domain and round, write scores.jsonl anew and return its records.

    A scorer that is not installed or fails takes nothing else with it: its record says why in `scores.error` and has no
    value. Code answers are run only with `run_code`; raises UserError, before anything is written, where they cannot.
    Where a scorer cannot do its work now, the run's own scores of the same answers are kept, and `kept` says why.
    """
    groups = answer_groups(run.samples, run.cells)
    if run_code and any(runs_code(scorer) for *_, scorer in groups):
        require_sandbox(run_code)
    before = {(record.method, record.domain, record.repeat, record.answers_sha256): record for record in run.scores}
    found = []
    for (method, domain, repeat, scorer), answers in sorted(groups.items(), key=lambda group: group[0]):
        digest = answers_hash(scorer, answers)
        scores = _scores(answers, scorer, run_code)
        record = ScoreRecord(method=method, domain=domain, repeat=repeat, scores=scores, answers_sha256=digest)
        why = scores.error or (NOT_RUN if runs_code(scorer) and not run_code else "")
        old = before.get((method, domain, repeat, digest))
        found.append(replace(old, kept=why) if why and old is not None and _has_values(old.scores) else record)
    write_atomic(run.path / SCORES, b"".join(msgspec.json.encode(record) + b"\n" for record in found))
    return found


def scorer_errors(records: Iterable[ScoreRecord]) -> list[str]:
    """Return what kept scorers from their work, each fault once with the domains that it left without scores."""
    faults = _domains((record.scores.error, record.domain) for record in records)
    return [f"{named(domains)} not scored: {fault}" for fault, domains in faults.items()]


def kept_scores(records: Iterable[ScoreRecord]) -> list[str]:
    """Return where scores of an earlier call stand because there could be no others, each reason once."""
    reasons = _domains((record.kept, record.domain) for record in records)
    return [
        f"{named(domains)} not scored anew, earlier scores of the same answers are kept: {reason}"
        for reason, domains in reasons.items()
    ]


def unfinished(records: Iterable[ScoreRecord]) -> bool:
    """Whether some scorer failed or is not there. Code that nobody asked to be run is no failure."""
    return any(record.scores.error or record.kept not in ("", NOT_RUN) for record in records)


def _domains(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Group domains by what is said of them; about those of an empty text there is nothing to say."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for text, domain in pairs:
        if text:
            found[text][domain] = None
    return {text: list(domains) for text, domains in found.items()}


def _has_values(scores: Scores) -> bool:
    return not scores.error and any(value.value is not None for value in scores.values.values())


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
