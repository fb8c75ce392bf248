"""vLLM's speculation counters, read before and after a run: the run is the difference (suites-and-scoring 7.2, 10.3).

The pages are in Prometheus' text form. Counters of all workers are added up, since a request goes to any of them; a
mean of their ratios would weigh an idle worker like a busy one. A worker that started anew in between has lost its
counts, all of them, although busy ones may have risen past their old values: so then there is no difference.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from draftboard.errors import UserError
from draftboard.foreign.figures import base_name, grouped
from draftboard.foreign.reading import read_bytes, shown_name
from draftboard.results import Figure, MethodResult, Results

__all__ = ["CounterPage", "counter_figures", "read_counters", "read_page", "restarted_workers"]

_PREFIX = re.compile(r"^vllm[:_]")
_DRAFTS, _DRAFTED = "spec_decode_num_drafts", "spec_decode_num_draft_tokens"
_ACCEPTED, _PLACES = "spec_decode_num_accepted_tokens", "spec_decode_num_accepted_tokens_per_pos"
_GENERATED = "generation_tokens"
_STARTED = "process_start_time_seconds"
_WANTED = frozenset({_DRAFTS, _DRAFTED, _ACCEPTED, _PLACES, _GENERATED})
_COUNTED = "counters of the server: other clients leak in, and what an end cuts away counts as accepted"
_MOST = 1e15
"""More than this was never counted, and nearby floats are still whole numbers."""
_SAVE = "Save the page with: curl -s http://HOST:PORT/metrics"

Labels = tuple[tuple[str, str], ...]

Series = tuple[str, Labels]
"""A counter's name without prefix and suffix, and its labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterPage:
    """The speculation counters of one page."""

    name: str
    values: Mapping[Series, float]
    created: Mapping[Series, float]
    """When each counter, and the process, began, where the page says so."""
    notes: tuple[str, ...] = ()


def read_counters(before: Path, after: Path, *, label: str = "server", model: str = "", hardware: str = "") -> Results:
    """Read two pages; one method for each model name that the server shows.

    Raises UserError for a page that is not in Prometheus' form or has no speculation counter.
    """
    pages = read_page(before), read_page(after)
    notes = [note for page in pages for note in page.notes]
    if not any(name != _GENERATED for page in pages for name, _ in page.values):
        raise UserError(
            "no counter of speculation (vllm:spec_decode_…)",
            where=f"{before}, {after}",
            advice="Take the pages from /metrics of a vLLM server that runs with a speculative configuration.",
        )
    models = dict.fromkeys(_label(labels, "model_name") for page in pages for _, labels in page.values)
    parts = []
    restarted = restarted_workers(*pages)
    for served in models:
        of_model = (_of_model(page, served) for page in pages)
        figures, places = counter_figures(*of_model, restarted=restarted, notes=notes)
        conditions = {"model": model or base_name(served), "hardware": hardware}
        parts.append((conditions, MethodResult(method=label, overall=figures, positions={"vllm": places})))
    return Results(groups=grouped(parts, notes=dict.fromkeys(notes), source="vLLM counters"))


def read_page(path: Path) -> CounterPage:
    """Read a page. Series that stand more than once, as when workers' pages were joined, are added up and told."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        text = read_bytes(path).decode("utf-8-sig").rstrip("\0").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise UserError(f"is not UTF-8 (byte {error.start + 1})", where=str(path)) from error
    if not text.strip("\0 \t\r\n"):
        raise UserError("is empty", where=str(path), advice=_SAVE)
    values: dict[Series, float] = {}
    created: dict[Series, float] = {}
    doubled: set[str] = set()
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                name = _PREFIX.sub("", sample.name).removesuffix("_total")
                labels = tuple(sorted(sample.labels.items()))
                if name.removesuffix("_created") in _WANTED - {name}:
                    created[name.removesuffix("_created"), labels] = sample.value
                if name == _STARTED:
                    # Of several processes with the same labels none can be told to have started anew.
                    created[name, labels] = math.nan if (name, labels) in created else sample.value
                if name not in _WANTED:
                    continue
                series = name, labels
                if series in values:
                    doubled.add(name)
                values[series] = values.get(series, 0.0) + sample.value
    except ValueError as error:
        raise UserError(
            f"is not a page of Prometheus metrics: {error}",
            where=f"{path}:{_broken_line(text)}",
            advice=_SAVE,
        ) from error
    shown = shown_name(path)
    notes = [f"{shown}: {name} stands more than once with the same labels; added up" for name in sorted(doubled)]
    return CounterPage(name=shown, values=values, created=created, notes=tuple(notes))


def restarted_workers(before: CounterPage, after: CounterPage) -> frozenset[Labels]:
    """Return the labels of the workers that started anew between the pages.

    A counter that fell or began later tells it of its worker; a process that began later, of all that it counts for.
    """
    fell = {
        _worker_labels(labels)
        for (name, labels), value in after.values.items()
        if abs(value) <= _MOST >= abs(before.values.get((name, labels), 0.0))
        and (value < before.values.get((name, labels), 0.0) or _later(before, after, name, labels))
    }
    processes = [
        set(labels) for name, labels in after.created if name == _STARTED and _later(before, after, name, labels)
    ]
    workers = {_worker_labels(labels) for _, labels in after.values}
    return frozenset(fell | {worker for worker in workers if any(labels <= set(worker) for labels in processes)})


def counter_figures(
    before: CounterPage, after: CounterPage, *, restarted: frozenset[Labels], notes: list[str]
) -> tuple[dict[str, Figure], tuple[Figure, ...]]:
    """Return the figures of what happened between the pages, and vLLM's rate at each place of the draft."""
    totals: dict[str, float | str] = {}
    for name in (_DRAFTS, _DRAFTED, _ACCEPTED, _GENERATED):
        totals[name] = _difference(before, after, name, None, restarted, notes)
    drafts, drafted, accepted = totals[_DRAFTS], totals[_DRAFTED], totals[_ACCEPTED]
    n = int(drafts) if isinstance(drafts, float) else None
    figures = {
        "drafts": _count(drafts),
        "drafted_tokens": _count(drafted),
        "accepted_tokens": _count(accepted),
        "vllm_acceptance_length": _ratio(accepted, drafts, n, "no draft was made in between", plus=1.0),
        "acceptance_rate": _ratio(accepted, drafted, n, "no token was drafted in between"),
    }
    if isinstance(totals[_GENERATED], float):
        figures["output_tokens_total"] = _count(totals[_GENERATED])
    places = sorted({place for page in (before, after) for place in _places(page)})
    rates: list[Figure] = []
    for place in range(max(places, default=-1) + 1):
        hits: float | str = "the server does not show this place"
        if place in places:
            hits = _difference(before, after, _PLACES, str(place), restarted, notes)
        rates.append(_ratio(hits, drafts, n, "no draft was made in between"))
    return figures, tuple(rates)


