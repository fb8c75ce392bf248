"""What each command does, with the parts it needs imported on the way. Returns the exit code."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from draftboard.collecting import uncollected
from draftboard.errors import UserError
from draftboard.leaderboards.text import terminal_text
from draftboard.options import RunOptions
from draftboard.plugins import TRACE_PAGES
from draftboard.records import ScoreRecord
from draftboard.results import Group, Results
from draftboard.scoring import Value
from draftboard.store import is_run, read_run
from draftboard.wording import counted, named

__all__ = [
    "check_command",
    "demo_command",
    "fetch_command",
    "finish_run",
    "load_results",
    "render_command",
    "run_command",
    "score_command",
    "show_command",
]


def run_command(options: RunOptions, *, out: Path | None, resume: bool, where: str) -> int:
    """Run a plan, score it, and say where everything is."""
    from draftboard.plan import make_plan
    from draftboard.progress import RichProgress, program
    from draftboard.runner import run_plan

    plan = make_plan(options, where=where)
    names = "-".join(suite.name.replace("/", "-") for suite in plan.suites)
    folder = out or Path("runs") / f"{names}-{datetime.now():%Y%m%d-%H%M%S}"
    progress = RichProgress()
    try:
        outcome = run_plan(plan, folder, resume=resume, progress=progress)
    except KeyboardInterrupt:
        progress.end()
        if is_run(folder):
            progress.say(f"stopped; go on with the same command and --resume --out {folder}")
        raise
    run = finish_run(folder)
    _print_table(run, headline_only=True)
    if resume and not outcome.cells:
        when = datetime.fromtimestamp(read_run(folder).environment["load"]["time_s"])
        progress.say(f"nothing was missing: these figures were measured at {when:%Y-%m-%d %H:%M}")
        progress.say(f"to measure anew, remove {folder} or choose another --out")
    name = program()
    progress.say(f"run: {folder}   tables: {name} show {folder} --all   page: {name} render {folder} -o site")
    if outcome.failed:
        again = "it" if outcome.failed == 1 else "them"
        progress.say(f"{counted(outcome.failed, 'cell')} failed; --resume tries {again} again")
        return 1
    return 0


def finish_run(folder: Path) -> Group:
    """Score the run, write its verdict and return its figures."""
    from draftboard.analysis import analyse
    from draftboard.evaluation import score_run
    from draftboard.store import VERDICT, write_json
    from draftboard.verdict import judge

    run = read_run(folder)
    run = replace(run, scores=score_run(run), stale_scores="")
    _tell_unscored(run.scores)
    group = analyse(run)
    write_json(folder / VERDICT, judge(run, group))
    return group


def check_command(options: RunOptions, *, as_json: bool, where: str) -> int:
    """Validate a plan as far as it goes without weights."""
    from draftboard.plan import describe, make_plan, sample_key
    from draftboard.session import fitted, open_reader, preflight

    plan = make_plan(options, where=where)
    reader = open_reader(plan)
    preflight(plan, reader)
    plan = fitted(plan, reader)
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
    methods, samples = counted(len(plan.entries), "method"), counted(len(records), "sample")
    print(f"plan is valid: {methods} × {samples} × {plan.repeats} = {counted(plan.cells, 'cell')}")
    for suite in plan.suites:
        counts = ", ".join(f"{named([domain])} {count}" for domain, count in suite.counts.items())
        print(terminal_text(f"  {suite.name}: {counted(len(suite.samples), 'sample')}, {counts}"))
        for note in suite.all_notes:
            print(f"    note: {terminal_text(note)}")
    print(terminal_text(f"  methods: {named(entry.label for entry in plan.entries)}"))
    print(f"  prompts: {tokens[0]} to {tokens[-1]} tokens, template {reader.template.name}, window {reader.window}")
    if long:
        some = terminal_text(named(long[:5])) + (", …" if len(long) > 5 else "")
        does = "does" if len(long) == 1 else "do"
        print(f"  {counted(len(long), 'prompt')} {does} not fit the window and will be skipped: {some}")
    return 0


def load_results(sources: Sequence[Path], title: str = "") -> Results:
    """Read runs and results files into one `Results`; what was dropped on reading is told on stderr once."""
    from draftboard.analysis import analyse
    from draftboard.foreign.folders import results_in
    from draftboard.leaderboards.remarks import verdict_line
    from draftboard.results_file import read_results

    # A folder of imported results holds a document in place of a run's plan.
    documents = {path: results_in(path) or path for path in sources}
    files = [document for document in documents.values() if document.is_file()]
    found = read_results(*files) if files else None
    groups = [analyse(read_run(path)) for path in sources if not documents[path].is_file()]
    if found is not None:
        groups += found.groups
        title = title or found.title
    results = Results(groups=tuple(groups))
    verdicts = [verdict_line(group) for group in groups if group.verdict is not None and not group.verdict.valid]
    for note in dict.fromkeys([*verdicts, *(note for group in groups for note in group.notes)]):
        print(f"draftboard: {terminal_text(note)}", file=sys.stderr)
    return replace(results, title=title) if title else results


@uncollected()
def render_command(sources: Sequence[Path], out: Path, title: str, *, traces: int) -> int:
    """Render a leaderboard, and pages of at most `traces` samples where runs were traced."""
    from draftboard.leaderboards import missing_reasons, render
    from draftboard.leaderboards.page_scripts import begin_chart_library
    from draftboard.leaderboards.traces import INDEX
    from draftboard.traced_pages import render_traced

    begin_chart_library()
    results = load_results(sources, title)
    for reason in missing_reasons(results):
        print(f"draftboard: {terminal_text(reason)}", file=sys.stderr)
    traced = render_traced(sources, out, limit=traces)
    paths = render(results, out, links=[("Traces", INDEX)] if traced else ())
    print("\n".join(str(path) for path in (*paths, *traced[:1])))
    return 0


def show_command(source: Path, *, every: bool = False, as_json: bool) -> int:
    """Print a run's main tables, or every table."""
    from draftboard.results_file import document

    results = load_results([source])
    if as_json:
        print(json.dumps(document(results), allow_nan=False, indent=1))
        return 0
    for group in results.groups:
        _print_table(group, every=every)
    return 0


