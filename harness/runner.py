"""Running a plan: every method on every sample, interleaved, one line on disk per cell."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from draftboard.divergence import Divergences
from draftboard.errors import UserError
from draftboard.hardware import environment, hardware_name, peak_rss_bytes
from draftboard.plan import BASELINE, Plan, describe, differences, sample_key
from draftboard.records import Cell, SampleRecord
from draftboard.session import Reader, Session, fitted, open_reader, preflight
from draftboard.store import ENVIRONMENT, StoredRun, create_run, is_run, open_cells, read_run, write_json
from draftboard.templates import prompt_hash
from draftboard.traces import Traces
from draftboard.worker import Task, Worker

__all__ = ["Outcome", "Progress", "Silent", "run_plan"]


class Progress(Protocol):
    """What a caller is told while a run goes on."""

    def say(self, text: str) -> None:
        """Tell a line of text."""

    def begin(self, total: int, done: int) -> None:
        """Start counting cells; `done` of them are there already."""

    def advance(self, cell: Cell) -> None:
        """Count a cell."""

    def end(self) -> None:
        """Stop showing progress."""


class Silent:
    """Tells nobody."""

    def say(self, text: str) -> None:
        """Drop it."""

    def begin(self, total: int, done: int) -> None:
        """Drop it."""

    def advance(self, cell: Cell) -> None:
        """Drop it."""

    def end(self) -> None:
        """Drop it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended."""

    path: Path
    cells: int
    failed: int
    skipped: int


def run_plan(
    plan: Plan,
    out: Path,
    *,
    resume: bool = False,
    progress: Progress | None = None,
    load: Callable[[Plan, Reader], Session] | None = None,
) -> Outcome:
    """Run what is missing of `plan` in folder `out`. `load` takes the place of `Session.load`.

    Raises UserError for a folder that holds another run, a plan that differs from the run's, or a model that does not
    fit; nothing is written then. Ctrl-C leaves a run that resumes.
    """
    progress = progress or Silent()
    _refuse_taken(out, resume=resume)
    reader = open_reader(plan)
    preflight(plan, reader)
    if reader.template.notice:
        progress.say(reader.template.notice)
    plan = fitted(plan, reader)
    stored = _stored(plan, out)
    samples = {sample_key(suite, sample): reader.record(suite, sample) for suite, sample in plan.samples}
    if stored is not None:
        _check_samples(stored, samples)
        for warning in stored.warnings:
            progress.say(warning)
    done = {cell.key for cell in stored.cells if cell.status != "failed"} if stored else set()
    tasks = [task for task in _tasks(plan) if (task.entry.label, task.key, task.repeat) not in done]
    session = (load or Session.load)(plan, reader)
    session.measure(_curve(plan, session, stored))
    session.measure_methods(_measured(plan, stored))
    if stored is None:
        prompts = prompt_hash(reader.prompt(sample, ())[0] for _, sample in plan.samples)
        described = {**describe(plan), **_resolved(session), "prompts_sha256": prompts}
        create_run(out, described, _environment(session), samples.values())
    else:
        _check_model(stored, session)
    tracing = closing(Traces(out, reader)) if plan.traces else nullcontext()
    with open_cells(out) as cells, Divergences(out, session, stored) as divergences, tracing as traces:
        worker = Worker(session=session, samples=samples, done=stored.cells if stored else (), traces=traces)
        if tasks:
            worker.warm_up(plan.warmup, progress.say)
        progress.begin(plan.cells, plan.cells - len(tasks))
        counts = {"ok": 0, "failed": 0, "skipped": 0}
        for task in tasks:
            cell = worker.cell(task)
            cells.append(_encode(cell))
            divergences.add(cell)
            counts[cell.status] += 1
            progress.advance(cell)
        progress.end()
    _stamp_memory(out, session)
    return Outcome(path=out, cells=len(tasks), failed=counts["failed"], skipped=counts["skipped"])


def _curve(plan: Plan, session: Session, stored: StoredRun | None) -> dict[str, Any] | None:
    """Return the cost curve that drafts are sized to: the run's own, or the one that was asked for; None: measure."""
    if stored is not None:
        return stored.environment.get("cost_curve")
    if plan.curve is None:
        return None
    dtype = str(session.target.dtype).removeprefix("torch.")
    plan.curve.check({"model": session.fingerprint, "dtype": dtype, "hardware": str(_machine(session)["hardware"])})
    return plan.curve.curve


def _measured(plan: Plan, stored: StoredRun | None) -> dict[str, Any] | None:
    """Return what methods measured in this run, or in the one whose curve was asked for."""
    if stored is not None:
        return stored.environment.get("measured")
    return plan.curve.measured if plan.curve is not None else None


def _encode(cell: Cell) -> bytes:
    import msgspec

    return msgspec.json.encode(cell)


def _refuse_taken(out: Path, *, resume: bool) -> None:
    """Refuse a folder that holds something else, before anything is loaded."""
    if not is_run(out):
        if out.exists() and not out.is_dir():
            raise UserError("is a file, not a folder for a run", where=str(out), advice="Choose another --out.")
        if out.is_dir() and any(out.iterdir()) and not _half_made(out):
            raise UserError("is not empty and holds no run", where=str(out), advice="Choose another --out.")
    elif not resume:
        raise UserError(
            "holds a run already", where=str(out), advice="Add --resume to go on with it, or choose another --out."
        )


