"""From a group of results to ranked tables, as plain data: what every renderer shows and none decides.

A `Table` holds the values unrounded beside their text, so that sorting, bold and bars never depend on
rounding. Reasons for missing values are gathered as numbered footnotes, each told once.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from draftboard.leaderboards.ranking import Standing, headline, standings, usable, why_missing
from draftboard.metrics import Metric, metric
from draftboard.results import DomainResult, Figure, Group, MethodResult, Results

__all__ = [
    "NOT_AVAILABLE",
    "Cell",
    "Column",
    "Row",
    "Table",
    "acceptance_across",
    "boards",
    "format_value",
    "group_title",
]

NOT_AVAILABLE = "n/a"
_NOTHING = "–"

_SPEED = (
    ("speedup_mean_of_domains", "Mean of domains"),
    ("speedup_decode", "Decode speedup"),
    ("speedup_cpu", "CPU-time speedup"),
    ("acceptance_rate", "α"),
    ("tokens_per_s", "Tokens/s"),
    ("tokens_per_s_mean_of_samples", "Tokens/s, mean of samples"),
    ("decode_tokens_per_s", "Decode tokens/s"),
    ("ttft_s", "TTFT (s)"),
)
_ACCEPTANCE = (
    ("acceptance_length", "τ"),
    ("acceptance_length_mean_of_samples", "τ, mean of per-sample values"),
    ("acceptance_rate", "α"),
    ("tokens_per_target_pass", "Tokens per target pass"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of figures, or of words."""

    title: str
    metric: str = ""
    words: bool = False
    domain: str = ""
    """Empty for overall figures."""
    higher_is_better: bool = True
    headline: bool = False
    notes: tuple[int, ...] = ()
    detail: str = ""
    """What holds for all its cells, such as n=80."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: text to show, the unrounded value to sort by, numbers of footnotes."""

    text: str
    value: float | None = None
    missing: bool = False
    best: bool = False
    notes: tuple[int, ...] = ()
    detail: str = ""
    """Interval, n or difference, where there is one to show."""
    share: float | None = None
    """For speedups, the fraction of the table's largest one: the length of a bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method. `rank` is None where it is not ranked."""

    method: str
    rank: int | None
    baseline: bool
    cells: tuple[Cell, ...]
    notes: tuple[int, ...] = ()


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


@dataclass(slots=True)
class _Footnotes:
    texts: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts) + 1)


def boards(group: Group) -> tuple[Table, ...]:
    """Return the tables of a group (speed, acceptance, quality) that have something to show."""
    tables = (_speed(group), _acceptance(group), _quality(group))
    return tuple(table for table in tables if table is not None and table.columns and table.rows)


def group_title(group: Group) -> str:
    """Return what tells this group from others, for a heading."""
    return " · ".join(part for part in (group.model, group.suite, group.hardware) if part) or "Results"


def format_value(value: float, kind: Metric) -> str:
    """Return a value as it is shown; only speedups carry their unit, others have it in the column's title."""
    return f"{value:.{kind.digits}f}" + ("×" if kind.unit == "×" else "")


def acceptance_across(results: Results) -> tuple[Table, ...]:
    """Return one table per model and suite measured on several machines: τ side by side, not ranked.

    Acceptance is a property of target, drafter and text, not of the machine; speeds never stand side by side.
    """
    families: dict[tuple[str, str], list[Group]] = {}
    for group in results.groups:
        if any(usable(method.overall.get("acceptance_length")) is not None for method in group.methods):
            families.setdefault((group.model, group.suite), []).append(group)
    return tuple(
        _across(model, suite, groups)
        for (model, suite), groups in families.items()
        if len({group.hardware for group in groups}) == len(groups) > 1
    )


def _across(model: str, suite: str, groups: list[Group]) -> Table:
    notes = _Footnotes()
    found = [{method.method: method.overall.get("acceptance_length") for method in group.methods} for group in groups]
    names = sorted({name for column in found for name in column})
    rows = []
    for name in names:
        cells = [_figure_cell(column.get(name), metric("acceptance_length"), notes) for column in found]
        rows.append(Row(method=name, rank=None, baseline=False, cells=tuple(cells)))
    columns = [Column(title=group.hardware or "not stated", metric="acceptance_length") for group in groups]
    where = " · ".join(part for part in (model, suite) if part)
    return Table(
        key="across",
        title="Acceptance length across machines" + (f": {where}" if where else ""),
        caption="τ, pooled over steps. Not ranked: only speeds of one machine can be compared.",
        columns=tuple(columns),
        rows=tuple(rows),
        footnotes=tuple(notes.texts),
        ranked=False,
    )


