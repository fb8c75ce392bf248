"""A run written as specdec_bench writes its results, one directory per method (suites-and-scoring 3.6 and 10.2).

Every turn's deliveries are chunks: the prefill's token, then what each step kept, without a closing end token. What
was not recorded, such as the times of an imported run, leaves its entries out.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import draftboard
from draftboard.foreign.folders import file_names
from draftboard.foreign.spec_bench_export import Exported, entries, good_cells, question_ids, write_all
from draftboard.foreign.specdec_bench import ACCEPTANCE, CONFIGURATION, RESPONSES, TIMING
from draftboard.records import Cell, SampleRecord, Turn
from draftboard.store import StoredRun

__all__ = ["acceptance", "chunks", "export_specdec_bench", "rates", "timing"]

_QUANTILES = (0.25, 0.5, 0.75)
_END_UNKNOWN = "the file it was imported from does not say which answers ended by the end token, so none is removed"


def export_specdec_bench(run: StoredRun, out: Path) -> Exported:
    """Write a directory per method into `out`; its files hold one result per round, the last round last.

    Raises UserError when nothing in the run ended without error, something is at `out`, or it cannot be written.
    """
    samples = {sample.key: sample for sample in run.samples}
    labels = [str(table["label"]) for table in run.plan["methods"]]
    names = file_names(labels)
    ids, notes = question_ids(run.samples)
    files: dict[str, bytes] = {}
    for label in labels:
        by_round: dict[int, list[Cell]] = defaultdict(list)
        for cell in (cell for cells in good_cells(run, label).values() for cell in cells):
            by_round[cell.repeat].append(cell)
        if not by_round:
            notes.append(f"{label}: no cell ended without error, so there is no directory")
            continue
        cells = [by_round[number] for number in sorted(by_round)]
        turns = [turn for group in cells for cell in group for turn in cell.turns]
        if any(not turn.finish for turn in turns):
            notes.append(f"{label}: {_END_UNKNOWN}")
        contents = {
            ACCEPTANCE: _results(acceptance(group, samples, ids) for group in cells),
            TIMING: _results(timing(group) for group in cells),
            CONFIGURATION: _json(_configuration(run, label)),
            RESPONSES[0]: b"".join(_response(cell, samples[cell.sample], ids[cell.sample]) for cell in cells[-1]),
        }
        for name, data in contents.items():
            if data is not None:
                files[f"{names[label]}/{name}"] = data
    return write_all(run, out, files, notes)


def chunks(turn: Turn) -> list[int]:
    """Return the lengths of a turn's deliveries; a closing end token is taken off the last one."""
    found = entries(turn)
    if turn.finish == "eos" and found:
        found[-1] -= 1
    return [length for length in found if length]


def acceptance(
    cells: Sequence[Cell], samples: Mapping[str, SampleRecord], ids: Mapping[str, int | str]
) -> dict[str, Any]:
    """Return the acceptance object of one round; empty where no steps were recorded. `ids` are those to write."""
    requests: dict[str, float] = {}
    categories: dict[str, list[float]] = defaultdict(list)
    histogram: Counter[int] = Counter()
    for cell in sorted(cells, key=lambda cell: (isinstance(ids[cell.sample], str), ids[cell.sample])):
        lengths = [length for turn in cell.turns for length in chunks(turn)]
        if lengths and all(_recorded(turn) for turn in cell.turns):
            requests[str(ids[cell.sample])] = fmean(lengths)
            categories[samples[cell.sample].category].append(fmean(lengths))
            histogram.update(lengths)
    if not requests:
        return {}
    conditional, joint = rates(histogram)
    return {
        "Request_AL": requests,
        "Category_AL": {name: fmean(values) for name, values in sorted(categories.items())},
        "Average_AL": fmean(requests.values()),
        "Acceptance_Length_Histogram": {str(length): histogram[length] for length in sorted(histogram)},
        "Conditional_Acceptance_Rate": conditional,
        "Joint_Acceptance_Rate": joint,
    }


def _recorded(turn: Turn) -> bool:
    """Whether the turn's steps are known, or it had none."""
    return bool(turn.steps) or turn.n_tokens <= turn.prefill_emits


