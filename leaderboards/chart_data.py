"""What the charts of a group show, as plain records: read from the group's figures alone, and never computed anew.

Each function returns the records of one chart, or says why there are none. Names are made fit for one line; values keep
six digits, which is more than a picture shows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from draftboard.leaderboards.positions import DEEPEST, FEW
from draftboard.leaderboards.quality import is_leading
from draftboard.leaderboards.ranking import headline, standings, usable, why_missing
from draftboard.leaderboards.table import domain_figures, figures_of, format_value
from draftboard.leaderboards.text import one_line
from draftboard.metrics import metric
from draftboard.results import Figure, Group, MethodResult

__all__ = [
    "Chosen",
    "Record",
    "Shown",
    "acceptance_by_position",
    "acceptance_to_speed",
    "in_order",
    "quality_to_speed",
    "speed_by_domain",
    "time_split",
]

Record = dict[str, object]
"""One point or bar."""

_PARTS = ("draft", "verify", "other")
_SHARE = "draft_share"
"""Shares accepted have no name among the metrics; they are written as this one is."""
_MOST_ROWS = 160
"""Points of the chart by domain; beyond that it is taller than anyone reads."""
_MOST_LINES = 8
_MOST_POINTS = 24
_MOST_QUALITY = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The methods that a chart shows, best first."""

    methods: tuple[MethodResult, ...]
    of: int
    """How many have something to show."""

    @property
    def told(self) -> str:
        """What a caption has to say of methods that were left out; empty where none were."""
        if len(self.methods) == self.of:
            return ""
        return f"Shown are the {len(self.methods)} of {self.of} methods that stand first; the tables have all."


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The records of one chart; without any, `reason` says why."""

    records: tuple[Record, ...] = ()
    chosen: Chosen = Chosen(methods=(), of=0)
    rows: tuple[str, ...] = ()
    """The rows of a chart that has some, first to last."""
    title: str = ""
    """What the chart is about where that is not always the same."""
    against: str = ""
    """Of quality, the speedup that it is drawn against."""
    reason: str = ""


def in_order(group: Group) -> tuple[MethodResult, ...]:
    """Return the methods as the ranking has them, so that a method looks the same in every chart of its group."""
    return tuple(standing.method for standing in standings(group, headline(group)))


def speed_by_domain(group: Group) -> Shown:
    """Return speedups with their intervals: overall, then each domain. The baseline, which is 1 throughout, is left."""
    others = [method for method in in_order(group) if method.method != group.baseline]
    domains = _rows_with_speed(group, others)
    found = {
        method.method: [(domain, figures_of(method, domain).get("speedup")) for domain in domains] for method in others
    }
    having = [method for method in others if any(usable(figure) is not None for _, figure in found[method.method])]
    if not having:
        return Shown(reason=_why(figure for figures in found.values() for _, figure in figures))
    most = min(max(_MOST_ROWS // max(len(domains), 1), 3), _MOST_LINES)
    overall = _unlike("All domains", domains)
    chosen = Chosen(methods=tuple(having[:most]), of=len(having))
    return Shown(
        records=tuple(
            {"method": one_line(method.method), "row": one_line(domain) or overall, **_x(figure, "speedup")}
            for method in chosen.methods
            for domain, figure in found[method.method]
            if usable(figure) is not None
        ),
        chosen=chosen,
        rows=tuple(one_line(domain) or overall for domain in domains),
    )


def _rows_with_speed(group: Group, methods: Sequence[MethodResult]) -> list[str]:
    """Return the domains with a speedup, and before them the overall one (as "") where it is not a single domain's."""
    timed = [
        domain
        for domain in group.domains
        if any(usable(domain_figures(method, domain).get("speedup")) is not None for method in methods)
    ]
    return timed if len(timed) == 1 == len(group.domains) else ["", *timed]


def acceptance_to_speed(group: Group) -> Shown:
    """Return overall τ and speedup of each method that has both."""
    pairs = [
        (method, method.overall.get("acceptance_length"), method.overall.get("speedup")) for method in in_order(group)
    ]
    both = [
        (method, {"method": one_line(method.method), **_x(tau, "acceptance_length"), **_y(speedup, "speedup")})
        for method, tau, speedup in pairs
        if usable(tau) is not None and usable(speedup) is not None
    ]
    if not any(method.method != group.baseline for method, _ in both):
        others = [pair for pair in pairs if pair[0].method != group.baseline]
        return Shown(reason=_why(figure for _, tau, speedup in others for figure in (tau, speedup)))
    return _first(both)


def acceptance_by_position(group: Group, kind: str) -> Shown:
    """Return the shares accepted at each place of the draft, counted as `kind` says."""
    found = []
    for method in in_order(group):
        places = [
            {
                "method": one_line(method.method),
                "place": place,
                **_y(figure, _SHARE),
                "few": figure.n is not None and figure.n < FEW,
            }
            for place, figure in enumerate(method.positions.get(kind, ())[:DEEPEST], start=1)
            if usable(figure) is not None
        ]
        if places:
            found.append((method, places))
    if not found:
        return Shown(reason="no method has acceptance by position")
    shown = found[:_MOST_LINES]
    return Shown(
        records=tuple(place for _, places in shown for place in places),
        chosen=Chosen(methods=tuple(method for method, _ in shown), of=len(found)),
    )


