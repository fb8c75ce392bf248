"""Who stands where in a group, from unrounded values, and why somebody stands nowhere.

Ranks are computed in this one place, so that the page, the Markdown table, the terminal and the files agree.
"""

import math
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from draftboard.results import Figure, Group, MethodResult, Results

__all__ = ["Standing", "equal", "headline", "missing_reasons", "standings", "usable", "why_missing"]

_LARGEST = 1e50
"""Means and differences of smaller numbers stay far inside the floats."""
_EQUAL = 1e-12
"""Relative difference of values that rounding in their last bits alone can make."""
_SPEED_EVIDENCE = ("speedup", "tokens_per_s", "decode_tokens_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One method's place. `rank` is None for a method that cannot be ranked; `reason` then says why."""

    method: MethodResult
    rank: int | None = None
    reason: str = ""


def usable(figure: Figure | None) -> float | None:
    """Return the value of a figure, or None where there is none, it is not finite, or beyond all measure."""
    if figure is None or figure.value is None or not abs(figure.value) <= _LARGEST:
        return None
    return figure.value


def why_missing(figure: Figure | None) -> str:
    """Return why `usable` has nothing to show."""
    if figure is None:
        return "not measured"
    if figure.reason:
        return figure.reason
    if figure.value is None:
        return "no value"
    return "too large to have been measured" if math.isfinite(figure.value) else "not a number"


def equal(value: float, other: float) -> bool:
    """Whether two values are one but for rounding: relative difference up to 1e-12."""
    return math.isclose(value, other, rel_tol=_EQUAL, abs_tol=0.0)


def headline(group: Group) -> str:
    """Return the metric that ranks the group: speedup, or τ where nobody measured speed at all."""
    for method in group.methods:
        if any(name in method.overall for name in _SPEED_EVIDENCE):
            return "speedup"
        if any(name in domain.figures for domain in method.domains.values() for name in _SPEED_EVIDENCE):
            return "speedup"
    has_acceptance = any("acceptance_length" in method.overall for method in group.methods)
    return "acceptance_length" if has_acceptance else "speedup"


def standings(group: Group, metric: str) -> tuple[Standing, ...]:
    """Rank a group by an overall figure, best first; methods that cannot be ranked follow in name order.

    Equal values share a rank (1, 2, 2, 4) and stand in name order. So do, by speedup, values that cannot be told apart
    (`MethodResult.tied_with`), which stand by value. What decides is the best value of the rank, so that a chain
    of close values does not become one rank. A method that lacks a domain which others have, or in which samples
    failed, is not ranked: its overall value would speak of an easier workload.
    """
    wanted = _domains_with(group, metric)
    ranked: list[tuple[float, MethodResult]] = []
    unranked: list[Standing] = []
    for method in group.methods:
        value, reason = usable(method.overall.get(metric)), _obstacle(method, metric, wanted)
        if value is None or reason:
            unranked.append(Standing(method=method, reason=reason or why_missing(method.overall.get(metric))))
        else:
            ranked.append((value, method))
    ranked.sort(key=lambda pair: (-pair[0], pair[1].method))
    unranked.sort(key=lambda standing: standing.method.method)
    placed: list[Standing] = []
    while len(placed) < len(ranked):
        rank = len(placed) + 1
        best = ranked[rank - 1]
        shared = takewhile(partial(_share, metric, best), ranked[rank - 1 :])
        placed += [Standing(method=method, rank=rank) for method in _in_order(list(shared))]
    return (*placed, *unranked)


def _share(metric: str, best: tuple[float, MethodResult], other: tuple[float, MethodResult]) -> bool:
    """Whether a method has the rank of one that stands no lower."""
    tied = other[1].method in best[1].tied_with or best[1].method in other[1].tied_with
    return equal(other[0], best[0]) or (metric == "speedup" and tied)


def _in_order(tied: list[tuple[float, MethodResult]]) -> list[MethodResult]:
    """Return methods of one rank by value, and by name where that is equal but for rounding."""
    found: list[MethodResult] = []
    while tied:
        alike = [method for value, method in tied if equal(value, tied[0][0])]
        found += sorted(alike, key=lambda method: method.method)
        tied = tied[len(alike) :]
    return found


def missing_reasons(results: Results) -> tuple[str, ...]:
    """Return, once per group and reason, which methods of which model are not ranked and why, for a command to tell."""
    lines: list[str] = []
    for group in results.groups:
        if not any(headline(group) in method.overall for method in group.methods):
            continue  # aggregates of another tool, which nobody meant to rank
        by_reason: dict[str, list[str]] = {}
        for standing in standings(group, headline(group)):
            if standing.rank is None:
                by_reason.setdefault(standing.reason, []).append(standing.method.method)
        lines += [
            f"not ranked{_where(group, results, reason)}: {', '.join(names)} ({reason})"
            for reason, names in by_reason.items()
        ]
    return tuple(lines)


def _where(group: Group, results: Results, reason: str) -> str:
    """Return the model, and what else it takes to tell the group from others, except what the reason names."""
    told, alike = "", results.groups
    for word, value in _about(group).items():
        same = tuple(other for other in alike if _about(other)[word] == value)
        needed = word == "for" or len(same) < len(alike)
        if value and needed and f" {word} {value}" not in f" {reason}":
            told += f" {word} {value}"
        alike = same
    return told


def _about(group: Group) -> dict[str, str]:
    return {"for": group.model, "on": group.hardware, "in": group.suite, "with": group.conditions.get("dtype", "")}


def _domains_with(group: Group, metric: str) -> tuple[str, ...]:
    """Return the domains in which at least one method of the group has this figure."""
    return tuple(
        name
        for name in group.domains
        if any(metric in method.domains[name].figures for method in group.methods if name in method.domains)
    )


def _obstacle(method: MethodResult, metric: str, wanted: tuple[str, ...]) -> str:
    """Return why a method with an overall value may still not be ranked; empty when nothing is in the way."""
    failed = sum(domain.failed for domain in method.domains.values())
    if failed:
        total = failed + sum(domain.samples or 0 for domain in method.domains.values())
        return f"{failed} of {total} samples failed"
    present = sum(
        name in method.domains and usable(method.domains[name].figures.get(metric)) is not None for name in wanted
    )
    overall = method.overall.get(metric)
    if present < len(wanted) and usable(overall) is not None:
        return f"{present} of {len(wanted)} domains"
    return ""
