"""Rows measured elsewhere, turned into figures by the same definitions that our own runs use.

Rows of one model, hardware, suite and dtype form a group and are compared with that group's baseline only.
Speedup is `S_pool`: seconds per token, totals over totals, over the samples of the baseline, all of which a method
has to have. Nothing is guessed: what a row does not say stays missing, with the reason.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, geometric_mean, stdev
from typing import Any

from draftboard.errors import UserError
from draftboard.results import DomainResult, Figure, Group, Interval, MethodResult
from draftboard.row_merging import by_settings, last_of_each, notes_on_steps
from draftboard.row_parsing import is_warm_up, parse_row, text_of
from draftboard.row_speeds import (
    Arms,
    Missing,
    Number,
    Row,
    has_speed,
    per_sample,
    pooled,
    sample_count,
    speedups,
    unpaired,
    why_no_speed,
)

__all__ = ["RowFile", "results_from_rows"]

_BASELINE = "autoregressive"
_GROUP_KEYS = ("model", "hardware", "suite", "dtype")
_LEVEL = 0.95
_MEANS_ONLY = "only per-sample means are known; pooling needs the steps"
_NO_DOMAIN = "uncategorised"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFile:
    """The rows of one file, each with the place where it stands; `defaults` hold for every row."""

    path: Path
    rows: tuple[tuple[int, object], ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    counted: str = ""
    """Empty when places are line numbers, else what is counted ("row")."""

    def place(self, number: int) -> str:
        """Return where a row stands, for a message."""
        return f"{self.path}: {self.counted} {number}" if self.counted else f"{self.path}:{number}"


@dataclass(slots=True)
class _GroupRows:
    baseline: str
    declared: dict[str, None] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    sources: dict[str, None] = field(default_factory=dict)


def results_from_rows(files: Iterable[RowFile]) -> list[Group]:
    """Return the groups that the rows of all files make up, in order of first appearance.

    Raises UserError that lists every faulty row of every file.
    """
    groups: dict[tuple[str, ...], _GroupRows] = {}
    problems: list[str] = []
    first: Path | None = None
    for file in files:
        first = first or file.path
        for number, raw in file.rows:
            try:
                _add(groups, file, raw)
            except ValueError as error:
                problems.append(f"{file.place(number)}: {error}")
    if problems:
        raise UserError(
            "rows cannot be used",
            where=str(first),
            problems=tuple(problems),
            advice="see docs/results-file.md",
        )
    if not groups:
        raise UserError("holds no measured row", where=str(first), advice="see docs/results-file.md")
    return [_group(key, content) for key, content in groups.items()]


def _add(groups: dict[tuple[str, ...], _GroupRows], file: RowFile, raw: object) -> None:
    if not isinstance(raw, dict):
        raise ValueError("a row has to be an object")
    if is_warm_up(raw, file.defaults):
        return
    record = {**file.defaults, **raw}
    row = parse_row(record)
    key = tuple(text_of(record, name) for name in _GROUP_KEYS)
    baseline = text_of(record, "baseline") or _BASELINE
    group = groups.setdefault(key, _GroupRows(baseline=baseline))
    if group.baseline != baseline:
        raise ValueError(f"baseline {baseline!r}, but an earlier row of this group has {group.baseline!r}")
    declared = record.get("categories") or record.get("domains") or []
    if not isinstance(declared, list) or not all(isinstance(name, str) for name in declared):
        raise ValueError("`categories` has to be a list of names")
    group.declared.update(dict.fromkeys(declared))
    group.declared.update(dict.fromkeys([*row.speedups, *([row.domain] if row.domain else [])]))
    group.notes.update(dict.fromkeys(file.notes))
    group.sources[file.path.name] = None
    group.rows.append(row)


def _group(key: tuple[str, ...], content: _GroupRows) -> Group:
    model, hardware, suite, dtype = key
    split_rows, split = by_settings(content.rows, content.notes)
    rows = last_of_each(split_rows, content.notes)
    domains = content.declared
    if domains and any(row.sample is not None and not row.domain for row in rows):
        domains = {**domains, _NO_DOMAIN: None}
        rows = [replace(row, domain=_NO_DOMAIN) if row.sample is not None and not row.domain else row for row in rows]
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    where = (f" for {model}" if model else "") + (f" on {hardware}" if hardware else "")
    several = content.baseline in split
    absent = f"no single {content.baseline} run" if several else f"no {content.baseline} run"
    arms = Arms(
        baseline=content.baseline,
        baseline_rows=[] if several else by_method.get(content.baseline, []),
        absent=absent + where,
        notes=content.notes,
        where=where,
    )
    of_speed = any(has_speed(row) or row.speedup is not None or row.speedups for row in rows)
    content.notes.update(dict.fromkeys(notes_on_steps(rows, ranks=not of_speed)))
    methods = tuple(_method(name, mine, tuple(domains), arms) for name, mine in by_method.items())
    conditions = {"dtype": dtype} if dtype else {}
    return Group(
        model=model,
        hardware=hardware,
        suite=suite,
        baseline=content.baseline,
        conditions={**conditions, "source": ", ".join(content.sources)},
        domains=tuple(domains),
        methods=methods,
        notes=tuple(content.notes),
    )


def _method(name: str, rows: list[Row], domains: tuple[str, ...], arms: Arms) -> MethodResult:
    repeats = _given_speedups(name, rows, arms.notes)
    stated = _stated_speedups(name, rows, repeats, arms)
    results: dict[str, DomainResult] = {}
    for domain in domains:
        mine = [row for row in rows if row.domain == domain]
        if not mine and domain not in stated:
            continue
        base = [row for row in arms.baseline_rows if row.domain == domain]
        absent = arms.absent if not arms.baseline_rows else f"no {arms.baseline} run in {domain}"
        found = {"speedup": stated[domain]} if domain in stated else speedups(mine, base, absent, arms)
        figures = found | _figures(mine, arms.notes)
        about_samples = [row for row in mine if row.sample is not None or has_speed(row)] or mine
        results[domain] = DomainResult(domain=domain, figures=figures, samples=sample_count(about_samples))
    found = {} if stated else speedups(rows, arms.baseline_rows, arms.absent, arms)
    overall = found | _figures(rows, arms.notes)
    if domains:
        pooled_one = overall.pop("speedup", None)
        overall = {**_over_domains(results, domains, stated.get(""), pooled_one), **overall}
        if stated.keys() >= set(domains):
            overall["speedup"] = _with_interval(overall["speedup"], [repeats[domain] for domain in domains])
    elif stated:
        overall = {"speedup": stated[""], **overall}
    alone = unpaired(rows, arms.baseline_rows)
    if alone and not stated:
        plural = "question is" if alone == 1 else "questions are"
        arms.notes[f"{name}: {alone} {plural} in no speedup, since {arms.baseline} has no speed there"] = None
    about = {key: value for row in rows for key, value in row.about.items()}
    return MethodResult(method=name, domains=results, overall=overall, **about)


def _stated_speedups(
    name: str, rows: list[Row], repeats: Mapping[str, Mapping[str, Figure]], arms: Arms
) -> dict[str, Figure]:
    """Return the speedups that files state and no rows measure, by domain, as means of their `repeats`.

    Those that rows with times measure as well give way to them, which one note tells.
    """
    given = {domain: _mean_of_repeats(list(found.values())) for domain, found in repeats.items()}
    stated, told = dict(given), []
    for domain, figure in given.items():
        # An overall value stands beside rows of any domain.
        mine = [row for row in rows if not domain or row.domain == domain]
        base = [row for row in arms.baseline_rows if not domain or row.domain == domain]
        if pooled(mine, {}) and pooled(base, {}):
            del stated[domain]
            if figure.value is not None and name != arms.baseline:
                told.append(f"{figure.value:g} ({domain or 'overall'})")
    if told:
        arms.notes[f"{name}: the measured speedup is shown; a stated one was given, too: {', '.join(told)}"] = None
    return stated


def _given_speedups(name: str, rows: list[Row], notes: dict[str, None]) -> dict[str, dict[str, Figure]]:
    """Return the speedups that the files state themselves, by domain and repeat; domain "" is the overall one."""
    given: dict[str, dict[str, Figure]] = {}
    for row in rows:
        stated = {**row.speedups, row.domain: row.speedup} if row.speedup is not None else row.speedups
        for domain, number in stated.items():
            repeats = given.setdefault(domain, {})
            if (repeat := row.part[-1]) in repeats:
                notes[f"{name}: speedup stated more than once; the last one counts"] = None
            repeats[repeat] = _figure(number)
    return given


def _mean_of_repeats(figures: list[Figure]) -> Figure:
    """Return the mean of repeats with its interval; the first one that has no value, if any."""
    without = [figure for figure in figures if figure.value is None]
    if len(figures) < 2 or without:
        return without[0] if without else figures[0]
    values = [figure.value for figure in figures if figure.value is not None]
    return _around(fmean(values), values)


def _with_interval(overall: Figure, domains: Sequence[Mapping[str, Figure]]) -> Figure:
    """Return the overall speedup with the interval that the overall values of the single repeats give.

    As it is where it has no value, and unless every repeat states every domain: what was measured together belongs
    together.
    """
    repeats = domains[0].keys()
    if overall.value is None or len(repeats) < 2 or any(domain.keys() != repeats for domain in domains):
        return overall
    each = [
        geometric_mean([value for domain in domains if (value := domain[repeat].value) is not None])
        for repeat in repeats
    ]
    return replace(_around(overall.value, each), n=overall.n)


def _around(value: float, repeats: Sequence[float]) -> Figure:
    """Return a value of several repeats with Student's interval, whose width is that of their mean."""
    from scipy.stats import t

    count = len(repeats)
    half = float(t.ppf((1 + _LEVEL) / 2, count - 1)) * stdev(repeats) / math.sqrt(count)
    interval = Interval(low=value - half, high=value + half, level=_LEVEL)
    return Figure(value=value, interval=interval, signature=f"mean of {count} repeats")


