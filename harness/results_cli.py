"""The commands on stored results: render, show, score, judge."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from draftboard.options import Whole
from draftboard.plugins import TRACE_PAGES, AsJson, Plugins, load_plugins

__all__ = ["judge", "render", "score", "show"]


def render(
    sources: Annotated[tuple[Path, ...], Parameter(required=True)],
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("site"),
    title: str = "",
    traces: Annotated[int, Whole] = TRACE_PAGES,
) -> int:
    """Render runs and results files as index.html and leaderboard.md, .tex, .json, .csv and .parquet.

    Parameters
    ----------
    sources
        Folders of runs, or results files (.json, .jsonl) as docs/results-file.md describes.
    out
        Folder for the leaderboard.
    title
        Headline of the page.
    traces
        Samples of runs with --traces that get a page each; 0 for none.
    """
    from draftboard.commands import render_command

    return render_command(sources, out, title, traces=traces)


def show(
    source: Path,
    /,
    *,
    every: Annotated[bool, Parameter(name="--all", negative=())] = False,
    json: AsJson = False,
) -> int:
    """Show a run or a results file as tables in the terminal.

    Parameters
    ----------
    source
        Folder of a run, or a results file.
    every
        Every table: publications' layouts, each definition of speedup and acceptance, latency, memory, quality.
    """
    from draftboard.commands import show_command

    return show_command(source, every=every, as_json=json)


def score(
    source: Path,
    /,
    *,
    run_code: Annotated[bool, Parameter(negative=())] = False,
    unisolated: Annotated[bool, Parameter(negative=())] = False,
    plugin: Plugins = (),
    json: AsJson = False,
) -> int:
    """Score a stored run again, without a model, and write its scores.jsonl anew.

    Parameters
    ----------
    source
        Folder of a run.
    run_code
        Run code answers against their tests, shut off from network and files (Linux). Otherwise they stay unscored.
    unisolated
        With --run-code: run them even where they cannot be shut off. Only in a container that holds nothing of value.
    """
    from draftboard.commands import score_command

    load_plugins(plugin)
    return score_command(source, as_json=json, run_code=run_code, unisolated=unisolated)


def judge(
    source: Path,
    /,
    *,
    name: str,
    command: str | None = None,
    endpoint: str | None = None,
    against: str = "",
    scored_too: Annotated[bool, Parameter(negative=())] = False,
    timeout: float = 120.0,
    json: AsJson = False,
) -> int:
    """Ask a judge of your own about a run's open answers. Its marks are kept in the run and stay out of all tables.

    Parameters
    ----------
    source
        Folder of a run.
    name
        Name that the marks are stored under.
    command
        Program that reads one question as JSON and writes {"scores": [7, 8]} or {"winner": "a"}.
    endpoint
        Address that the question is posted to instead.
    against
        Compare with this method, in both orders, instead of marking answers one by one.
    scored_too
        Judge samples that have a scorer as well.
    timeout
        Seconds to wait for a reply.
    """
    from draftboard.judging import judge_command

    return judge_command(
        source,
        name=name,
        command=command,
        endpoint=endpoint,
        against=against,
        scored_too=scored_too,
        timeout_s=timeout,
        as_json=json,
    )
