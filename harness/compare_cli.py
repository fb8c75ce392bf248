"""The command `draftboard compare`: fails a build when a candidate got slower than what was measured before."""

import json as json_
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from draftboard.errors import UserError
from draftboard.options import Whole
from draftboard.plugins import AsJson

if TYPE_CHECKING:
    from draftboard.gate import Report

__all__ = ["compare"]


def compare(
    before: Annotated[Path, Parameter(name="BASELINE")],
    after: Annotated[Path, Parameter(name="CANDIDATE")],
    /,
    *,
    max_slowdown: str = "2%",
    min_acceptance_drop: str | None = None,
    require_lossless: Annotated[bool, Parameter(negative=())] = False,
    figure: Literal["speedup", "time"] | None = None,
    clock: Literal["wall", "cpu"] = "wall",
    method: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    seed: Annotated[int, Whole] = 0,
    junit: Path | None = None,
    markdown: Path | None = None,
    json: AsJson = False,
) -> int:
    """Compare a candidate with what was measured before: exit 0 if it passes, 1 if not, 2 if they are not comparable.

    Parameters
    ----------
    before
        Folder of a run, results file, or JSON file of pytest-benchmark: what is good.
    after
        The same of what is to be judged.
    max_slowdown
        How much slower it may be, as a share (0.05) or in percent (5%). A slowdown beyond it fails if its interval
        excludes that there is none.
    min_acceptance_drop
        The drop of the acceptance length from which on the gate fails, as a share or in percent.
    require_lossless
        Fail where the candidate's output is not the target's; ties pass in half precision only.
    figure
        speedup: over each side's own baseline; time: seconds per token [default: speedup where there is a baseline].
    clock
        wall time, or process CPU time, which is the steadier one for CPU targets on shared machines.
    method
        Only this method; repeatable.
    seed
        Of the resampling.
    junit
        File for JUnit XML.
    markdown
        File for Markdown. Where GITHUB_STEP_SUMMARY is set, it is appended there too.
    """
    from draftboard.gate import Rules, read_side
    from draftboard.gate import compare as judge
    from draftboard.gate.texts import document
    from draftboard.gate.texts import junit as junit_xml
    from draftboard.gate.texts import markdown as as_markdown

    if seed < 0:
        raise UserError(f"--seed is {seed}", advice="Give a whole number from 0 on.")
    rules = Rules(
        max_slowdown=_share("--max-slowdown", max_slowdown),
        min_acceptance_drop=(
            None if min_acceptance_drop is None else _share("--min-acceptance-drop", min_acceptance_drop)
        ),
        require_lossless=require_lossless,
        clock=clock,
        quantity=figure,
        methods=method,
        seed=seed,
    )
    report = judge(read_side(before), read_side(after), rules)
    if junit is not None:
        _write(junit, junit_xml(report))
    text = as_markdown(report)
    if markdown is not None:
        _write(markdown, text.encode("utf-8", "replace"))
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        _append(Path(summary), text)
    if json:
        print(json_.dumps(document(report), allow_nan=False, indent=1))
    else:
        _print(report)
    return report.exit_code


def _share(option: str, text: str) -> float:
    """Read 5%, 5 % or 0.05. Raises UserError for anything else, and for a share of 1 or more."""
    found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(%?)\s*", text)
    share = float(found[1]) / (100 if found[2] else 1) if found else 1.0
    if share >= 1:
        raise UserError(f"{option} is {text!r}", advice="Give a share below 1, such as 0.05, or percent, such as 5%.")
    return share


def _write(path: Path, content: bytes) -> None:
    from draftboard.files import write_atomic

    write_atomic(path, content)


def _append(path: Path, text: str) -> None:
    """Add to the step summary, which the build server names; where it cannot be written the outcome stands."""
    from draftboard.leaderboards.text import terminal_text

    try:
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text + "\n")
    except OSError as error:
        told = f"GITHUB_STEP_SUMMARY: {path}: {error.strerror or error}: the table was not written there"
        print(f"draftboard: {terminal_text(told)}", file=sys.stderr)


def _print(report: "Report") -> None:
    from rich.console import Console

    from draftboard.gate.texts import headline, lines_of, shown
    from draftboard.leaderboards.text import terminal_text

    console = Console()
    with console.capture() as table:
        console.print(shown(report, console.width))
    print(terminal_text(headline(report)))
    if report.checks:
        print(table.get(), end="")
    for line in lines_of(report):
        print(terminal_text(line))
