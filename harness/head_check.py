"""What `draftboard check-head` does: the target, some text, the head, and what they come to."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from draftboard.errors import UserError
from draftboard.hub import find_folder
from draftboard.leaderboards.text import terminal_text
from draftboard.options import RunOptions
from draftboard.plan import Plan, make_plan
from draftboard.session import Reader, Session, open_reader
from draftboard.suites import Sample

if TYPE_CHECKING:
    from draftboard.methods.eagle.check import BaseCheck, HeadCheck, Verdict
    from draftboard.methods.eagle.config import HeadConfig

__all__ = ["HeadReport", "console_text", "document", "examine_head"]

_ANSWER = 128
"""Longest answer that the target writes, in tokens."""
_LEAST = 16
"""A prompt that leaves less room than this for an answer is left out."""
_AS_EXPECTED = 0.6
"""Part of the accuracy in training from which on a head is taken to be loaded rightly; other text costs some of it."""
_FEW = 0.9
"""Below this share of draftable choices the head's vocabulary is worth a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadReport:
    """One head on one target."""

    head: str
    model: str
    dtype: str
    text: str
    """Where the text is from."""
    config: HeadConfig
    drafts: int
    """Ids that the head can draft."""
    found: HeadCheck
    notices: tuple[str, ...]
    """What loading the head had to say."""
    expected: float | None = None
    """Share of its first drafts that were right on held-out texts, where the artifact of its training says it."""

    @property
    def verdict(self) -> Verdict:
        """That of the drafts; a head as bad as its own training found it is weak, and not broken."""
        known = self.expected is not None and self.found.own.top[0] >= self.expected * _AS_EXPECTED
        return "weak" if self.found.verdict == "broken" and known else self.found.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """Token ids, and where in each of them what counts begins."""

    about: str
    ids: list[list[int]]
    starts: list[int]


def examine_head(name: str, options: RunOptions, *, text: Path | None, tokens: int) -> HeadReport:
    """Find head and target, let the target answer prompts where no text is given, and compare.

    Raises UserError or MethodError for a head, a target or a text that cannot be used, before any weights are loaded
    where that can be known.
    """
    from draftboard.methods.eagle.check import check_head
    from draftboard.methods.eagle.checkpoint import load_head, read_config
    from draftboard.methods.eagle.config import TargetShape

    plan = make_plan(options)
    folder = find_folder(name)
    reader = open_reader(plan)
    shape = TargetShape(
        name=plan.model, hidden=reader.hidden, vocab=reader.vocabulary.logit_width, layers=reader.layers
    )
    read_config(folder, target=shape, say=lambda text: None)
    given = _given(text, reader, options.limit, tokens) if text is not None else None
    session = Session.load(plan, reader)
    target = session.target
    notices: list[str] = []
    fitted = replace(shape, fingerprint=session.fingerprint)
    head = load_head(
        folder, target=fitted, dtype=target.dtype, say=notices.append, embedding=target.input_embedding
    ).to(target.device)
    head.bind(target.input_embedding, target.output_embedding)
    for notice in notices:
        print(terminal_text(f"warning: {notice}"), file=sys.stderr)
    used = given or _answers(plan, session, tokens)
    with _progress("comparing drafts", sum(map(len, used.ids))) as advance:
        found = check_head(
            head, target, used.ids, starts=used.starts, target_base=_target_base(target.config), advance=advance
        )
    return HeadReport(
        head=name,
        model=plan.model,
        dtype=str(target.dtype).removeprefix("torch."),
        text=used.about,
        config=head.config,
        drafts=len(head.target_ids),
        found=found,
        notices=tuple(notices),
        expected=_expected(folder),
    )


def _expected(folder: Path) -> float | None:
    from draftboard.methods.artifact import read_artifact
    from draftboard.methods.eagle.checkpoint import KIND

    if not (folder / "artifact.json").is_file():
        return None
    found = read_artifact(folder, KIND).get("held_out")
    share = found.get("first_draft_right") if isinstance(found, dict) else None
    return float(share) if isinstance(share, int | float) else None


def _target_base(config: Any) -> float | None:
    parameters = getattr(config.get_text_config(), "rope_parameters", None)
    base = parameters.get("rope_theta") if isinstance(parameters, dict) else None
    return float(base) if isinstance(base, int | float) else None


def _given(path: Path, reader: Reader, limit: int | None, tokens: int) -> _Text:
    from draftboard.preparing import read_documents
    from draftboard.templates import encode

    found: list[list[int]] = []
    left = tokens
    for document in list(read_documents(path))[:limit]:
        ids = encode(reader.tokenizer, document)[:left]
        left -= len(ids)
        found += [ids] if len(ids) > 1 else []
        if left < 2:
            break
    if not found:
        raise UserError("holds no text of two tokens or more", where=str(path))
    return _Text(about=path.name, ids=found, starts=[0] * len(found))


