"""The quality of what was written, and how far a method's is from the baseline's.

A speedup of a method that may write something else is half a figure: `quality_note` is the other half, and
every table with speedups has it beside the method's name (suites-and-scoring 8.5).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from draftboard.leaderboards.ranking import Standing, headline, standings, usable
from draftboard.leaderboards.table import (
    NOTHING,
    Cell,
    Column,
    Footnotes,
    Line,
    Measure,
    Table,
    assemble,
    domain_figures,
    lines_of,
    oriented,
    turned,
)
from draftboard.metrics import metric
from draftboard.results import Group, MethodResult

__all__ = ["is_leading", "quality_details", "quality_note", "quality_table"]

_SECONDARY = ("rouge1", "rouge2", "rougeLsum", "em")
"""Values of a scorer that only the detailed table shows."""
_BESIDE = ("chrf", "f1")
"""Values that stand beside a scorer's leading one but never for it."""
_SAME = ("identical", "text-equal")
_INEXACT = ("lossy", "different")
_UNPARSED = "unparsed_rate"
_LENGTH = "mean_words"
_CUT = "truncated_rate"
_UNFINISHED = "cut: ended by the limit on new tokens or the model's window, and scored as it stands, unfinished"
_NEUTRAL = (_LENGTH, "length_ratio", _CUT)
_COUNTS = {
    "answers": "answers",
    "scored": "answers scored",
    "failed": "failed answers",
    "empty": "empty answers",
    "no_reference": "answers without a reference",
    "bad_reference": "answers whose reference cannot be read",
    "unparsed": "answers in which nothing was found",
}
_RULE = "rule:"


def _is_exact(method: MethodResult, group: Group) -> bool:
    """Whether nothing says that the method may write another text than the baseline."""
    if method.method == group.baseline or method.output in _SAME:
        return True
    return method.output not in _INEXACT and method.lossless is not False


def quality_note(method: MethodResult, group: Group, *, with_class: bool = True) -> str:
    """Return how a method's quality differs from the baseline's, in a line; empty for a method with the same text.

    One difference a metric, the mean over the domains that both have. A change in the share of answers that
    could not be read stands with the accuracy, because a method can gain or lose by format alone.
    """
    if method.method == group.baseline or method.output in _SAME:
        return ""
    parts = list(_changes(method, group))
    if _is_exact(method, group):
        text = ", ".join(parts)
        return f"{method.output}: {text}" if text and with_class and method.output else text
    text = ", ".join(parts) or "quality not compared"
    return f"{method.output or 'lossy'}: {text}" if with_class else text


def quality_table(group: Group) -> Table | None:
    """Return the quality of each domain with n, signature and difference from the baseline."""
    notes = Footnotes()
    order = standings(group, headline(group))
    measures = [
        _measure(name, domain)
        for domain in group.domains
        for name in _names(group, domain)
        if _is_main(name) or (name == _LENGTH and "contains" in _names(group, domain))
    ]
    lines = _with_cuts(order, lines_of(order, measures, notes, show_n=True), notes)
    marked = _with_differences(group, order, lines)
    caption = "Quality of the written text, per domain."
    if marked != lines:
        caption += f" Δ: difference from {group.baseline}, where the output is not identical."
    table = Table(key="quality", title="Quality", caption=caption, columns=(), rows=(), ranked=False)
    built = _assembled(table, group, order, marked, notes)
    return None if built is None else oriented(built, "Domain and measure")


def quality_details(group: Group) -> Table | None:
    """Return every quality figure of each domain, and how its answers were read and counted.

    None where that says no more than `quality_table`.
    """
    notes = Footnotes()
    order = standings(group, headline(group))
    lines: list[Line] = []
    more = False
    for domain in group.domains:
        names = _names(group, domain)
        counts = _count_lines(order, domain)
        further = [name for name in names if not _is_main(name) and (name != _CUT or any(_cuts(order, domain)))]
        more = more or bool(counts or further)
        measures = [_measure(name, domain) for name in names]
        lines += [*_with_cuts(order, lines_of(order, measures, notes, show_n=True), notes), *counts]
    if not more:
        return None
    caption = (
        "All quality figures, with the rules by which letters were read and the answers that could not be used. "
        f"Δ: difference from {group.baseline}, where the output is not identical."
    )
    marked = _with_differences(group, order, lines)
    table = Table(
        key="quality-details",
        title="Quality, in detail",
        caption=caption,
        columns=(),
        rows=(),
        ranked=False,
        level="detail",
    )
    built = _assembled(table, group, order, marked, notes)
    return None if built is None else turned(built, "Domain and measure")