def _speed(group: Group) -> Table | None:
    if headline(group) != "speedup":
        return None
    notes = _Footnotes()
    order = standings(group, "speedup")
    keys = [("speedup", "", "Overall"), ("acceptance_length", "", "τ")]
    keys += [("speedup", domain, domain) for domain in group.domains]
    keys += [(name, "", title) for name, title in _SPEED]
    columns, cells = _figure_columns(group, order, keys, notes)
    outputs = [standing.method.output for standing in order]
    claims = [{True: "yes", False: "no", None: ""}[standing.method.lossless] for standing in order]
    # The class of the output stands beside the headline: a lossy speedup is another kind of figure.
    for place, title, words in ((1, "Output", outputs), (len(columns) + 1, "Lossless", claims)):
        if any(words):
            columns.insert(place, Column(title=title, words=True))
            cells.insert(place, [Cell(text=word or _NOTHING) for word in words])
    counts = [standing.method.overall.get("speedup", Figure(value=None)).n for standing in order]
    if any(count is not None for count in counts):
        columns.append(Column(title="n"))
        cells.append([Cell(text=_NOTHING if n is None else str(n), value=n) for n in counts])
    caption = f"Speedup over {group.baseline}, end to end; overall is the geometric mean over domains."
    return _with_bars(_table("speed", "Speed", caption, group, order, columns, cells, notes, ranked=True))


def _acceptance(group: Group) -> Table | None:
    notes = _Footnotes()
    order = standings(group, "acceptance_length")
    keys = [("acceptance_length", "", "τ")]
    keys += [("acceptance_length", domain, domain) for domain in group.domains]
    keys += [(name, "", title) for name, title in _ACCEPTANCE[1:]]
    columns, cells = _figure_columns(group, order, keys, notes)
    if headline(group) == "speedup" and all(not column.domain and column.title in ("τ", "α") for column in columns):
        return None  # the speed board shows these two already
    caption = "Acceptance length τ, pooled over steps: tokens per step. Ranked by τ."
    return _table("acceptance", "Acceptance", caption, group, order, columns, cells, notes, ranked=True)


def _quality(group: Group) -> Table | None:
    notes = _Footnotes()
    order = standings(group, headline(group))
    keys: dict[tuple[str, str, str], None] = {}
    for domain in group.domains:
        for method in group.methods:
            for name in _domain_figures(method, domain):
                if metric(name).kind == "quality":
                    keys[name, domain, f"{domain} · {metric(name).title}"] = None
    columns, cells = _figure_columns(group, order, list(keys), notes, show_n=True)
    changed = _mark_differences(group, order, columns, cells)
    caption = "Quality of the written text, per domain."
    if changed:
        caption += f" Δ: difference from {group.baseline}, where the output is not identical."
    return _table("quality", "Quality", caption, group, order, columns, cells, notes, ranked=False)


def _table(
    key: str,
    title: str,
    caption: str,
    group: Group,
    order: tuple[Standing, ...],
    columns: list[Column],
    cells: list[list[Cell]],
    notes: _Footnotes,
    *,
    ranked: bool,
) -> Table:
    rows = []
    for index, standing in enumerate(order):
        mine = tuple(column[index] for column in cells)
        told = {number for cell in mine for number in cell.notes}
        remark: tuple[int, ...] = ()
        if ranked and standing.rank is None and standing.reason and notes.texts.get(standing.reason) not in told:
            remark = (notes.number(standing.reason),)
        rows.append(
            Row(
                method=standing.method.method,
                rank=standing.rank if ranked else None,
                baseline=standing.method.method == group.baseline,
                cells=mine,
                notes=remark,
            )
        )
    return Table(
        key=key,
        title=title,
        caption=caption,
        columns=tuple(columns),
        rows=tuple(rows),
        footnotes=tuple(notes.texts),
        ranked=ranked,
    )


