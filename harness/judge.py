"""A judge of somebody else's for open text: a command or an endpoint that is asked about each answer of a stored run.

Its marks stay beside the run, in `judgements.jsonl`, with the judge's name, a hash of what it was asked and its reply
as it came; no table of draftboard holds them. A method that wrote exactly what the baseline wrote is not judged:
equality is the statement of its quality. Source: suites-and-scoring 6.6.
"""

import json
import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from http.client import HTTPException
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import urlsplit

import msgspec

from draftboard.errors import UserError
from draftboard.files import JsonLines, read_lines
from draftboard.foreign.reading import unsurrogated
from draftboard.records import SCHEMA, Cell, SampleRecord
from draftboard.store import StoredRun
from draftboard.wording import named

__all__ = [
    "JUDGEMENTS",
    "Judge",
    "JudgeFailure",
    "Judged",
    "Judgement",
    "ask_command",
    "ask_endpoint",
    "describe_judge",
    "judge_run",
    "summary",
]

JUDGEMENTS = "judgements.jsonl"
LOWEST, HIGHEST = 1, 10

Judge = Callable[[bytes], str]
"""Takes one question as JSON in UTF-8 and returns the reply as it came. Raises JudgeFailure."""


class JudgeFailure(Exception):
    """Why a judge gave no reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """One reply. `scores` are 1 to 10, one a turn; a comparison has a `winner` instead."""

    judge: str
    method: str
    sample: str
    repeat: int
    prompt_sha256: str
    reply: str
    scores: list[float] = field(default_factory=list)
    against: str = ""
    """The method compared with; empty where answers were marked one by one."""
    first: str = ""
    """Which of the two was shown first."""
    winner: str = ""
    """A method, or `tie`."""
    failure: str = ""
    """Why there is no mark."""
    made_with: str = ""
    """`describe_judge` of what was asked; empty where that was not recorded."""
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """All judgements of one judge on a run, one for each question."""

    found: list[Judgement]
    asked: int
    """Questions of this call."""
    kept: int
    """Marks of earlier calls."""


def describe_judge(*, command: str | None = None, endpoint: str | None = None) -> str:
    """Return what tells one judge from another: the program's or the host's name, and a hash of the whole.

    The rest is not kept, since it may hold a secret. Raises UserError for a command that cannot be read.
    """
    if command is not None:
        words = _words(command)
        return f"command {unsurrogated(Path(words[0]).name)} sha256:{_hash(words)}"
    return f"endpoint {urlsplit(endpoint or '').hostname} sha256:{_hash([endpoint or ''])}"


def _hash(words: Sequence[str]) -> str:
    return sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def ask_command(command: str, timeout_s: float) -> Judge:
    """Return a judge that is a program: the question on its standard input, the reply on its standard output."""
    words = _words(command)

    def ask(question: bytes) -> str:
        try:
            done = subprocess.run(words, input=question, capture_output=True, timeout=timeout_s, check=False)
        except FileNotFoundError as error:
            raise UserError(f"the judge's command is not there: {words[0]}") from error
        except subprocess.TimeoutExpired as error:
            raise JudgeFailure(f"no reply within {timeout_s:g} s") from error
        except OSError as error:
            raise JudgeFailure(error.strerror or str(error)) from error
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise JudgeFailure(f"exit code {done.returncode}" + "".join(f": {line}" for line in last))
        return done.stdout.decode("utf-8", "replace")

    return ask


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"the judge's command cannot be read: {error}") from error
    if not words:
        raise UserError("the judge's command is empty")
    return words


def ask_endpoint(url: str, timeout_s: float) -> Judge:
    """Return a judge that is an address: the question is posted as JSON, the reply is the body."""
    try:
        host = urlsplit(url).hostname if url.startswith(("http://", "https://")) else None
    except ValueError:
        host = None
    if not host or not url.isprintable() or " " in url:
        raise UserError(f"{url!r} is no http address")

    def ask(question: bytes) -> str:
        request = urllib.request.Request(url, data=question, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as response:
                body: bytes = response.read()
        except urllib.error.HTTPError as error:
            with error:
                raise JudgeFailure(f"HTTP status {error.code}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise JudgeFailure(str(getattr(error, "reason", error)) or type(error).__name__) from error
        return body.decode("utf-8", "replace")

    return ask


def judge_run(
    run: StoredRun,
    judge: Judge,
    *,
    name: str,
    made_with: str = "",
    against: str = "",
    scored_too: bool = False,
    identical: Iterable[str] = (),
    tell: Callable[[Judgement], None] = lambda _: None,
) -> Judged:
    """Ask about every answer that this judge has not been asked about; return all its judgements on this run.

    Samples that have a scorer are left out unless `scored_too`. With `against`, a method's answers are compared with
    that method's in both orders. `identical` are labels that need no judge. Raises UserError for an unknown method, and
    where there are marks under this name that were made with something else than `made_with`.
    """
    labels = [table["label"] for table in run.plan["methods"]]
    if against and against not in labels:
        raise UserError(f"the run has no method {against!r}", advice=f"Its methods: {named(labels)}.")
    path = run.path / JUDGEMENTS
    mine = [found for found in _read(path) if found.judge == name]
    _refuse_other(mine, name, made_with, path)
    # Of several about the same the last one counts: a failure that was mended, or an answer that has changed since.
    known = {_subject(found): found for found in mine if found.against == against}
    done = {found.prompt_sha256 for found in known.values() if not found.failure}
    samples = {record.key: record for record in run.samples if scored_too or record.scorer is None}
    fresh: list[Judgement] = []
    with JsonLines(path) as file:
        for question in _questions(run.cells, samples, against, set(identical)):
            asked = json.dumps(question.body, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
            digest = sha256(asked + question.key.encode("utf-8", "backslashreplace")).hexdigest()
            if digest in done:
                continue
            made = replace(_asked(judge, name, question, asked, digest, against), made_with=made_with)
            file.append(msgspec.json.encode(made))
            fresh.append(made)
            tell(made)
    for made in fresh:
        known.pop(_subject(made), None)
    kept = sum(not found.failure for found in known.values())
    return Judged(found=[*known.values(), *fresh], asked=len(fresh), kept=kept)


def _subject(one: Judgement) -> tuple[str, str, int, str]:
    return one.method, one.sample, one.repeat, one.first


def _refuse_other(mine: Sequence[Judgement], name: str, made_with: str, path: Path) -> None:
    other = next((one for one in mine if not one.failure and one.made_with not in ("", made_with)), None)
    if other is not None:
        raise UserError(
            f"the marks of {name!r} were made with another judge",
            where=str(path),
            problems=(f"then: {other.made_with}", f"now: {made_with}"),
            advice="Give this judge another --name, or delete the lines of the other to have all marks made anew.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    cell: Cell
    body: dict[str, Any]
    turns: int
    first: str = ""
    second: str = ""

    @property
    def key(self) -> str:
        """What tells equal questions about different cells apart."""
        return f"{self.cell.method}\n{self.cell.sample}\n{self.cell.repeat}"


def _questions(
    cells: Sequence[Cell], samples: dict[str, SampleRecord], against: str, identical: set[str]
) -> Iterator[_Question]:
    others = {(cell.sample, cell.repeat): cell for cell in cells if cell.method == against and cell.status == "ok"}
    for cell in cells:
        record = samples.get(cell.sample)
        if record is None or cell.status != "ok" or cell.method in identical or cell.method == against:
            continue
        asked = {"questions": record.turns, "references": record.references, "system": record.system}
        mine = [turn.text for turn in cell.turns]
        if not against:
            yield _Question(cell=cell, turns=len(mine), body={"mode": "single", **asked, "answers": mine})
        elif (cell.sample, cell.repeat) in others:
            theirs = [turn.text for turn in others[cell.sample, cell.repeat].turns]
            pair: tuple[tuple[str, list[str]], ...] = ((cell.method, mine), (against, theirs))
            for (first, a), (second, b) in (pair, pair[::-1]):
                body = {"mode": "pair", **asked, "answers_a": a, "answers_b": b}
                yield _Question(cell=cell, turns=len(mine), body=body, first=first, second=second)


def _asked(judge: Judge, name: str, question: _Question, asked: bytes, digest: str, against: str) -> Judgement:
    scores: list[float] = []
    winner = failure = reply = ""
    try:
        reply = judge(asked)
        if against:
            winner = _winner(reply, question.first, question.second)
        else:
            scores = _scores(reply, question.turns)
    except JudgeFailure as error:
        failure = str(error)
    return Judgement(
        judge=name,
        method=question.cell.method,
        sample=question.cell.sample,
        repeat=question.cell.repeat,
        prompt_sha256=digest,
        reply=reply,
        scores=scores,
        against=against,
        first=question.first,
        winner=winner,
        failure=failure,
    )


def _object(reply: str) -> dict[str, Any]:
    try:
        found = json.loads(reply)
    except (ValueError, RecursionError) as error:
        raise JudgeFailure("the reply is not JSON") from error
    if not isinstance(found, dict):
        raise JudgeFailure("the reply is not a JSON object")
    return found


def _scores(reply: str, turns: int) -> list[float]:
    found = _object(reply).get("scores")
    scores = found if isinstance(found, list) else []
    # True and False are whole numbers to Python.
    good = all(type(score) in (int, float) and LOWEST <= score <= HIGHEST for score in scores)
    if not good or len(scores) != turns:
        raise JudgeFailure(f"`scores` is not a list of {turns} number(s) from {LOWEST} to {HIGHEST}")
    return [float(score) for score in scores]


def _winner(reply: str, first: str, second: str) -> str:
    winner = _object(reply).get("winner")
    names = {"a": first, "b": second, "tie": "tie"}
    if not isinstance(winner, str) or winner not in names:
        raise JudgeFailure("`winner` is none of a, b and tie")
    return names[winner]


def _read(path: Path) -> list[Judgement]:
    if not path.exists():
        return []
    found = []
    for number, line in read_lines(path):
        try:
            found.append(msgspec.json.decode(line, type=Judgement))
        except msgspec.ValidationError as error:
            raise UserError(
                f"not a judgement ({error})", where=f"{path}:{number}", advice="Delete that line."
            ) from error
    return found


def summary(found: Sequence[Judgement], domains: dict[str, str]) -> list[dict[str, Any]]:
    """Return per method and domain: mean mark and n, or wins, losses and ties; failures counted.

    `domains` is the domain of each sample. A comparison is won only if it is in both orders; anything else of two
    replies is a tie.
    """
    groups: dict[tuple[str, str], list[Judgement]] = {}
    for one in found:
        groups.setdefault((one.method, domains[one.sample]), []).append(one)
    return [
        {"method": method, "domain": domain, **(_pairs(inside) if inside[0].against else _marks(inside))}
        for (method, domain), inside in groups.items()
    ]


def _marks(inside: Sequence[Judgement]) -> dict[str, Any]:
    good = [one.scores for one in inside if not one.failure]
    marks = [score for scores in good for score in scores]
    by_turn = [fmean(turn) for turn in zip(*good, strict=True)] if len({len(scores) for scores in good}) == 1 else []
    return {
        "mean": fmean(marks) if marks else None,
        "by_turn": by_turn,
        "n": len(good),
        "failed": len(inside) - len(good),
    }


def _pairs(inside: Sequence[Judgement]) -> dict[str, Any]:
    both: dict[tuple[str, int], list[str]] = {}
    for one in inside:
        if not one.failure:
            both.setdefault((one.sample, one.repeat), []).append(one.winner)
    counts = {"won": 0, "lost": 0, "tied": 0}
    complete = [winners for winners in both.values() if len(winners) == 2]
    for first, second in complete:
        same = first == second
        counts["won" if same and first == inside[0].method else "lost" if same and first != "tie" else "tied"] += 1
    return {
        "against": inside[0].against,
        **counts,
        "n": len(complete),
        "failed": sum(bool(one.failure) for one in inside),
    }
