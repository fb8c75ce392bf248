"""The board once more in the form of a publication, so that its readers find their columns in their order.

A layout is drawn where a group holds the domains of Spec-Bench or SPEED-Bench under their own names; the bundled
suite, whose domains only mirror theirs, never gets one. Where the group holds other suites as well, the layout
looks at its own domains alone, and a figure that would have to be measured over exactly those is missing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, geometric_mean

from draftboard.leaderboards.quality import quality_note
from draftboard.leaderboards.ranking import Standing, standings, usable
from draftboard.leaderboards.table import Footnotes, Line, Measure, Table, assemble, domain_figures, lines_of
from draftboard.results import Figure, Group, MethodResult

__all__ = ["SPEC_BENCH_COLUMNS", "SPEC_BENCH_KEYS", "T2D_COLUMNS", "layout_tables"]

SPEC_BENCH_COLUMNS = {
    "mt_bench": "Multi-turn Conversation",
    "translation": "Translation",
    "summarization": "Summarization",
    "qa": "Question Answering",
    "math_reasoning": "Mathematical Reasoning",
    "rag": "Retrieval-aug. Generation",
}
"""The columns of Spec-Bench's leaderboards, by domain; `#Mean Accepted Tokens` and `Overall` follow."""

SPEC_BENCH_KEYS = ("spec-bench-speed-py", "spec-bench")
"""The keys of the tables that `layout_tables` draws in Spec-Bench's form."""

T2D_COLUMNS = {
    "coding": ("Code", 80),
    "humanities": ("Hum.", 80),
    "math": ("Math", 80),
    "multilingual": ("Multilin.", 80),
    "qa": ("QA", 80),
    "rag": ("RAG", 71),
    "reasoning": ("Reason.", 51),
    "roleplay": ("Role.", 48),
    "stem": ("Stem", 80),
    "summarization": ("Summ.", 78),
    "writing": ("Writing", 70),
}
"""The columns of T2D's table, by SPEED-Bench category, with the samples that each rests on there."""

_ABOVE = ("device", "threads", "software", "decoding", "dtype", "batch size")
_OTHER_DOMAINS = "measured over other domains as well; a run of this suite alone has it"


def layout_tables(group: Group) -> tuple[Table, ...]:
    """Return the tables in publications' layouts that this group has the domains for."""
    spec_bench = _spec_bench_domains(group)
    speed_bench = _speed_bench_domains(group, set(spec_bench.values()))
    tables = [
        *(_spec_bench(group, spec_bench) if spec_bench else ()),
        _t2d(group, speed_bench) if speed_bench else None,
    ]
    return tuple(table for table in tables if table is not None)


def _spec_bench_domains(group: Group) -> dict[str, str]:
    """Return the group's label of each of Spec-Bench's domains, in column order; nothing unless all are there."""
    found = _labels(group, SPEC_BENCH_COLUMNS, "specbench")
    return found if len(found) == len(SPEC_BENCH_COLUMNS) else {}


def _speed_bench_domains(group: Group, taken: set[str]) -> dict[str, str]:
    """Return the group's label of each of SPEED-Bench's categories that it has.

    A few of these words prove nothing, since others use them, too: the suite has to be named, or all be there.
    """
    found = _labels(group, T2D_COLUMNS, "speedbench")
    if _names_speed_bench(group):
        return {name: label for name, label in found.items() if label not in taken}
    return found if len(found) == len(T2D_COLUMNS) else {}


def _labels(group: Group, names: Iterable[str], suite: str) -> dict[str, str]:
    labels = {}
    for name in names:
        for label in group.domains:
            prefix, colon, rest = label.rpartition(": ")
            if label == name or (colon and rest == name and _plain(prefix) == suite):
                labels[name] = label
    return labels


def _names_speed_bench(group: Group) -> bool:
    return any(_plain(part) == "speedbench" for part in [*group.suite.split("+"), *_prefixes(group)])


def _prefixes(group: Group) -> Iterator[str]:
    return (label.rpartition(": ")[0] for label in group.domains)


