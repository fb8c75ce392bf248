"""The board of one group for a terminal: the overall figures first, then domains as rows.

A terminal has no place to put the details behind, so that they are shown only where they are asked for. What a narrow
one has no columns for is left out with a word on where it is; asked for everything, it comes in further tables below.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from draftboard.leaderboards.board import boards
from draftboard.leaderboards.remarks import verdict_line
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
_WHOLE, _VALUE, _HEADING = 12, 20, 16
"""Characters up to which a value stays on one line, and the longest parts of values and of headings that do."""
_GAP = 2
"""Blanks that each column takes beside its text."""
_BREAK = re.compile(r"\s+|(?<=\w[/_-])(?=\w\w)|(?<=\w)(?=[\[(])|(?<=[|,])(?=\S)")
"""Where a reader expects a name or a note to go on in the next line."""


def terminal_table(group: Group, *, headline_only: bool = False, every: bool = False) -> "RenderableType":
    """Return the main tables of a group for `rich`; only the ranked one that comes first, or every table.

    Text from data is neither markup nor an escape sequence.
    """
    from rich.console import Group as Stack
    from rich.text import Text

    parts: list[RenderableType] = [Text(terminal_text(group_title(group)), style="bold")]
    if group.verdict is not None and not group.verdict.valid:
        parts.append(_Folded(text=Text(terminal_text(verdict_line(group)), style="bold yellow")))
    tables = boards(group)
    shown = tables[:1] if headline_only else [table for table in tables if every or table.level == "main"]
    parts += [_Block(table=table, every=every) for table in shown]
    parts += [_Folded(text=Text(f"note: {terminal_text(note)}", style="yellow")) for note in group.notes]
    left = [table.title for table in tables if table not in shown]
    if left and not headline_only:
        parts.append(Text(f"with --all also: {'; '.join(left)}", style="dim"))
    return Stack(*parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folded:
    """Text that breaks where a reader expects it."""

    text: "Text"

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[RenderableType]":
        yield _fold(self.text, options.max_width)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """One column as it is printed."""

    head: Cell
    cells: tuple[Cell, ...]
    right: bool = False
    named: bool = False
    """Whether it holds names, which may be folded, and not values."""

    def narrowest(self, width: int) -> int:
        """Characters that it takes to be read on a terminal of `width`: no value cut, no name in shreds."""
        if self.named:
            return max(_longest(_text(cell), _most(width)) for cell in (self.head, *self.cells))
        texts = [_text(cell) for cell in self.cells]
        values = (text.cell_len if text.cell_len <= _WHOLE else _longest(text, _VALUE) for text in texts)
        return max(_longest(_text(self.head), _HEADING), *values)

    def widest(self, *, head: bool = True) -> int:
        """Characters that it takes without any folding, that of its head apart where asked."""
        return max((_text(cell).cell_len for cell in (*([self.head] if head else []), *self.cells)), default=0)

    def notes(self) -> set[int]:
        """Return the numbers of the footnotes that it refers to."""
        return {number for cell in (self.head, *self.cells) for number in cell.notes}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Columns of which as many are shown as the terminal's width takes, the lead in each part."""

    title: str
    lead: tuple[_Column, ...]
    columns: tuple[_Column, ...]

    def parts(self, width: int, *, every: bool) -> list[tuple[_Column, ...]]:
        """Return the columns of each table: of the first alone, or of as few as take every column, in equal shares."""
        found = self._filled(width, len(self.columns))
        if not every:
            return found[:1]
        shares = (self._filled(width, most) for most in range(-(-len(self.columns) // len(found)), len(self.columns)))
        return next((parts for parts in shares if len(parts) == len(found)), found)

    def _filled(self, width: int, most: int) -> list[tuple[_Column, ...]]:
        parts: list[tuple[_Column, ...]] = []
        left = self.columns
        while left:
            shown = 1
            while shown < min(most, len(left)) and _spare([*self.lead, *left[: shown + 1]], width) >= 0:
                shown += 1
            parts.append(left[:shown])
            left = left[shown:]
        return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A table with all that belongs to it; the footnotes are those that something visible refers to."""

    table: Table
    every: bool

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[RenderableType]":
        from rich.text import Text

        table, width = self.table, options.max_width
        grids = {grid: grid.parts(width, every=self.every) for grid in _grids(table, whole=self.every)}
        used = {
            number
            for grid, parts in grids.items()
            for column in (*grid.lead, *(column for part in parts for column in part))
            for number in column.notes()
        }
        numbers = {old: new for new, old in enumerate(sorted(used), start=1)}
        # A cell of the first column has no room for what has to stand beside a speedup.
        beside = [(row.method, row.quality) for row in table.rows] + [(c.title, c.quality) for c in table.columns]
        told = [Text(terminal_text(f"{name}: {quality}")) for name, quality in beside if quality]
        for grid, parts in grids.items():
            for index, part in enumerate(parts):
                title = f"{grid.title}, continued" if index else grid.title
                yield _printed(title, [*grid.lead, *part], width, numbers)
            left = grid.columns[sum(map(len, parts)) :]
            if left:
                yield _fold(Text(_left_out(left), style="dim"), width)
            yield from told
            told = []
        texts = [text for text in (table.above, table.caption) if text] if table.level != "main" else []
        texts += [f"[{new}] {table.footnotes[old - 1]}" for old, new in numbers.items()]
        for text in texts:
            yield _fold(Text(terminal_text(text), style="dim"), width)


def _left_out(columns: Sequence[_Column]) -> str:
    names = ", ".join(terminal_text(column.head.text) for column in columns)
    count = f"{len(columns)} columns" if len(columns) > 1 else "1 column"
    return f"{count} left out for want of width ({names}): widen the terminal, or use show --all, --json or render"


def _grids(table: Table, *, whole: bool) -> Iterator[_Grid]:
    """Yield the parts of a table that lie apart: what is overall, and the domains."""
    if not table.sortable:
        yield _turned(table)
        return
    if any(not column.domain for column in table.columns):
        yield _overall(table, whole=whole)
    if any(column.domain for column in table.columns):
        yield _by_domain(table, whole=whole)


def _overall(table: Table, *, whole: bool) -> _Grid:
    """Return the overall figures, one method a row; those of secondary interest only if the table is shown whole."""
    lead = [_Column(head=Cell(text=table.subject), cells=tuple(map(_method, table.rows)), named=True)]
    if table.ranked:
        ranks = (Cell(text="–" if row.rank is None else str(row.rank)) for row in table.rows)
        lead.insert(0, _Column(head=Cell(text="#"), cells=tuple(ranks), right=True))
    overall = [index for index, column in enumerate(table.columns) if not column.domain]
    told = [index for index in overall if table.columns[index].metric not in ("", *_SECONDARY)]
    shown = overall if whole or not told else [i for i in overall if i in told or table.columns[i].title == "Output"]
    columns = (
        _Column(
            head=_head(table.columns[index]),
            cells=tuple(row.cells[index] for row in table.rows),
            right=not table.columns[index].words,
        )
        for index in shown
    )
    return _Grid(title=table.title, lead=tuple(lead), columns=tuple(columns))


def _by_domain(table: Table, *, whole: bool) -> _Grid:
    """Return the figures of the domains, one domain a row: terminals are narrow, suites long.

    Intervals stand here only if the table is shown whole; folded into narrow columns they bury the figures.
    """
    inside = [index for index, column in enumerate(table.columns) if column.domain]
    heads = tuple(_head(table.columns[index]) for index in inside)
    columns = []
    for row in table.rows:
        cells = (row.cells[index] if whole else replace(row.cells[index], interval="") for index in inside)
        columns.append(_Column(head=_method(row), cells=tuple(cells), right=True))
    lead = _Column(head=Cell(text="Domain"), cells=heads, named=True)
    return _Grid(title=f"{table.title} by domain", lead=(lead,), columns=tuple(columns))


def _turned(table: Table) -> _Grid:
    """Return a table that lies on its side already: one measure a row."""
    lead = _Column(head=Cell(text=table.subject), cells=tuple(map(_method, table.rows)), named=True)
    columns = (
        _Column(head=_head(column), cells=tuple(row.cells[index] for row in table.rows), right=True)
        for index, column in enumerate(table.columns)
    )
    return _Grid(title=table.title, lead=(lead,), columns=tuple(columns))


def _spare(columns: Sequence[_Column], width: int) -> int:
    """Return the characters that are left over when every column is as narrow as can be."""
    return width - sum(column.narrowest(width) + _GAP for column in columns)


def _printed(title: str, columns: Sequence[_Column], width: int, numbers: Mapping[int, int]) -> "RichTable":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    rich = RichTable(box=box.SIMPLE_HEAD, title=Text(title), title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    texts = []
    for column, chosen in zip(columns, _widths(columns, width), strict=True):
        head, *cells = (_fold(_text(cell, numbers), chosen) for cell in (column.head, *column.cells))
        rich.add_column(head, justify="right" if column.right else "left", overflow="fold", width=chosen)
        texts.append(cells)
    for row in zip(*texts, strict=True):
        rich.add_row(*row)
    return rich


def _widths(columns: Sequence[_Column], width: int) -> list[int]:
    """Return the width of each column; what is left over unfolds names up to a limit, values, names, and headings."""
    widths = [column.narrowest(width) for column in columns]
    names = [index for index, column in enumerate(columns) if column.named]
    others = [index for index, column in enumerate(columns) if not column.named]
    spare = max(0, _spare(columns, width))
    wanted = [(index, min(columns[index].widest(), _most(width))) for index in names]
    wanted += [(index, columns[index].widest(head=False)) for index in others]
    wanted += [(index, columns[index].widest()) for index in (*names, *others)]
    for index, most in wanted:
        more = max(0, min(spare, most - widths[index]))
        widths[index] += more
        spare -= more
    return widths


def _most(width: int) -> int:
    """Return the characters that names may take of a terminal before anything else."""
    return max(10, 2 * width // 5)


def _fold(text: "Text", width: int) -> "Text":
    """Return the text in lines of at most `width`, broken inside a word only where it has no better place."""
    from rich.cells import cell_len
    from rich.text import Text

    plain, cuts, start = text.plain, list[int](), 0
    for first, last in _spans(plain):
        if cell_len(plain[start:last]) <= width:
            continue
        if first > start:
            cuts.append(first)
            start = first
        while cell_len(plain[start:last]) > width:
            end = start + 1
            while cell_len(plain[start : end + 1]) <= width:
                end += 1
            if end >= last:
                break
            cuts.append(end)
            start = end
    lines = list(text.divide(cuts))
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)


def _spans(plain: str) -> Iterator[tuple[int, int]]:
    """Yield where each part of a text begins and ends that should not be broken; blanks belong to none."""
    start = 0
    for found in _BREAK.finditer(plain):
        if found.start() > start:
            yield start, found.start()
        start = found.end()
    if start < len(plain):
        yield start, len(plain)


def _longest(text: "Text", most: int) -> int:
    """Return the characters of the longest part that should not be broken, but for what is longer than `most`."""
    from rich.cells import cell_len

    plain = text.plain
    return max((min(cell_len(plain[first:last]), most) for first, last in _spans(plain)), default=1)


def _method(row: Row) -> Cell:
    return Cell(text=_with_details(row.method, ("baseline" if row.baseline else "", row.detail)), notes=row.notes)


def _head(column: Column) -> Cell:
    return Cell(text=_with_details(column.title, (column.detail,)), notes=column.notes)


def _with_details(name: str, details: Iterable[str]) -> str:
    told = ", ".join(detail for detail in details if detail)
    return f"{name} ({told})" if told else name


def _text(cell: Cell, numbers: Mapping[int, int] | None = None) -> "Text":
    """Return what a cell shows, its footnotes under their numbers in this printing where those are known."""
    from rich.text import Text

    text = Text(
        terminal_text(cell.text), style="bold green" if cell.best else "dim" if cell.missing or cell.faint else ""
    )
    for aside in (cell.interval, cell.detail):
        if aside:
            text.append(f" {terminal_text(aside)}", style="dim")
    for number in cell.notes:
        text.append(f" [{number if numbers is None else numbers[number]}]", style="dim")
    return text