def _figure_columns(
    group: Group,
    order: tuple[Standing, ...],
    keys: Iterable[tuple[str, str, str]],
    notes: _Footnotes,
    *,
    show_n: bool = False,
) -> tuple[list[Column], list[list[Cell]]]:
    """Return a column and its cells for each (metric, domain, title) of which any method has a figure."""
    columns: list[Column] = []
    cells: list[list[Cell]] = []
    for name, domain, title in keys:
        figures = [_figures(standing.method, domain).get(name) for standing in order]
        if all(figure is None for figure in figures):
            continue
        kind = metric(name)
        counts, signatures = _shared(figures, _count), _shared(figures, lambda figure: figure.signature)
        columns.append(
            Column(
                title=title,
                metric=name,
                domain=domain,
                higher_is_better=kind.higher_is_better,
                headline=not domain and name in ("speedup", "acceptance_length") and not columns,
                notes=(notes.number(signatures),) if signatures else (),
                detail=counts if show_n and counts else "",
            )
        )
        column = [_figure_cell(figure, kind, notes) for figure in figures]
        for index, figure in enumerate(figures):
            if figure is not None and usable(figure) is not None:
                own_n = _count(figure) if show_n and not counts else ""
                own_signature = (notes.number(figure.signature),) if figure.signature and not signatures else ()
                detail = " ".join(part for part in (column[index].detail, own_n) if part)
                column[index] = replace(column[index], detail=detail, notes=column[index].notes + own_signature)
        cells.append(_mark_best(column, kind))
    return columns, cells


def _figure_cell(figure: Figure | None, kind: Metric, notes: _Footnotes) -> Cell:
    value = usable(figure)
    if value is None or figure is None:
        return Cell(text=NOT_AVAILABLE, missing=True, notes=(notes.number(why_missing(figure)),))
    detail = ""
    if figure.interval is not None:
        detail = f"[{figure.interval.low:.{kind.digits}f}, {figure.interval.high:.{kind.digits}f}]"
    return Cell(text=format_value(value, kind), value=value, detail=detail)


def _mark_best(column: list[Cell], kind: Metric) -> list[Cell]:
    values = [cell.value for cell in column if cell.value is not None]
    if not values:
        return column
    best = max(values) if kind.higher_is_better else min(values)
    return [replace(cell, best=cell.value == best) for cell in column]


def _mark_differences(
    group: Group, order: tuple[Standing, ...], columns: list[Column], cells: list[list[Cell]]
) -> bool:
    """Add to each score of a method with other output its difference from the baseline; return if any was."""
    home = [index for index, standing in enumerate(order) if standing.method.method == group.baseline]
    added = False
    for column, line in zip(columns, cells, strict=True):
        base = line[home[0]].value if home else None
        for index, standing in enumerate(order):
            value = line[index].value
            if base is None or value is None or standing.method.output in ("", "identical"):
                continue
            difference = f"Δ {value - base:+.{metric(column.metric).digits}f}"
            detail = " ".join(part for part in (line[index].detail, difference) if part)
            line[index] = replace(line[index], detail=detail)
            added = True
    return added


def _with_bars(table: Table) -> Table:
    is_bar = [column.metric == "speedup" for column in table.columns]
    values = [
        cell.value for row in table.rows for cell, bar in zip(row.cells, is_bar, strict=True) if bar and cell.value
    ]
    top = max(values, default=0.0)
    if top <= 0:
        return table
    rows = []
    for row in table.rows:
        cells = [
            replace(cell, share=cell.value / top) if bar and cell.value is not None and cell.value > 0 else cell
            for cell, bar in zip(row.cells, is_bar, strict=True)
        ]
        rows.append(replace(row, cells=tuple(cells)))
    return replace(table, rows=tuple(rows))


def _figures(method: MethodResult, domain: str) -> dict[str, Figure]:
    return _domain_figures(method, domain) if domain else method.overall


def _domain_figures(method: MethodResult, domain: str) -> dict[str, Figure]:
    return method.domains.get(domain, DomainResult(domain=domain)).figures


def _count(figure: Figure | None) -> str:
    return "" if figure is None or figure.n is None else f"n={figure.n}"


def _shared(figures: list[Figure | None], read: Callable[[Figure], str]) -> str:
    """Return what all figures with a value agree on, or nothing."""
    found = {read(figure) for figure in figures if figure is not None and usable(figure) is not None}
    return found.pop() if len(found) == 1 else ""