def time_split(group: Group) -> Shown:
    """Return what a step's time goes into, in milliseconds of a mean step, or in shares where only these are known."""
    order = in_order(group)
    for suffix, title in (("ms", "Milliseconds per step"), ("share", "Share of a step's time")):
        found = []
        for method in order:
            parts = {part: usable(method.overall.get(f"{part}_{suffix}")) for part in _PARTS}
            if any(value is not None for value in parts.values()):
                found.append((method, parts))
        if not any(method.method != group.baseline for method, _ in found):
            continue
        shown = found[:_MOST_POINTS]
        return Shown(
            records=tuple(
                {
                    "method": one_line(method.method),
                    "part": part,
                    "place": place,
                    "value": _short(value),
                    "told": f"{value:.2f}{' ms' if suffix == 'ms' else ''}",
                }
                for method, parts in shown
                for place, (part, value) in enumerate(parts.items())
                if value is not None
            ),
            chosen=Chosen(methods=tuple(method for method, _ in shown), of=len(found)),
            rows=tuple(one_line(method.method) for method, _ in shown),
            title=title,
        )
    others = [method for method in order if method.method != group.baseline]
    return Shown(reason=_why(method.overall.get(f"{part}_ms") for method in others for part in _PARTS))


def quality_to_speed(group: Group) -> tuple[Shown, ...]:
    """Return quality against speedup, one chart for the leading figure of each domain in which methods differ.

    At most six. Speed is that of the domain, or the overall one where the domain is not timed. Without any, the only
    element says why.
    """
    order = in_order(group)
    found, reasons = [], []
    for domain in group.domains:
        timed = any(usable(domain_figures(method, domain).get("speedup")) is not None for method in order)
        for name in _leading(order, domain):
            both = []
            for method in order:
                quality = domain_figures(method, domain).get(name)
                speedup = figures_of(method, domain if timed else "").get("speedup")
                if usable(quality) is not None and usable(speedup) is not None:
                    point = {"method": one_line(method.method), **_x(speedup, "speedup"), **_y(quality, name)}
                    both.append((method, point))
            if len({point["y"] for _, point in both}) > 1:
                title = f"{one_line(metric(name).title)}, {one_line(domain)}"
                against = "speedup there" if timed else "speedup overall"
                found.append(replace(_first(both), title=title, against=against))
            else:
                alike = "all methods that have both a quality and a speedup are of equal quality"
                reasons.append(alike if len(both) > 1 else "fewer than two methods have both a quality and a speedup")
    if found:
        return tuple(found[:_MOST_QUALITY])
    return (Shown(reason=reasons[0] if reasons else "no quality was scored"),)


def _leading(methods: Sequence[MethodResult], domain: str) -> list[str]:
    """Return the quality figure that stands for the domain: one that leads in the tables, or none."""
    names = dict.fromkeys(name for method in methods for name in domain_figures(method, domain))
    quality = [name for name in names if metric(name).kind == "quality"]
    return [name for name in quality if is_leading(name)][:1] or quality[:1]


def _first(both: Sequence[tuple[MethodResult, Record]]) -> Shown:
    shown = both[:_MOST_POINTS]
    chosen = Chosen(methods=tuple(method for method, _ in shown), of=len(both))
    return Shown(records=tuple(record for _, record in shown), chosen=chosen)


def _x(figure: Figure | None, name: str) -> Record:
    return _ends("x", figure, name)


def _y(figure: Figure | None, name: str) -> Record:
    return _ends("y", figure, name)


def _ends(axis: str, figure: Figure | None, name: str) -> Record:
    value = usable(figure)
    if figure is None or value is None:
        return {}
    kind = metric(name)
    told = format_value(value, kind)
    record: Record = {axis: _short(value)}
    interval = figure.interval
    if interval is not None and _finite(interval.low) and _finite(interval.high):
        record |= {f"{axis}low": _short(interval.low), f"{axis}high": _short(interval.high)}
        told += f" [{format_value(interval.low, kind)}, {format_value(interval.high, kind)}]"
    if figure.n is not None:
        told += f", n={figure.n}"
    return {**record, f"{axis}told": told}


def _finite(value: float) -> bool:
    return usable(Figure(value=value)) is not None


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def _unlike(name: str, others: Iterable[str]) -> str:
    taken = {one_line(other) for other in others}
    while name in taken:
        name = f"({name})"
    return name


def _why(figures: Iterable[Figure | None]) -> str:
    """Return the reasons that the figures themselves give, each once, at most three."""
    reasons = list(dict.fromkeys(why_missing(figure) for figure in figures if figure is None or figure.reason))
    told = [reason for reason in reasons if reason != "not measured"] or ["not measured"]
    return "; ".join(told[:3])
