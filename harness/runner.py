"""Running a plan: every method on every sample, interleaved, one line on disk per cell."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from draftboard.divergence import Divergences
from draftboard.errors import UserError
from draftboard.hardware import environment, hardware_name, peak_rss_bytes, sample_load
from draftboard.methods.engine import Generation, Limits
from draftboard.plan import Entry, Plan, describe, differences, sample_key
from draftboard.records import Cell, SampleRecord, Status, Turn
from draftboard.session import Reader, Session, ids_hash, open_reader, preflight
from draftboard.store import ENVIRONMENT, StoredRun, create_run, is_run, open_cells, read_run, write_json
from draftboard.suites import Sample

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    entry: Entry
    sample: Sample
    key: str
    repeat: int


def run_plan(plan: Plan, out: Path, *, resume: bool = False, progress: Progress | None = None) -> Outcome:
    """Run what is missing of `plan` in folder `out`.

    Raises UserError for a folder that holds another run, a plan that differs from the run's, or a model that does not
    fit; nothing is written then. Ctrl-C leaves a run that resumes.
    """
    progress = progress or Silent()
    stored = _check_folder(plan, out, resume)
    reader = open_reader(plan)
    preflight(plan, reader)
    if reader.template.notice:
        progress.say(reader.template.notice)
    samples = {sample_key(suite, sample): reader.record(suite, sample) for suite, sample in plan.samples}
    if stored is not None:
        _check_samples(stored, samples)
        for warning in stored.warnings:
            progress.say(warning)
    done = {cell.key for cell in stored.cells if cell.status != "failed"} if stored else set()
    tasks = [task for task in _tasks(plan) if (task.entry.label, task.key, task.repeat) not in done]
    session = Session.load(plan, reader)
    session.measure(stored.environment.get("cost_curve") if stored else None)
    if stored is None:
        create_run(out, {**describe(plan), **_resolved(session)}, _environment(session), samples.values())
    else:
        _check_model(stored, session)
    with open_cells(out) as cells, Divergences(out, session, stored) as divergences:
        worker = _Worker(session=session, samples=samples)
        if tasks:
            worker.warm_up(plan.warmup, progress)
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


def _encode(cell: Cell) -> bytes:
    import msgspec

    return msgspec.json.encode(cell)


def _check_folder(plan: Plan, out: Path, resume: bool) -> StoredRun | None:
    if not is_run(out):
        if out.exists() and not out.is_dir():
            raise UserError("is a file, not a folder for a run", where=str(out), advice="Choose another --out.")
        if out.is_dir() and any(out.iterdir()) and not _half_made(out):
            raise UserError("is not empty and holds no run", where=str(out), advice="Choose another --out.")
        return None
    if not resume:
        raise UserError(
            "holds a run already", where=str(out), advice="Add --resume to go on with it, or choose another --out."
        )
    stored = read_run(out)
    asked = describe(plan)
    found = differences({key: stored.plan.get(key) for key in asked}, _jsoned(asked))
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
    before, machine = stored.environment.get("hardware"), _environment(session)["hardware"]
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


def _environment(session: Session) -> dict[str, Any]:
    import msgspec
    import torch

    record = environment(threads=torch.get_num_threads())
    curve = session.curve
    return {
        **msgspec.to_builtins(record),
        "hardware": hardware_name(record, device=str(session.target.device)),
        "cost_curve": {"rows": list(curve.rows), "cost": list(curve.cost), "one_row_s": curve.one_row_s},
    }


def _stamp_memory(out: Path, session: Session) -> None:
    stored = read_run(out)
    peak = max(peak_rss_bytes() or 0, int(stored.environment.get("peak_rss_bytes") or 0))
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


def _tasks(plan: Plan) -> Iterator[_Task]:
    """Samples shuffled once by seed; on each all methods, in an order that rotates so that none is always first."""
    order = [(sample_key(suite, sample), sample) for suite, sample in plan.samples]
    random.Random(plan.seed).shuffle(order)
    for repeat in range(plan.repeats):
        for index, (key, sample) in enumerate(order):
            turn = (index + repeat + plan.seed) % len(plan.entries)
            for entry in (*plan.entries[turn:], *plan.entries[:turn]):
                yield _Task(entry=entry, sample=sample, key=key, repeat=repeat)


@dataclass(slots=True, kw_only=True)
class _Worker:
    """Turns tasks into cells."""

    session: Session
    samples: dict[str, SampleRecord]

    def cell(self, task: _Task) -> Cell:
        """Run one method on one sample: every turn, each with the method's own answers before it."""
        load = sample_load().load_1min
        turns: list[Turn] = []
        status: Status = "ok"
        reason = ""
        try:
            for index in range(len(task.sample.turns)):
                text_ids = self._prompt(task, turns)
                if len(text_ids) >= self.session.reader.window:
                    status = "skipped"
                    reason = f"turn {index + 1}: prompt of {len(text_ids)} tokens, window {self.session.reader.window}"
                    break
                turns.append(self._turn(task, index, text_ids))
        except UserError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a method is anybody's code; its failure is a result, and the run goes on
            status, reason = "failed", _first_line(error)
        return Cell(
            method=task.entry.label,
            sample=task.key,
            repeat=task.repeat,
            status=status,
            reason=reason,
            turns=turns if status == "ok" else [],
            load_1min=load,
        )

    def warm_up(self, kind: str, progress: Progress) -> None:
        """Run every method on short budgets at several prompt lengths; nothing of it is counted or kept."""
        cuda = self.session.target.device.type == "cuda"
        if kind == "none" or not self.samples:
            return
        full = kind == "full" or (kind == "auto" and cuda)
        plan = self.session.plan
        by_length = sorted(plan.samples, key=lambda pair: self.samples[sample_key(*pair)].prompt_tokens)
        last = len(by_length) - 1
        places = (0.1, 0.5, 1.0) if full else (0.1, 0.5)
        chosen = [by_length[round(last * place)] for place in places]
        progress.say("warming up")
        for entry in plan.entries:
            for suite, sample in chosen:
                task = _Task(entry=entry, sample=sample, key=sample_key(suite, sample), repeat=-1)
                ids = self._prompt(task, [])
                room = self.session.reader.window - len(ids)
                if room > 0 and not self._warm(task, ids, min(room, 64 if full else 4)):
                    break
            if full:
                suite, sample = chosen[1]
                self.cell(_Task(entry=entry, sample=sample, key=sample_key(suite, sample), repeat=-1))

    def _warm(self, task: _Task, ids: list[int], budget: int) -> bool:
        """Return whether the method got through; one that fails here fails in its cells, where that is recorded."""
        try:
            self._generate(task, 0, ids, budget=budget)
        except UserError:
            raise
        except (Exception, SystemExit):  # noqa: BLE001 - as in `cell`
            return False
        return True

    def _prompt(self, task: _Task, turns: Sequence[Turn]) -> list[int]:
        return self.session.reader.prompt(task.sample, [turn.text for turn in turns])[1]

    def _turn(self, task: _Task, index: int, ids: list[int]) -> Turn:
        reader, plan = self.session.reader, self.session.plan
        room = reader.window - len(ids)
        made = self._generate(task, index, ids, budget=min(plan.max_new_tokens, room))
        finish = "window" if made.finish == "length" and room < plan.max_new_tokens else made.finish
        return Turn(
            prompt_tokens=made.prompt_tokens,
            prompt_sha256=ids_hash(ids),
            token_ids=made.token_ids,
            text=reader.text(made.token_ids, plan.stop),
            finish=finish,
            prefill_ns=made.prefill_ns,
            first_ns=made.first_ns,
            end_ns=made.end_ns,
            cpu_ns=made.cpu_ns,
            first_cpu_ns=made.first_cpu_ns,
            steps=made.trace.columns(),
        )

    def _generate(self, task: _Task, index: int, ids: list[int], *, budget: int) -> Generation:
        import torch

        from draftboard.methods.engine import Clock, decode

        session = self.session
        plan = session.plan
        generator = torch.Generator(device=session.target.device)
        generator.manual_seed(_seed(plan.seed, task.key, index, task.repeat))
        stop = _stop_rule(session.reader, plan.stop)
        limits = Limits(max_new_tokens=budget, eos_ids=session.reader.eos_ids, stop=stop)
        drafter = task.entry.method.drafter(session.binding())
        return decode(
            session.target,
            drafter,
            ids,
            limits=limits,
            sampling=plan.sampling,
            verifier=task.entry.method.verifier(),
            generator=generator,
            clock=Clock(profile=plan.profile),
        )


def _first_line(error: BaseException) -> str:
    # Half a surrogate pair has no place in a UTF-8 file.
    text = str(error).strip().encode("utf-8", "backslashreplace").decode()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


def _seed(seed: int, sample: str, turn: int, repeat: int) -> int:
    """Neither order nor other methods change it: only what names the turn goes in."""
    digest = hashlib.sha256(f"{seed}:{sample}:{turn}:{repeat}".encode()).digest()
    return int.from_bytes(digest[:7], "big")


def _stop_rule(reader: Reader, stop: Sequence[str]) -> Any:
    """Look for the stop texts in the text written so far; the id that completes one is the last that is kept."""
    if not stop:
        return None
    checked = 0

    def rule(ids: Sequence[int]) -> int | None:
        nonlocal checked
        start = min(checked, len(ids))
        checked = len(ids)
        if not any(part in reader.tokenizer.decode(list(ids), skip_special_tokens=True) for part in stop):
            return None
        for end in range(start + 1, len(ids) + 1):
            text = reader.tokenizer.decode(list(ids[:end]), skip_special_tokens=True)
            if any(part in text for part in stop):
                return end
        return None

    return rule