def _assembled(
    table: Table, group: Group, order: Sequence[Standing], lines: Sequence[Line], notes: Footnotes
) -> Table | None:
    """Return the table without methods that repeat the baseline's figures; a footnote of the baseline names them."""
    home = _home(group, order)
    copies = [] if home is None else [i for i in range(len(order)) if _repeats(order[i], lines, i, home)]
    if not copies:
        return assemble(table, group, order, lines, notes)
    names = ", ".join(order[index].method.method for index in copies)
    number = notes.number(f"also the figures of {names}: output identical to that of {group.baseline}")
    left = [index for index in range(len(order)) if index not in copies]
    kept = [replace(line, cells=tuple(line.cells[index] for index in left)) for line in lines]
    built = assemble(table, group, [order[index] for index in left], kept, notes)
    if built is None:
        return None
    told = f"and {len(copies)} with identical output"
    rows = (replace(row, detail=told, notes=(*row.notes, number)) if row.baseline else row for row in built.rows)
    return replace(built, rows=tuple(rows))


def _repeats(standing: Standing, lines: Sequence[Line], index: int, home: int) -> bool:
    """Whether a method wrote the same as the baseline and has its figures, to the last bit and with the same n."""
    if index == home or standing.method.output not in _SAME:
        return False
    pairs = [(line.cells[index], line.cells[home]) for line in lines]
    return all(replace(own, best=False) == replace(theirs, best=False) for own, theirs in pairs)


def _home(group: Group, order: Sequence[Standing]) -> int | None:
    """Return where the baseline stands."""
    return next((index for index, standing in enumerate(order) if standing.method.method == group.baseline), None)


def _cuts(order: Sequence[Standing], domain: str) -> list[str]:
    """Return, for each method, how many of its answers in a domain were cut by a limit; empty for none or not known."""
    found = []
    for standing in order:
        figure = domain_figures(standing.method, domain).get(_CUT)
        share = usable(figure) or 0.0
        n = figure.n if figure is not None else None
        words = f"{round(share * n)} of {n} cut" if n else f"{share:.0%} cut"
        found.append(words if share > 0 else "")
    return found


def _with_cuts(order: Sequence[Standing], lines: Sequence[Line], notes: Footnotes) -> list[Line]:
    """Say with each score of the board how many answers were cut: in the head if all methods agree, else in cells."""
    marked = []
    for line in lines:
        cuts = _cuts(order, line.column.domain)
        if not _is_main(line.column.metric) or not any(cuts):
            marked.append(line)
            continue
        told = {cut for cut, cell in zip(cuts, line.cells, strict=True) if cell.value is not None}
        shared = told.pop() if len(told) == 1 else ""
        column = replace(line.column, detail=_joined(" · ", line.column.detail, shared))
        cells = [
            replace(
                cell,
                detail=_joined(" ", cell.detail, "" if shared else cut),
                notes=(*cell.notes, notes.number(_UNFINISHED)),
            )
            if cut and cell.value is not None
            else cell
            for cell, cut in zip(line.cells, cuts, strict=True)
        ]
        marked.append(replace(line, column=column, cells=tuple(cells)))
    return marked


def _joined(between: str, *parts: str) -> str:
    return between.join(part for part in parts if part)


def _measure(name: str, domain: str) -> Measure:
    return Measure(name=name, title=f"{domain} · {metric(name).title}", domain=domain, neutral=name in _NEUTRAL)


