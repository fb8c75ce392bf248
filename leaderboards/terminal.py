"""The board of one group for a terminal: the overall figures first, then domains as rows."""

from typing import TYPE_CHECKING

from draftboard.leaderboards.table import Cell, Column, Row, Table, boards, group_title
from draftboard.leaderboards.text import terminal_text
from draftboard.results import Group

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

__all__ = ["terminal_table"]

_SECONDARY = (
    "speedup_mean_of_domains",
    "speedup_decode",
    "speedup_cpu",
    "tokens_per_s_mean_of_samples",
    "decode_tokens_per_s",
)
"""Figures that a terminal of 80 columns leaves to the page, unless they are all there is."""


def terminal_table(group: Group, *, headline_only: bool = False) -> "RenderableType":
    """Return the group's tables for `rich`, or only the ranked one that comes first.

    Text from data is neither markup nor an escape sequence.
    """
    from rich.console import Group as Stack
    from rich.text import Text

    parts: list[RenderableType] = [Text(terminal_text(group_title(group)), style="bold")]
    for table in boards(group)[: 1 if headline_only else None]:
        if any(not column.domain for column in table.columns):
            parts.append(_overall(table))
        if any(column.domain for column in table.columns):
            parts.append(_by_domain(table))
        parts += [
            Text(f"[{number}] {terminal_text(note)}", style="dim")
            for number, note in enumerate(table.footnotes, start=1)
        ]
    parts += [Text(f"note: {terminal_text(note)}", style="yellow") for note in group.notes]
    return Stack(*parts)


def _overall(table: Table) -> "RichTable":
    """Return the overall figures, one method a row."""
    rich = _frame(table.title)
    if table.ranked:
        rich.add_column("#", justify="right")
    rich.add_column("Method", overflow="fold", min_width=12)
    overall = [index for index, column in enumerate(table.columns) if not column.domain]
    shown = [index for index in overall if table.columns[index].metric not in ("", *_SECONDARY)] or overall
    shown = [index for index in overall if index in shown or table.columns[index].title == "Output"]
    for index in shown:
        column = table.columns[index]
        widest = max((len(_text(row.cells[index]).plain) for row in table.rows), default=0)
        rich.add_column(_title(column), justify="left" if column.words else "right", min_width=widest)
    for row in table.rows:
        rank = ["–" if row.rank is None else str(row.rank)] if table.ranked else []
        rich.add_row(*rank, _method(row), *(_text(row.cells[index]) for index in shown))
    return rich


def _by_domain(table: Table) -> "RichTable":
    """Return the figures of the domains, one domain a row: terminals are narrow, suites long."""
    rich = _frame(f"{table.title} by domain")
    rich.add_column("Domain", overflow="fold", min_width=10)
    for row in table.rows:
        rich.add_column(_method(row), justify="right", overflow="fold", min_width=7)
    for index, column in enumerate(table.columns):
        if column.domain:
            rich.add_row(_title(column), *(_text(row.cells[index]) for row in table.rows))
    return rich


def _frame(title: str) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    return RichTable(box=box.SIMPLE_HEAD, title=Text(title), title_justify="left", pad_edge=False)


def _method(row: Row) -> "Text":
    name = terminal_text(row.method) + (" (baseline)" if row.baseline else "")
    return _text(Cell(text=name, notes=row.notes))


def _title(column: Column) -> "Text":
    return _text(Cell(text=column.title, detail=column.detail, notes=column.notes))


def _text(cell: Cell) -> "Text":
    from rich.text import Text

    text = Text(terminal_text(cell.text), style="bold green" if cell.best else "dim" if cell.missing else "")
    if cell.detail:
        text.append(f" {terminal_text(cell.detail)}", style="dim")
    for number in cell.notes:
        text.append(f" [{number}]", style="dim")
    return text
