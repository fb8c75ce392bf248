"""The command line. Human text and progress go to stderr, results and `--json` documents to stdout.

Exit codes: 0 done, 1 a cell or a gate failed, 2 bad input or nothing to compare, 130 stopped by Ctrl-C. Heavy parts are
imported by the commands that need them, so that `--help`, `list`, `show` and `render` start without torch.
"""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter

import draftboard
from draftboard.audit_cli import audit
from draftboard.check_head_cli import check_head
from draftboard.compare_cli import compare
from draftboard.doctor_cli import doctor
from draftboard.errors import UserError
from draftboard.exchange_cli import export_app, import_app
from draftboard.inventory_cli import fetch, list_, prepare, suite
from draftboard.methods.errors import MethodError
from draftboard.options import RunOptions, merged, read_options
from draftboard.plugins import AsJson, Plugins, load_plugins
from draftboard.publish_cli import publish
from draftboard.results_cli import judge, render, score, show
from draftboard.suites.errors import SuiteError

__all__ = ["app", "main"]

app = App(
    name="draftboard",
    help="Benchmark speculative decoding: run methods on suites, score what they write, render leaderboards.",
    version=lambda: draftboard.__version__,
    help_format="plaintext",
)


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
def demo(
    *, out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("runs/demo"), site: Path = Path("site/demo")
) -> int:
    """Run six methods on the bundled suite with the bundled model and render the leaderboard.

    Parameters
    ----------
    out
        Folder of the run; an earlier demo there is gone on with.
    site
        Folder for the leaderboard.
    """
    from draftboard.commands import demo_command

    return demo_command(out, site)


app.command(list_, name="list")
for command in (
    *(render, show, score, judge, compare, audit, doctor),
    *(suite, fetch, prepare, import_app, export_app, publish, check_head),
):
    app.command(command)


def _options(plan: Path | None, options: RunOptions | None, plugins: Sequence[Path]) -> RunOptions:
    load_plugins(plugins)
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
