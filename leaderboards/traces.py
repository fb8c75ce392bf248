"""Pages that show how answers came about: one a sample with every method on it, and an index by domain.

A page needs no network and no script; its only script moves the keyboard's focus from step to step. Pages are named
by number, because a sample's id is whatever someone typed.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from draftboard.files import write_atomic
from draftboard.leaderboards.page_scripts import resource
from draftboard.leaderboards.pages import render_page
from draftboard.leaderboards.tokens import lines_html, token_html
from draftboard.records import Cell, SampleRecord, TracedStep, TracedTurn, TraceRecord

__all__ = ["FOLDER", "INDEX", "TracedRun", "Written", "render_traces"]

FOLDER = "traces"
INDEX = f"{FOLDER}/index.html"
_PAGE = re.compile(r"[0-9]+-[0-9]+\.html")
_SHOWN = 32
"""Rejected tokens of a step that a page spells out; wide trees have hundreds, and nobody reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedRun:
    """A run whose first round was traced."""

    title: str
    methods: Sequence[str]
    """Labels in the plan's order."""
    samples: Sequence[SampleRecord]
    cells: Sequence[Cell]
    traces: Sequence[TraceRecord]
    unsplit: str = ""
    """Why the time of a step is not known by its parts; empty where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What came of rendering."""

    paths: tuple[Path, ...]
    """The index first; empty where there was nothing to show."""
    left_out: int = 0
    """Samples that the limit left without a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """One sample to be shown."""

    name: str
    number: int
    """Of the run."""
    run: TracedRun
    sample: SampleRecord
    cells: dict[str, Cell]
    traces: dict[str, TraceRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    kind: str
    """`first`, `accepted`, `bonus`, `rejected` or `cut`."""
    text: object
    """Markup; empty where the token only begins a character."""
    special: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One step, laid out. The number 0 is the prefill, which drafts nothing."""

    number: int
    kept: tuple[_Token, ...]
    cut: tuple[_Token, ...] = ()
    """Accepted, but behind the end of the answer."""
    rejected: tuple[tuple[int, tuple[_Token, ...]], ...] = ()
    """Branches: how many drafted tokens stand before it, and its own."""
    more: int = 0
    """Rejected tokens that are not spelled out."""
    facts: str = ""
    times: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """One method on one turn. Without steps, `why` says what there is to know."""

    method: str
    anchor: str
    steps: tuple[_Step, ...] = ()
    facts: str = ""
    why: str = ""
    prompt: object = ""
    """Markup; only where it is not the other methods' prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    asked: str
    prompt: object
    """Markup."""
    answers: tuple[_Answer, ...]


def render_traces(runs: Sequence[TracedRun], out: Path, *, limit: int) -> Written:
    """Write `traces/index.html` and at most `limit` pages beside it into `out`.

    Where there are more samples, domains take turns. Pages of an earlier rendering that are not written again are
    removed. Raises UserError that names the path when something cannot be written.
    """
    pages = [page for number, run in enumerate(runs, start=1) for page in _pages(number, run)]
    chosen = _chosen(pages, limit)
    folder = out / FOLDER
    _remove_others(folder, {page.name for page in chosen})
    if not chosen:
        return Written(paths=(), left_out=len(pages))
    names = ["", *(page.name for page in chosen), ""]
    for page, before, after in zip(chosen, names, names[2:], strict=False):
        title = f"Trace of {page.sample.sample_id}"
        _write(folder / page.name, "trace.html", title=title, page=page, turns=_turns(page), before=before, after=after)
    groups = [
        [(domain, list(part)) for domain, part in groupby(group, lambda page: page.sample.domain)]
        for _, group in groupby(chosen, lambda page: page.number)
    ]
    left_out = len(pages) - len(chosen)
    _write(out / INDEX, "trace_index.html", title="Traces", groups=groups, left_out=left_out, total=len(pages))
    return Written(paths=(out / INDEX, *(folder / page.name for page in chosen)), left_out=left_out)


def _pages(number: int, run: TracedRun) -> Iterator[_Page]:
    """Every sample of the run that was tried in its first round, by domain."""
    cells: dict[str, dict[str, Cell]] = {}
    for cell in run.cells:
        if cell.repeat == 0:
            cells.setdefault(cell.sample, {})[cell.method] = cell
    traces: dict[str, dict[str, TraceRecord]] = {}
    for trace in run.traces:
        traces.setdefault(trace.sample, {})[trace.method] = trace
    order = list(dict.fromkeys(sample.domain for sample in run.samples))
    numbered = sorted(enumerate(run.samples, start=1), key=lambda pair: order.index(pair[1].domain))
    for place, sample in numbered:
        if sample.key in cells:
            yield _Page(
                name=f"{number}-{place}.html",
                number=number,
                run=run,
                sample=sample,
                cells=cells[sample.key],
                traces=traces.get(sample.key, {}),
            )


def _chosen(pages: Sequence[_Page], limit: int) -> list[_Page]:
    """Return as many pages as wanted, in their order; every domain has its turn before one has a second."""
    queues: dict[tuple[int, str], deque[_Page]] = {}
    for page in pages:
        queues.setdefault((page.number, page.sample.domain), deque()).append(page)
    taken: set[str] = set()
    waiting = deque(queues.values())
    while waiting and len(taken) < limit:
        queue = waiting.popleft()
        taken.add(queue.popleft().name)
        if queue:
            waiting.append(queue)
    return [page for page in pages if page.name in taken]


def _remove_others(folder: Path, names: set[str]) -> None:
    """Remove pages of ours that nothing would lead to any more."""
    for path in folder.glob("*.html"):
        if (_PAGE.fullmatch(path.name) and path.name not in names) or (path.name == "index.html" and not names):
            with suppress(OSError):
                path.unlink()


def _write(path: Path, template: str, *, title: str, **values: Any) -> None:
    style = resource("style.css") + resource("trace.css")
    text = render_page(template, title=title, style=style, scripts=[resource("trace.js")], **values)
    write_atomic(path, text.encode("utf-8", errors="replace"))


def _turns(page: _Page) -> Iterator[_Turn]:
    from markupsafe import Markup

    for index, asked in enumerate(page.sample.turns):
        traced = {name: trace.turns[index] for name, trace in page.traces.items() if index < len(trace.turns)}
        prompts = {name: turn.prompt for name, turn in traced.items() if _usable(page, name)}
        shared = next(iter(prompts.values()), "")
        answers = []
        for number, method in enumerate(page.run.methods, start=1):
            own = "" if prompts.get(method, shared) == shared else Markup(lines_html(prompts[method]))
            anchor = f"turn-{index + 1}-method-{number}"
            answers.append(_answer(page, method, index, traced.get(method), anchor=anchor, prompt=own))
        yield _Turn(asked=asked, prompt=Markup(lines_html(shared)), answers=tuple(answers))


def _usable(page: _Page, method: str) -> bool:
    """Whether the method's trace is that of its cell: the one of an attempt that failed later says nothing."""
    cell = page.cells.get(method)
    return cell is not None and cell.status == "ok" and method in page.traces