def _over_domains(
    results: Mapping[str, DomainResult], domains: tuple[str, ...], stated: Figure | None, pooled: Figure | None
) -> dict[str, Figure]:
    """Return the overall speedups: the mean over all domains, which needs each of them, and the others beside it."""
    figures = [results[name].figures.get("speedup") for name in domains if name in results]
    present = [figure for figure in figures if figure is not None]
    if not present:
        return {"speedup": stated} if stated else {}
    values = [figure.value for figure in present if figure.value is not None]
    counts = [figure.n for figure in present if figure.value is not None]
    if len(values) < len(domains):
        reasons = {figure.reason for figure in present}
        shared = not values and len(present) == len(domains) and len(reasons) == 1
        reason = reasons.pop() if shared else f"{len(values)} of {len(domains)} domains"
        missing = Figure(value=None, reason=reason)
        others = [*(["speedup_pooled"] if pooled else []), "speedup_mean_of_domains"] if len(domains) > 1 else []
        return dict.fromkeys(["speedup", *others], missing)
    n = sum(count for count in counts if count is not None) if None not in counts else None
    overall = {"speedup": Figure(value=geometric_mean(values), n=n)}
    if len(values) > 1:
        overall |= {"speedup_pooled": pooled} if pooled else {}
        overall["speedup_mean_of_domains"] = Figure(value=fmean(values), n=n)
    return overall


