"""`index.html`: one self-contained page that needs no network and runs nothing but its own sorting script.

Every value that reaches the page passes through one escaping function, as text or in a quoted attribute; none
enters a script or a style sheet. The page's Content-Security-Policy admits its own script by hash and nothing
else.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from draftboard.leaderboards.ranking import headline, standings, usable
from draftboard.leaderboards.table import (
    Table,
    acceptance_across,
    boards,
    format_value,
    group_title,
)
from draftboard.leaderboards.text import html_text
from draftboard.metrics import Metric, metric
from draftboard.results import Group, MethodResult, Results

__all__ = ["html"]

_OUTPUT_CLASSES = {"identical": "good", "tie-divergent": "fair", "lossy": "fair", "different": "bad"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tile:
    """One figure that a reader should see first."""

    label: str
    value: str
    names: tuple[tuple[str, str], ...]
    """Each name with the output class of its method."""


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
    cards: tuple[_Card, ...]
    notes: tuple[str, ...]


def html(results: Results, *, generated: str = "") -> str:
    """Return the page; the same text for the same results."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    sections = [_section(index, group) for index, group in enumerate(results.groups, start=1)]
    across = acceptance_across(results)
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
        metrics=_metrics([table for section in sections for table in section.tables] + list(across)),
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

    return Markup(re.sub(r"(?<=[/_])(?=\w)", "<wbr>", html_text(text)))


def _resource(name: str) -> str:
    return files("draftboard.leaderboards").joinpath("templates", name).read_text(encoding="utf-8")


def _section(index: int, group: Group) -> _Section:
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
        tables=boards(group),
        cards=tuple(card for card in map(_card, group.methods) if card.worth_showing),
        notes=group.notes,
    )


def _tiles(group: Group) -> Iterator[_Tile]:
    labels = {"speedup": "Fastest overall", "acceptance_length": "Longest acceptance τ"}
    for name in dict.fromkeys((headline(group), "acceptance_length")):
        first = [standing for standing in standings(group, name) if standing.rank == 1]
        value = usable(first[0].method.overall.get(name)) if first else None
        if value is not None and len(group.methods) > 1:
            names = tuple((standing.method.method, standing.method.output) for standing in first)
            yield _Tile(label=labels[name], value=format_value(value, metric(name)), names=names)
    compared = [method for method in group.methods if method.output and method.method != group.baseline]
    if compared:
        same = sum(method.output == "identical" for method in compared)
        yield _Tile(label="Same output as the baseline", value=f"{same} of {len(compared)}", names=(("methods", ""),))


def _card(method: MethodResult) -> _Card:
    return _Card(
        method=method,
        settings=tuple((name, _setting(value)) for name, value in method.settings.items()),
        failed=sum(domain.failed for domain in method.domains.values()),
        skipped=sum(domain.skipped for domain in method.domains.values()),
    )


def _setting(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _metrics(tables: list[Table]) -> tuple[Metric, ...]:
    """Return the metrics that the page shows, in order of first appearance."""
    names = dict.fromkeys(column.metric for table in tables for column in table.columns if column.metric)
    return tuple(metric(name) for name in names)
