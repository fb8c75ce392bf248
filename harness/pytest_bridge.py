"""A run's times as benchmarks of pytest-benchmark: one benchmark a method, one number a sample and round.

The number is seconds per kept token, end to end, so that a method that writes a shorter answer does not look faster.
pytest-benchmark computes its statistics, saves and compares them as it does those of any other test.
"""

import hashlib
from typing import Any

import msgspec

from draftboard.benchmark_json import KEY, BenchmarkRecord
from draftboard.errors import UserError
from draftboard.records import Cell
from draftboard.results import Figure
from draftboard.run_result import MethodView, RunResult
from draftboard.scored import domain_labels

__all__ = ["conditions_of", "record_of", "record_run"]

_FIGURES = ("speedup", "speedup_decode", "acceptance_length", "acceptance_rate", "tokens_per_s")
_NEEDED = ("_make_stats", "_mode", "disabled", "group", "name", "fullname", "param", "params", "extra_info")


def record_run(benchmark: Any, result: RunResult, test: str) -> None:
    """Add one benchmark for each method of the run to a `BenchmarkFixture`; none where benchmarks are disabled.

    A method without a timed sample gets none. Raises UserError for a second run in one test, whose benchmarks would
    carry the same names, and for a pytest-benchmark whose fixture is built otherwise than that of release 5.
    """
    from pytest_benchmark import __version__

    missing = [name for name in _NEEDED if not hasattr(benchmark, name)]
    if missing:
        raise UserError(
            f"pytest-benchmark {__version__} keeps its benchmarks in another way: its fixture has no {missing[0]}",
            advice="Install a release that is known to work: pip install 'pytest-benchmark>=5,<6'",
        )
    if benchmark._mode:
        raise UserError(
            f"the benchmark of this test was used already, in {benchmark._mode} mode",
            advice="Run once a test with draftboard_benchmark; further runs with draftboard_run.",
        )
    # pytest-benchmark warns of a fixture that nothing was done with.
    benchmark._mode = "draftboard"
    if benchmark.disabled:
        return
    # All of them are made before the first is given away: pytest-benchmark breaks down on one without times.
    for record in [record_of(result, view, test) for view in result.values()]:
        times = [seconds / tokens for rounds in record.samples.values() for seconds, tokens in rounds]
        if not times:
            continue
        info = {**benchmark.extra_info, **_plain(record), KEY: msgspec.to_builtins(record)}
        stats = benchmark._make_stats(1)
        stats.name = _with(benchmark.name, record.method)
        stats.fullname = _with(benchmark.fullname, record.method)
        stats.group = benchmark.group or benchmark.name
        stats.param = f"{benchmark.param}-{record.method}" if benchmark.param else record.method
        stats.params = {**(benchmark.params or {}), "method": record.method}
        stats.extra_info = info
        for time in times:
            stats.update(time)


def _with(name: str, label: str) -> str:
    """The name of a test with the method among its parameters, as pytest writes them."""
    return f"{name[:-1]}-{label}]" if name.endswith("]") else f"{name}[{label}]"


def _plain(record: BenchmarkRecord) -> dict[str, Any]:
    """The headline for people who read the file; all of it stands in the record too."""
    found: dict[str, Any] = {}
    for name in ("acceptance_length", "acceptance_rate", "speedup"):
        figure = record.figures.get(name, Figure(value=None))
        found[name] = figure.value
        if figure.interval is not None:
            found |= {f"{name}_low": figure.interval.low, f"{name}_high": figure.interval.high}
    return {**found, "output": record.output}


def record_of(result: RunResult, view: MethodView, test: str) -> BenchmarkRecord:
    """Return what is kept of one method: conditions, figures, and its cells that were timed."""
    timed = {sample.key for sample in result.run.samples if sample.timed}
    samples: dict[str, list[tuple[float, int]]] = {}
    prompts: dict[str, list[str]] = {}
    cells = [cell for cell in result.run.cells if cell.method == view.label and cell.sample in timed]
    for cell in sorted(cells, key=lambda cell: (cell.sample, cell.repeat)):
        seconds, tokens = sum(turn.end_ns for turn in cell.turns) / 1e9, sum(turn.n_tokens for turn in cell.turns)
        if cell.status == "ok" and seconds > 0 and tokens > 0:
            samples.setdefault(cell.sample, []).append((seconds, tokens))
            prompts.setdefault(cell.sample, []).append(_prompts(cell))
    return BenchmarkRecord(
        test=test,
        method=view.label,
        baseline=result.group.baseline,
        conditions=conditions_of(result),
        settings=dict(view.result.settings),
        output=view.output,
        figures={name: view.figures[name] for name in _FIGURES if name in view.figures},
        samples=samples,
        prompts=prompts,
        domains={sample: domain for sample, domain in domain_labels(result.run.samples).items() if sample in samples},
    )


def _prompts(cell: Cell) -> str:
    return hashlib.sha256(" ".join(turn.prompt_sha256 for turn in cell.turns).encode()).hexdigest()[:16]


def conditions_of(result: RunResult) -> dict[str, Any]:
    """Return what two runs must share for their times to be compared, and the software that they ran on."""
    plan, environment = result.run.plan, result.run.environment
    resolved = plan.get("resolved") or {}
    asked = ("model", "revision", "model_fingerprint", "sampling", "max_new_tokens", "stop", "history", "seed")
    found = {
        **{name: plan.get(name) for name in asked},
        "hardware": environment.get("hardware"),
        "threads": environment.get("threads"),
        "dtype": resolved.get("dtype", plan.get("dtype")),
        "device": resolved.get("device", plan.get("device")),
        "template_sha256": resolved.get("template_sha256"),
        "suites": {suite["name"]: suite["content_hash"] for suite in plan["suites"]},
        "prompts_sha256": plan.get("prompts_sha256"),
        "repeats": plan.get("repeats"),
        "profile": plan.get("profile"),
        "packages": environment.get("packages") or {},
    }
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain
