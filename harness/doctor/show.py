"""The examination in a terminal: what was read in groups, then what to change. Readable at 80 columns."""

import shlex
from collections.abc import Iterator
from math import expm1

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from draftboard.doctor.report import Measured, Report, by_weight
from draftboard.doctor.sign import Sign
from draftboard.leaderboards.text import terminal_text

__all__ = ["console_text"]

_STYLES = {"fine": "green", "note": "yellow", "unreliable": "red", "n/a": "dim"}
_NAME = 32
"""Longest model name in a heading."""
_PER_LINE = 6
"""Points of the cost curve beside each other."""


def console_text(report: Report) -> str:
    """Return the report as it is printed, folded to the terminal's width; a command for copying is never folded."""
    console = Console()
    # Rich would end the process with its own exit code when the reader of a pipe has gone.
    with console.capture() as told:
        for part in _parts(report):
            if isinstance(part, str):
                console.print(part, soft_wrap=True, markup=False, highlight=False)
            else:
                console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in told.get().splitlines())


def _parts(report: Report) -> Iterator[RenderableType]:
    """Yield what is printed: renderables, and strings where the text is for copying."""
    yield Text(f"machine   {terminal_text(report.hardware)}", style="bold")
    yield from _signs(report, "machine")
    yield Text("\nclocks", style="bold")
    yield from _signs(report, "clocks")
    if report.measured is not None:
        measured = report.measured
        head = f"\ncurve     {_brief(measured.model)}, {measured.dtype}, {measured.device}, "
        yield Text(f"{head}{measured.threads} thread{'s' if measured.threads != 1 else ''}", style="bold")
        yield _curve(measured)
        yield from _signs(report, "curve")
        yield Text("\nnoise     the baseline against itself", style="bold")
        yield Text(f"  {measured.rounds} rounds of {measured.samples} pairs, {measured.tokens} tokens a generation")
        yield _noise(measured)
    else:
        yield from _signs(report, "curve")
    yield from _signs(report, "noise")
    yield Text("\nadvice", style="bold")
    yield from _advice(report)


def _brief(name: str) -> str:
    """Return the end of a name that is too long for a heading."""
    plain = terminal_text(name)
    return plain if len(plain) <= _NAME else f"…{plain[1 - _NAME :]}"


def _signs(report: Report, group: str) -> Iterator[RenderableType]:
    chosen = [sign for sign in report.signs if sign.group == group]
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=14)
    table.add_column(ratio=1)
    table.add_column(justify="right")
    known = [sign for sign in chosen if sign.state != "n/a"]
    for sign in known:
        state = Text(sign.state, style=_STYLES[sign.state])
        table.add_row(f"  {sign.name}", Text(terminal_text(sign.told)), state)
    if known:
        yield table
    untold: dict[str, list[str]] = {}
    for sign in chosen:
        if sign.state == "n/a":
            untold.setdefault(terminal_text(sign.told), []).append(sign.name)
    if untold:
        line = Table.grid(padding=(0, 2))
        line.add_column(min_width=14)
        line.add_column(ratio=1)
        line.add_row(
            Text("  n/a", style="dim"),
            Text("; ".join(f"{', '.join(names)}: {why}" for why, names in untold.items()), style="dim"),
        )
        yield line


def _curve(measured: Measured) -> Table:
    points = list(zip(measured.curve.rows, measured.curve.cost, strict=True))
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=14)
    for _ in range(_PER_LINE):
        table.add_column(justify="right", min_width=6)
    for start in range(0, len(points), _PER_LINE):
        part = points[start : start + _PER_LINE]
        table.add_row("  rows", *(str(rows) for rows, _ in part))
        table.add_row("  cost", *(f"{cost:.2f}" for _, cost in part))
    return table


def _noise(measured: Measured) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=34)
    table.add_column(justify="right", min_width=8)
    table.add_column(justify="right")
    table.add_row("", "wall", "process CPU")
    both = (measured.wall, measured.cpu)
    rows = {
        "noise floor delta": [None if one is None else one.floor for one in both],
        "spread of a sample, alone": [None if one is None else one.spread.arm for one in both],
        "spread of a sample, paired": [None if one is None else one.spread.pair for one in both],
        "drift of a round, alone": [None if one is None else one.spread.arm_drift for one in both],
        "drift of a round, paired": [None if one is None else one.spread.pair_drift for one in both],
    }
    for name, values in rows.items():
        table.add_row(f"  {name}", *("n/a" if value is None else f"{expm1(value):.2%}" for value in values))
    table.add_row("  ratio of the two equal arms", *("n/a" if one is None else f"{one.ratio:.4f}" for one in both))
    return table


def _advice(report: Report) -> Iterator[RenderableType]:
    wanting: list[Sign] = [sign for sign in by_weight(report.signs) if sign.advice]
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=14)
    table.add_column(ratio=1)
    for sign in wanting:
        table.add_row(Text(f"  {sign.name}", style=_STYLES[sign.state]), Text(terminal_text(sign.advice)))
    if wanting:
        yield table
    wanted = report.recommendation
    if wanted is not None and wanted.design is not None:
        design = wanted.design
        size = f"{design.rounds} rounds of {design.layout.domains} domains of {design.layout.samples} samples"
        told = f"To see {wanted.detect:.2%} with power {wanted.power:.0%}: at least {size}. With your methods:"
        yield Padding(Text(told), (0, 0, 0, 2))
        yield f"  draftboard run {shlex.join(wanted.run_options)}"
    if report.reliable:
        yield Text("  Nothing stands in the way of measuring.", style="green")
    else:
        yield Text("  Measurements made here now would be unreliable.", style="red")
