"""Tables as plain data: what every renderer shows and none decides, and the parts that all of them are built from.

A `Table` holds the values unrounded beside their text, so that sorting, bold and bars never depend on
rounding. Reasons for missing values are gathered as numbered footnotes, each told once. A table is built from
*measures*: one figure of all methods each, first as a column; `turned` lays a table of many measures and few
methods on its side.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from draftboard.leaderboards.ranking import Standing, equal, usable, why_missing
from draftboard.metrics import Metric, metric
from draftboard.results import DomainResult, Figure, Group, MethodResult

__all__ = [
    "NOTHING",
    "NOT_AVAILABLE",
    "Cell",
    "Column",
    "Footnotes",
    "Level",
    "Line",
    "Measure",
    "Row",
    "Table",
    "assemble",
    "domain_figures",
    "figure_cell",
    "figures_of",
    "format_value",
    "group_title",
    "lines_of",
    "oriented",
    "turned",
]

NOT_AVAILABLE = "n/a"
NOTHING = "–"
_LONG = 1e12
"""From here on a value is shown with its power of ten."""

Level = Literal["main", "layout", "detail"]
"""What a table is for: `main` ones make the board, `layout` ones repeat it in the form of a publication, `detail` ones
are there for whoever asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of figures, or of words."""

    title: str
    metric: str = ""
    unit: str = ""
    """What the values are shown in."""
    words: bool = False
    domain: str = ""
    """Empty for overall figures."""
    higher_is_better: bool = True
    headline: bool = False
    notes: tuple[int, ...] = ()
    detail: str = ""
    """What holds for all its cells, such as n=80."""
    quality: str = ""
    """In a turned table: how far the method's quality is from the baseline's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: text to show, the unrounded value to sort by, numbers of footnotes."""

    text: str
    value: float | None = None
    missing: bool = False
    best: bool = False
    faint: bool = False
    """Rests on too little to be read like its neighbours."""
    notes: tuple[int, ...] = ()
    interval: str = ""
    detail: str = ""
    """n or the difference from the baseline, where there is one to show."""
    share: float | None = None
    """For speedups, the fraction of the table's largest one: the length of a bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method, or in a turned table one measure. `rank` is None where there is none."""

    method: str
    rank: int | None
    baseline: bool
    cells: tuple[Cell, ...]
    notes: tuple[int, ...] = ()
    detail: str = ""
    """What holds for all its cells, such as n=80."""
    quality: str = ""
    """How far the method's quality is from the baseline's, where its speed is shown."""
    metric: str = ""
    unit: str = ""
    domain: str = ""
    """In a turned table: of the measure; empty for an overall one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table ready to be rendered; `ranked` says whether it has a rank column."""

    key: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    footnotes: tuple[str, ...] = ()
    """Footnote 1 is the first."""
    ranked: bool = True
    level: Level = "main"
    subject: str = "Method"
    """The head of the first column."""
    above: str = ""
    """What a reader should know before the first number, such as the machine."""
    sortable: bool = True
    """False where the values of a column are of different kinds."""