def _difference(
    before: CounterPage,
    after: CounterPage,
    name: str,
    place: str | None,
    restarted: frozenset[Labels],
    notes: list[str],
) -> float | str:
    """Return after less before over all workers, or why that cannot be said."""
    first, last = (_series(page, name, place) for page in (before, after))
    if not first and not last:
        return f"the server does not show {name}"
    odd = [labels for page in (first, last) for labels, value in page.items() if not abs(value) <= _MOST]
    if odd:
        return f"{_worker(odd[0])} gives no number that can be a count"
    anew = [labels for labels in (*first, *last) if _worker_labels(labels) in restarted]
    if anew:
        return f"{_worker(anew[0])} started anew in between, and its earlier counts are lost"
    gone = [labels for labels in first if labels not in last]
    if gone:
        return f"{_worker(gone[0])} is on the first page only"
    fresh = [labels for labels in last if labels not in first]
    if fresh and first:
        notes.append(f"{_worker(fresh[0])} is on the second page only and is counted from 0")
    elif fresh:
        notes.append(f"{name} is on the second page only and is counted from 0")
    return math.fsum(last.values()) - math.fsum(first.values())


def _later(before: CounterPage, after: CounterPage, name: str, labels: Labels) -> bool:
    """Whether this began later than the first page says; doubled series have no beginning of their own."""
    start = before.created.get((name, labels))
    return start is not None and after.created.get((name, labels), start) > start


def _worker_labels(labels: Labels) -> Labels:
    """Return what tells a worker from the others: neither the place nor the served model is its own."""
    return tuple((name, value) for name, value in labels if name not in ("position", "model_name"))


def _series(page: CounterPage, name: str, place: str | None) -> dict[Labels, float]:
    return {
        labels: value
        for (found, labels), value in page.values.items()
        if found == name and (place is None or _label(labels, "position") == place)
    }


def _places(page: CounterPage) -> Iterable[int]:
    for name, labels in page.values:
        place = _label(labels, "position")
        if name == _PLACES and place.isascii() and place.isdecimal() and len(place) < 5:
            yield int(place)


def _of_model(page: CounterPage, model: str) -> CounterPage:
    values = {series: value for series, value in page.values.items() if _label(series[1], "model_name") == model}
    return CounterPage(name=page.name, values=values, created=page.created)


def _label(labels: Sequence[tuple[str, str]], name: str) -> str:
    return dict(labels).get(name, "")


def _worker(labels: Sequence[tuple[str, str]]) -> str:
    engine = _label(labels, "engine")
    return f"engine {engine}" if engine else "the server"


def _count(total: float | str) -> Figure:
    if isinstance(total, str):
        return Figure(value=None, reason=total)
    return Figure(value=total, signature=_COUNTED)


def _ratio(top: float | str, bottom: float | str, n: int | None, zero: str, *, plus: float = 0.0) -> Figure:
    if isinstance(bottom, str) or isinstance(top, str):
        return Figure(value=None, reason=bottom if isinstance(bottom, str) else str(top))
    if not bottom:
        return Figure(value=None, n=n, reason=zero)
    return Figure(value=plus + top / bottom, n=n, signature=_COUNTED)


def _broken_line(text: str) -> int:
    """Return the first line that cannot be read by itself."""
    from prometheus_client.parser import text_string_to_metric_families

    for number, line in enumerate(text.split("\n"), start=1):
        try:
            list(text_string_to_metric_families(line + "\n"))
        except ValueError:
            return number
    return 1
