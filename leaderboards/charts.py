"""The charts of a group, as Vega-Lite specifications: made with Altair, drawn by the page, without a network.

A chart repeats what a table says and names the table. Colours are the page's own variables, so that light and dark need
no second drawing. A method has one colour and one shape in all charts of its group. Where there is no data there is no
chart but the reason.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from draftboard.leaderboards.chart_data import (
    Record,
    Shown,
    acceptance_by_position,
    acceptance_to_speed,
    in_order,
    quality_to_speed,
    speed_by_domain,
    time_split,
)
from draftboard.leaderboards.positions import FEW
from draftboard.leaderboards.text import one_line
from draftboard.results import Group

if TYPE_CHECKING:
    import altair as alt

__all__ = ["COLOURS", "Chart", "charts"]

COLOURS = 8
"""Colours of methods in the style sheet, `--chart-1` and so on; `--chart-0` is the baseline's."""
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
_PART_COLOURS = {"draft": "var(--chart-2)", "verify": "var(--chart-1)", "other": "var(--chart-0)"}
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica, Arial, sans-serif"
_LETTER, _SYMBOL, _LONGEST = 6.5, 40, 220
"""Widths in pixels of a legend's entry: of a letter, of what stands beside the name, of the name at most."""
_ROOM, _WIDE_ROOM = 440, 900
"""Pixels that a chart has for its legend on anything wider than a phone."""
_LABEL_LIMIT = "narrow ? 108 : 190"
_POINT, _STROKE = 70, 1.6
_OFFSET, _BETWEEN, _BAR = 9, 10, 26
"""Heights in pixels: of a method in a row of the chart by domain, of the room between such rows, of a bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart: its specification, or the reason why there is none."""

    key: str
    title: str
    caption: str
    table: str
    """The key of the table with the same figures."""
    spec: dict[str, Any] | None = None
    reason: str = ""
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """The colour and the shape of each method of a group."""

    names: tuple[str, ...]
    baseline: str

    def colours(self, names: Sequence[str]) -> list[str]:
        return ["var(--chart-0)" if name == self.baseline else f"var(--chart-{self._place(name)})" for name in names]

    def shapes(self, names: Sequence[str]) -> list[str]:
        return [_SHAPES[self.names.index(name) % len(_SHAPES)] for name in names]

    def _place(self, name: str) -> int:
        others = [other for other in self.names if other != self.baseline]
        return others.index(name) % COLOURS + 1


def charts(group: Group) -> tuple[Chart, ...]:
    """Return the charts of a group, those without data among them with their reason; none for an empty group."""
    if not group.methods:
        return ()
    names = tuple(dict.fromkeys(one_line(method.method) for method in in_order(group)))
    look = _Look(names=names, baseline=one_line(group.baseline))
    return (
        _made(
            "speedup",
            "Speedup by domain",
            f"Over {one_line(group.baseline)}, which is the line at 1.{_brackets(group, 'speedup')}",
            "speed",
            speed_by_domain(group),
            lambda shown: _speed_spec(shown, look),
            wide=True,
        ),
        _made(
            "tau",
            "Acceptance length and speedup",
            "What a step keeps is paid for with drafting: at one τ the faster method drafts more cheaply.",
            "speed",
            acceptance_to_speed(group),
            lambda shown: _scatter_spec(shown, look, "Acceptance length τ", "Speedup"),
        ),
        *_position_charts(group, look),
        _made(
            "time",
            "Where a step's time goes",
            "Drafting, the target's forward, and the rest: judging, cache moves and the loop itself.",
            "time",
            time_split(group),
            _time_spec,
        ),
        *_quality_charts(group, look),
    )


def _position_charts(group: Group, look: _Look) -> Iterator[Chart]:
    words = {
        "joint": "Accepted to this place, of the steps that drafted this far.",
        "conditional": "Accepted at this place, of the steps that were right up to the place before.",
    }
    for kind, caption in words.items():
        yield _made(
            f"positions-{kind}",
            f"Acceptance by position, {kind}",
            f"{caption} Faint: fewer than {FEW} steps.",
            "positions",
            acceptance_by_position(group, kind),
            lambda shown: _position_spec(shown, look),
        )


def _quality_charts(group: Group, look: _Look) -> Iterator[Chart]:
    for number, shown in enumerate(quality_to_speed(group), start=1):
        yield _made(
            f"quality-{number}",
            f"Quality and speed: {shown.title}" if shown.title else "Quality and speed",
            f"Against the {shown.against}.",
            "quality",
            shown,
            lambda shown: _scatter_spec(shown, look, "Speedup", shown.title),
        )


