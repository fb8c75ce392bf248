"""Directories of results that specdec_bench wrote, as figures under their own names (suites-and-scoring 3.6 and 10.2).

Its files hold aggregates only, so nothing is converted: its AL counts the prefill's token as a chunk and leaves the
end token out, which makes it another number than the acceptance length τ of the same text.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from draftboard.errors import UserError
from draftboard.foreign.figures import base_name, figure, grouped, labelled, scalar
from draftboard.foreign.reading import read_document, read_rows, shown_name
from draftboard.results import DomainResult, Figure, MethodResult, Results

__all__ = ["ACCEPTANCE", "CONFIGURATION", "RESPONSES", "TIMING", "read_specdec_bench"]

ACCEPTANCE, TIMING, CONFIGURATION = "acceptance_rate.json", "timing.json", "configuration.json"
RESPONSES = ("specbench_responses.jsonl", "mtbench_responses.jsonl", "responses.jsonl")
_RESULTS = "specbench_results.json"
_SHARED = (
    "engine", "engine_version", "concurrency", "output_length", "tp_size", "ep_size", "num_requests", "random_isl",
    "ignore_eos", "completions", "postprocess",
)  # fmt: skip
_OWN = ("speculative_algorithm", "draft_length", "timestamp", "checkpoint_fingerprint", "python_version")
"""Of the configuration, what is kept: every other argument may hold a path or a secret."""

_STEP_NOTE = "the time to the first token counts as a gap"
_STATISTICS: tuple[tuple[str, str, str, str], ...] = (
    ("E2E Request Time", "e2e_s", "e2e_mean_s", ""),
    ("TTFT Time", "ttft_s", "ttft_mean_s", ""),
    ("Request Generation Step Time", "step_gap_p50_s", "step_gap_mean_s", _STEP_NOTE),
    ("Request Generation Tokens Per Second", "user_tokens_per_s", "user_tokens_per_s_mean", ""),
    ("Number of Output Tokens", "output_tokens", "output_tokens_mean", ""),
)


@dataclass(slots=True, kw_only=True)
class _Directory:
    path: Path
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def last(self, *names: str) -> Mapping[str, Any] | None:
        """Return the last object of the first of these files that is there; None where none is."""
        for name in names:
            file = self.path / name
            if not file.is_file():
                continue
            value = read_document(file).rows[0][1]
            runs = value if isinstance(value, list) else [value]
            if not runs or not isinstance(runs[-1], dict):
                self.problems.append(f"{file}: neither an object nor an array whose last element is one")
                return None
            if len(runs) > 1:
                self.notes.append(f"{shown_name(self.path)}/{name} holds {len(runs)} results; the last one is read")
            return runs[-1]
        return None


def read_specdec_bench(paths: Sequence[Path], *, model: str = "", hardware: str = "") -> Results:
    """Read one directory per method. `model` and `hardware` go before what the configurations say.

    Raises UserError for a path that is no directory, and for directories without results or with broken files.
    """
    labels = labelled(paths)
    parts: list[tuple[Mapping[str, Any], MethodResult]] = []
    notes: list[str] = []
    problems: list[str] = []
    for path, label in labels.items():
        if not path.is_dir():
            what = "is a file, not a directory of results" if path.exists() else "there is no such directory"
            problems.append(f"{path}: {what}")
            continue
        directory = _Directory(path=path)
        acceptance, timing = directory.last(ACCEPTANCE, _RESULTS), directory.last(TIMING)
        problems += directory.problems
        notes += directory.notes
        if acceptance is None and timing is None:
            if not directory.problems:
                problems.append(f"{path}: holds neither {ACCEPTANCE} nor {TIMING}")
            continue
        configuration = directory.last(CONFIGURATION) or {}
        conditions = _conditions(configuration)
        conditions |= {name: value for name, value in (("model", model), ("hardware", hardware)) if value}
        parts.append((conditions, _method(label, acceptance or {}, timing or {}, configuration, _failed(path, notes))))
    if problems:
        raise UserError(
            f"{len(problems)} problem(s) with results of specdec_bench",
            problems=tuple(problems),
            advice="Name the directories that its --save_dir wrote.",
        )
    return Results(groups=grouped(parts, notes=notes, source="specdec_bench"))


def _method(
    label: str, acceptance: Mapping[str, Any], timing: Mapping[str, Any], configuration: Mapping[str, Any], failed: int
) -> MethodResult:
    requests = acceptance.get("Request_AL")
    n = len(requests) if isinstance(requests, dict) and requests else None
    overall: dict[str, Figure] = {}
    if "Average_AL" in acceptance:
        overall["specdec_bench_al"] = figure(acceptance["Average_AL"], n=n)
    for key, name in (("Output TPS", "output_tokens_per_s"), ("Output TPS/gpu", "output_tokens_per_s_per_gpu")):
        if key in timing:
            overall[name] = figure(timing[key], n=n)
    for key, median, mean, note in _STATISTICS:
        statistics = timing.get(key)
        if isinstance(statistics, dict):
            quantiles = statistics.get("quantiles")
            middle = quantiles.get("0.5") if isinstance(quantiles, dict) else None
            overall[median] = figure(middle, n=n, signature=note)
            overall[mean] = figure(statistics.get("mean"), n=n, signature=note)
    categories = acceptance.get("Category_AL")
    domains = {
        str(name): DomainResult(domain=str(name), figures={"specdec_bench_al": figure(value)})
        for name, value in (categories.items() if isinstance(categories, dict) else ())
    }
    return MethodResult(
        method=label,
        domains=domains,
        overall=overall,
        settings=_settings(configuration, acceptance),
        notes=(f"{failed} request(s) failed",) if failed else (),
        positions=_positions(acceptance),
    )


def _positions(acceptance: Mapping[str, Any]) -> dict[str, tuple[Figure, ...]]:
    """Return the rates by place in the draft: place k is a chunk of k + 1 tokens; a length that never occurs has none.

    They divide by every chunk, however far its draft reached, so they are kept apart from our own rates.
    """
    found: dict[str, tuple[Figure, ...]] = {}
    for key, name in (
        ("Conditional_Acceptance_Rate", "specdec_conditional"),
        ("Joint_Acceptance_Rate", "specdec_joint"),
    ):
        rates = acceptance.get(key)
        by_length = {int(k): v for k, v in rates.items() if str(k).isdecimal()} if isinstance(rates, dict) else {}
        longest = max(by_length, default=1)
        if longest <= 1 or longest > 10_000:
            continue
        absent = Figure(value=None, reason="no chunk of this length")
        found[name] = tuple(
            figure(by_length[length]) if length in by_length else absent for length in range(2, longest + 1)
        )
    return found


def _conditions(configuration: Mapping[str, Any]) -> dict[str, str]:
    found = {
        "model": base_name(scalar(configuration.get("model_dir")) or ""),
        "hardware": scalar(configuration.get("gpu")) or "",
        "suite": _suite(configuration),
    }
    parameters = configuration.get("runtime_params")
    sampling = parameters.get("sampling_kwargs") if isinstance(parameters, dict) else None
    temperature = sampling.get("temperature") if isinstance(sampling, dict) else None
    for name, value in (*((name, configuration.get(name)) for name in _SHARED), ("temperature", temperature)):
        text = scalar(value)
        if text:
            found[name.replace("_", " ")] = text
    return found


def _suite(configuration: Mapping[str, Any]) -> str:
    named = scalar(configuration.get("dataset"))
    if named:
        part = base_name(scalar(configuration.get("dataset_path")) or "")
        return f"{named}/{part}" if named == "speed" and part else named
    return next((name for name in ("specbench", "mtbench") if configuration.get(name)), "")


def _settings(configuration: Mapping[str, Any], acceptance: Mapping[str, Any]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name in _OWN:
        text = scalar(configuration.get(name))
        if text:
            found[name] = text
    draft = scalar(configuration.get("draft_model_dir"))
    if draft:
        found["draft_model"] = base_name(draft)
    histogram = acceptance.get("Acceptance_Length_Histogram")
    if isinstance(histogram, dict):
        counts = {str(k): v for k, v in histogram.items() if isinstance(v, int | float) and math.isfinite(v)}
        found["acceptance_length_histogram"] = counts
    return found


def _failed(path: Path, notes: list[str]) -> int:
    """Count the requests that the responses mark as failed."""
    for name in RESPONSES:
        if (path / name).is_file() and (path / name).stat().st_size:
            file = read_rows(path / name)
            notes += file.notes
            return sum(isinstance(row, dict) and row.get("error") is True for _, row in file.rows)
    return 0
