"""A run's folder: written so that a crash loses at most the cell in work, read so that nothing half-written counts.

plan.json, environment.json and samples.jsonl are written before the first cell; generations.jsonl grows by whole
lines; divergences.jsonl, scores.jsonl and verdict.json can be remade or come last.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NotRequired, TypedDict, TypeVar

import msgspec

from draftboard.collecting import uncollected
from draftboard.errors import UserError
from draftboard.files import JsonLines, read_lines, write_atomic
from draftboard.records import SCHEMA, Cell, Divergence, SampleRecord, ScoreRecord, TraceRecord
from draftboard.scored import current_scores

__all__ = ["StoredRun", "create_run", "is_run", "open_cells", "read_records", "read_run", "write_json"]

PLAN, ENVIRONMENT, SAMPLES = "plan.json", "environment.json", "samples.jsonl"
CELLS, DIVERGENCES, SCORES, VERDICT = "generations.jsonl", "divergences.jsonl", "scores.jsonl", "verdict.json"
AUDIT = "audit.json"


class _MethodShape(TypedDict):
    label: str


class _SuiteShape(TypedDict):
    name: str
    content_hash: str
    samples: int


class _SamplingShape(TypedDict):
    temperature: float
    top_p: float
    top_k: int


class _PlanShape(TypedDict):
    """What every reader of a plan rests on; null where an imported run's files do not say it."""

    model: str
    methods: list[_MethodShape]
    suites: list[_SuiteShape]
    sampling: _SamplingShape | None
    max_new_tokens: int | None
    seed: int | None
    repeats: int
    dtype: str
    device: str
    template: str
    warmup: str
    profile: bool
    resolved: NotRequired[dict[str, Any]]


class _CurveShape(TypedDict):
    rows: list[int]
    cost: list[float]
    one_row_s: float


class _EnvironmentShape(TypedDict):
    cost_curve: NotRequired[_CurveShape | None]
    packages: NotRequired[dict[str, str | None]]
    peak_rss_bytes: NotRequired[int | None]


class _VerdictShape(TypedDict):
    valid: bool
    reasons: list[str]


class _LimitShape(TypedDict):
    value: float
    source: str
    positions: int
    percentile: float | None


class _AuditShape(TypedDict):
    limit: _LimitShape | None


class _StepsShape(TypedDict):
    """Of an imported turn, what its file says; of our own, all."""

    accepted: list[int]
    kept: list[int]
    drafted: NotRequired[list[int]]
    nodes: NotRequired[list[int]]
    draft_ns: NotRequired[list[int]]
    verify_ns: NotRequired[list[int]]
    other_ns: NotRequired[list[int]]
    end_ns: NotRequired[list[int]]


