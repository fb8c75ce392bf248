"""The model of a stored run, opened again: the same weights, or a refusal; and the prompts that the run asked it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from draftboard.errors import UserError
from draftboard.options import RunOptions
from draftboard.records import Cell, SampleRecord
from draftboard.store import StoredRun
from draftboard.suites import Sample, Suite

if TYPE_CHECKING:
    from draftboard.session import Reader, Session

__all__ = ["Prompts", "open_model"]

_WITHOUT = "--no-model judges by what the run wrote down."


def open_model(run: StoredRun, *, model: str | None = None, device: str | None = None) -> Session:
    """Load the model that the run was made with. `model` names it where it has moved, `device` another device.

    Raises UserError where it is not there or has other weights than the run's.
    """
    from draftboard import models
    from draftboard.plan import make_plan
    from draftboard.session import Session, open_reader

    stamped = run.plan.get("model_fingerprint")
    if not stamped:
        raise UserError("names no fingerprint of its model", where=str(run.path / "plan.json"), advice=_WITHOUT)
    try:
        plan = make_plan(_options(run, model, device), suites=_suites(run.samples))
        reader = open_reader(plan)
        if reader.ref.kind != "hub":
            # Those of a hub id can only be told apart once they have been loaded.
            _check(run, models.fingerprint(reader.ref))
        session = Session.load(plan, reader)
    except UserError as error:
        raise UserError(
            f"the run's model cannot be opened: {error.what}",
            where=error.where or str(run.path),
            problems=error.problems,
            advice=f"--model names it where it has moved, --device another device; {_WITHOUT}",
        ) from error
    _check(run, session.fingerprint)
    session.measure(run.environment.get("cost_curve"))
    return session


def _check(run: StoredRun, found: str) -> None:
    stamped = str(run.plan["model_fingerprint"])
    if found != stamped:
        raise UserError(f"it has other weights: the run's fingerprint is {stamped[:16]}…, this one's {found[:16]}…")


def _options(run: StoredRun, model: str | None, device: str | None) -> RunOptions:
    plan: dict[str, Any] = run.plan
    resolved = plan.get("resolved") or {}
    sampling = plan["sampling"] or {}
    return RunOptions(
        model=model or str(plan["model"]),
        revision=None if model else plan.get("revision"),
        dtype=resolved.get("dtype") or plan["dtype"],
        device=device or resolved.get("device") or plan["device"],
        threads=plan.get("threads"),
        template=plan["template"],
        max_new_tokens=plan["max_new_tokens"],
        seed=plan["seed"],
        **sampling,
    )


def _suites(records: Sequence[SampleRecord]) -> tuple[Suite, ...]:
    """Return the run's samples as they were asked; answers and scorers play no part here."""
    grouped: dict[str, list[Sample]] = {}
    for record in records:
        sample = Sample(
            sample_id=record.sample_id,
            suite=record.suite,
            domain=record.domain,
            category=record.category,
            turns=tuple(record.turns),
            system=record.system,
        )
        grouped.setdefault(record.suite, []).append(sample)
    return tuple(
        Suite(name=name, samples=tuple(samples), content_hash="", source="samples.jsonl")
        for name, samples in grouped.items()
    )


class Prompts:
    """The prompts of a run, made again from its samples and answers, each held against the hash that was stored."""

    def __init__(self, reader: Reader, samples: Sequence[SampleRecord]) -> None:
        self._reader = reader
        self._samples = {
            f"{suite.name}/{sample.sample_id}": sample for suite in _suites(samples) for sample in suite.samples
        }
        self._known: dict[tuple[tuple[str, str, int], int], list[int] | None] = {}

    def ids(self, cell: Cell, turn: int) -> list[int] | None:
        """Return the ids that this turn was asked with, or None where they cannot be made again.

        That is so for raw prompts with examples, which a run does not store, and where the template has changed.
        """
        from draftboard.session import ids_hash

        at = (cell.key, turn)
        if at not in self._known:
            sample = self._samples[cell.sample]
            answers = [earlier.text for earlier in cell.turns[:turn]]
            if len(answers) >= len(sample.turns):
                self._known[at] = None
            else:
                found = self._reader.prompt(sample, answers)[1]
                same = ids_hash(found) == cell.turns[turn].prompt_sha256
                self._known[at] = found if same else None
        return self._known[at]