def _answer(page: _Page, method: str, index: int, traced: TracedTurn | None, *, anchor: str, prompt: object) -> _Answer:
    cell = page.cells.get(method)
    if cell is None:
        return _Answer(method=method, anchor=anchor, why="This sample was not run with this method.")
    if cell.status != "ok":
        why = f"{cell.status.capitalize()}: {cell.reason or 'no reason is known'}. There is no trace of it."
        return _Answer(method=method, anchor=anchor, why=why)
    if traced is None or index >= len(cell.turns):
        return _Answer(method=method, anchor=anchor, why="No trace of this answer was stored.")
    if not traced.pieces:
        why = f"Nothing was generated; the answer was chosen by likelihood: {cell.turns[index].text}"
        return _Answer(method=method, anchor=anchor, why=why, prompt=prompt)
    steps = tuple(_steps(traced, split=not page.run.unsplit))
    tokens, count = len(traced.pieces), len(traced.steps)
    facts = [f"{tokens} token{'s'[: tokens != 1]} in {count} step{'s'[: count != 1]}"]
    if count:
        facts.append(f"{sum(step.kept for step in traced.steps) / count:.2f} kept a step")
        drafted = sum(len(step.tokens) - 1 for step in traced.steps)
        accepted = sum(step.accepted for step in traced.steps)
        facts.append(f"{accepted} of {drafted} drafted tokens accepted" if drafted else "nothing drafted")
    facts.append(f"ended by {cell.turns[index].finish}")
    return _Answer(method=method, anchor=anchor, steps=steps, facts=", ".join(facts), prompt=prompt)