def _plain(suite: str) -> str:
    """Return a suite's name without its variant and path, in one spelling."""
    return re.sub(r"[^a-z0-9]", "", re.split(r"[/@]", suite, maxsplit=1)[0].lower())


def _restricted(group: Group, labels: Mapping[str, str]) -> Group:
    """Return the group as if it held these domains alone."""
    domains = tuple(labels.values())
    if set(domains) == set(group.domains):
        return replace(group, domains=domains)
    methods = tuple(_restricted_method(method, domains) for method in group.methods)
    return replace(group, domains=domains, methods=methods)


def _restricted_method(method: MethodResult, domains: tuple[str, ...]) -> MethodResult:
    speedups = [domain_figures(method, domain).get("speedup") for domain in domains]
    overall = {name: Figure(value=None, reason=_OTHER_DOMAINS) for name in method.overall}
    if any(figure is not None for figure in speedups):
        overall |= _means(speedups)
    inside = {name: result for name, result in method.domains.items() if name in domains}
    return replace(method, domains=inside, overall=overall)


def _means(speedups: Sequence[Figure | None]) -> dict[str, Figure]:
    """Return the overall speedups that follow from those of the domains, each of which has to have one."""
    values = [value for value in map(usable, speedups) if value is not None and value > 0]
    counts = [figure.n for figure in speedups if figure is not None and figure.n]
    n = sum(counts) if len(counts) == len(speedups) else None
    if len(values) < len(speedups):
        missing = Figure(value=None, n=n, reason=f"{len(values)} of {len(speedups)} domains")
        return dict.fromkeys(("speedup", "speedup_mean_of_domains", "speedup_sample_weighted"), missing)
    weighted = Figure(value=None, reason="the samples per domain are not known")
    if n is not None:
        weighted = Figure(value=fmean(values, weights=counts), n=n)
    return {
        "speedup": Figure(value=geometric_mean(values), n=n),
        "speedup_mean_of_domains": Figure(value=fmean(values), n=n),
        "speedup_sample_weighted": weighted,
    }


def _spec_bench(group: Group, labels: Mapping[str, str]) -> Iterator[Table | None]:
    part = _restricted(group, labels)
    if any(
        usable(figures.get("speedup_specbench")) is not None
        for method in part.methods
        for figures in (method.overall, *(domain.figures for domain in method.domains.values()))
    ):
        yield _spec_bench_table(
            replace(part, methods=tuple(_warned(method, part) for method in part.methods)),
            labels,
            "speedup_specbench",
            key="spec-bench-speed-py",
            title="Spec-Bench's table, speed.py-compatible",
            caption="Speedups as Spec-Bench's speed.py computes them: ratio of mean rates, the baseline's tokens "
            "counted from its text. For comparison with published tables; the next table counts both sides alike.",
        )
    yield _spec_bench_table(
        part,
        labels,
        "speedup",
        key="spec-bench",
        title="Spec-Bench's table",
        caption=f"S_pool over {part.baseline}, end to end, with intervals where there are any; overall is their "
        "geometric mean.",
    )


def _spec_bench_table(
    group: Group, labels: Mapping[str, str], name: str, *, key: str, title: str, caption: str
) -> Table | None:
    notes = Footnotes()
    order = standings(group, name)
    measures = [
        Measure(name=name, domain=labels[raw], title=text, unit="x") for raw, text in SPEC_BENCH_COLUMNS.items()
    ]
    measures.append(Measure(name="spec_bench_mean_accepted", title="#Mean Accepted Tokens", digits=2))
    measures.append(Measure(name=name, title="Overall", unit="x"))
    lines = lines_of(order, measures, notes, show_n=True)
    counts = {line.column.detail for line in lines if line.column.domain}
    if len(counts) == 1:
        lines = [_without_n(line) for line in lines]
        caption += "".join(f" {count} per column." for count in counts if count)
    return _layout(group, order, lines, notes, key=key, title=title, caption=caption)