def _figures(rows: list[Row], notes: dict[str, None]) -> dict[str, Figure]:
    """Return what the rows say without a comparison: tokens per second and acceptance."""
    figures: dict[str, Figure] = {}
    timed = [row for row in rows if has_speed(row)]
    if timed:
        pool = pooled(timed, notes)
        n = sample_count(timed)
        figures["tokens_per_s"] = (
            Figure(value=pool[0] / pool[1], n=n) if pool else Figure(value=None, reason=why_no_speed(timed))
        )
        if len(timed) > 1 and pool:
            rates = [tokens / seconds for tokens, seconds in per_sample(timed).values()]
            figures["tokens_per_s_mean_of_samples"] = Figure(value=fmean(rates), n=n)
    return figures | _acceptance(rows)


def _acceptance(rows: list[Row]) -> dict[str, Figure]:
    stepped = [row for row in rows if row.steps]
    if stepped:
        n = sample_count(stepped)
        emitted = sum(sum(row.steps or ()) for row in stepped)
        pooled = Figure(value=emitted / sum(len(row.steps or ()) for row in stepped), n=n)
        by_sample: dict[object, list[float]] = {}
        for index, row in enumerate(stepped):
            by_sample.setdefault((row.domain, row.sample or index), []).extend(row.steps or ())
        means = Figure(value=fmean(fmean(steps) for steps in by_sample.values()), n=n)
        return {"acceptance_length": pooled, "acceptance_length_mean_of_samples": means}
    stated = [row for row in rows if row.acceptance is not None]
    if not stated and any(row.steps == () for row in rows):
        return {"acceptance_length": Figure(value=None, reason="no steps")}
    if not stated:
        return {}
    if len(stated) == 1:
        return {"acceptance_length": _figure(stated[0].acceptance)}
    values = [row.acceptance for row in stated if isinstance(row.acceptance, float)]
    means = Figure(value=fmean(values), n=len(values)) if values else Figure(value=None, reason="no value")
    return {
        "acceptance_length": Figure(value=None, reason=_MEANS_ONLY),
        "acceptance_length_mean_of_samples": means,
    }


def _figure(number: Number) -> Figure:
    if isinstance(number, Missing):
        return Figure(value=None, reason=number.reason)
    return Figure(value=number) if number is not None else Figure(value=None, reason="not measured")