def _stored(plan: Plan, out: Path) -> StoredRun | None:
    """Return what an interrupted run of the same plan has already."""
    if not is_run(out):
        return None
    stored = read_run(out)
    if "imported" in stored.plan:
        raise UserError("was imported and has nothing to resume", where=str(out), advice="Choose another --out.")
    asked = describe(plan)
    found = differences({key: stored.plan.get(key) for key in (*asked, "traces")}, _jsoned(asked))
    if found:
        raise UserError(
            "the run there has another plan",
            where=str(out),
            problems=tuple(found),
            advice="Resume it with the plan it was started with, or choose another --out.",
        )
    return stored


def _half_made(out: Path) -> bool:
    """A run that was stopped before its plan was written leaves only these and their drafts; it starts anew."""
    begun = ("samples.jsonl", "environment.json", "plan.json")
    return all(
        path.name in begun or (path.suffix == ".tmp" and path.name.startswith(tuple(f".{name}." for name in begun)))
        for path in out.iterdir()
    )


def _jsoned(data: dict[str, Any]) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(data))
    return plain


def _check_samples(stored: StoredRun, samples: dict[str, SampleRecord]) -> None:
    before = {record.key: record.prompt_sha256 for record in stored.samples}
    if before != {key: record.prompt_sha256 for key, record in samples.items()}:
        raise UserError(
            "the prompts differ from the run's: its tokenizer, template or samples have changed",
            where=str(stored.path),
            advice="Start a new run with another --out.",
        )


def _check_model(stored: StoredRun, session: Session) -> None:
    now = _resolved(session)
    old, new = stored.plan.get("model_fingerprint"), now.pop("model_fingerprint")
    if old != new:
        raise UserError(
            f"the model's weights have changed: the run has {old}, now {new}",
            where=str(stored.path),
            advice="Start a new run with another --out.",
        )
    found = list(differences({"resolved": stored.plan.get("resolved")}, _jsoned(now)))
    before, machine = stored.environment.get("hardware"), _machine(session)["hardware"]
    if before != machine:
        found.append(f"hardware: the run has {before!r}, now {machine!r}")
    if found:
        raise UserError(
            "the run was started under other conditions, and its figures would mix them",
            where=str(stored.path),
            problems=tuple(found),
            advice="Resume it where it was started, or start a new run with another --out.",
        )


def _resolved(session: Session) -> dict[str, Any]:
    """What the plan came to on this machine."""
    reader = session.reader
    return {
        "model_fingerprint": session.fingerprint,
        "resolved": {
            "dtype": str(session.target.dtype).removeprefix("torch."),
            "device": str(session.target.device),
            "architecture": type(session.target.model).__name__,
            "template": reader.template.name,
            "template_sha256": reader.template.sha256,
            "eos_ids": sorted(reader.eos_ids),
            "window": reader.window,
        },
    }


def _machine(session: Session) -> dict[str, Any]:
    import msgspec
    import torch

    record = environment(threads=torch.get_num_threads())
    return {**msgspec.to_builtins(record), "hardware": hardware_name(record, device=str(session.target.device))}


def _environment(session: Session) -> dict[str, Any]:
    curve = session.curve
    return {
        **_machine(session),
        "cost_curve": {
            "rows": list(curve.rows),
            "cost": list(curve.cost),
            "one_row_s": curve.one_row_s,
            **({"taken_from": known.curve["taken_from"]} if (known := session.plan.curve) else {}),
        },
        **({"measured": session.measured} if session.measured else {}),
    }


def _stamp_memory(out: Path, session: Session) -> None:
    stored = read_run(out)
    # Each cell starts the process's own peak anew, so that the run's is the largest of all of them.
    peaks = [cell.peak_rss_bytes or 0 for cell in stored.cells]
    peak = max(peak_rss_bytes() or 0, int(stored.environment.get("peak_rss_bytes") or 0), *peaks)
    weights = sum(p.nbytes for p in session.target.model.parameters())
    write_json(
        out / ENVIRONMENT,
        {
            **stored.environment,
            "peak_rss_bytes": peak or None,
            "weight_bytes": weights,
            "cache_bytes": session.target.cache_bytes,
        },
    )


def _tasks(plan: Plan) -> Iterator[Task]:
    """Samples shuffled once by seed; on each all methods, in an order that rotates so that none is always first."""
    order = [(sample_key(suite, sample), sample) for suite, sample in plan.samples]
    random.Random(plan.seed).shuffle(order)
    for repeat in range(plan.repeats):
        for index, (key, sample) in enumerate(order):
            turn = (index + repeat + plan.seed) % len(plan.entries)
            entries = (*plan.entries[turn:], *plan.entries[:turn])
            if plan.history == "reference" and len(sample.turns) > 1:
                # Every later turn follows the baseline's answer, which therefore has to be there first.
                entries = tuple(sorted(entries, key=lambda entry: entry.label != BASELINE))
            for entry in entries:
                yield Task(entry=entry, sample=sample, key=key, repeat=repeat)
