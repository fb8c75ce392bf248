"""Training text that the target writes itself: its answers to prompts, batched, on disk as they come, resumable.

A head learns what its target would say, so that text of the target teaches it more than text of anybody else. One line
of `answers.jsonl` is one answer; `meta.json` beside it says what wrote them, and a folder is only gone on with by the
same target with the same settings.
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from draftboard.methods.errors import MethodError
from draftboard.methods.training.prompts import LAG, ROUND, Ask, Passage
from draftboard.methods.training.sources import Prompts

if TYPE_CHECKING:
    from draftboard.methods.training.batching import BatchWriter, Row

__all__ = [
    "Answer",
    "Progress",
    "TextSide",
    "Writing",
    "read_answers",
    "write_answers",
]

SCHEMA = 1
_OWN_LIMIT = 160
"""Most tokens of a user's message that the target writes itself."""
_SHORTEST_PASSAGE = 40
"""Words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSide:
    """What of the target's tokenizer and template is needed."""

    encode: Callable[[Sequence[str], Sequence[str]], list[int]]
    """(turns, answers to all but the last) → ids of the prompt."""
    decode: Callable[[Sequence[int]], str]
    """Ids of an answer → its text without special tokens."""
    eos_ids: Collection[int]
    user_prefix: Callable[[], list[int] | None] = lambda: None
    """Ids up to the place of the user's first message, or None where the template does not show that place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How answers are written."""

    seed: int = 0
    max_new_tokens: int = 256
    max_prompt_tokens: int = 768
    """Longer prompts are left out."""
    temperature: float = 0.0
    places: int = 64
    """Conversations at a time; changes the speed and, by rounding, now and then a token."""

    def __post_init__(self) -> None:
        if min(self.max_new_tokens, self.max_prompt_tokens, self.places) < 1 or not 0 <= self.temperature < 100:
            raise MethodError("answers need max_new_tokens, max_prompt_tokens and places >= 1 and a temperature >= 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A line of `answers.jsonl`."""

    index: int
    """Number of the prompt in its stream."""
    turn: int
    """Counted from 0."""
    kind: str
    user: str
    """The message that is answered."""
    prompt_ids: list[int]
    """Everything the target read, earlier turns included."""
    answer_ids: list[int]
    """The end token included, where one was written."""
    finish: Literal["end", "length", "skipped"]
    """`skipped`: nothing was written, because the message is too long, unusable, or an evaluation's item."""
    subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the writing has come."""

    tokens: int
    """Answer tokens on disk."""
    wanted: int
    answers: int
    rate: float
    """Tokens a second since this process began to write, those of unfinished answers included."""
    steps: int = 0
    """Forwards of the batch in this process."""

    @property
    def left_s(self) -> float:
        """Seconds still needed at this rate."""
        return max(0, self.wanted - self.tokens) / self.rate if self.rate > 0 else float("inf")


def read_answers(folder: Path) -> Iterator[Answer]:
    """Yield the answers of a folder, those that were skipped left out. Raises MethodError for a damaged file."""
    for answer in _read(folder / "answers.jsonl")[0]:
        if answer.finish != "skipped":
            yield answer


def write_answers(
    folder: Path,
    model: Any,
    text: TextSide,
    prompts: Prompts,
    *,
    writing: Writing,
    tokens: int,
    seconds: float | None = None,
    provenance: Mapping[str, Any],
    banned: Callable[[str], bool] = lambda text: False,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Write answers into `folder` until it holds `tokens` answer tokens, the prompts end, or `seconds` are over.

    A folder that holds answers is gone on with. `model` is a `transformers` causal LM; `provenance` (the target, its
    fingerprint, the dtype, versions) goes into `meta.json`; `banned` judges the messages that the target writes itself.
    Raises MethodError where the folder was written otherwise, or cannot be read or written.
    """
    from draftboard.methods.training.batching import BatchWriter

    meta = {
        "schema": SCHEMA,
        **provenance,
        "prompts": prompts.describe(),
        "writing": {key: value for key, value in asdict(writing).items() if key != "places"},
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _check_meta(folder / "meta.json", meta)
        done, whole = _read(folder / "answers.jsonl")
        with (folder / "answers.jsonl").open("ab") as file:
            file.truncate(whole)
            writer = BatchWriter(model, places=writing.places, eos_ids=text.eos_ids)
            writer.share(_beginning(text))
            work = _Work(writer=writer, text=text, prompts=prompts, writing=writing, file=file, banned=banned)
            work.restore(done)
            end = work.run(tokens, seconds, progress)
        counts = {"answers": end.answers, "tokens": end.tokens, "left_out_as_evaluation": prompts.skipped}
        _write_meta(folder / "meta.json", {**meta, "counts": counts})
        return end
    except OSError as error:
        raise MethodError(f"{folder} cannot be used: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One thing to write: an answer, or (`turn` -1) the user's message."""

    ask: Ask
    turn: int
    prompt: list[int]


@dataclass(slots=True, kw_only=True)
class _Work:
    writer: BatchWriter
    text: TextSide
    prompts: Prompts
    writing: Writing
    file: Any
    banned: Callable[[str], bool]
    _queue: list[tuple[int, int, int, int, _Job]] = field(default_factory=list)
    _done: dict[int, list[Answer]] = field(default_factory=dict)
    """Answers of a conversation by turn; only of rounds that are open or still to come."""
    _passages: dict[int, Passage] = field(default_factory=dict)
    _open: dict[int, set[int]] = field(default_factory=dict)
    """Round → numbers of its prompts that are not answered yet."""
    _round: int = 0
    _ended: bool = False
    _tokens: int = 0
    _answers: int = 0

    def restore(self, done: Sequence[Answer]) -> None:
        """Take up what is on disk."""
        for answer in done:
            self._note(answer)

    def run(self, wanted: int, seconds: float | None, progress: Callable[[Progress], None]) -> Progress:
        """Write until enough is there."""
        start, before, steps = time.monotonic(), self._tokens, 0

        def report() -> Progress:
            rate = (self._tokens + self._under_way() - before) / max(time.monotonic() - start, 1e-9)
            return Progress(tokens=self._tokens, wanted=wanted, answers=self._answers, rate=rate, steps=steps)

        while seconds is None or time.monotonic() - start < seconds:
            if self._tokens + self._under_way() < wanted:
                self._fill()
            if not self.writer.rows:
                break
            for row in self.writer.step():
                self._end(row, follow=self._tokens + self._under_way() < wanted)
            steps += 1
            self.file.flush()
            progress(report())
        self.file.flush()
        return report()

    def _under_way(self) -> int:
        return sum(len(row.written) for row in self.writer.rows)

    def _fill(self) -> None:
        while self.writer.free:
            while not self._queue and self._open_round():
                pass
            if not self._queue:
                return
            row = self._row(heapq.heappop(self._queue)[-1])
            if self.writer.admit(row):
                self._end(row, follow=False)

    def _row(self, job: _Job) -> Row:
        from draftboard.methods.training.batching import Row

        own = job.turn < 0
        return Row(
            key=job,
            prompt=job.prompt,
            limit=_OWN_LIMIT if own else self.writing.max_new_tokens,
            temperature=1.0 if own or job.ask.sampled else self.writing.temperature,
            draw=Random(f"{self.writing.seed}/{job.ask.index}/{job.turn}").random,
        )

    def _open_round(self) -> bool:
        """Queue the next round's prompts, if the answers that it may use are there. Returns whether it is open now."""
        number = self._round
        if self._ended or self._open.get(number - LAG):
            return False
        usable = [self._passages[i] for i in sorted(self._passages) if i // ROUND <= number - LAG]
        self._open[number] = set()
        self._round += 1
        for index in range(number * ROUND, (number + 1) * ROUND):
            ask = self.prompts.ask(index, usable)
            if ask is None:
                self._ended = True
                break
            self._open[number].add(index)
            job = self._next(ask, self._done.get(index, []))
            if job is not None:
                self._push(job)
        return True

    def _next(self, ask: Ask, answered: Sequence[Answer]) -> _Job | None:
        """Return what comes next of a conversation, or close it."""
        turn = len(answered)
        if (answered and answered[-1].finish == "skipped") or turn >= max(1, len(ask.turns)):
            self._close(ask.index)
            return None
        if ask.turns:
            return self._question(ask, turn, answered)
        prefix = self.text.user_prefix()
        if prefix is None:
            self._skip(ask, 0, "")
            return None
        return _Job(ask=ask, turn=-1, prompt=prefix)

    def _question(self, ask: Ask, turn: int, answered: Sequence[Answer]) -> _Job | None:
        earlier = [self.text.decode(answer.answer_ids) for answer in answered]
        prompt = self.text.encode(ask.turns[: turn + 1], earlier)
        if not prompt or len(prompt) > self.writing.max_prompt_tokens:
            self._skip(ask, turn, ask.turns[turn])
            return None
        return _Job(ask=ask, turn=turn, prompt=prompt)

    def _push(self, job: _Job) -> None:
        # Prompts of like lengths share forwards; the order turns round at each round, so that no jump comes between.
        length = len(job.prompt) if job.ask.round % 2 == 0 else -len(job.prompt)
        heapq.heappush(self._queue, (job.ask.round, length, job.ask.index, job.turn, job))

    def _end(self, row: Row, *, follow: bool) -> None:
        """Store what a row has written; its conversation goes on in the same place, or waits for one."""
        while True:
            job = self._store(row)
            if job is None:
                return
            if not follow:
                self._push(job)
                return
            ended, row = row, self._row(job)
            if not self.writer.go_on(ended, row):
                return

    def _store(self, row: Row) -> _Job | None:
        """Store what a row has written and return what comes next."""
        job = row.key
        if not isinstance(job, _Job):
            raise TypeError("a row of somebody else")
        ended = row.written[-1] in self.text.eos_ids
        if job.turn < 0:
            message = self.text.decode(row.written).strip()
            if not ended or not message or self.banned(message):
                self._skip(job.ask, 0, message)
                return None
            return self._question(Ask(index=job.ask.index, kind=job.ask.kind, turns=(message,)), 0, ())
        answer = Answer(
            index=job.ask.index,
            turn=job.turn,
            kind=job.ask.kind,
            user=job.ask.turns[job.turn],
            prompt_ids=list(job.prompt),
            answer_ids=row.written,
            finish="end" if ended else "length",
            subject=job.ask.subject,
        )
        self._write(answer)
        return self._next(job.ask, self._done[job.ask.index])

    def _skip(self, ask: Ask, turn: int, user: str) -> None:
        answer = Answer(
            index=ask.index, turn=turn, kind=ask.kind, user=user, prompt_ids=[], answer_ids=[], finish="skipped"
        )
        self._write(answer)
        self._close(ask.index)

    def _write(self, answer: Answer) -> None:
        self.file.write(msgspec.json.encode(answer) + b"\n")
        self._note(answer)

    def _note(self, answer: Answer) -> None:
        self._done.setdefault(answer.index, []).append(answer)
        self._tokens += len(answer.answer_ids)
        self._answers += answer.finish != "skipped"
        if answer.kind == "passage" and answer.finish != "skipped":
            text = self.text.decode(answer.answer_ids)
            if len(text.split()) >= _SHORTEST_PASSAGE:
                self._passages[answer.index] = Passage(subject=answer.subject, text=text)

    def _close(self, index: int) -> None:
        self._open[index // ROUND].discard(index)
        self._done.pop(index, None)


def _beginning(text: TextSide) -> list[int]:
    """Return the ids that all prompts begin with, as those of two unlike messages tell."""
    first, second = (text.encode((message,), ()) for message in ("Why?", "a b"))
    unlike = (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    return first[: next(unlike, 0)]


def _check_meta(path: Path, meta: dict[str, Any]) -> None:
    """Write `meta.json`, or compare with what is there. Raises MethodError that shows what differs."""
    if not path.exists():
        _write_meta(path, meta)
        return
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise MethodError(f"{path} cannot be read: {error}") from error
    if not isinstance(stored, dict):
        raise MethodError(f"{path} is not the record of answers")
    stored.pop("counts", None)
    wanted = json.loads(json.dumps(meta))
    differing = [key for key in sorted({*stored, *wanted}) if stored.get(key) != wanted.get(key)]
    if differing:
        shown = "; ".join(
            f"{key}: {_short(stored.get(key))} there, {_short(wanted.get(key))} wanted" for key in differing
        )
        raise MethodError(f"{path.parent} holds answers that were written otherwise ({shown}); choose another folder")


def _write_meta(path: Path, meta: dict[str, Any]) -> None:
    partial = path.with_name(".meta.json.part")
    partial.write_text(json.dumps(meta, ensure_ascii=False, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    partial.replace(path)


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:160]}…"


def _read(path: Path) -> tuple[list[Answer], int]:
    """Return the answers of a file and its length up to the last whole line. Raises MethodError for broken lines."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    except OSError as error:
        raise MethodError(f"{path} cannot be read: {error.strerror or error}") from error
    whole = data.rfind(b"\n") + 1
    decoder = msgspec.json.Decoder(Answer)
    answers: list[Answer] = []
    problems: list[str] = []
    for number, line in enumerate(data[:whole].splitlines(), 1):
        try:
            answers.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problems.append(f"line {number}: {error}")
    if problems:
        raise MethodError(f"{path} has {len(problems)} broken line(s): {'; '.join(problems[:3])}")
    return answers, whole