def _warned(method: MethodResult, group: Group) -> MethodResult:
    """Return the method with a warning where speed.py divides means over other samples than the baseline's.

    A figure that says so already stays as it is.
    """
    base = next((other for other in group.methods if other.method == group.baseline), None)
    figure = method.overall.get("speedup_specbench")
    if base is None or figure is None or figure.signature:
        return method
    other = [
        f"{domain} {_of(method, domain)} (baseline {_of(base, domain)})"
        for domain in group.domains
        if _samples(method, domain) != _samples(base, domain)
    ]
    if not other:
        return method
    warning = f"rows are not matched: {', '.join(other)}"
    return replace(method, overall={**method.overall, "speedup_specbench": replace(figure, signature=warning)})


def _samples(method: MethodResult, domain: str) -> int | None:
    return method.domains[domain].samples if domain in method.domains else 0


def _of(method: MethodResult, domain: str) -> str:
    samples = _samples(method, domain)
    return "not stated" if samples is None else str(samples)


def _t2d(group: Group, labels: Mapping[str, str]) -> Table | None:
    notes = Footnotes()
    part = _restricted(group, labels)
    pooled = any(usable(method.overall.get("speedup_pooled")) is not None for method in part.methods)
    order = standings(part, "speedup_pooled" if pooled else "speedup_mean_of_domains")
    columns = [
        # Eleven columns leave no place for intervals; those of the same figures stand in the board above.
        Measure(name="speedup", domain=label, title=T2D_COLUMNS[raw][0], intervals=False)
        for raw, label in labels.items()
    ]
    overall = [
        Measure(name="speedup_mean_of_domains", title="Overall", detail="plain mean"),
        Measure(name="speedup_sample_weighted", title="Overall", detail="sample-weighted mean"),
        Measure(name="speedup_pooled", title="Overall", detail="pooled"),
    ]
    lines = [*lines_of(order, columns, notes, show_n=True), *lines_of(order, overall, notes)]
    why = _why_not_t2d(part, labels)
    total = sum(n for _, n in T2D_COLUMNS.values())
    verdict = (
        f"Not comparable with T2D's printed table: {'; '.join(why)}."
        if why
        else f"T2D-comparable: every column rests on as many samples as in T2D's printed table, {total} in all."
    )
    caption = f"S_pool over {part.baseline}, end to end. {verdict}"
    return _layout(part, order, lines, notes, key="t2d", title="SPEED-Bench in T2D's columns", caption=caption)


def _layout(
    group: Group,
    order: Sequence[Standing],
    lines: Sequence[Line],
    notes: Footnotes,
    *,
    key: str,
    title: str,
    caption: str,
) -> Table | None:
    """Return these lines as a published table shows them: models down, columns in their given order, unranked."""
    table = Table(
        key=key,
        title=title,
        caption=caption,
        columns=(),
        rows=(),
        ranked=False,
        level="layout",
        subject="Models",
        above=_above(group),
    )
    qualities = [quality_note(standing.method, group) for standing in order]
    return assemble(table, group, order, lines, notes, qualities=qualities, show_why=True)


def _without_n(line: Line) -> Line:
    return replace(line, column=replace(line.column, detail=""))


def _why_not_t2d(group: Group, labels: Mapping[str, str]) -> Iterable[str]:
    """Return what sets the samples of this table apart from T2D's 798."""
    why = []
    if not _names_speed_bench(group):
        why.append("nothing says that the suite is SPEED-Bench")
    absent = [title for name, (title, _) in T2D_COLUMNS.items() if name not in labels]
    if absent:
        why.append(f"no {', '.join(absent)}")
    counts = []
    for name, label in labels.items():
        title, wanted = T2D_COLUMNS[name]
        figures = [domain_figures(method, label).get("speedup") for method in group.methods]
        found = {figure.n for figure in figures if figure is not None and usable(figure) is not None}
        if found != {wanted}:
            stated = sorted(str(n) if n is not None else "not stated" for n in found)
            counts.append(f"{title} {' or '.join(stated) or 'none'} (T2D {wanted})")
    if counts:
        why.append(f"samples {', '.join(counts)}")
    return why


def _above(group: Group) -> str:
    """Return what a publication prints above its table: the machine, the software, the model and how it decoded."""
    parts = [group.model, group.hardware]
    parts += [f"{name} {group.conditions[name]}" for name in _ABOVE if group.conditions.get(name)]
    return " · ".join(part for part in parts if part)