def _changes(method: MethodResult, group: Group) -> Iterator[str]:
    base = next((other for other in group.methods if other.method == group.baseline), None)
    if base is None:
        return
    names = dict.fromkeys(name for domain in group.domains for name in _names(group, domain) if is_leading(name))
    for name in names:
        changes = _differences(base, method, group.domains, name)
        if not changes:
            continue
        text = f"{metric(name).title} {_signed(fmean(changes), name)}"
        unparsed = _differences(base, method, group.domains, _UNPARSED) if name == "accuracy" else []
        if any(unparsed):
            text += f" (unparsed {_signed(fmean(unparsed), _UNPARSED)})"
        yield text + (f" in {len(changes)} domains" if len(changes) > 1 else "")


def _differences(base: MethodResult, method: MethodResult, domains: Iterable[str], name: str) -> list[float]:
    found = []
    for domain in domains:
        old = usable(domain_figures(base, domain).get(name))
        new = usable(domain_figures(method, domain).get(name))
        if old is not None and new is not None:
            found.append(new - old)
    return found


def _with_differences(group: Group, order: Sequence[Standing], lines: Sequence[Line]) -> list[Line]:
    """Add to each score of a method with other output its difference from the baseline."""
    home = _home(group, order)
    if home is None:
        return list(lines)
    unparsed = {line.column.domain: line for line in lines_of(order, _unparsed(group), Footnotes())}
    return [_with_difference(line, home, order, unparsed.get(line.column.domain)) for line in lines]


def _with_difference(line: Line, home: int, order: Sequence[Standing], unparsed: Line | None) -> Line:
    cells = list(line.cells)
    name = line.column.metric
    for index, standing in enumerate(order):
        change = _change(line, index, home)
        if not name or index == home or change is None or standing.method.output in ("", *_SAME):
            continue
        parts = [cells[index].detail, f"Δ {_signed(change, name)}"]
        format_change = _change(unparsed, index, home) if unparsed is not None and name == "accuracy" else None
        if format_change:
            parts.append(f"(unparsed Δ {_signed(format_change, _UNPARSED)})")
        cells[index] = replace(cells[index], detail=" ".join(part for part in parts if part))
    return replace(line, cells=tuple(cells))


def _change(line: Line, index: int, home: int) -> float | None:
    new, old = line.cells[index].value, line.cells[home].value
    return None if new is None or old is None else new - old


def _unparsed(group: Group) -> list[Measure]:
    return [Measure(name=_UNPARSED, domain=domain) for domain in group.domains]


def _count_lines(order: Sequence[Standing], domain: str) -> list[Line]:
    """Return how the answers of a domain were read; counts that are 0 for every method are left out."""
    found = [
        standing.method.domains[domain].score_counts if domain in standing.method.domains else {} for standing in order
    ]
    names = dict.fromkeys([*_COUNTS, *(name for counts in found for name in counts)])
    lines = []
    for name in names:
        if any(counts.get(name) for counts in found):
            cells = [
                Cell(text=str(counts[name]), value=counts[name]) if name in counts else Cell(text=NOTHING, missing=True)
                for counts in found
            ]
            title = f"{domain} · {_count_title(name)}"
            lines.append(Line(column=Column(title=title, domain=domain), cells=tuple(cells)))
    return lines


def _count_title(name: str) -> str:
    if name.startswith(_RULE):
        return f"answers read by the rule {name.removeprefix(_RULE)}"
    return _COUNTS.get(name, name)


def _names(group: Group, domain: str) -> list[str]:
    """Return the quality figures that any method has in a domain, headline values first."""
    names = dict.fromkeys(
        name for method in group.methods for name in domain_figures(method, domain) if _is_quality(name)
    )
    return [*(name for name in names if _is_main(name)), *(name for name in names if not _is_main(name))]


def _is_quality(name: str) -> bool:
    return metric(name).kind in ("quality", "quality_detail")


def _is_main(name: str) -> bool:
    return metric(name).kind == "quality" and name not in _SECONDARY


def is_leading(name: str) -> bool:
    """Whether a figure may stand for its scorer where one line has to do."""
    return _is_main(name) and name not in _BESIDE


def _signed(change: float, name: str) -> str:
    return f"{change:+z.{metric(name).digits}f}"
