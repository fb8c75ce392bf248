"""Rows measured elsewhere, turned into figures by the same definitions that our own runs use.

Rows of one model, hardware, suite and dtype form a group and are compared with that group's baseline only.
Speedup is `S_pool`: seconds per token, totals over totals, over the samples that both methods have. Nothing
is guessed: what a row does not say stays missing, with the reason.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

from draftboard.errors import UserError
from draftboard.results import DomainResult, Figure, Group, MethodResult
from draftboard.row_speeds import (
    Arms,
    Missing,
    Number,
    Row,
    has_speed,
    per_sample,
    pooled,
    pooled_speedup,
    sample_count,
    sample_speedups,
    why_no_speed,
)

__all__ = ["RowFile", "results_from_rows"]

_BASELINE = "autoregressive"
_FIGURES = ("new_tokens and wall_time_s", "tokens_per_s", "tokens_per_step", "acceptance_length", "speedup")
_GROUP_KEYS = ("model", "hardware", "suite", "dtype")
_MEANS_ONLY = "only per-sample means are known; pooling needs the steps"
_REASONABLE = 1e-50, 1e50
"""Ratios and sums of numbers in between stay far inside the floats; what lies beyond was never measured."""
_NO_DOMAIN = "uncategorised"
_NAMED = 5
_DEEPEST = 32
"""Levels of lists and objects in settings; every reader of a deeper one would be at risk."""


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
    record = {**file.defaults, **raw}
    if record.get("phase") == "warmup":
        return
    row = _parse(record)
    key = tuple(_text(record, name) for name in _GROUP_KEYS)
    baseline = _text(record, "baseline") or _BASELINE
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


def _parse(record: Mapping[str, Any]) -> Row:
    method = _text(record, "method")
    if not method.strip():
        raise ValueError("`method` is missing")
    sample = record.get("question_id", record.get("sample_id"))
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, str | int)):
        raise ValueError("`question_id` has to be text or a whole number")
    speedup = record.get("speedup")
    by_domain = speedup if isinstance(speedup, dict) else {}
    acceptance = "acceptance_length" if "acceptance_length" in record else "mean_acceptance_length"
    row = Row(
        method=method,
        sample=None if sample is None else str(sample),
        part=tuple(str(record.get(name, "")) for name in ("turn", "repeat")),
        domain=_text(record, "category") or _text(record, "domain"),
        tokens=_number(record, "new_tokens", zero=True),
        seconds=_number(record, "wall_time_s"),
        rate=_number(record, "tokens_per_s"),
        steps=_steps(record),
        acceptance=_number(record, acceptance),
        speedup=None if by_domain else _number(record, "speedup"),
        speedups={name: _number(by_domain, name) for name in by_domain},
        about={name: record[name] for name in ("reference", "output", "lossless", "settings") if name in record},
    )
    pair = row.tokens is not None and row.seconds is not None
    given = (row.rate, row.steps, row.acceptance, row.speedup)
    if not pair and not by_domain and all(value is None for value in given) and "speedup" not in record:
        raise ValueError(f"no figure; expected one of {', '.join(_FIGURES)}")
    _check_about(row.about)
    return row


def _check_about(about: Mapping[str, Any]) -> None:
    kinds = {"reference": str, "output": str, "lossless": bool | None, "settings": dict}
    for name, value in about.items():
        if not isinstance(value, kinds[name]):
            raise ValueError(f"`{name}` has the wrong type")
    if not _shallow(about.get("settings"), _DEEPEST):
        raise ValueError("`settings` is nested too deeply")


def _shallow(value: object, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_shallow(item, levels - 1) for item in inner)


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"`{name}` has to be text")
    return value


def _number(record: Mapping[str, Any], name: str, *, zero: bool = False) -> Number:
    if name not in record:
        return None
    value = record[name]
    if value is None:
        return Missing(reason="no value")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"`{name}` has to be a number")
    try:
        number = float(value)
    except OverflowError:
        return Missing(reason="not a finite number")
    if not math.isfinite(number):
        return Missing(reason="not a number" if math.isnan(number) else "not a finite number")
    if number < 0 or (number == 0 and not zero):
        raise ValueError(f"`{name}` has to be {'0 or more' if zero else 'above 0'}")
    if number and not _REASONABLE[0] <= number <= _REASONABLE[1]:
        return Missing(reason=f"too {'large' if number > 1 else 'small'} to have been measured")
    return number


def _steps(record: Mapping[str, Any]) -> tuple[float, ...] | None:
    steps = record.get("tokens_per_step")
    if steps is None:
        return None
    if not isinstance(steps, list) or not all(_is_count(k) for k in steps):
        raise ValueError("`tokens_per_step` has to be a list of whole numbers")
    return tuple(float(k) for k in steps)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _REASONABLE[1]


def _group(key: tuple[str, ...], content: _GroupRows) -> Group:
    model, hardware, suite, dtype = key
    rows = _last_of_each(content)
    domains = content.declared
    if domains and any(row.sample is not None and not row.domain for row in rows):
        domains = {**domains, _NO_DOMAIN: None}
        rows = [replace(row, domain=_NO_DOMAIN) if row.sample is not None and not row.domain else row for row in rows]
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    where = (f" for {model}" if model else "") + (f" on {hardware}" if hardware else "")
    arms = Arms(
        baseline=content.baseline,
        baseline_rows=by_method.get(content.baseline, []),
        absent=f"no {content.baseline} run{where}",
        notes=content.notes,
    )
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


def _last_of_each(content: _GroupRows) -> list[Row]:
    """Return the rows without those that a later row about the same sample replaces, which is noted."""
    kept: dict[tuple[object, ...], Row] = {}
    doubled: dict[str, dict[str, None]] = {}
    for index, row in enumerate(content.rows):
        key = (row.method, row.domain, row.sample, row.part, index if row.sample is None else None)
        if key in kept and row.sample is not None:
            doubled.setdefault(row.method, {})[row.sample] = None
        kept[key] = row
    for method, samples in doubled.items():
        named = ", ".join([*list(samples)[:_NAMED], *(["…"] if len(samples) > _NAMED else [])])
        plural = "questions" if len(samples) > 1 else "question"
        content.notes[f"{method}: more than one row for {plural} {named}; the last one counts"] = None
    return list(kept.values())


def _method(name: str, rows: list[Row], domains: tuple[str, ...], arms: Arms) -> MethodResult:
    given = _given_speedups(name, rows, arms.notes)
    results: dict[str, DomainResult] = {}
    for domain in domains:
        mine = [row for row in rows if row.domain == domain]
        if not mine and domain not in given:
            continue
        base = [row for row in arms.baseline_rows if row.domain == domain]
        absent = arms.absent if not arms.baseline_rows else f"no {arms.baseline} run in {domain}"
        figures = _figures(mine, arms.notes)
        speedup = given.get(domain) or pooled_speedup(mine, base, absent, arms)
        if domain not in given:
            figures |= sample_speedups(mine, base)
        figures = {"speedup": speedup, **figures} if speedup else figures
        results[domain] = DomainResult(domain=domain, figures=figures, samples=sample_count(mine))
    overall = _figures(rows, arms.notes)
    if domains:
        overall = {**_over_domains(results, domains, given.get("")), **overall}
    else:
        speedup = given.get("") or pooled_speedup(rows, arms.baseline_rows, arms.absent, arms)
        overall = {"speedup": speedup, **overall} if speedup else overall
    if not given:
        overall |= sample_speedups(rows, arms.baseline_rows)
    about = {key: value for row in rows for key, value in row.about.items()}
    return MethodResult(method=name, domains=results, overall=overall, **about)


def _given_speedups(name: str, rows: list[Row], notes: dict[str, None]) -> dict[str, Figure]:
    """Return the speedups that the file states itself, by domain; "" is the overall one."""
    given: dict[str, Figure] = {}
    for row in rows:
        stated = {**row.speedups, row.domain: row.speedup} if row.speedup is not None else row.speedups
        for domain, number in stated.items():
            if domain in given:
                notes[f"{name}: speedup stated more than once; the last one counts"] = None
            given[domain] = _figure(number)
    return given


def _over_domains(
    results: Mapping[str, DomainResult], domains: tuple[str, ...], stated: Figure | None
) -> dict[str, Figure]:
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
        return {"speedup": missing, "speedup_mean_of_domains": missing} if len(domains) > 1 else {"speedup": missing}
    n = sum(count for count in counts if count is not None) if None not in counts else None
    overall = {"speedup": Figure(value=geometric_mean(values), n=n)}
    if len(values) > 1:
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