@dataclass(slots=True)
class Footnotes:
    """The footnotes of one table, numbered as they come."""

    texts: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        """Return the number of a footnote; the same text has one number."""
        return self.texts.setdefault(text, len(self.texts) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One figure of all methods, and how a table shows it where that is not the metric's own way."""

    name: str
    """Of the metric."""
    title: str = ""
    domain: str = ""
    """Empty for the overall figure."""
    scale: float = 1
    """Shown value over stored value, for another unit."""
    unit: str | None = None
    digits: int | None = None
    neutral: bool = False
    """Neither more nor less is better, so that nothing is bold."""
    intervals: bool = True
    detail: str = ""

    @property
    def kind(self) -> Metric:
        """The metric as this table shows it."""
        base = metric(self.name)
        return replace(
            base,
            title=self.title or base.title,
            unit=base.unit if self.unit is None else self.unit,
            digits=base.digits if self.digits is None else self.digits,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A column with its cells, one a method."""

    column: Column
    cells: tuple[Cell, ...]


def group_title(group: Group) -> str:
    """Return what tells this group from others, for a heading."""
    return " · ".join(part for part in (group.model, group.suite, group.hardware) if part) or "Results"


def format_value(value: float, kind: Metric) -> str:
    """Return a value as it is shown; only speedups carry their unit, others have it in the column's title."""
    return _number(value, kind) + (kind.unit if kind.unit in ("×", "x") else "")


def _number(value: float, kind: Metric) -> str:
    if abs(value) >= _LONG:
        return f"{value:.{max(kind.digits, 1)}e}"
    # `z`: what rounds to zero has no sign.
    return f"{value:z.{kind.digits}f}"


def figures_of(method: MethodResult, domain: str) -> dict[str, Figure]:
    """Return the figures of a method in a domain, or its overall ones where `domain` is empty."""
    return domain_figures(method, domain) if domain else method.overall


def domain_figures(method: MethodResult, domain: str) -> dict[str, Figure]:
    """Return the figures of a method in a domain; none where it lacks the domain."""
    return method.domains.get(domain, DomainResult(domain=domain)).figures


def lines_of(
    order: Sequence[Standing], measures: Iterable[Measure], notes: Footnotes, *, show_n: bool = False
) -> list[Line]:
    """Return a line for each measure of which any method has a figure.

    With `show_n` the counts stand in the head of the column where all methods agree, else in the cells; so do
    the signatures, as footnotes.
    """
    lines: list[Line] = []
    for measure in measures:
        figures = [figures_of(standing.method, measure.domain).get(measure.name) for standing in order]
        if any(figure is not None for figure in figures):
            lines.append(_line(measure, figures, notes, show_n=show_n))
    return lines


def _line(measure: Measure, figures: list[Figure | None], notes: Footnotes, *, show_n: bool) -> Line:
    kind = measure.kind
    counts, signatures = _shared(figures, _count), _shared(figures, lambda figure: figure.signature)
    detail = (measure.detail, counts if show_n else "")
    column = Column(
        title=kind.title,
        metric=measure.name,
        unit=kind.unit,
        domain=measure.domain,
        higher_is_better=kind.higher_is_better,
        notes=(notes.number(signatures),) if signatures else (),
        detail=" · ".join(part for part in detail if part),
    )
    shown = figures if measure.intervals else [figure and replace(figure, interval=None) for figure in figures]
    cells = [figure_cell(figure, kind, notes, scale=measure.scale) for figure in shown]
    for index, figure in enumerate(figures):
        if figure is not None and cells[index].value is not None:
            own_n = _count(figure) if show_n and not counts else ""
            own_signature = (notes.number(figure.signature),) if figure.signature and not signatures else ()
            cells[index] = replace(cells[index], detail=own_n, notes=cells[index].notes + own_signature)
    return Line(column=column, cells=tuple(cells) if measure.neutral else _mark_best(cells, kind))


def figure_cell(figure: Figure | None, kind: Metric, notes: Footnotes, *, scale: float = 1) -> Cell:
    """Return the cell of one figure: its value with its interval, or n/a with the reason as a footnote."""
    value = usable(figure)
    if value is None or figure is None:
        return Cell(text=NOT_AVAILABLE, missing=True, notes=(notes.number(why_missing(figure)),))
    interval = ""
    if figure.interval is not None:
        low, high = (_number(end * scale, kind) for end in (figure.interval.low, figure.interval.high))
        interval = f"[{low}, {high}]"
    return Cell(text=format_value(value * scale, kind), value=value * scale, interval=interval)


def assemble(
    table: Table,
    group: Group,
    order: Sequence[Standing],
    lines: Sequence[Line],
    notes: Footnotes,
    *,
    qualities: Sequence[str] = (),
    show_why: bool = False,
) -> Table | None:
    """Return `table` with these lines as its columns and a row for each method.

    None if there is nothing to show: no line at all or, but for the main tables, no cell with a value.

    `qualities` go to the rows. A method without a rank gets its reason as a footnote where the table is ranked or
    `show_why` is set, unless one of its cells says so already.
    """
    lines = [_without_own_lead(line, group, order) for line in lines]
    has_value = any(cell.value is not None for line in lines for cell in line.cells)
    if not lines or not order or not (has_value or table.level == "main"):
        return None
    rows = []
    for index, standing in enumerate(order):
        cells = tuple(line.cells[index] for line in lines)
        told = {number for cell in cells for number in cell.notes}
        remark: tuple[int, ...] = ()
        if (table.ranked or show_why) and standing.rank is None and standing.reason:
            remark = () if notes.texts.get(standing.reason) in told else (notes.number(standing.reason),)
        rows.append(
            Row(
                method=standing.method.method,
                rank=standing.rank if table.ranked else None,
                baseline=standing.method.method == group.baseline,
                cells=cells,
                notes=remark,
                quality=qualities[index] if qualities else "",
            )
        )
    columns = tuple(line.column for line in lines)
    return replace(table, columns=columns, rows=tuple(rows), footnotes=tuple(notes.texts))


def oriented(table: Table, subject: str = "Figure") -> Table:
    """Return the table with its longer side going down: turned where it has more columns than rows."""
    return turned(table, subject) if len(table.columns) > len(table.rows) else table


def turned(table: Table, subject: str = "Figure") -> Table:
    """Return the table with a row for each measure and a column for each method, which then cannot be sorted."""
    columns = tuple(
        Column(
            title=row.method,
            notes=row.notes,
            detail=" · ".join(part for part in ("baseline" if row.baseline else "", row.detail) if part),
            quality=row.quality,
        )
        for row in table.rows
    )
    rows = tuple(
        Row(
            method=column.title,
            rank=None,
            baseline=False,
            cells=tuple(row.cells[index] for row in table.rows),
            notes=column.notes,
            detail=column.detail,
            metric=column.metric,
            unit=column.unit,
            domain=column.domain,
        )
        for index, column in enumerate(table.columns)
    )
    return replace(table, columns=columns, rows=rows, ranked=False, subject=subject, sortable=False)


def _mark_best(cells: list[Cell], kind: Metric) -> tuple[Cell, ...]:
    values = [cell.value for cell in cells if cell.value is not None]
    if not values:
        return tuple(cells)
    best = max(values) if kind.higher_is_better else min(values)
    if len(values) > 1 and all(equal(value, best) for value in values):
        return tuple(cells)  # where all are equal, bold would say nothing
    return tuple(replace(cell, best=cell.value is not None and equal(cell.value, best)) for cell in cells)


def _without_own_lead(line: Line, group: Group, order: Sequence[Standing]) -> Line:
    """Return the line with nothing bold where only the baseline leads, in a figure that is relative to it.

    There its value is what it is by definition, such as a speedup of 1.
    """
    name = line.column.metric
    relative = metric(name).unit == "×" or name.endswith("_over_baseline_bytes") or name == "relative_verify_cost"
    leaders = [standing.method.method for standing, cell in zip(order, line.cells, strict=True) if cell.best]
    if not relative or leaders != [group.baseline]:
        return line
    return replace(line, cells=tuple(replace(cell, best=False) for cell in line.cells))


def _count(figure: Figure | None) -> str:
    return "" if figure is None or figure.n is None else f"n={figure.n}"


def _shared(figures: list[Figure | None], read: Callable[[Figure], str]) -> str:
    """Return what all figures with a value agree on, or nothing."""
    found = {read(figure) for figure in figures if figure is not None and usable(figure) is not None}
    return found.pop() if len(found) == 1 else ""
