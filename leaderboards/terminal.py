"""The board of one group for a terminal: the overall figures first, then domains as rows.

A terminal has no place to put the details behind, so that they are shown only where they are asked for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from draftboard.leaderboards.board import boards
from draftboard.leaderboards.table import Cell, Column, Row, Table, group_title
from draftboard.leaderboards.text import terminal_text
from draftboard.results import Group

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

__all__ = ["terminal_table"]

_SECONDARY = ("speedup_decode", "decode_tokens_per_s")
"""Figures that a terminal of 80 columns leaves to the page, unless they are all there is."""
_NARROW, _HEADING, _VALUE = 7, 9, 20
"""Characters of a column at least, and the longest words of its heading and of its cells that are not folded."""


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


def _overall(table: Table, *, whole: bool) -> "RenderableType":
    """Return the overall figures, one method a row; those of secondary interest only if the table is shown whole."""
    lead = [_Column(title=_plain(table.subject), cells=[_method(row) for row in table.rows], least=12)]
    if table.ranked:
        ranks = [_plain("–" if row.rank is None else str(row.rank)) for row in table.rows]
        lead.insert(0, _Column(title=_plain("#"), cells=ranks, right=True, least=max(len(rank) for rank in ranks)))
    overall = [index for index, column in enumerate(table.columns) if not column.domain]
    told = [index for index in overall if table.columns[index].metric not in ("", *_SECONDARY)]
    shown = overall if whole or not told else [i for i in overall if i in told or table.columns[i].title == "Output"]
    columns = [
        _Column(
            title=_title(table.columns[index]),
            cells=[_text(row.cells[index]) for row in table.rows],
            right=not table.columns[index].words,
        )
        for index in shown
    ]
    return _Grid(title=table.title, lead=lead, columns=columns)


def _by_domain(table: Table, *, whole: bool) -> "RenderableType":
    """Return the figures of the domains, one domain a row: terminals are narrow, suites long.

    Intervals stand here only if the table is shown whole; folded into narrow columns they bury the figures.
    """
    inside = [index for index, column in enumerate(table.columns) if column.domain]
    lead = _Column(title=_plain("Domain"), cells=[_title(table.columns[index]) for index in inside], least=10)
    columns = []
    for row in table.rows:
        cells = [row.cells[index] if whole else replace(row.cells[index], interval="") for index in inside]
        columns.append(_Column(title=_method(row), cells=list(map(_text, cells)), right=True))
    return _Grid(title=f"{table.title} by domain", lead=[lead], columns=columns)


def _turned(table: Table) -> "RenderableType":
    """Return a table that lies on its side already: one measure a row."""
    lead = _Column(title=_plain(table.subject), cells=[_method(row) for row in table.rows], least=10)
    columns = [
        _Column(title=_title(column), cells=[_text(row.cells[index]) for row in table.rows], right=True)
        for index, column in enumerate(table.columns)
    ]
    return _Grid(title=table.title, lead=[lead], columns=columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """One column as it is printed."""

    title: "Text"
    cells: "list[Text]"
    right: bool = False
    least: int = 0
    """Width at which it may be folded; where it is 0, the cells decide."""

    @property
    def narrowest(self) -> int:
        """Characters that it takes to be read: no value cut, no short word of the heading in shreds."""
        if self.least:
            return self.least
        words = [min(word.cell_len, _HEADING) for word in self.title.split()]
        parts = [min(part.cell_len, _VALUE) for cell in self.cells for part in cell.split()]
        return max(_NARROW, *words, *parts)

    @property
    def widest(self) -> int:
        """Characters that it takes without any folding."""
        return max(self.narrowest, self.title.cell_len, *(cell.cell_len for cell in self.cells))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Columns that go into as many tables below each other as the terminal's width takes, the lead in each."""

    title: str
    lead: list[_Column]
    columns: list[_Column]

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[RenderableType]":
        left, title = self.columns, self.title
        while left:
            shown = 1
            while shown < len(left) and _spare([*self.lead, *left[: shown + 1]], options.max_width) >= 0:
                shown += 1
            yield _printed(title, [*self.lead, *left[:shown]], options.max_width)
            left, title = left[shown:], f"{self.title}, continued"


def _spare(columns: Sequence[_Column], width: int) -> int:
    """Return the characters that are left over when every column is as narrow as can be."""
    return width - sum(column.narrowest for column in columns) - 3 * len(columns) - 1


def _printed(title: str, columns: Sequence[_Column], width: int) -> "RichTable":
    """Return the table, with widths that share what is left over one by one, so that no column is cut at the edge."""
    widths = [column.narrowest for column in columns]
    spare = _spare(columns, width)
    while spare > 0 and (growing := [i for i, column in enumerate(columns) if widths[i] < column.widest]):
        for index in growing[:spare]:
            widths[index] += 1
        spare -= len(growing)
    rich = _frame(title)
    for column, chosen in zip(columns, widths, strict=True):
        rich.add_column(column.title, justify="right" if column.right else "left", overflow="fold", width=chosen)
    for row in zip(*(column.cells for column in columns), strict=True):
        rich.add_row(*row)
    return rich


def _plain(text: str) -> "Text":
    from rich.text import Text

    return Text(terminal_text(text))


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
