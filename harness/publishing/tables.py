"""The answers of a publication as Parquet, each with the trace of its steps.

Prompts and references are not in it: they belong to the suites, whose licences differ. A sample's key leads to them.
"""

import io
from collections.abc import Iterator, Sequence
from typing import Any

from draftboard.publishing.redaction import without_paths
from draftboard.records import Cell
from draftboard.store import StoredRun

__all__ = ["generation_rows", "generations_parquet"]

_TEXT, _WHOLE, _FRACTION, _LIST = "string", "int64", "float64", "list"
_STEPS = ("drafted", "nodes", "accepted", "kept", "draft_ns", "verify_ns", "other_ns", "end_ns")
_TURN = {
    "text": _TEXT,
    "finish": _TEXT,
    "prompt_tokens": _WHOLE,
    "prompt_sha256": _TEXT,
    "token_ids": _LIST,
    "prefill_emits": _WHOLE,
    "prefill_ns": _WHOLE,
    "first_ns": _WHOLE,
    "end_ns": _WHOLE,
    "cpu_ns": _WHOLE,
}
_GENERATIONS = {
    "run": _TEXT,
    "method": _TEXT,
    "sample": _TEXT,
    "suite": _TEXT,
    "domain": _TEXT,
    "repeat": _WHOLE,
    "status": _TEXT,
    "reason": _TEXT,
    "turn": _WHOLE,
    **_TURN,
    "tokens": _WHOLE,
    **{f"step_{name}": _LIST for name in _STEPS},
    "load_1min": _FRACTION,
    "peak_rss_bytes": _WHOLE,
    "peak_device_bytes": _WHOLE,
    "energy_j": _FRACTION,
}


def generations_parquet(rows: Sequence[dict[str, Any]]) -> bytes:
    """Return the rows of `generation_rows`, of one or several runs, as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {_TEXT: pa.string(), _WHOLE: pa.int64(), _FRACTION: pa.float64(), _LIST: pa.list_(pa.int64())}
    found = [{name: _fitting(row.get(name), kind) for name, kind in _GENERATIONS.items()} for row in rows]
    schema = pa.schema([(name, kinds[kind]) for name, kind in _GENERATIONS.items()])
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(found, schema=schema), sink)
    return sink.getvalue()


def generation_rows(name: str, run: StoredRun) -> Iterator[dict[str, Any]]:
    """Yield a row for each turn of a run's cells; a cell that failed or was skipped has one row without a turn."""
    samples = {sample.key: sample for sample in run.samples}
    for cell in run.cells:
        sample = samples[cell.sample]
        head = {
            "run": name,
            "method": without_paths(cell.method),
            "sample": without_paths(cell.sample),
            "suite": without_paths(sample.suite),
            "domain": without_paths(sample.domain),
            "repeat": cell.repeat,
            "status": cell.status,
            "reason": without_paths(cell.reason),
            "load_1min": cell.load_1min,
            "peak_rss_bytes": cell.peak_rss_bytes,
            "peak_device_bytes": cell.peak_device_bytes,
            "energy_j": cell.energy_j,
        }
        yield from ({**head, **turn} for turn in _turns(cell))


def _turns(cell: Cell) -> Iterator[dict[str, Any]]:
    for place, turn in enumerate(cell.turns):
        said = {name: getattr(turn, name) for name in _TURN}
        steps = {f"step_{name}": turn.steps.get(name) for name in _STEPS}
        yield {"turn": place, **said, **steps, "tokens": turn.n_tokens}
    if not cell.turns:
        yield {"turn": None}


def _fitting(value: Any, kind: str) -> Any:
    """Return a value as its column can hold it: no lone surrogate, no whole number beyond 64 bits."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if kind == _FRACTION and value is not None:
        return float(value)
    return None if kind == _WHOLE and value is not None and not -(2**63) <= value < 2**63 else value
