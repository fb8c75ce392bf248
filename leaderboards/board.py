"""All tables of a group, in the order in which they are read: the ranking, publications' layouts, quality, acceptance,
and behind them the details.
"""

from dataclasses import replace

from draftboard.leaderboards.details import detail_tables, serving_table
from draftboard.leaderboards.layouts import layout_tables
from draftboard.leaderboards.positions import positions_table
from draftboard.leaderboards.quality import quality_details, quality_note, quality_table
from draftboard.leaderboards.ranking import headline, standings, usable
from draftboard.leaderboards.table import (
    NOTHING,
    Cell,
    Column,
    Footnotes,
    Line,
    Measure,
    Row,
    Table,
    assemble,
    figure_cell,
    lines_of,
)
from draftboard.metrics import metric
from draftboard.results import Figure, Group, Results

__all__ = ["acceptance_across", "boards"]

_SPEED = (
    Measure(name="speedup_decode", title="Decode speedup"),
    Measure(name="acceptance_rate", title="α"),
    Measure(name="tokens_per_s", title="Tokens/s"),
    Measure(name="decode_tokens_per_s", title="Decode tokens/s"),
    Measure(name="ttft_s", title="TTFT (ms)", scale=1e3, unit="ms", digits=1),
)
_ACCEPTANCE = (
    Measure(name="acceptance_length_mean_of_samples", title="τ, mean of per-sample values"),
    Measure(name="acceptance_rate", title="α"),
)


def boards(group: Group) -> tuple[Table, ...]:
    """Return the tables of a group that have something to show; what ranks the group comes first.

    Where nothing ranks the methods, as with another tool's aggregates, the details are what there is to see and
    stand on the board themselves.
    """
    speed, acceptance = _speed(group), _acceptance(group)
    by_speed = headline(group) == "speedup"
    ranking, quality = speed if by_speed else acceptance, quality_table(group)
    main = [ranking, serving_table(group), *layout_tables(group), quality, acceptance if by_speed else None]
    shown = {column.metric for table in (speed, acceptance) if table for column in table.columns if not column.domain}
    details = [*detail_tables(group, shown), positions_table(group)]
    if ranking is None:
        details = [table and replace(table, level="main") for table in details]
    return tuple(table for table in (*main, *details, quality_details(group)) if table is not None)


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
    notes = Footnotes()
    found = [{method.method: method.overall.get("acceptance_length") for method in group.methods} for group in groups]
    names = sorted({name for column in found for name in column})
    rows = []
    for name in names:
        cells = [figure_cell(column.get(name), metric("acceptance_length"), notes) for column in found]
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
    if not _anywhere(group, "speedup"):
        return None
    notes = Footnotes()
    order = standings(group, "speedup")
    measures = [Measure(name="speedup", title="Overall"), Measure(name="acceptance_length", title="τ")]
    measures += [Measure(name="speedup", title=domain, domain=domain) for domain in group.domains]
    lines = lines_of(order, [*measures, *_SPEED], notes)
    if lines and lines[0].column.metric == "speedup" and not lines[0].column.domain:
        lines[0] = replace(lines[0], column=replace(lines[0].column, headline=True))
    outputs = [standing.method.output for standing in order]
    claims = [{True: "yes", False: "no", None: ""}[standing.method.lossless] for standing in order]
    # The class of the output stands beside the headline: a lossy speedup is another kind of figure.
    for place, title, words in ((1, "Output", outputs), (len(lines) + 1, "Lossless", claims)):
        if any(words):
            cells = tuple(Cell(text=word or NOTHING) for word in words)
            lines.insert(place, Line(column=Column(title=title, words=True), cells=cells))
    counts = [standing.method.overall.get("speedup", Figure(value=None)).n for standing in order]
    if any(count is not None for count in counts):
        cells = tuple(Cell(text=NOTHING if n is None else str(n), value=n) for n in counts)
        lines.append(Line(column=Column(title="n"), cells=cells))
    caption = f"Speedup over {group.baseline}, end to end; overall is the geometric mean over domains."
    table = Table(key="speed", title="Speed", caption=caption, columns=(), rows=())
    qualities = [quality_note(standing.method, group, with_class=not any(outputs)) for standing in order]
    built = assemble(table, group, order, lines, notes, qualities=qualities)
    return None if built is None else _with_bars(built)


def _acceptance(group: Group) -> Table | None:
    if not any(_anywhere(group, name) for name in ("acceptance_length", "acceptance_length_mean_of_samples")):
        return None
    notes = Footnotes()
    order = standings(group, "acceptance_length")
    measures = [Measure(name="acceptance_length", title="τ")]
    measures += [Measure(name="acceptance_length", title=domain, domain=domain) for domain in group.domains]
    lines = lines_of(order, [*measures, *_ACCEPTANCE], notes)
    if _anywhere(group, "speedup") and all(line.column.title in ("τ", "α") for line in lines):
        return None  # the speed board shows these two already
    if lines and lines[0].column.metric == "acceptance_length" and not lines[0].column.domain:
        lines[0] = replace(lines[0], column=replace(lines[0].column, headline=True))
    caption = "Acceptance length τ, pooled over steps: tokens per step. Ranked by τ."
    table = Table(key="acceptance", title="Acceptance", caption=caption, columns=(), rows=())
    return assemble(table, group, order, lines, notes)


def _anywhere(group: Group, name: str) -> bool:
    """Whether any method has such a figure, overall or in a domain, be it only the reason why there is no value."""
    return any(
        name in figures
        for method in group.methods
        for figures in (method.overall, *(domain.figures for domain in method.domains.values()))
    )


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
