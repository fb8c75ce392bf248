"""`index.html`: one self-contained page that needs no network and runs nothing but its own scripts.

Every value that reaches the page passes through one escaping function, as text or in a quoted attribute; none
enters a script or a style sheet. What charts show is in one block of inert JSON. The page's Content-Security-Policy
admits its own scripts and its style sheet by their hashes and nothing else.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from draftboard.leaderboards.board import acceptance_across, boards
from draftboard.leaderboards.charts import Chart, charts
from draftboard.leaderboards.page_scripts import chart_library, json_block, resource
from draftboard.leaderboards.pages import render_page
from draftboard.leaderboards.quality import quality_note
from draftboard.leaderboards.ranking import headline, standings, usable
from draftboard.leaderboards.runs import side_by_side
from draftboard.leaderboards.sections import (
    Banner,
    banner,
    environment,
    flat,
    how_measured,
    section_titles,
)
from draftboard.leaderboards.table import Table, format_value
from draftboard.metrics import metric
from draftboard.results import Group, MethodResult, Results

__all__ = ["html"]

_OUTPUT_CLASSES = {
    "identical": "good",
    "text-equal": "good",
    "tie-divergent": "fair",
    "text-different": "fair",
    "lossy": "fair",
    "different": "bad",
}
_FILTERED_FROM = 3
"""Methods or domains from which on a section has a filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tile:
    """One figure that a reader should see first."""

    label: str
    value: str
    names: tuple[tuple[str, str, str], ...]
    """Each name with the output class of its method and how its quality differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Card:
    """What is known of a method beside its figures."""

    method: MethodResult
    settings: tuple[tuple[str, str], ...]
    artifact: tuple[tuple[str, str], ...]
    failed: int
    skipped: int

    @property
    def worth_showing(self) -> bool:
        """Whether anything but the name is known."""
        method = self.method
        known = (self.settings, self.artifact, method.reference, method.output, method.notes, method.tied_with)
        return method.lossless is not None or any(known) or self.failed + self.skipped > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """One group, laid out."""

    anchor: str
    title: str
    facts: tuple[tuple[str, str], ...]
    tiles: tuple[_Tile, ...]
    tables: tuple[Table, ...]
    details: tuple[Table, ...]
    cards: tuple[_Card, ...]
    notes: tuple[str, ...]
    banner: Banner | None
    charts: tuple[Chart, ...]
    undrawn: tuple[Chart, ...]
    """Charts without data, each with its reason."""
    measured: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    filtered: bool
    domains: tuple[str, ...]
    outputs: tuple[str, ...]
    """Classes of output that occur, for the filter."""
    outputs_of: dict[str, str]
    """Of each method."""


def html(results: Results, *, generated: str = "", links: Sequence[tuple[str, str]] = ()) -> str:
    """Return the page; the same text for the same results. `links`: title and address of pages beside it."""
    from markupsafe import Markup

    titles = section_titles(results)
    sections = [
        _section(index, title, group)
        for index, (title, group) in enumerate(zip(titles, results.groups, strict=True), 1)
    ]
    across = (*side_by_side(results, titles), *acceptance_across(results))
    drawn = {f"{section.anchor}-{chart.key}": chart.spec for section in sections for chart in section.charts}
    scripts = [resource("sort.js"), resource("filter.js")]
    if drawn:
        scripts += [chart_library(), resource("charts.js")]
    style = resource("style.css") + _bar_lengths()
    shown = _metrics([*(table for section in sections for table in section.tables), *across])
    behind = _metrics([table for section in sections for table in section.details])
    return render_page(
        "index.html",
        title=results.title,
        style=style,
        scripts=scripts,
        sections=sections,
        across=across,
        metrics=tuple(shown.items()),
        more_metrics=tuple((name, unit) for name, unit in behind.items() if name not in shown),
        metric=metric,
        generated=generated,
        links=links,
        chart_data=Markup(json_block(drawn)) if drawn else "",
        output_classes=_OUTPUT_CLASSES,
    )


def _bar_lengths() -> str:
    """Return a class for each length of a bar: a style attribute would need a policy that admits every style."""
    return "".join(f".share-{percent} {{ --share: {percent}%; }}\n" for percent in range(101))


def _section(index: int, title: str, group: Group) -> _Section:
    tables = boards(group)
    pictures = charts(group)
    outputs = {method.method: method.output for method in group.methods}
    facts = {
        "Model": group.model,
        "Hardware": group.hardware,
        "Suite": group.suite,
        "Baseline": group.baseline,
    }
    return _Section(
        anchor=f"board-{index}",
        title=title,
        facts=tuple((name, str(value)) for name, value in {**facts, **group.conditions}.items() if value),
        tiles=tuple(_tiles(group)),
        tables=tuple(table for table in tables if table.level != "detail"),
        details=tuple(table for table in tables if table.level == "detail"),
        cards=tuple(card for card in map(_card, group.methods) if card.worth_showing),
        notes=group.notes,
        banner=banner(group),
        charts=tuple(chart for chart in pictures if chart.spec is not None),
        undrawn=tuple(chart for chart in pictures if chart.spec is None),
        measured=how_measured(group),
        environment=environment(group),
        filtered=max(len(group.methods), len(group.domains)) >= _FILTERED_FROM,
        domains=group.domains,
        outputs=tuple(dict.fromkeys(output for output in outputs.values() if output)),
        outputs_of=outputs,
    )


def _tiles(group: Group) -> Iterator[_Tile]:
    labels = {"speedup": "Fastest overall", "acceptance_length": "Longest acceptance τ"}
    for name in dict.fromkeys((headline(group), "acceptance_length")):
        first = [standing for standing in standings(group, name) if standing.rank == 1]
        value = usable(first[0].method.overall.get(name)) if first else None
        if value is not None and len(group.methods) > 1:
            names = tuple((s.method.method, s.method.output, _note(s.method, group)) for s in first)
            yield _Tile(label=labels[name], value=format_value(value, metric(name)), names=names)
    compared = [method for method in group.methods if method.output and method.method != group.baseline]
    if compared:
        same = sum(method.output in ("identical", "text-equal") for method in compared)
        yield _Tile(
            label="Same output as the baseline", value=f"{same} of {len(compared)}", names=(("methods", "", ""),)
        )


def _note(method: MethodResult, group: Group) -> str:
    return quality_note(method, group, with_class=method.output not in _OUTPUT_CLASSES)


def _card(method: MethodResult) -> _Card:
    return _Card(
        method=method,
        settings=tuple((name, _setting(value)) for name, value in method.settings.items()),
        artifact=flat(method.artifact),
        failed=sum(domain.failed for domain in method.domains.values()),
        skipped=sum(domain.skipped for domain in method.domains.values()),
    )


def _setting(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _metrics(tables: Iterable[Table]) -> dict[str, str]:
    """Return the metrics that the tables show and their units there, in order of first appearance."""
    found: dict[str, str] = {}
    for table in tables:
        parts = [(column.metric, column.unit) for column in table.columns]
        for name, unit in [*parts, *((row.metric, row.unit) for row in table.rows)]:
            if name:
                found.setdefault(name, unit)
    return found
