"""`leaderboard.md`: the same tables as GitHub Markdown, for a README, a release note or a step summary.

`spec-bench.md` holds Spec-Bench's table once more, as its repository's leaderboard prints it: values alone, ready to be
pasted there.
"""

from dataclasses import replace

from draftboard.leaderboards.board import acceptance_across, boards
from draftboard.leaderboards.layouts import SPEC_BENCH_KEYS
from draftboard.leaderboards.remarks import interval_line, tie_lines, verdict_line
from draftboard.leaderboards.table import Cell, Column, Row, Table, group_title
from draftboard.leaderboards.text import html_text, markdown_text
from draftboard.results import Group, Results

__all__ = ["markdown", "markdown_table", "spec_bench_markdown"]

_SETTINGS = ("decoding", "dtype", "batch size", "max new tokens", "rounds")
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def markdown(results: Results, *, generated: str = "") -> str:
    """Return the whole board as Markdown; the same text for the same results."""
    blocks = [f"# {markdown_text(results.title)}"]
    if not results.groups:
        blocks.append("No results.")
    for group in results.groups:
        blocks += _group(group)
    for table in acceptance_across(results):
        blocks += [f"## {markdown_text(table.title)}", *_table_blocks(table)]
    if generated:
        blocks.append(f"Generated {markdown_text(generated)}.")
    return "\n\n".join(blocks) + "\n"


def markdown_table(table: Table) -> str:
    """Return one table: best values bold, footnote marks as superscripts."""
    rank = ["Rank"] if table.ranked else []
    header = [*rank, table.subject, *(_header(column) for column in table.columns)]
    rule = [
        *(["---:"] if rank else []),
        "---",
        *("---" if column.words else "---:" for column in table.columns),
    ]
    lines = [header, rule]
    for row in table.rows:
        cells = [_cell(cell, column) for cell, column in zip(row.cells, table.columns, strict=True)]
        lines.append([*([_rank(row)] if rank else []), _method(row), *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def spec_bench_markdown(results: Results) -> str:
    """Return each group's table in the form of Spec-Bench's leaderboard; empty where no group ran its six tasks.

    Two counts are in use, so a group has two tables: as speed.py computes speedups, and as draftboard does.
    """
    blocks: list[str] = []
    for group in results.groups:
        tables = [table for table in boards(group) if table.key in SPEC_BENCH_KEYS]
        if not tables:
            continue
        blocks.append(f"### {markdown_text(group.model or group_title(group))}")
        told = {
            "Device": [group.hardware],
            "Testing environment": [group.conditions.get("software", "")],
            "Experimental settings": [
                f"{name} {group.conditions[name]}" for name in _SETTINGS if group.conditions.get(name)
            ],
        }
        lines = [f"- {name}: {markdown_text(', '.join(parts))}" for name, parts in told.items() if any(parts)]
        verdict = verdict_line(group)
        blocks += [*([markdown_text(verdict)] if verdict else []), *(["\n".join(lines)] if lines else [])]
        for table in tables:
            bare = replace(table, above="", rows=tuple(map(_bare, table.rows)))
            blocks += [f"#### {markdown_text(table.title)}", *_table_blocks(bare)]
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _bare(row: Row) -> Row:
    return replace(row, cells=tuple(replace(cell, interval="", detail="") for cell in row.cells))


def _group(group: Group) -> list[str]:
    blocks = [f"## {markdown_text(group_title(group))}"]
    if group.verdict is not None and not group.verdict.valid:
        blocks.append(f"> [!WARNING]\n> {markdown_text(verdict_line(group))}")
    elif verdict := verdict_line(group):
        blocks.append(markdown_text(verdict))
    facts = {
        "model": group.model,
        "hardware": group.hardware,
        "suite": group.suite,
        "baseline": group.baseline,
    }
    conditions = {**facts, **group.conditions}
    lines = [f"- {markdown_text(name)}: {markdown_text(str(value))}" for name, value in conditions.items() if value]
    blocks.append("\n".join(lines))
    if intervals := interval_line(group):
        blocks.append(markdown_text(intervals))
    for place, table in enumerate(boards(group)):
        blocks += _folded(table) if table.level == "detail" else [f"### {table.title}", *_table_blocks(table)]
        if place == 0 and (ties := tie_lines(group)):
            blocks.append(f"Ties: {'; '.join(map(markdown_text, ties))}.")
    notes = [f"- {markdown_text(note)}" for note in group.notes]
    for method in group.methods:
        notes += [f"- {markdown_text(method.method)}: {markdown_text(note)}" for note in method.notes]
    if notes:
        blocks += ["### Notes", "\n".join(notes)]
    return blocks


def _folded(table: Table) -> list[str]:
    """Return a table that opens on demand: GitHub renders the element, and the blank lines let it read Markdown."""
    return ["<details>", f"<summary>{html_text(table.title)}</summary>", *_table_blocks(table), "</details>"]


def _table_blocks(table: Table) -> list[str]:
    above = [markdown_text(table.above)] if table.above else []
    blocks = [*above, markdown_text(table.caption), markdown_table(table)]
    if table.footnotes:
        marks = (f"- {_marks((number,))} {markdown_text(text)}" for number, text in enumerate(table.footnotes, start=1))
        blocks.append("\n".join(marks))
    return blocks


def _header(column: Column) -> str:
    details = ", ".join(part for part in (column.detail, column.quality) if part)
    detail = f" ({markdown_text(details)})" if details else ""
    return markdown_text(column.title) + detail + _marks(column.notes)


def _rank(row: Row) -> str:
    return "–" if row.rank is None else str(row.rank)


def _method(row: Row) -> str:
    details = [part for part in ("baseline" if row.baseline else "", row.detail, row.quality) if part]
    return (
        markdown_text(row.method) + (f" ({markdown_text(', '.join(details))})" if details else "") + _marks(row.notes)
    )


def _cell(cell: Cell, column: Column) -> str:
    text = markdown_text(cell.text) if column.words else cell.text
    text = f"**{text}**" if cell.best else text
    return " ".join(part for part in (text, cell.interval, cell.detail) if part) + _marks(cell.notes)


def _marks(numbers: tuple[int, ...]) -> str:
    return " ".join(str(number).translate(_SUPERSCRIPT) for number in numbers)
