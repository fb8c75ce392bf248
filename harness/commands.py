"""What each command does, with the parts it needs imported on the way. Returns the exit code."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from draftboard.leaderboards.text import terminal_text
from draftboard.options import RunOptions
from draftboard.results import Group, Results
from draftboard.store import is_run, read_run

__all__ = [
    "check_command",
    "demo_command",
    "fetch_command",
    "load_results",
    "render_command",
    "run_command",
    "score_command",
    "show_command",
]


def run_command(options: RunOptions, *, out: Path | None, resume: bool, where: str) -> int:
    """Run a plan, score it, and say where everything is."""
    from draftboard.plan import make_plan
    from draftboard.progress import RichProgress
    from draftboard.runner import run_plan

    plan = make_plan(options, where=where)
    folder = out or Path("runs") / f"{'-'.join(suite.name for suite in plan.suites)}-{datetime.now():%Y%m%d-%H%M%S}"
    progress = RichProgress()
    try:
        outcome = run_plan(plan, folder, resume=resume, progress=progress)
    except KeyboardInterrupt:
        progress.end()
        if is_run(folder):
            progress.say(f"stopped; go on with the same command and --resume --out {folder}")
        raise
    run = _finish(folder)
    _print_table(run, headline_only=True)
    progress.say(f"run: {folder}   all tables: draftboard show {folder}   page: draftboard render {folder} -o site")
    if outcome.failed:
        progress.say(f"{outcome.failed} cell(s) failed; --resume tries them again")
        return 1
    return 0


def _finish(folder: Path) -> Group:
    """Score the run, write its verdict and return its figures."""
    from draftboard.analysis import analyse
    from draftboard.evaluation import score_run
    from draftboard.store import VERDICT, write_json
    from draftboard.verdict import judge

    run = read_run(folder)
    run = replace(run, scores=score_run(run))
    group = analyse(run)
    write_json(folder / VERDICT, judge(run, group))
    return group


def check_command(options: RunOptions, *, as_json: bool, where: str) -> int:
    """Validate a plan as far as it goes without weights."""
    from draftboard.plan import describe, make_plan, sample_key
    from draftboard.session import open_reader, preflight

    plan = make_plan(options, where=where)
    reader = open_reader(plan)
    preflight(plan, reader)
    records = {sample_key(suite, sample): reader.record(suite, sample) for suite, sample in plan.samples}
    long = sorted(key for key, record in records.items() if record.prompt_tokens >= reader.window)
    tokens = sorted(record.prompt_tokens for record in records.values())
    report: dict[str, Any] = {
        "ok": True,
        "plan": describe(plan),
        "cells": plan.cells,
        "template": reader.template.name,
        "prompt_tokens": {"min": tokens[0], "median": tokens[len(tokens) // 2], "max": tokens[-1]},
        "skipped": long,
    }
    if as_json:
        print(json.dumps(report, allow_nan=False, indent=1))
        return 0
    print(f"plan is valid: {len(plan.entries)} methods × {len(records)} samples × {plan.repeats} = {plan.cells} cells")
    for suite in plan.suites:
        counts = ", ".join(f"{domain} {count}" for domain, count in suite.counts.items())
        print(f"  {suite.name}: {len(suite.samples)} samples, {counts}")
        for note in suite.notes:
            print(f"    note: {note}")
    print(f"  methods: {', '.join(entry.label for entry in plan.entries)}")
    print(f"  prompts: {tokens[0]} to {tokens[-1]} tokens, template {reader.template.name}, window {reader.window}")
    if long:
        print(f"  {len(long)} prompt(s) do not fit the window and will be skipped: {', '.join(long[:5])}")
    return 0


def load_results(sources: Sequence[Path], title: str = "") -> Results:
    """Read runs and results files into one `Results`; what was dropped on reading is told on stderr once."""
    from draftboard.analysis import analyse
    from draftboard.results_file import read_results

    groups: list[Group] = []
    files = [path for path in sources if path.is_file()]
    found = read_results(*files) if files else None
    for path in sources:
        if not path.is_file():
            groups.append(analyse(read_run(path)))
    if found is not None:
        groups += found.groups
        title = title or found.title
    results = Results(groups=tuple(groups))
    for note in dict.fromkeys(note for group in groups for note in group.notes):
        print(f"draftboard: {terminal_text(note)}", file=sys.stderr)
    return replace(results, title=title) if title else results


def render_command(sources: Sequence[Path], out: Path, title: str) -> int:
    """Render a leaderboard."""
    from draftboard.leaderboards import missing_reasons, render

    results = load_results(sources, title)
    for reason in missing_reasons(results):
        print(f"draftboard: {terminal_text(reason)}", file=sys.stderr)
    paths = render(results, out)
    print("\n".join(str(path) for path in paths))
    return 0


def show_command(source: Path, *, as_json: bool) -> int:
    """Print a run's table."""
    from draftboard.results_file import document

    results = load_results([source])
    if as_json:
        print(json.dumps(document(results), allow_nan=False, indent=1))
        return 0
    for group in results.groups:
        _print_table(group)
    return 0


def _print_table(group: Group, *, headline_only: bool = False) -> None:
    from rich.console import Console

    from draftboard.leaderboards import terminal_table

    console = Console()
    # Rich would end the process with its own exit code when the reader of a pipe has gone.
    with console.capture() as table:
        console.print(terminal_table(group, headline_only=headline_only))
    print(table.get(), end="")


def score_command(source: Path, *, as_json: bool) -> int:
    """Score a run again."""
    import msgspec

    from draftboard.evaluation import score_run

    records = score_run(read_run(source))
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(records), indent=1) + b"\n")
        return 0
    for record in records:
        values = ", ".join(
            f"{name} {'n/a (' + value.reason + ')' if value.value is None else f'{value.value:.3f}'} (n={value.n})"
            for name, value in record.scores.values.items()
        )
        print(f"{record.method} · {record.domain} · round {record.repeat}: {values}")
    if not records:
        print("nothing in this run has a scorer and references")
    return 0


def fetch_command(model: str, source: Path | None) -> int:
    """Bring a bundled model into the cache."""
    from draftboard.models import fetch

    path = fetch(model, progress=lambda text: print(text, file=sys.stderr), source=source)
    print(path)
    return 0


def demo_command(out: Path, site: Path) -> int:
    """Fetch the bundled model, run five methods on the bundled suite, and render the board."""
    from draftboard.models import fetch, is_fetched

    if not is_fetched("smollm2-135m"):
        fetch("smollm2-135m", progress=lambda text: print(text, file=sys.stderr))
    options = RunOptions(
        model="smollm2-135m",
        suite=("mini",),
        limit=1,
        max_new_tokens=32,
        method=("pld", "token_recycling", "samd", "samd[none]"),
    )
    code = run_command(options, out=out, resume=is_run(out), where="demo")
    render_command([out], site, "draftboard demo")
    print(f"\nOpen {(site / 'index.html').resolve()} in a browser.")
    return code
