"""A comparison as words: a table for the terminal, Markdown for a pull request, JUnit for a build server, JSON."""

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as Xml

import msgspec

from draftboard.gate.report import Change, Check, Report
from draftboard.leaderboards.text import markdown_text, terminal_text
from draftboard.results_file import finite

__all__ = ["document", "headline", "junit", "lines_of", "markdown", "shown"]

_WORDS = {"pass": "passes", "fail": "FAILS", "not comparable": "not comparable"}
_COUNTED = {"fail": "FAILS", "not comparable": "cannot be compared", "pass": "passes"}
_INSIDE = "· "
"""Before what belongs to the method above."""


def document(report: Report) -> dict[str, Any]:
    """Return the report as plain JSON data."""
    plain: dict[str, Any] = finite(msgspec.to_builtins(report))
    return {"format": "draftboard-comparison", "schema": 1, "exit_code": report.exit_code, **plain}


def headline(report: Report) -> str:
    """Return the outcome in one line."""
    if report.refused:
        return f"not comparable: {report.after} was measured under other conditions than {report.before}"
    if not report.checks:
        return "not comparable: there is no method to compare"
    named = {outcome: [c.method for c in report.checks if c.outcome == outcome] for outcome in _COUNTED}
    return "; ".join(f"{_COUNTED[outcome]}: {', '.join(names)}" for outcome, names in named.items() if names)


def cells_of(check: Check) -> Iterator[tuple[str, ...]]:
    """Yield the check's rows of a table: method or domain, before, after, change, interval, p, n, outcome."""
    if check.speed is None:
        yield (check.method, *("–",) * 6, _WORDS[check.outcome])
        return
    outcome = f"{check.speed.decision}, {_WORDS[check.outcome]}" if check.gated else f"{check.speed.decision} (shown)"
    if check.outcome == "fail" and not check.gated:
        outcome = _WORDS["fail"]
    yield (check.method, *_change(check.speed), outcome)
    if check.acceptance is not None:
        yield (f"{_INSIDE}τ", *_change(check.acceptance), _accepts(check.acceptance))
    for domain, change in check.domains.items():
        yield (f"{_INSIDE}{domain}", *_change(change), change.decision)


HEADER = ("method", "before", "after", "change", "95 % interval", "p", "n", "outcome")
_WRAPPED = ("method", "outcome")
_SPARED = ("n", "p", "before", "after", "95 % interval")
"""Columns that a narrow terminal goes without, in this order."""
_NAMES = 16
"""Columns of a terminal that names of methods and domains get where they need as many."""


def lines_of(report: Report) -> Iterator[str]:
    """Yield what stands under the table: figures, reasons, notes."""
    figures: dict[str, list[str]] = {}
    for check in report.checks:
        if check.speed:
            figures.setdefault(check.speed.figure, []).append(check.method)
    for figure, methods in figures.items():
        yield f"{figure}: {', '.join(methods)}"
    yield "rules: " + "; ".join(f"{name}: {rule}" for name, rule in report.rules.items())
    for condition in report.refused:
        yield f"differs: {condition}"
    for check in report.checks:
        for reason in check.reasons:
            yield f"{check.method}: {reason}"
    notes = dict.fromkeys((note, check.method) for check in report.checks for note in check.notes)
    for note in dict.fromkeys(note for note, _ in notes):
        yield f"note: {', '.join(method for other, method in notes if other == note)}: {note}"
    for note in report.notes:
        yield f"note: {note}"


def markdown(report: Report) -> str:
    """Return the report as GitHub Markdown, such as for a step summary."""
    blocks = [
        f"### draftboard compare: {markdown_text(headline(report))}",
        f"{markdown_text(report.before)} → {markdown_text(report.after)}",
    ]
    if report.checks:
        rows: list[tuple[str, ...]] = [HEADER, ("---", *("---:",) * 6, "---")]
        rows += [(markdown_text(row[0]), *row[1:]) for check in report.checks for row in cells_of(check)]
        blocks.append("\n".join("| " + " | ".join(row) + " |" for row in rows))
    lines = [f"- {markdown_text(line)}" for line in lines_of(report)]
    if lines:
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def junit(report: Report) -> bytes:
    """Return the report as JUnit XML: a test case a method; what cannot be compared is an error."""
    outcomes = [check.outcome for check in report.checks]
    broken = bool(report.refused) or not report.checks
    suite = Xml.Element(
        "testsuite",
        name="draftboard compare",
        tests=str(len(outcomes) + broken),
        failures=str(outcomes.count("fail")),
        errors=str(outcomes.count("not comparable") + broken),
    )
    if broken:
        case = Xml.SubElement(suite, "testcase", classname="draftboard", name="conditions")
        Xml.SubElement(case, "error", message=_xml(headline(report))).text = _xml("\n".join(report.refused))
    for check in report.checks:
        case = Xml.SubElement(suite, "testcase", classname="draftboard", name=terminal_text(check.method))
        told = _xml("\n".join(check.reasons))
        if check.outcome != "pass":
            kind = "failure" if check.outcome == "fail" else "error"
            Xml.SubElement(case, kind, message=terminal_text("; ".join(check.reasons))).text = told
        rows = ["  ".join(row) for row in cells_of(check)]
        Xml.SubElement(case, "system-out").text = _xml("\n".join([*rows, *check.notes]))
    suites = Xml.Element("testsuites")
    suites.append(suite)
    Xml.indent(suites)
    return bytes(Xml.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _xml(text: str) -> str:
    """Leave out what no XML document can hold, and marks that would turn round the report's lines."""
    return "\n".join(terminal_text(line) for line in text.split("\n"))


def _change(change: Change) -> tuple[str, ...]:
    interval = "–"
    if change.interval is not None:
        interval = f"{change.interval.low - 1:+.1%} to {change.interval.high - 1:+.1%}"
    return (
        f"{change.before:.4g}",
        f"{change.after:.4g}",
        f"{change.ratio - 1:+.1%}",
        interval,
        "–" if change.p is None else f"{change.p:.2g}",
        "–" if change.n is None else f"{change.n}" + (f" × {change.rounds}" if (change.rounds or 1) > 1 else ""),
    )


def _accepts(change: Change) -> str:
    return {"faster": "longer", "same": "same", "slower": "shorter"}[change.decision]


def shown(report: Report, width: int) -> Any:
    """Return the report as a table of rich; what `width` has no place for is left out and named below the table."""
    from rich.table import Table
    from rich.text import Text

    rows = [[terminal_text(cell) for cell in row] for check in report.checks for row in cells_of(check)]
    widths = _widths([list(HEADER), *rows], width)
    left_out = [name for name in HEADER if name not in widths]
    caption = f"no room here for: {', '.join(left_out)}; --json has it all" if left_out else None
    table = Table(box=None, pad_edge=False, caption=caption, caption_justify="left", caption_style="")
    for name, columns in widths.items():
        words = name in _WRAPPED
        table.add_column(name, justify="left" if words else "right", no_wrap=not words, overflow="fold", width=columns)
    for row in rows:
        table.add_row(*(Text(cell) for name, cell in zip(HEADER, row, strict=True) if name in widths))
    return table


def _widths(rows: list[list[str]], width: int) -> dict[str, int]:
    """Return how wide each column is, without those that have to go until names have a readable one."""
    from rich.cells import cell_len

    columns = dict(zip(HEADER, zip(*rows, strict=True), strict=True))
    most = {name: max(map(cell_len, column)) for name, column in columns.items()}
    found = {
        **most,
        "method": min(_NAMES, most["method"]),
        "outcome": max(cell_len(word) for cell in columns["outcome"] for word in cell.split()),
    }
    gaps = 2
    for name in _SPARED:
        if sum(found.values()) + gaps * (len(found) - 1) <= width:
            break
        del found[name]
    spare = max(0, width - sum(found.values()) - gaps * (len(found) - 1))
    for name in reversed(_WRAPPED):
        more = min(spare, most[name] - found[name])
        found[name] += more
        spare -= more
    return found
