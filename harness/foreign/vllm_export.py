"""A run as `vllm bench serve` writes its aggregates, one file per method, so that its plots show ours.

Our requests come one after the other, so the file says a concurrency of 1. Every turn is a request. What was not
recorded leaves its keys out (suites-and-scoring 10.3).
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from draftboard.foreign.folders import file_names
from draftboard.foreign.spec_bench_export import Exported, good_cells, write_all
from draftboard.measures.latency import gap_seconds
from draftboard.measures.positions import positions
from draftboard.measures.turns import TurnFacts, facts
from draftboard.store import StoredRun

__all__ = ["aggregates", "export_vllm"]


def export_vllm(run: StoredRun, out: Path) -> Exported:
    """Write `<label>.json` of every method into folder `out`.

    Raises UserError when nothing in the run ended without error, something is at `out`, or it cannot be written.
    """
    labels = [str(table["label"]) for table in run.plan["methods"]]
    names = file_names(labels)
    contents: dict[str, bytes] = {}
    notes: list[str] = []
    for label in labels:
        content = aggregates(run, label)
        if content:
            contents[f"{names[label]}.json"] = (json.dumps(content, allow_nan=False) + "\n").encode("ascii")
        else:
            notes.append(f"{label}: no cell ended without error, so there is no file")
    return write_all(run, out, contents, notes)


def aggregates(run: StoredRun, label: str) -> dict[str, Any]:
    """Return the keys of one method; empty where it has no good cell."""
    cells = [cell for found in good_cells(run, label).values() for cell in found]
    turns = facts(cells)
    if not turns:
        return {}
    duration = sum(turn.seconds for turn in turns)
    prompts = sum(turn.turn.prompt_tokens for turn in turns)
    tokens = sum(turn.tokens for turn in turns)
    failed = sum(cell.method == label and cell.status != "ok" for cell in run.cells)
    found: dict[str, Any] = {
        **_date(run),
        "backend": "draftboard",
        "label": label,
        "model_id": str(run.plan["model"]),
        "tokenizer_id": str(run.plan["model"]),
        "num_prompts": len(turns) + failed,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": 1,
        "duration": duration,
        "completed": len(turns),
        "failed": failed,
        "total_output_tokens": tokens,
    }
    if prompts:
        found["total_input_tokens"] = prompts
    if duration:
        found["request_throughput"] = len(turns) / duration
        found["output_throughput"] = tokens / duration
        if prompts:
            found["total_token_throughput"] = (tokens + prompts) / duration
    return {**found, **_latencies(turns), **_acceptance(turns)}


def _latencies(turns: Sequence[TurnFacts]) -> dict[str, Any]:
    first = [turn.turn.first_ns / 1e6 for turn in turns if turn.turn.first_ns is not None]
    per_token = [
        (turn.turn.end_ns - turn.turn.first_ns) / 1e6 / (turn.tokens - 1)
        for turn in turns
        if turn.turn.first_ns is not None and turn.tokens > 1
    ]
    between = (gap_seconds(turns) * 1e3).tolist()
    found: dict[str, Any] = {}
    for name, values in (
        ("ttft", first),
        ("tpot", per_token),
        ("itl", between),
        ("e2el", [turn.seconds * 1e3 for turn in turns]),
    ):
        if values:
            found |= _statistics(name, values)
    return found


def _statistics(name: str, values: Sequence[float]) -> dict[str, float]:
    import numpy as np

    data = np.asarray(values, dtype=float)
    return {
        f"mean_{name}_ms": float(data.mean()),
        f"median_{name}_ms": float(np.median(data)),
        f"std_{name}_ms": float(data.std()),
        f"p99_{name}_ms": float(np.percentile(data, 99)),
    }


def _acceptance(turns: Sequence[TurnFacts]) -> dict[str, Any]:
    """The counters of speculation: steps that drafted, and accepted before any cut, as the server would count."""
    sums = [turn.steps for turn in turns]
    drafts = [s.drafting for s in sums if s is not None and s.drafting is not None]
    drafted = [s.drafted for s in sums if s is not None and s.drafted is not None]
    accepted = [s.accepted_raw for s in sums if s is not None and s.accepted_raw is not None]
    if not len(drafts) == len(drafted) == len(accepted) == len(turns) or not sum(drafts) or not sum(drafted):
        return {}
    rates = [figure.value for figure in positions(turns).get("vllm", ()) if figure.value is not None]
    return {
        "spec_decode_acceptance_rate": 100 * sum(accepted) / sum(drafted),
        "spec_decode_acceptance_length": 1 + sum(accepted) / sum(drafts),
        "spec_decode_num_drafts": sum(drafts),
        "spec_decode_draft_tokens": sum(drafted),
        "spec_decode_accepted_tokens": sum(accepted),
        "spec_decode_per_position_acceptance_rates": rates,
    }


def _date(run: StoredRun) -> dict[str, str]:
    load = run.environment.get("load")
    time = load.get("time_s") if isinstance(load, dict) else None
    if not isinstance(time, int | float):
        return {}
    return {"date": f"{datetime.fromtimestamp(time, tz=UTC):%Y%m%d-%H%M%S}"}