def rates(histogram: Mapping[int, int]) -> tuple[dict[str, float], dict[str, float]]:
    """Conditional: P(length >= k) / P(length >= previous length that occurs); joint: P(length >= k)."""
    total = sum(histogram.values())
    left = previous = total
    conditional, joint = {}, {}
    for length in sorted(histogram):
        conditional[str(length)] = left / previous
        joint[str(length)] = left / total
        previous = left
        left -= histogram[length]
    return conditional, joint


def timing(cells: Sequence[Cell]) -> dict[str, Any]:
    """Return the timing object of one round, every turn a request, one after the other."""
    turns = [turn for cell in cells for turn in cell.turns]
    tokens = [sum(chunks(turn)) if _recorded(turn) else turn.n_tokens for turn in turns]
    seconds = sum(turn.end_ns for turn in turns) / 1e9
    if not seconds:
        return {}
    overall = sum(tokens) / seconds
    first = [turn.first_ns / 1e9 for turn in turns if turn.first_ns is not None]
    gaps: list[float] = []
    after_first: list[float] = []
    for turn, count in zip(turns, tokens, strict=True):
        times = _times(turn)
        if len(times) > 2:
            gaps += [after - before for before, after in pairwise(times)]
            if times[-1] > times[1]:
                after_first.append((count - 1) / (times[-1] - times[1]))
    found: dict[str, Any] = {"Output TPS": overall, "Output TPS/gpu": overall}
    for name, values in (
        ("E2E Request Time", [turn.end_ns / 1e9 for turn in turns]),
        ("TTFT Time", first),
        ("Request Generation Step Time", gaps),
        ("Request Generation Tokens Per Second", after_first),
        ("Number of Output Tokens", tokens),
    ):
        if values:
            found[name] = _statistics(values)
    return found


def _times(turn: Turn) -> list[float]:
    """Start, first token and the end of every step that delivered, in seconds; empty where they were not recorded."""
    if turn.first_ns is None or "end_ns" not in turn.steps:
        return []
    ends = [end for end, kept in zip(turn.steps["end_ns"], turn.steps["kept"], strict=True) if kept]
    if not turn.prefill_emits:
        ends = ends[1:]
    return [0.0, turn.first_ns / 1e9, *(end / 1e9 for end in ends)]


def _statistics(values: Iterable[float]) -> dict[str, Any]:
    import numpy as np

    data = np.asarray(list(values), dtype=float)
    return {
        "min": f"{data.min():.4f}",
        "max": f"{data.max():.4f}",
        "mean": f"{data.mean():.4f}",
        "std": f"{data.std():.4f}",
        "quantiles": {str(q): f"{np.quantile(data, q):.4f}" for q in _QUANTILES},
    }


def _configuration(run: StoredRun, label: str) -> dict[str, Any]:
    plan = run.plan
    packages = run.environment.get("packages")
    return {
        "engine": "draftboard",
        "engine_version": draftboard.__version__,
        "model_dir": str(plan["model"]),
        "speculative_algorithm": label,
        "dataset": "+".join(suite["name"] for suite in plan["suites"]),
        "output_length": plan["max_new_tokens"],
        "concurrency": 1,
        "tp_size": 1,
        "gpu": str(run.environment.get("hardware", "")),
        "python_version": str(run.environment.get("python", "")),
        "packages": packages if isinstance(packages, dict) else {},
        "runtime_params": {"sampling_kwargs": plan["sampling"] or {}},
    }


def _response(cell: Cell, sample: SampleRecord, question: int | str) -> bytes:
    row = {
        "question_id": question,
        "category": sample.category,
        "turns": sample.turns,
        "choices": [{"index": 0, "turns": [turn.text for turn in cell.turns]}],
    }
    return (json.dumps(row, allow_nan=False) + "\n").encode("ascii")


def _results(found: Iterable[dict[str, Any]]) -> bytes | None:
    """Return an array of the results that hold anything; None where none does."""
    known = [result for result in found if result]
    return _json(known) if known else None


def _json(data: Any) -> bytes:
    return (json.dumps(data, allow_nan=False, indent=4) + "\n").encode("ascii")