def _steps(turn: TracedTurn, *, split: bool) -> Iterator[_Step]:
    place = turn.prefill_emits
    yield _Step(number=0, kept=tuple(_kept(turn, at, "first") for at in range(place)), facts="read the prompt")
    for number, step in enumerate(turn.steps, start=1):
        taken = min(step.accepted, step.kept)
        kept = [_kept(turn, place + at, "accepted" if at < taken else "bonus") for at in range(step.kept)]
        rejected, more = _rejected(step)
        yield _Step(
            number=number,
            kept=tuple(kept),
            cut=tuple(_drafted(step, node, "cut") for node in step.path[1 + taken :]),
            rejected=rejected,
            more=more,
            facts=_facts(step),
            times=_times(step, split=split),
        )
        place += step.kept


def _facts(step: TracedStep) -> str:
    nodes = len(step.tokens) - 1
    bonus = step.kept - min(step.accepted, step.kept)
    parts = [f"drafted {nodes}", f"accepted {step.accepted}"] if nodes else ["drafted nothing"]
    parts.append(f"bonus {bonus}" if bonus else "no bonus: the answer ended before it")
    return ", ".join(parts)


def _times(step: TracedStep, *, split: bool) -> str:
    if not split:
        return f"{_ms(step.draft_ns + step.verify_ns + step.other_ns)} ms"
    return f"draft {_ms(step.draft_ns)} ms, verify {_ms(step.verify_ns)} ms, other {_ms(step.other_ns)} ms"


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.{3 if ns < 1e6 else 1}f}"


def _kept(turn: TracedTurn, place: int, kind: str) -> _Token:
    return _token(turn.pieces[place], turn.special.get(place), kind)


def _drafted(step: TracedStep, node: int, kind: str) -> _Token:
    return _token(step.texts[node], step.special.get(node), kind)


def _token(text: str, name: str | None, kind: str) -> _Token:
    from markupsafe import Markup

    shown = lines_html(name) if not text and name else token_html(text)
    return _Token(kind=kind, text=Markup(shown), special=not text and bool(name))


def _rejected(step: TracedStep) -> tuple[tuple[tuple[int, tuple[_Token, ...]], ...], int]:
    """Return the branches that were not taken, one a leaf, and how many of their tokens are not among them."""
    accepted = set(step.path)
    children: list[list[int]] = [[] for _ in step.tokens]
    for node, parent in enumerate(step.parents[1:], start=1):
        children[parent].append(node)
    branches: list[tuple[int, tuple[_Token, ...]]] = []
    spelled: set[int] = set()
    written = 0
    for depth, fork in enumerate(step.path):
        waiting = [[child] for child in reversed(children[fork]) if child not in accepted]
        while waiting:
            branch = waiting.pop()
            further = children[branch[-1]]
            waiting += [[*branch, child] for child in reversed(further)]
            if not further and (not branches or written + len(branch) <= _SHOWN):
                branches.append((depth, tuple(_drafted(step, node, "rejected") for node in branch[:_SHOWN])))
                spelled.update(branch[:_SHOWN])
                written += len(branch)
    return tuple(branches), len(step.tokens) - len(accepted) - len(spelled)
