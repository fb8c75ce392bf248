"""`index.html`: one self-contained page that needs no network and runs nothing but its own sorting script.

Every value that reaches the page passes through one escaping function, as text or in a quoted attribute; none
enters a script or a style sheet. The page's Content-Security-Policy admits its own script by hash and nothing
else.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files

from draftboard.leaderboards.board import acceptance_across, boards
from draftboard.leaderboards.quality import quality_note
from draftboard.leaderboards.ranking import headline, standings, usable
from draftboard.leaderboards.table import Table, format_value, group_title
from draftboard.leaderboards.text import html_text
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
    failed: int
    skipped: int

    @property
    def worth_showing(self) -> bool:
        """Whether anything but the name is known."""
        method = self.method
        known = (self.settings, method.reference, method.output, method.notes, self.failed, self.skipped)
        return method.lossless is not None or any(known)


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
    caveats: tuple[str, ...]


def html(results: Results, *, generated: str = "") -> str:
    """Return the page; the same text for the same results."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    sections = [_section(index, group) for index, group in enumerate(results.groups, start=1)]
    across = acceptance_across(results)
    shown = _metrics([*(table for section in sections for table in section.tables), *across])
    behind = _metrics([table for section in sections for table in section.details])
    script = _resource("sort.js")
    environment = Environment(
        loader=FunctionLoader(_resource),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["breakable"] = _breakable
    return environment.get_template("index.html").render(
        title=results.title,
        sections=sections,
        across=across,
        metrics=tuple(shown.items()),
        more_metrics=tuple((name, unit) for name, unit in behind.items() if name not in shown),
        metric=metric,
        generated=generated,
        style=Markup(_resource("style.css")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii"),
        output_classes=_OUTPUT_CLASSES,
    )


def _shown(value: object) -> object:
    """Escape every value of a template but what is ours and marked so."""
    from markupsafe import Markup

    return Markup(html_text(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def _breakable(text: str) -> object:
    """Let a heading break behind slashes and underscores, where a reader would."""
    from markupsafe import Markup

    return Markup(re.sub(r"(?<=[/_])(?=\w\w)", "<wbr>", html_text(text)))


def _resource(name: str) -> str:
    return files("draftboard.leaderboards").joinpath("templates", name).read_text(encoding="utf-8")


def _section(index: int, group: Group) -> _Section:
    tables = boards(group)
    facts = {
        "Model": group.model,
        "Hardware": group.hardware,
        "Suite": group.suite,
        "Baseline": group.baseline,
    }
    return _Section(
        anchor=f"board-{index}",
        title=group_title(group),
        facts=tuple((name, str(value)) for name, value in {**facts, **group.conditions}.items() if value),
        tiles=tuple(_tiles(group)),
        tables=tuple(table for table in tables if table.level != "detail"),
        details=tuple(table for table in tables if table.level == "detail"),
        cards=tuple(card for card in map(_card, group.methods) if card.worth_showing),
        notes=group.notes,
        caveats=group.caveats,
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
