"""From runs on disk to pages that show how their answers came about. Needs neither a model nor its tokenizer."""

import sys
from collections.abc import Sequence
from pathlib import Path

from draftboard.errors import UserError
from draftboard.leaderboards.text import terminal_text
from draftboard.leaderboards.traces import TracedRun, render_traces
from draftboard.store import is_run, read_run
from draftboard.tables import unsplit_times
from draftboard.traces import TRACES, read_traces

__all__ = ["render_traced", "traced_run"]


def render_traced(sources: Sequence[Path], out: Path, *, limit: int) -> tuple[Path, ...]:
    """Write a page for each traced sample of these runs, at most `limit`; return what was written, the index first.

    What was left out is told on stderr. Raises UserError for a negative limit and for broken traces.
    """
    if limit < 0:
        raise UserError(f"--traces must be at least 0, not {limit}", advice="0 renders none.")
    found = [traced_run(path) for path in sources if is_run(path) and (path / TRACES).is_file()] if limit else []
    written = render_traces(found, out, limit=limit)
    if written.left_out:
        print(
            f"draftboard: {written.left_out} traced samples have no page; --traces takes a larger number than {limit}",
            file=sys.stderr,
        )
    return written.paths


def traced_run(path: Path) -> TracedRun:
    """Read what the pages of a traced run show."""
    run = read_run(path)
    warnings: list[str] = []
    traces = read_traces(path, warnings)
    for warning in warnings:
        print(f"draftboard: {terminal_text(warning)}", file=sys.stderr)
    return TracedRun(
        title=f"{run.plan['model']} · {path.resolve().name}",
        methods=[method["label"] for method in run.plan["methods"]],
        samples=run.samples,
        cells=run.cells,
        traces=traces,
        unsplit=unsplit_times(run),
    )