def _print_table(group: Group, *, headline_only: bool = False, every: bool = False) -> None:
    from rich.console import Console

    from draftboard.leaderboards import terminal_table

    console = Console()
    # Rich would end the process with its own exit code when the reader of a pipe has gone.
    with console.capture() as table:
        console.print(terminal_table(group, headline_only=headline_only, every=every))
    print(table.get(), end="")


def score_command(source: Path, *, as_json: bool, run_code: bool = False, unisolated: bool = False) -> int:
    """Score a run again. Code answers are run only with `run_code`."""
    import msgspec

    from draftboard.evaluation import score_run, unfinished
    from draftboard.foreign.folders import refuse_results

    if unisolated and not run_code:
        raise UserError("--unisolated says how code is run, and none is run", advice="Add --run-code, or leave it out.")
    refuse_results(source, "scored")
    records = score_run(read_run(source), run_code="unisolated" if unisolated else run_code)
    _tell_unscored(records)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(records), indent=1) + b"\n")
        return int(unfinished(records))
    for record in records:
        where = f"{record.method} · {record.domain} · round {record.repeat}"
        kept = ", kept from an earlier call" if record.kept else ""
        print(terminal_text(f"{where}: {_told(record.scores.values)}{kept}"))
        extras = {name: value for name, value in record.scores.extras.items() if value.value is not None}
        if extras:
            print("    " + terminal_text(_told(extras)))
        if record.scores.signature:
            print(f"    {record.scores.signature}")
    if not records:
        print("nothing in this run has a scorer and references")
    return int(unfinished(records))


def _told(values: Mapping[str, Value]) -> str:
    return ", ".join(
        f"{name} {'n/a (' + value.reason + ')' if value.value is None else f'{value.value:.3f}'} (n={value.n})"
        for name, value in values.items()
    )


def _tell_unscored(records: Sequence[ScoreRecord]) -> None:
    """Say on stderr which scorers could not do their work, and where earlier scores stand instead."""
    from draftboard.evaluation import kept_scores, scorer_errors

    for told in (*scorer_errors(records), *kept_scores(records)):
        print(f"draftboard: {terminal_text(told)}", file=sys.stderr)


def fetch_command(model: str, source: Path | None) -> int:
    """Bring a bundled model into the cache."""
    from draftboard.models import fetch

    path = fetch(model, progress=lambda text: print(text, file=sys.stderr), source=source)
    print(path)
    return 0


def demo_command(out: Path, site: Path) -> int:
    """Fetch the bundled model, run seven methods on the bundled suite, and render the board."""
    from draftboard.models import fetch, is_fetched

    if not is_fetched("smollm2-135m"):
        fetch("smollm2-135m", progress=lambda text: print(text, file=sys.stderr))
    options = RunOptions(
        model="smollm2-135m",
        suite=("mini",),
        limit=1,
        max_new_tokens=32,
        method=("pld", "token_recycling", "samd", "eagle2", "eagle3", "samd[eagle2]"),
        traces=True,
    )
    code = run_command(options, out=out, resume=is_run(out), where="demo")
    render_command([out], site, "draftboard demo", traces=TRACE_PAGES)
    print(f"\nOpen {(site / 'index.html').resolve()} in a browser.")
    return code
