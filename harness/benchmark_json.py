"""The benchmarks that `draftboard_benchmark` leaves in a JSON file of pytest-benchmark, read back as plain data.

A file of `--benchmark-json` or `--benchmark-save` holds one benchmark a method; what is ours of it stands under
`extra_info.draftboard`. Benchmarks of other code in the same file are left alone.
"""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from draftboard.errors import UserError
from draftboard.results import Figure

__all__ = [
    "KEY",
    "SCHEMA",
    "BenchmarkMethod",
    "BenchmarkRecord",
    "BenchmarkRun",
    "is_benchmark_json",
    "read_benchmarks",
]

KEY = "draftboard"
"""Key of `extra_info` that our record stands under."""
SCHEMA = 1

_ADVICE = "Give a file that pytest --benchmark-json wrote for tests with the fixture draftboard_benchmark."


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRecord:
    """What one benchmark says of its method: the object under `extra_info.draftboard`."""

    test: str
    """Node id of the test; its methods ran interleaved, and are compared with each other."""
    method: str
    """The label."""
    baseline: str
    conditions: dict[str, Any]
    """What two runs must share to be compared: model and its fingerprint, hardware, dtype, suite hashes, sampling …"""
    settings: dict[str, Any] = field(default_factory=dict)
    output: str = ""
    figures: dict[str, Figure] = field(default_factory=dict)
    """Overall figures of the run, with their intervals."""
    samples: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """By sample, one (seconds, kept tokens) a round, turns added up."""
    prompts: dict[str, list[str]] = field(default_factory=dict)
    """By sample, one hash a round of the prompts of its turns. Where it differs between two runs an earlier answer
    did, and the times are of different questions."""
    domains: dict[str, str] = field(default_factory=dict)
    """By sample."""
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkMethod:
    """One method of a test."""

    method: str
    settings: dict[str, Any]
    output: str
    figures: dict[str, Figure]
    samples: dict[str, tuple[tuple[float, int], ...]]
    """By sample, one (seconds, kept tokens) a round."""
    prompts: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRun:
    """One test's run."""

    test: str
    baseline: str
    conditions: dict[str, Any]
    methods: dict[str, BenchmarkMethod]
    """By label, the baseline among them if it was timed."""
    domains: dict[str, str]
    """By sample."""


def is_benchmark_json(path: Path) -> bool:
    """Whether the file looks like one of pytest-benchmark, ours or not. False for what cannot be read."""
    try:
        data = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and isinstance(data.get("benchmarks"), list) and "machine_info" in data


def read_benchmarks(path: Path) -> tuple[BenchmarkRun, ...]:
    """Return the runs of a file in its order.

    Raises UserError for a file that is not of pytest-benchmark, that holds no benchmark of ours, that a newer
    draftboard wrote, or whose records are damaged, all faults at once.
    """
    benchmarks = _benchmarks(path)
    problems: list[str] = []
    runs: dict[str, BenchmarkRun] = {}
    ours = 0
    for index, benchmark in enumerate(benchmarks):
        info = benchmark.get("extra_info") if isinstance(benchmark, dict) else None
        if not isinstance(info, dict) or KEY not in info:
            continue
        ours += 1
        where = f"benchmarks[{index}]"
        record = _record(info[KEY], where, path, problems)
        if record is not None:
            _add(record, runs, where, problems)
    if not ours:
        count = len(benchmarks)
        held = f"none of its {count} benchmarks is" if count else "it holds no benchmarks, and so none that is"
        raise UserError(f"{held} of draftboard_benchmark", where=str(path), advice=_ADVICE)
    if problems:
        raise UserError(
            f"{len(problems)} damaged record(s)",
            where=str(path),
            problems=tuple(problems),
            advice="Restore the file, or run the tests again.",
        )
    return tuple(runs.values())


def _benchmarks(path: Path) -> list[Any]:
    try:
        data = json.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UserError(f"is not UTF-8 (byte {error.start})", where=str(path), advice=_ADVICE) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"is not JSON: {error}", where=str(path), advice=_ADVICE) from error
    found = data.get("benchmarks") if isinstance(data, dict) else None
    if not isinstance(found, list):
        raise UserError(
            "is not a file of pytest-benchmark: it has no list `benchmarks`", where=str(path), advice=_ADVICE
        )
    return found


def _record(data: Any, where: str, path: Path, problems: list[str]) -> BenchmarkRecord | None:
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        problems.append(f"{where}: extra_info.{KEY} has no schema number")
        return None
    if schema > SCHEMA:
        raise UserError(
            f"{where} has schema {schema}; this draftboard reads up to {SCHEMA}",
            where=str(path),
            advice="Upgrade draftboard: pip install -U draftboard",
        )
    try:
        record = msgspec.convert(data, BenchmarkRecord, strict=True)
    except msgspec.ValidationError as error:
        problems.append(f"{where}: {error}")
        return None
    faults = [
        f"{where}: sample {sample!r}, round {number}: {seconds!r} s and {tokens!r} tokens are no measurement"
        for sample, rounds in record.samples.items()
        for number, (seconds, tokens) in enumerate(rounds)
        if not (math.isfinite(seconds) and seconds > 0 and tokens > 0)
    ]
    problems += faults
    return None if faults else record


def _add(record: BenchmarkRecord, runs: dict[str, BenchmarkRun], where: str, problems: list[str]) -> None:
    run = runs.setdefault(
        record.test,
        BenchmarkRun(test=record.test, baseline=record.baseline, conditions=record.conditions, methods={}, domains={}),
    )
    if record.method in run.methods:
        problems.append(f"{where}: {record.method} of {record.test} stands in the file twice")
    if (run.baseline, run.conditions) != (record.baseline, record.conditions):
        problems.append(f"{where}: {record.method} was measured under other conditions than the rest of {record.test}")
    run.domains.update(record.domains)
    run.methods[record.method] = BenchmarkMethod(
        method=record.method,
        settings=record.settings,
        output=record.output,
        figures=record.figures,
        samples={sample: tuple(rounds) for sample, rounds in record.samples.items()},
        prompts={sample: tuple(rounds) for sample, rounds in record.prompts.items()},
    )