def _answers(plan: Plan, session: Session, tokens: int) -> _Text:
    """Let the target answer the suite's prompts greedily, domains in turn, until there are enough tokens."""
    from draftboard.methods.engine import RootOnly
    from draftboard.methods.engine.loop import decode
    from draftboard.methods.engine.settings import Limits

    reader, target = session.reader, session.target
    found: list[list[int]] = []
    starts: list[int] = []
    count = 0
    with _progress("the target answers", tokens) as advance:
        for sample in _mixed([sample for _, sample in plan.samples]):
            answers: list[str] = []
            for _ in sample.turns:
                ids = reader.prompt(sample, answers)[1]
                room = reader.window - len(ids) - 1
                if count >= tokens or room < _LEAST:
                    break
                limits = Limits(max_new_tokens=min(_ANSWER, room), eos_ids=reader.eos_ids)
                output = decode(target, RootOnly(), ids, limits=limits).token_ids
                answers.append(reader.text(output))
                found.append([*ids, *output])
                starts.append(len(ids))
                count += len(output)
                advance(len(output))
    if not found:
        raise UserError(
            f"no prompt of the suite leaves room for an answer in the model's window of {reader.window} tokens",
            advice="Give a text of your own with --text FILE.",
        )
    suites = ", ".join(suite.name for suite in plan.suites)
    answers_ = f"{len(found)} answers of the target to suite {suites}" if len(found) > 1 else "an answer of the target"
    return _Text(about=answers_, ids=found, starts=starts)


def _mixed(samples: Sequence[Sample]) -> Iterator[Sample]:
    """Yield samples of all domains in turn."""
    domains: dict[str, list[Sample]] = {}
    for sample in samples:
        domains.setdefault(sample.domain, []).append(sample)
    return (sample for sample in chain.from_iterable(zip_longest(*domains.values())) if sample is not None)


@contextmanager
def _progress(about: str, total: int) -> Iterator[Any]:
    """Show a bar on stderr where that is a terminal, else one line; yield what counts tokens."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        print(f"{about}: {total:,} tokens", file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("left"))
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(about, total=total)
        yield lambda tokens: bar.update(task, advance=tokens)


def document(report: HeadReport) -> dict[str, Any]:
    """Return the report as JSON values."""
    found = report.found
    return {
        "schema": 1,
        "head": report.head,
        "model": report.model,
        "dtype": report.dtype,
        "kind": report.config.kind,
        "draft_vocab": report.drafts,
        "taps": list(report.config.taps),
        "text": report.text,
        "tokens": found.tokens,
        "positions": found.own.positions,
        "draftable": found.draftable,
        "verdict": report.verdict,
        "first_draft_right_in_training": report.expected,
        "best_base": found.best.base,
        "clearly_better_base": found.better,
        "bases": [_base_document(base) for base in found.bases],
        "notices": list(report.notices),
    }


def _base_document(base: BaseCheck) -> dict[str, Any]:
    return {
        "base": base.base,
        "of": base.of,
        "top1": base.top[0],
        "top2": base.top[1],
        "top3": base.top[2],
        "accepted_per_step": base.accepted_per_step,
        "depths": [{"tried": depth.tried, "accepted": depth.accepted} for depth in base.depths],
    }


def console_text(report: HeadReport) -> str:
    """Return the report as it is printed; readable at 80 columns."""
    found, config = report.found, report.config
    label = "EAGLE-1/2" if config.kind == "eagle" else "EAGLE-3"
    states = "state" if len(config.taps) == 1 else "states"
    lines = [
        f"head      {report.head}",
        f"          {label}, drafts {report.drafts:,} of {config.vocab:,} ids, reads {states} "
        f"{', '.join(map(str, config.taps))}",
        f"target    {report.model}, {report.dtype}",
        f"text      {report.text}; {found.own.positions:,} positions",
        "",
        f"  RoPE base{'':9}top-1 top-2 top-3   accepted at depth 1 to {len(found.own.depths)}       a step",
        *(_line(base) for base in found.bases),
        "",
        *(part for line in _verdict(report) for part in wrap(line, 79, subsequent_indent="  ")),
    ]
    return "".join(f"{terminal_text(line)}\n" for line in lines)


def _line(base: BaseCheck) -> str:
    tops = "".join(f"{share:6.2f}" for share in base.top)
    depths = "".join(f"{depth.rate:6.2f}" if depth.tried else "     –" for depth in base.depths)
    return f"  {base.base:>9,.0f} {base.of:<7}{tops} {depths}{base.accepted_per_step:8.2f}"


def _verdict(report: HeadReport) -> Iterator[str]:
    from draftboard.methods.eagle.check import BROKEN, HEALTHY

    found = report.found
    told = f"{report.verdict}: the first draft is the target's choice at {found.own.top[0]:.0%} of the positions"
    if report.verdict == "healthy":
        yield told
    elif report.verdict == "weak":
        yield f"{told}; a well-trained head has {HEALTHY:.0%} or more on text like its training's"
        if report.expected is not None:
            yield f"note: it had {report.expected:.0%} on the held-out texts of its training"
    else:
        yield f"{told}, below {BROKEN:.0%}"
        yield (
            "warning: a head this far off is not just badly trained. It may be one for another target, or read other "
            "states than it was trained on, or need a setting that its config.json does not say."
        )
    if found.better is not None:
        best = next(base for base in found.bases if base.base == found.better)
        yield (
            f"warning: with RoPE base {found.better:,.0f} it is clearly better ({best.top[0]:.2f} against "
            f"{found.own.top[0]:.2f}). To use that, set rope_theta to {found.better:.0f} in a copy of its config.json."
        )
    elif len(found.bases) > 1:
        yield f"best RoPE base: {found.best.base:,.0f}" + (" (the head's own)" if found.best.of == "head" else "")
    if found.draftable < _FEW:
        yield f"note: only {found.draftable:.0%} of the target's choices are in the head's vocabulary"