def _brackets(group: Group, name: str) -> str:
    levels = {
        figure.interval.level
        for method in group.methods
        for figures in (method.overall, *(domain.figures for domain in method.domains.values()))
        if (figure := figures.get(name)) is not None and figure.interval is not None
    }
    if not levels:
        return " No intervals were computed."
    return f" Bars are {' or '.join(f'{100 * level:.4g}' for level in sorted(levels))} % intervals."


def _made(
    key: str,
    title: str,
    caption: str,
    table: str,
    shown: Shown,
    spec_of: "Callable[[Shown], alt.TopLevelMixin]",
    *,
    wide: bool = False,
) -> Chart:
    if not shown.records:
        return Chart(key=key, title=title, caption="", table=table, reason=shown.reason)
    told = " ".join(part for part in (caption, shown.chosen.told) if part)
    spec = _plain(spec_of(shown), f"{title}. {told}")
    return Chart(key=key, title=title, caption=told, table=table, spec=spec, wide=wide)


def _plain(chart: "alt.TopLevelMixin", description: str) -> dict[str, Any]:
    """Return the specification without the address of its schema, which a page without a network does not need."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("$schema", None)
    spec["config"] = _config()
    spec["description"] = description
    spec["params"] = [{"name": "narrow", "value": False}]
    return spec


def _config() -> dict[str, Any]:
    ink, soft, line = "var(--ink)", "var(--soft)", "var(--line)"
    axis = {"labelColor": soft, "titleColor": soft, "titleFontWeight": "normal", "gridColor": line, "tickColor": line}
    return {
        "background": "transparent",
        "font": _FONT,
        "view": {"stroke": None},
        "axis": {
            **axis,
            "domainColor": line,
            "labelFontSize": 12,
            "labelFlush": False,
            "labelPadding": 6,
            "tickSize": 0,
            "titleFontSize": 12,
            "titlePadding": 8,
        },
        "axisQuantitative": {"tickCount": {"expr": "narrow ? 4 : 7"}},
        "legend": {
            "labelColor": ink,
            "labelFontSize": 12,
            "labelLimit": _LONGEST,
            "symbolOpacity": 1,
            "symbolSize": 80,
            "symbolStrokeWidth": 0,
            "rowPadding": 4,
            "columnPadding": 16,
        },
    }


def _values(records: Sequence[Record]) -> "alt.InlineData":
    import altair as alt

    return alt.InlineData(values=[dict(record) for record in records])


def _keyed(shown: Shown, look: _Look, room: int = _ROOM) -> "tuple[alt.Color, alt.Shape]":
    """Return how a method is told by colour and shape; both make one legend."""
    import altair as alt

    names = [one_line(method.method) for method in shown.chosen.methods]
    entry = min(_LETTER * max(map(len, names)), _LONGEST) + _SYMBOL
    legend = alt.Legend(orient="bottom", title=None, columns=alt.ExprRef(f"narrow ? 1 : {max(int(room // entry), 1)}"))
    return (
        alt.Color("method:N", scale=alt.Scale(domain=names, range=look.colours(names)), legend=legend),
        alt.Shape("method:N", scale=alt.Scale(domain=names, range=look.shapes(names)), legend=legend),
    )


def _has(shown: Shown, field: str) -> bool:
    return any(field in record for record in shown.records)


def _speed_spec(shown: Shown, look: _Look) -> "alt.LayerChart":
    import altair as alt

    colour, shape = _keyed(shown, look, _WIDE_ROOM)
    names = [one_line(method.method) for method in shown.chosen.methods]
    rows = alt.Y(
        "row:N",
        sort=list(shown.rows),
        title=None,
        axis=alt.Axis(labelLimit=alt.ExprRef(_LABEL_LIMIT), grid=True, tickBand="extent", ticks=False, domain=False),
        scale=alt.Scale(paddingInner=0.3, paddingOuter=0.15),
    )
    offset = alt.YOffset("method:N", sort=names)
    across = alt.X("x:Q", title="Speedup", scale=alt.Scale(zero=False, nice=True))
    base = alt.Chart(_values(shown.records)).encode(y=rows, yOffset=offset, color=colour)
    layers: list[alt.Chart] = [
        alt.Chart(_values([{"x": 1}])).mark_rule(strokeDash=[4, 3], color="var(--soft)").encode(x="x:Q")
    ]
    if _has(shown, "xlow"):
        layers.append(base.mark_rule(strokeWidth=_STROKE, opacity=0.75).encode(x=alt.X("xlow:Q"), x2="xhigh:Q"))
    told = [
        alt.Tooltip("method:N", title="Method"),
        alt.Tooltip("row:N", title="Domain"),
        alt.Tooltip("xtold:N", title="Speedup"),
    ]
    layers.append(base.mark_point(filled=True, size=_POINT, opacity=1).encode(x=across, shape=shape, tooltip=told))
    return alt.layer(*layers).properties(width="container", height=len(shown.rows) * (_OFFSET * len(names) + _BETWEEN))


def _scatter_spec(shown: Shown, look: _Look, across: str, up: str) -> "alt.LayerChart":
    import altair as alt

    colour, shape = _keyed(shown, look)
    free = alt.Scale(zero=False, nice=True, padding=12)
    base = alt.Chart(_values(shown.records)).encode(color=colour)
    x, y = alt.X("x:Q", title=across, scale=free), alt.Y("y:Q", title=up, scale=free, axis=alt.Axis(titleLimit=250))
    layers: list[alt.Chart] = []
    if _has(shown, "xlow"):
        layers.append(base.mark_rule(strokeWidth=_STROKE, opacity=0.6).encode(x=alt.X("xlow:Q"), x2="xhigh:Q", y=y))
    if _has(shown, "ylow"):
        layers.append(base.mark_rule(strokeWidth=_STROKE, opacity=0.6).encode(y=alt.Y("ylow:Q"), y2="yhigh:Q", x=x))
    told = [
        alt.Tooltip("method:N", title="Method"),
        alt.Tooltip("xtold:N", title=across),
        alt.Tooltip("ytold:N", title=up),
    ]
    points = base.mark_point(filled=True, size=110, opacity=1).encode(x=x, y=y, shape=shape, tooltip=told)
    return alt.layer(*layers, points).properties(width="container", height=260)


def _position_spec(shown: Shown, look: _Look) -> "alt.LayerChart":
    import altair as alt

    colour, shape = _keyed(shown, look)
    x = alt.X("place:O", title="Position in the draft", axis=alt.Axis(labelAngle=0))
    y = alt.Y("y:Q", title="Share accepted", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5))
    base = alt.Chart(_values(shown.records)).encode(x=x, y=y, color=colour)
    faint = alt.condition("datum.few", alt.value(0.35), alt.value(1))
    told = [
        alt.Tooltip("method:N", title="Method"),
        alt.Tooltip("place:O", title="Position"),
        alt.Tooltip("ytold:N", title="Share"),
    ]
    layers: list[alt.Chart] = [base.mark_line(strokeWidth=_STROKE, opacity=0.55)]
    if _has(shown, "ylow"):
        ends = base.mark_rule(strokeWidth=_STROKE, opacity=0.45)
        layers.append(ends.encode(y=alt.Y("ylow:Q"), y2="yhigh:Q"))
    layers.append(base.mark_point(filled=True, size=_POINT).encode(shape=shape, opacity=faint, tooltip=told))
    return alt.layer(*layers).properties(width="container", height=240)


def _time_spec(shown: Shown) -> "alt.Chart":
    import altair as alt

    parts = list(_PART_COLOURS)
    colour = alt.Color(
        "part:N",
        scale=alt.Scale(domain=parts, range=list(_PART_COLOURS.values())),
        legend=alt.Legend(orient="bottom", title=None, columns=3),
        sort=parts,
    )
    told = [
        alt.Tooltip("method:N", title="Method"),
        alt.Tooltip("part:N", title="Part"),
        alt.Tooltip("told:N", title="Mean of a step"),
    ]
    rows = alt.Y(
        "method:N",
        sort=list(shown.rows),
        title=None,
        axis=alt.Axis(labelLimit=alt.ExprRef(_LABEL_LIMIT), ticks=False, domain=False),
    )
    return (
        alt.Chart(_values(shown.records))
        .mark_bar(height=alt.RelativeBandSize(band=0.7))
        .encode(
            y=rows,
            x=alt.X("value:Q", title=shown.title, stack="zero"),
            color=colour,
            order=alt.Order("place:O"),
            tooltip=told,
        )
        .properties(width="container", height=_BAR * len(shown.rows))
    )
