"""One cell: a method on a sample, turn by turn, with everything that could fail in it turned into a record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns, process_time_ns
from typing import Any

from draftboard.errors import UserError
from draftboard.hardware import sample_load
from draftboard.likelihood import likeliest
from draftboard.meters import Meters
from draftboard.methods.engine import Generation, Limits
from draftboard.plan import BASELINE, Entry, sample_key
from draftboard.records import Cell, SampleRecord, Status, Turn
from draftboard.session import Reader, Session, ids_hash
from draftboard.suites import Sample
from draftboard.traces import Asked, Traces

__all__ = ["Task", "Worker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What becomes one cell."""

    entry: Entry
    sample: Sample
    key: str
    repeat: int


class _Skipped(Exception):
    """Why a cell cannot be run, though nothing failed."""


class _Unanswered(Exception):
    """Why a turn cannot be asked until the baseline has been asked again."""


class Worker:
    """Turns tasks into cells."""

    def __init__(
        self,
        *,
        session: Session,
        samples: dict[str, SampleRecord],
        done: Iterable[Cell] = (),
        traces: Traces | None = None,
    ) -> None:
        """`done` are the cells that an interrupted run has already; `traces` takes those of the first round."""
        self.session = session
        self._traces = traces
        self._asked: list[Asked] = []
        self.samples = samples
        self._meters = Meters(session.target.device)
        self._answers: dict[tuple[str, int], list[str]] = {}
        self._unanswered: set[tuple[str, int]] = set()
        for cell in done:
            self._remember(cell)

    def cell(self, task: Task) -> Cell:
        """Run one method on one sample: every turn, with the answers before it that the run's history names."""
        load = sample_load().load_1min
        turns: list[Turn] = []
        status: Status = "ok"
        reason = ""
        self._asked = []
        self._meters.start()
        try:
            turns = self._turns(task)
        except UserError:
            raise
        except _Skipped as skipped:
            status, reason = "skipped", str(skipped)
        except _Unanswered as unanswered:
            status, reason = "failed", str(unanswered)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a method is anybody's code; its failure is a result, and the run goes on
            status, reason = "failed", _first_line(error)
        taken = self._meters.read()
        cell = Cell(
            method=task.entry.label,
            sample=task.key,
            repeat=task.repeat,
            status=status,
            reason=reason,
            turns=turns,
            load_1min=load,
            peak_rss_bytes=taken.peak_rss_bytes,
            peak_device_bytes=taken.peak_device_bytes,
            energy_j=taken.energy_j,
        )
        self._remember(cell)
        if self._traces is not None and task.repeat == 0 and status == "ok":
            self._traces.add(cell, self._asked)
        return cell

    def _turns(self, task: Task) -> list[Turn]:
        if task.sample.choices:
            return [self._choice(task)]
        turns: list[Turn] = []
        window = self.session.reader.window
        for index in range(len(task.sample.turns)):
            text, ids = self._prompt(task, turns)
            if len(ids) >= window:
                raise _Skipped(f"turn {index + 1}: prompt of {len(ids)} tokens, window {window}")
            turns.append(self._turn(task, index, text, ids))
        return turns

    def _remember(self, cell: Cell) -> None:
        """Keep the baseline's answers where other methods are asked with them."""
        if self.session.plan.history != "reference" or cell.method != BASELINE:
            return
        if cell.status == "ok":
            self._answers[cell.sample, cell.repeat] = [turn.text for turn in cell.turns]
        elif cell.status == "failed":
            self._unanswered.add((cell.sample, cell.repeat))

    def warm_up(self, kind: str, say: Callable[[str], None]) -> None:
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
        say("warming up")
        for entry in plan.entries:
            for suite, sample in chosen:
                task = Task(entry=entry, sample=sample, key=sample_key(suite, sample), repeat=-1)
                ids = self._prompt(task, [])[1]
                room = self.session.reader.window - len(ids)
                if room > 0 and not self._warm(task, ids, min(room, 64 if full else 4)):
                    break
            if full:
                suite, sample = chosen[1]
                self.cell(Task(entry=entry, sample=sample, key=sample_key(suite, sample), repeat=-1))

    def _warm(self, task: Task, ids: list[int], budget: int) -> bool:
        """Return whether the method got through; one that fails here fails in its cells, where that is recorded."""
        try:
            self._generate(task, 0, ids, budget=budget)
        except UserError:
            raise
        except (Exception, SystemExit):  # noqa: BLE001 - as in `cell`
            return False
        return True

    def _prompt(self, task: Task, turns: Sequence[Turn]) -> tuple[str, list[int]]:
        answers = [turn.text for turn in turns]
        if answers and self.session.plan.history == "reference" and task.entry.label != BASELINE:
            theirs = self._answers.get((task.key, task.repeat))
            if theirs is None and (task.key, task.repeat) in self._unanswered:
                # Failed as the baseline is, so that a resumed run asks both again.
                raise _Unanswered(f"turn {len(answers) + 1}: the baseline failed and gave no answer to follow")
            if theirs is None:
                raise _Skipped(f"turn {len(answers) + 1}: the baseline gave no answer to follow")
            answers = theirs[: len(answers)]
        return self.session.reader.prompt(task.sample, answers)

    def _choice(self, task: Task) -> Turn:
        """Answer by likelihood: of the sample's choices the one that the target itself finds likeliest."""
        if task.entry.label != BASELINE:
            raise _Skipped("answered by likelihood: only the baseline is asked, since nothing is drafted")
        reader = self.session.reader
        text, ids = reader.prompt(task.sample, ())
        self._asked.append(Asked(prompt=text, made=None))
        choices = reader.continuations(task.sample)
        # The last token of a choice is only looked for in the scores, and takes no place.
        needed = len(ids) + max(map(len, choices)) - 1
        if needed > reader.window:
            raise _Skipped(f"turn 1: prompt and choices of {needed} tokens, window {reader.window}")
        cpu, wall = process_time_ns(), perf_counter_ns()
        best = likeliest(self.session.target, ids, choices)
        end, cpu_end = perf_counter_ns() - wall, process_time_ns() - cpu
        return Turn(
            prompt_tokens=len(ids),
            prompt_sha256=ids_hash(ids),
            token_ids=[],
            text=task.sample.choices[best].strip(),
            finish="choice",
            prefill_ns=end,
            first_ns=end,
            end_ns=end,
            cpu_ns=cpu_end,
            first_cpu_ns=cpu_end,
            prefill_emits=0,
        )

    def _turn(self, task: Task, index: int, prompt: str, ids: list[int]) -> Turn:
        reader = self.session.reader
        budget, room = reader.budget(task.sample), reader.window - len(ids)
        made = self._generate(task, index, ids, budget=min(budget, room))
        self._asked.append(Asked(prompt=prompt, made=made))
        finish = "window" if made.finish == "length" and room < budget else made.finish
        text = reader.text(made.token_ids, reader.stops(task.sample))
        return Turn(
            prompt_tokens=made.prompt_tokens,
            prompt_sha256=ids_hash(ids),
            token_ids=made.token_ids,
            text=text,
            finish=finish,
            prefill_ns=made.prefill_ns,
            first_ns=made.first_ns,
            end_ns=made.end_ns,
            cpu_ns=made.cpu_ns,
            first_cpu_ns=made.first_cpu_ns,
            steps=made.trace.columns(),
            text_tokens=reader.count(text),
        )

    def _generate(self, task: Task, index: int, ids: list[int], *, budget: int) -> Generation:
        import torch

        from draftboard.methods.engine import Clock, decode

        session = self.session
        plan = session.plan
        generator = torch.Generator(device=session.target.device)
        generator.manual_seed(_seed(plan.seed, task.key, index, task.repeat))
        stop = _stop_rule(session.reader, session.reader.stops(task.sample))
        limits = Limits(max_new_tokens=budget, eos_ids=session.reader.eos_ids, stop=stop)
        drafter = task.entry.method.drafter(session.binding(task.entry.label))
        return decode(
            session.target,
            drafter,
            ids,
            limits=limits,
            sampling=plan.sampling,
            verifier=task.entry.method.verifier(),
            generator=generator,
            clock=Clock(profile=plan.profile),
            keep_drafts=self._traces is not None and task.repeat == 0,
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
    """Look for the stop texts in the text written so far; the id that completes one is the last that is kept.

    A special token has no text there, so that one named as a stop text is looked for by its id.
    """
    if not stop:
        return None
    tokenizer = reader.tokenizer
    special = {str(token): number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    ending = {special[part] for part in stop if part in special}
    checked = 0

    def written(ids: Sequence[int]) -> bool:
        text = tokenizer.decode(list(ids), skip_special_tokens=True)
        return any(part in text for part in stop)

    def rule(ids: Sequence[int]) -> int | None:
        nonlocal checked
        start = min(checked, len(ids))
        checked = len(ids)
        ended = next((at + 1 for at in range(start, len(ids)) if ids[at] in ending), None)
        last = ended or len(ids)
        if not written(ids[:last]):
            return ended
        return next(end for end in range(start + 1, last + 1) if written(ids[:end]))

    return rule
