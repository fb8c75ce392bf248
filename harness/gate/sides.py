"""What one side of a comparison holds: turns with their times, or figures with their intervals.

A run and a pytest-benchmark file of ours say every cell; a results file says figures alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from draftboard.benchmark_json import BenchmarkRun, is_benchmark_json, read_benchmarks
from draftboard.errors import UserError
from draftboard.results import Figure, Group, MethodResult

__all__ = ["Clock", "Measured", "Side", "TimedTurn", "board_of", "measured", "read_side"]

Clock = Literal["wall", "cpu"]

_SHARED = ("decoding", "max new tokens", "device", "threads", "template", "history", "suite hash", "weights")
"""Conditions of a board that speed and output depend on."""
_ADVICE = "Compare two run folders, two results files, or two JSON files of pytest-benchmark."


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedTurn:
    """What a comparison needs of one turn."""

    prompt: str
    """Equal exactly when the prompts are; turns with different prompts are never compared."""
    tokens: int
    wall_s: float | None
    cpu_s: float | None
    """Processor time of the process; None where it was not recorded."""
    kept: int | None = None
    """Tokens that steps kept; None where steps were not recorded."""
    steps: int | None = None

    def seconds(self, clock: Clock) -> float | None:
        """Return the time by one clock."""
        return self.wall_s if clock == "wall" else self.cpu_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One method of a side."""

    label: str
    baseline: str = ""
    """Label of the method that its speedups are over; its own for the baseline itself."""
    cells: Mapping[tuple[str, int], Sequence[TimedTurn]] = field(default_factory=dict)
    """By sample and round, the turns of cells that ended well. Empty where only figures are known."""
    failed: int = 0
    missing: int = 0
    """Cells that its run was to have and does not: it was broken off."""
    output: str = ""
    """As `draftboard.results.MethodResult` has it."""
    settings: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    """Overall."""
    domain_figures: dict[str, dict[str, Figure]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Everything measured under one set of conditions."""

    name: str
    """Of the file or folder, for messages."""
    conditions: dict[str, str]
    """What both sides must share."""
    board: dict[str, str] = field(default_factory=dict)
    """The same as a board says it: what a run shares with a results file. Empty where there is no board."""
    remarks: dict[str, str] = field(default_factory=dict)
    """What may differ and is worth a word, such as versions."""
    methods: dict[str, Measured] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    """Of every timed sample."""
    notes: tuple[str, ...] = ()
    disturbed: tuple[str, ...] = ()
    """Signs that something else had the machine while it was measured."""

    @property
    def has_cells(self) -> bool:
        """Whether single cells are known, so that sides can be paired."""
        return any(method.cells for method in self.methods.values())


def read_side(path: Path) -> Side:
    """Read a run's folder, a results file or a pytest-benchmark file.

    Raises UserError for what is none of them, holds several groups of conditions, or is unfinished in a way that
    leaves nothing to compare.
    """
    from draftboard.foreign.folders import results_in
    from draftboard.store import read_run

    if path.is_dir() and not results_in(path):
        from draftboard.gate.runs import side_of_run

        return side_of_run(read_run(path))
    document = results_in(path) or path
    if not document.exists():
        raise UserError("there is no such file or folder", where=str(path), advice=_ADVICE)
    if is_benchmark_json(document):
        return _of_benchmarks(document, read_benchmarks(document))
    from draftboard.results_file import read_results

    groups = read_results(document).groups
    if len(groups) != 1:
        told = tuple(" · ".join(part for part in (g.model, g.suite, g.hardware) if part) for g in groups)
        raise UserError(
            f"holds {len(groups)} groups of results, and a side of a comparison is one",
            where=str(document),
            problems=told,
            advice="Keep each group in a file of its own.",
        )
    return _of_group(document.name, groups[0])


def measured(
    method: MethodResult,
    baseline: str,
    cells: Mapping[tuple[str, int], Sequence[TimedTurn]] | None = None,
    *,
    missing: int = 0,
) -> Measured:
    """Return a method of a board, with its cells where they are known."""
    return Measured(
        label=method.method,
        baseline=baseline,
        cells=cells or {},
        failed=sum(domain.failed for domain in method.domains.values()),
        missing=missing,
        output=method.output,
        settings=dict(method.settings),
        figures=method.overall,
        domain_figures={name: domain.figures for name, domain in method.domains.items()},
    )


def board_of(group: Group) -> dict[str, str]:
    """Return what another board, or a run, must share with this one."""
    about = {"model": group.model, "hardware": group.hardware, "suite": group.suite}
    return {
        **about,
        "dtype": group.conditions.get("dtype", ""),
        **{name: group.conditions[name] for name in _SHARED if name in group.conditions},
    }


def _of_group(name: str, group: Group) -> Side:
    board = board_of(group)
    return Side(
        name=name,
        conditions=board,
        board=board,
        methods={method.method: measured(method, group.baseline) for method in group.methods},
        notes=group.notes,
    )


def _of_benchmarks(path: Path, runs: Sequence[BenchmarkRun]) -> Side:
    """Take all tests of a file together; where there are several, a method is named by its test too."""
    several = len(runs) > 1
    conditions = {str(key): str(value) for key, value in runs[0].conditions.items()}
    differing = [run.test for run in runs if {str(k): str(v) for k, v in run.conditions.items()} != conditions]
    if differing:
        raise UserError(
            "its tests ran under different conditions, and a side of a comparison has one",
            where=str(path),
            problems=tuple(differing),
            advice="Write one --benchmark-json for each set of conditions.",
        )
    prefixes = {run.test: f"{run.test}: " if several else "" for run in runs}
    return Side(
        name=path.name,
        conditions=conditions,
        methods={
            prefixes[run.test] + label: Measured(
                label=prefixes[run.test] + label,
                baseline=prefixes[run.test] + run.baseline,
                cells={
                    (sample, number): [TimedTurn(prompt=prompt, tokens=tokens, wall_s=seconds, cpu_s=None)]
                    for sample, rounds in method.samples.items()
                    for number, ((seconds, tokens), prompt) in enumerate(
                        zip(rounds, method.prompts.get(sample) or [""] * len(rounds), strict=False)
                    )
                },
                output=method.output,
                settings=method.settings,
                figures=method.figures,
            )
            for run in runs
            for label, method in run.methods.items()
        },
        domains={sample: domain for run in runs for sample, domain in run.domains.items()},
    )