R = TypeVar("R", Cell, SampleRecord, Divergence, ScoreRecord, TraceRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """Everything that a run's folder holds, the last record of a doubled cell."""

    path: Path
    plan: dict[str, Any]
    environment: dict[str, Any]
    samples: list[SampleRecord]
    cells: list[Cell]
    divergences: list[Divergence] = field(default_factory=list)
    scores: list[ScoreRecord] = field(default_factory=list)
    verdict: dict[str, Any] | None = None
    audit: dict[str, Any] | None = None
    """What `draftboard audit` last found."""
    warnings: tuple[str, ...] = ()
    """What was dropped or doubled on reading."""
    stale_scores: str = ""
    """Which scores were left out, because they are of other answers than the run holds; empty if none were."""


def is_run(path: Path) -> bool:
    """Whether the folder holds a run."""
    return (path / PLAN).is_file()


def create_run(path: Path, plan: dict[str, Any], environment: dict[str, Any], samples: Iterable[SampleRecord]) -> None:
    """Write what stands before the first cell; plan.json last, for it is what makes the folder a run."""
    write_atomic(path / SAMPLES, b"".join(msgspec.json.encode(sample) + b"\n" for sample in samples))
    write_json(path / ENVIRONMENT, {"schema": SCHEMA, **environment})
    write_json(path / PLAN, {"schema": SCHEMA, **plan})


def write_json(path: Path, data: Any) -> None:
    """Write strict JSON under a temporary name, then rename it."""
    write_atomic(path, msgspec.json.format(msgspec.json.encode(data), indent=1) + b"\n")


def open_cells(path: Path) -> JsonLines:
    """Open the run's cells for appending; a torn last line is cut off first."""
    return JsonLines(path / CELLS)


@uncollected()
def read_run(path: Path) -> StoredRun:
    """Read a run. Raises UserError for a folder that is not one, a newer schema, or a broken inner line."""
    if not path.exists():
        raise UserError("there is no such folder", where=str(path), advice="Runs are made by draftboard run --out DIR.")
    if not is_run(path):
        raise UserError(
            "is not a run: it has no plan.json",
            where=str(path),
            advice="Name the folder that draftboard run --out wrote, or a results file (.json, .jsonl).",
        )
    warnings: list[str] = []
    run = StoredRun(
        path=path,
        plan=_read_json(path / PLAN, _PlanShape),
        environment=_read_json(path / ENVIRONMENT, _EnvironmentShape),
        samples=read_records(path / SAMPLES, SampleRecord, warnings),
        cells=_last_of_each(read_records(path / CELLS, Cell, warnings), warnings),
        divergences=read_records(path / DIVERGENCES, Divergence, warnings),
        scores=read_records(path / SCORES, ScoreRecord, warnings),
        verdict=_read_json(path / VERDICT, _VerdictShape) if (path / VERDICT).exists() else None,
        audit=_read_json(path / AUDIT, _AuditShape, "Delete it and audit the run again.")
        if (path / AUDIT).exists()
        else None,
        warnings=tuple(warnings),
    )
    lacking = {cell.sample for cell in run.cells} - {sample.key for sample in run.samples}
    if lacking or not run.samples:
        raise UserError(
            f"lacks samples of this run: {', '.join(sorted(lacking)[:5]) or 'all of them'}",
            where=str(path / SAMPLES),
            advice="Restore it, or run again: without its samples a run can be neither read nor gone on with.",
        )
    scores, stale = current_scores(run.scores, run.samples, run.cells)
    return replace(run, scores=scores, stale_scores=stale)


def _read_json(path: Path, shape: Any, remedy: str = "") -> dict[str, Any]:
    """Read a document that has at least that shape."""
    try:
        data = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(
            f"is damaged: {error}", where=str(path), advice=remedy or "Restore it, or run again."
        ) from error
    _check_schema(data.get("schema"), str(path))
    advice = remedy or "It was not written by draftboard run, or is damaged: restore it, or run again."
    lacking = [key for key in shape.__annotations__ if key in shape.__required_keys__ and key not in data]
    if lacking:
        raise UserError(f"is not of a run: it lacks {', '.join(lacking)}", where=str(path), advice=advice)
    try:
        msgspec.convert(data, shape)
    except msgspec.ValidationError as error:
        raise UserError(f"is not of a run: {error}", where=str(path), advice=advice) from error
    return data


def read_records(path: Path, kind: type[R], warnings: list[str]) -> list[R]:
    """Read a store of the run, empty where it is not there; what was torn is told in `warnings`.

    Raises UserError for broken records, all of them at once, and for a newer schema.
    """
    if not path.exists():
        return []
    found: list[R] = []
    problems: list[str] = []
    decoder = msgspec.json.Decoder(kind)

    def take(number: int, text: bytes) -> None:
        try:
            record = decoder.decode(text)
            _check_steps(record)
        except msgspec.ValidationError as error:
            whole = msgspec.json.decode(text)
            if isinstance(whole, dict):
                _check_schema(whole.get("schema", SCHEMA), f"{path}:{number}")
            problems.append(f"{path}:{number}: not a {kind.__name__.lower()} record ({error})")
        else:
            _check_schema(record.schema, f"{path}:{number}")
            found.append(record)

    warnings += read_lines(path, take).warnings
    if problems:
        raise UserError(
            f"{len(problems)} broken record(s)",
            where=str(path),
            problems=tuple(problems),
            advice="Restore the file, or delete these lines and resume the run.",
        )
    return found


_STEPS = tuple(_StepsShape.__annotations__)


def _check_steps(record: object) -> None:
    """Refuse a turn whose columns are not whole numbers, one of each for every step."""
    for turn in record.turns if isinstance(record, Cell) else ():
        steps = turn.steps
        if not steps:
            continue
        columns = [steps[name] for name in _STEPS if name in steps]
        plain = {*map(type, columns)} == {list} and {*map(type, chain.from_iterable(columns))} <= {int}
        if not plain or "kept" not in steps or "accepted" not in steps:
            # A look at the types is much quicker than a conversion, which in turn says what is wrong.
            msgspec.convert(steps, _StepsShape)
        if len({*map(len, columns)}) > 1:
            raise msgspec.ValidationError("the columns of its steps differ in length")


def _check_schema(schema: object, where: str) -> None:
    if not isinstance(schema, int) or schema < 1:
        raise UserError("has no schema number", where=where, advice="It was not written by draftboard, or is damaged.")
    if schema > SCHEMA:
        raise UserError(
            f"has schema {schema}; this draftboard reads up to {SCHEMA}",
            where=where,
            advice="Upgrade draftboard: pip install -U draftboard",
        )


def _last_of_each(cells: list[Cell], warnings: list[str]) -> list[Cell]:
    """A cell that stands twice counts once, with the later record; each doubled one is told."""
    last: dict[tuple[str, str, int], Cell] = {}
    for cell in cells:
        if cell.key in last:
            method, sample, repeat = cell.key
            told = f"{method} on {sample}, repeat {repeat}, is recorded more than once: the last one counts"
            if told not in warnings:
                warnings.append(told)
        last[cell.key] = cell
    return list(last.values())
