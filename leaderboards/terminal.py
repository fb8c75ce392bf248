"""The board of one group for a terminal: the overall figures first, then domains as rows.

A terminal has no place to put the details behind, so that they are shown only where they are asked for.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from draftboard.leaderboards.board import boards
from draftboard.leaderboards.table import Cell, Column, Row, Table, group_title
from draftboard.leaderboards.text import terminal_text
from draftboard.results import Group

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

__all__ = ["terminal_table"]

_SECONDARY = ("speedup_decode", "decode_tokens_per_s")
"""Figures that a terminal of 80 columns leaves to the page, unless they are all there is."""


def terminal_table(group: Group, *, headline_only: bool = False, every: bool = False) -> "RenderableType":
    """Return the main tables of a group for `rich`; only the ranked one that comes first, or every table.

    Text from data is neither markup nor an escape sequence.
    """
    from rich.console import Group as Stack
    from rich.text import Text

    parts: list[RenderableType] = [Text(terminal_text(group_title(group)), style="bold")]
    tables = boards(group)
    shown = tables[:1] if headline_only else [table for table in tables if every or table.level == "main"]
    for table in shown:
        parts += _table(table, every=every)
    parts += [Text(f"note: {terminal_text(note)}", style="yellow") for note in group.notes]
    left = [table.title for table in tables if table not in shown]
    if left and not headline_only:
        parts.append(Text(f"with --all also: {'; '.join(left)}", style="dim"))
    return Stack(*parts)


def _table(table: Table, *, every: bool) -> "list[RenderableType]":
    from rich.text import Text

    parts: list[RenderableType] = []
    if not table.sortable:
        parts.append(_turned(table))
    elif any(not column.domain for column in table.columns):
        parts.append(_overall(table, whole=every))
    # A cell of the first column has no room for what has to stand beside a speedup.
    beside = [(row.method, row.quality) for row in table.rows] + [(head.title, head.quality) for head in table.columns]
    parts += [Text(terminal_text(f"{name}: {quality}")) for name, quality in beside if quality]
    if any(column.domain for column in table.columns):
        parts.append(_by_domain(table, whole=every))
    if table.level != "main":
        parts += [Text(terminal_text(text), style="dim") for text in (table.above, table.caption) if text]
    parts += [
        Text(f"[{number}] {terminal_text(note)}", style="dim") for number, note in enumerate(table.footnotes, start=1)
    ]
    return parts


def _overall(table: Table, *, whole: bool) -> "RichTable":
    """Return the overall figures, one method a row; those of secondary interest only if the table is shown whole."""
    rich = _frame(table.title)
    if table.ranked:
        rich.add_column("#", justify="right")
    rich.add_column(table.subject, overflow="fold", min_width=12)
    overall = [index for index, column in enumerate(table.columns) if not column.domain]
    told = [index for index in overall if table.columns[index].metric not in ("", *_SECONDARY)]
    shown = overall if whole or not told else [i for i in overall if i in told or table.columns[i].title == "Output"]
    for index in shown:
        column = table.columns[index]
        widest = max((len(_text(row.cells[index]).plain) for row in table.rows), default=0)
        rich.add_column(_title(column), justify="left" if column.words else "right", min_width=widest)
    for row in table.rows:
        rank = ["–" if row.rank is None else str(row.rank)] if table.ranked else []
        rich.add_row(*rank, _method(row), *(_text(row.cells[index]) for index in shown))
    return rich


def _by_domain(table: Table, *, whole: bool) -> "RichTable":
    """Return the figures of the domains, one domain a row: terminals are narrow, suites long.

    Intervals stand here only if the table is shown whole; folded into narrow columns they bury the figures.
    """
    rich = _frame(f"{table.title} by domain")
    rich.add_column("Domain", overflow="fold", min_width=10)
    for row in table.rows:
        rich.add_column(_method(row), justify="right", overflow="fold", min_width=7)
    for index, column in enumerate(table.columns):
        if column.domain:
            cells = [row.cells[index] if whole else replace(row.cells[index], interval="") for row in table.rows]
            rich.add_row(_title(column), *map(_text, cells))
    return rich


def _turned(table: Table) -> "RichTable":
    """Return a table that lies on its side already: one measure a row."""
    rich = _frame(table.title)
    rich.add_column(table.subject, overflow="fold", min_width=10)
    for column in table.columns:
        rich.add_column(_title(column), justify="right", overflow="fold", min_width=7)
    for row in table.rows:
        rich.add_row(_method(row), *(_text(cell) for cell in row.cells))
    return rich


def _frame(title: str) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    return RichTable(box=box.SIMPLE_HEAD, title=Text(title), title_justify="left", pad_edge=False)


def _method(row: Row) -> "Text":
    details = [part for part in ("baseline" if row.baseline else "", row.detail) if part]
    return _text(Cell(text=_with_details(row.method, details), notes=row.notes))


def _title(column: Column) -> "Text":
    return _text(Cell(text=_with_details(column.title, [column.detail] if column.detail else []), notes=column.notes))


def _with_details(name: str, details: list[str]) -> str:
    return f"{name} ({', '.join(details)})" if details else name


def _text(cell: Cell) -> "Text":
    from rich.text import Text

    text = Text(
        terminal_text(cell.text), style="bold green" if cell.best else "dim" if cell.missing or cell.faint else ""
    )
    for aside in (cell.interval, cell.detail):
        if aside:
            text.append(f" {terminal_text(aside)}", style="dim")
    for number in cell.notes:
        text.append(f" [{number}]", style="dim")
    return text
