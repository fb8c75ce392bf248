"""Results of `vllm bench serve`, as serving figures (suites-and-scoring 10.3).

Its acceptance counters are differences of the server's totals, so other clients of the server leak in. Its
"inter-token latency" is the gap between chunks: under speculation a step gap, about τ times the time per token.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from draftboard.errors import UserError
from draftboard.foreign.figures import base_name, figure, grouped, is_secret, labelled, number, percentile, scalar
from draftboard.foreign.reading import ForeignFile, read_bytes, read_document, read_rows
from draftboard.results import Figure, MethodResult, Results

__all__ = ["read_vllm"]

_NEEDED = ("duration", "completed", "output_throughput")
_SHARED = (
    "backend", "endpoint_type", "num_prompts", "request_rate", "burstiness", "max_concurrency",
)  # fmt: skip
_COUNTED = "as the server counts it: other clients of the server leak in, and what an end cuts away counts as accepted"
_CHUNKS = "gaps between chunks, however many tokens each brought"
_PATH = re.compile(r"[/~\\]|[A-Za-z]:[/\\]")
_MILLI = 1e-3
_MOST = 10**15
"""More requests or drafts than this were never counted."""

_PLAIN: tuple[tuple[str, str, float, str], ...] = (
    ("output_throughput", "output_tokens_per_s", 1, ""),
    ("total_token_throughput", "total_tokens_per_s", 1, ""),
    ("request_throughput", "requests_per_s", 1, ""),
    ("request_goodput", "goodput_requests_per_s", 1, ""),
    ("max_output_tokens_per_s", "output_tokens_per_s_max", 1, ""),
    ("spec_decode_acceptance_length", "vllm_acceptance_length", 1, _COUNTED),
    ("spec_decode_acceptance_rate", "acceptance_rate", 0.01, _COUNTED),
    ("spec_decode_num_drafts", "drafts", 1, _COUNTED),
    ("spec_decode_draft_tokens", "drafted_tokens", 1, _COUNTED),
    ("spec_decode_accepted_tokens", "accepted_tokens", 1, _COUNTED),
)
_LATENCIES: tuple[tuple[str, str, str, str, str], ...] = (
    ("ttft", "ttft_s", "ttft_mean_s", "ttft_p{}_s", ""),
    ("tpot", "tpot_p50_s", "tpot_mean_s", "tpot_p{}_s", "over requests; takes the first chunk as one token"),
    ("itl", "step_gap_p50_s", "step_gap_mean_s", "step_gap_p{}_s", _CHUNKS),
    ("e2el", "e2e_s", "e2e_mean_s", "e2e_p{}_s", ""),
)
_PERCENTILES = (90, 95, 99)
_KINDS = ("mean", "median", *(f"p{percent}" for percent in _PERCENTILES))
_DETAILED = (
    "input_lens", "output_lens", "ttfts", "itls", "start_times", "generated_texts", "errors", "latencies",
    "queue_times",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """One benchmark of a file."""

    label: str
    place: str
    content: Mapping[str, Any]


def read_vllm(paths: Sequence[Path], *, model: str = "", hardware: str = "") -> Results:
    """Read result files, each with one object or one a line. `model` goes before what the files say.

    Raises UserError that lists every result without its three necessary numbers.
    """
    results: list[_Result] = []
    notes: list[str] = []
    labels = labelled(paths)
    for path in labels:
        file = _read(path)
        notes += file.notes
        if not file.rows:
            raise UserError("holds no result, only an empty list", where=str(path))
        for line, content in file.rows:
            results.append(
                _Result(label=labels[path].removesuffix(".json"), place=file.place(line), content=_object(content))
            )
    problems = [f"{result.place}: {why}" for result in results if (why := _lacking(result.content))]
    if problems:
        raise UserError(
            f"{len(problems)} result(s) that vllm bench serve did not write",
            problems=tuple(problems),
            advice="Give the files that its --save-result wrote.",
        )
    parts = [(_conditions(result.content, model, hardware), _method(result, notes)) for result in results]
    return Results(groups=grouped(parts, notes=notes, source="vllm bench serve"))


def _read(path: Path) -> ForeignFile:
    """Read a document, which may be a list of results, or else lines of documents."""
    data = read_bytes(path)
    try:
        json.loads(data.decode("utf-8-sig").strip("\0 \t\r\n"))
    except (ValueError, RecursionError):
        return read_rows(path)
    file = read_document(path)
    value = file.rows[0][1]
    rows = tuple((1, inner) for inner in value) if isinstance(value, list) else file.rows
    return ForeignFile(path=path, sha256=sha256(data).hexdigest(), rows=rows, notes=file.notes)


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _lacking(content: Mapping[str, Any]) -> str:
    lacking = [name for name in _NEEDED if (value := number(content.get(name))) is None or not math.isfinite(value)]
    return f"lacks {', '.join(lacking)}" if lacking else ""


def _conditions(content: Mapping[str, Any], model: str, hardware: str) -> dict[str, str]:
    found = {"model": model or base_name(scalar(content.get("model_id")) or ""), "hardware": hardware}
    for name in _SHARED:
        text = scalar(content.get(name))
        if text:
            found[name.replace("_", " ")] = "inf" if text == "Infinity" else text
    return found


def _method(result: _Result, notes: list[str]) -> MethodResult:
    content = result.content
    n = _count(content["completed"])
    overall = {
        name: figure(content[key], scale=scale, n=n, signature=note)
        for key, name, scale, note in _PLAIN
        if content.get(key) is not None
    }
    for key, median, mean, percentile_name, note in _LATENCIES:
        for source, name in (
            (f"median_{key}_ms", median),
            (f"mean_{key}_ms", mean),
            *((f"p{p}_{key}_ms", percentile_name.format(p)) for p in _PERCENTILES),
        ):
            if content.get(source) is not None:
                overall[name] = figure(content[source], scale=_MILLI, n=n, signature=note)
    overall = {**_detailed(content, notes, result.place), **overall}
    return MethodResult(
        method=scalar(content.get("label")) or result.label,
        overall=overall,
        settings=_settings(content),
        notes=_failures(content),
        positions=_positions(content),
    )


def _count(value: object) -> int | None:
    """Return a number that counts something; None for one that cannot."""
    found = number(value)
    return int(found) if found is not None and 0 <= found <= _MOST else None


def _positions(content: Mapping[str, Any]) -> dict[str, tuple[Figure, ...]]:
    rates = content.get("spec_decode_per_position_acceptance_rates")
    if not isinstance(rates, list) or not rates:
        return {}
    n = _count(content.get("spec_decode_num_drafts"))
    return {"vllm": tuple(figure(rate, n=n, signature=_COUNTED) for rate in rates)}


def _detailed(content: Mapping[str, Any], notes: list[str], place: str) -> dict[str, Figure]:
    """Return what the lists of --save-detailed tell beyond the aggregates: step gaps, and rates of single users."""
    itls, lengths = content.get("itls"), content.get("output_lens")
    if not isinstance(itls, list) or not all(isinstance(gaps, list) for gaps in itls):
        return {}
    gaps = [value for mine in itls for gap in mine if (value := number(gap)) is not None and math.isfinite(value)]
    found: dict[str, Figure] = {}
    n = sum(bool(mine) for mine in itls)
    if gaps:
        for percent in (50, 95, 99):
            found[f"step_gap_p{percent}_s"] = Figure(value=percentile(gaps, percent), n=n, signature=_CHUNKS)
        found["step_gap_max_s"] = Figure(value=max(gaps), n=n, signature=_CHUNKS)
    if not isinstance(lengths, list):
        return found
    if len(lengths) != len(itls):
        notes.append(f"{place}: {len(lengths)} output_lens for {len(itls)} itls; rates of single requests left out")
        return found
    rates = []
    for count, mine in zip(lengths, itls, strict=True):
        tokens, seconds = number(count), sum(number(gap) or 0.0 for gap in mine)
        if tokens is not None and tokens > 1 and seconds > 0 and math.isfinite(tokens + seconds):
            rates.append((tokens - 1) / seconds)
    if rates:
        note = "tokens after the first over the time after the first chunk"
        found["user_tokens_per_s"] = Figure(value=percentile(rates, 50), n=len(rates), signature=note)
        found["user_tokens_per_s_p5"] = Figure(value=percentile(rates, 5), n=len(rates), signature=note)
    return found


def _failures(content: Mapping[str, Any]) -> tuple[str, ...]:
    failed = _count(content.get("failed"))
    errors = content.get("errors")
    listed = sum(bool(error) for error in errors) if isinstance(errors, list) else 0
    count = listed if failed is None else failed
    return (f"{count} request(s) failed",) if count else ()


def _settings(content: Mapping[str, Any]) -> dict[str, object]:
    """Return the plain fields that have no place of their own; long lists and whatever may be a secret are left out."""
    taken = {
        *_NEEDED, *_SHARED, *_DETAILED, "model_id", "label", "failed", "spec_decode_per_position_acceptance_rates",
        *(key for key, *_ in _PLAIN),
        *(f"{kind}_{key}_ms" for key, *_ in _LATENCIES for kind in _KINDS),
    }  # fmt: skip
    found: dict[str, object] = {}
    for key, value in content.items():
        name = " ".join(str(key).split())
        if name in taken or is_secret(name):
            continue
        text = scalar(value)
        if text:
            found[name] = base_name(text) if name.endswith("_id") or _PATH.match(text) else text
    return {**found, **{name: text for name in ("duration", "completed") if (text := scalar(content.get(name)))}}
