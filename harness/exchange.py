"""What `draftboard import` and `draftboard export` do: foreign files into runs and results, runs into foreign files.

Returns the exit code. A short summary goes to stdout; what a reader has to know goes to stderr, and into what was
imported.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from draftboard.leaderboards.text import terminal_text
from draftboard.results import Figure, MethodResult, Results
from draftboard.wording import counted

if TYPE_CHECKING:
    from draftboard.foreign.spec_bench_export import Exported
    from draftboard.foreign.speed_py import SpeedPy
    from draftboard.store import StoredRun

__all__ = [
    "export_files_command",
    "import_counters_command",
    "import_spec_bench_command",
    "import_specdec_bench_command",
    "import_stream_command",
    "import_vllm_command",
    "speed_py_command",
    "token_counter",
]


def import_spec_bench_command(
    files: Sequence[Path],
    *,
    out: Path,
    baseline: str | None,
    questions: Path | None,
    tokenizer: str | None,
    hardware: str,
    model: str,
) -> int:
    """Make a run of answer files."""
    from draftboard.commands import finish_run
    from draftboard.foreign.folders import refuse_existing
    from draftboard.foreign.spec_bench import import_spec_bench

    refuse_existing(out)
    made = import_spec_bench(
        files,
        out,
        baseline=baseline,
        questions=questions,
        count_tokens=token_counter(tokenizer) if tokenizer is not None else None,
        tokenizer=tokenizer or "",
        hardware=hardware,
        model=model,
        finish=finish_run,
    )
    for method in made.methods:
        role = ", the baseline" if method.label == made.baseline else ""
        print(
            f"{terminal_text(method.label)}: {counted(len(method.rows), 'row')}, {method.duplicates} doubled, "
            f"{method.failed} failed{role}"
        )
    _tell(made.notes)
    print(f"run: {out}   tables: draftboard show {out}")
    return 0


def import_specdec_bench_command(paths: Sequence[Path], *, out: Path, hardware: str, model: str) -> int:
    """Make a results document of directories that specdec_bench wrote."""
    from draftboard.foreign.specdec_bench import read_specdec_bench

    return _import_results(out, lambda: read_specdec_bench(paths, model=model, hardware=hardware))


def import_vllm_command(paths: Sequence[Path], *, out: Path, hardware: str, model: str) -> int:
    """Make a results document of files that vllm bench serve wrote."""
    from draftboard.foreign.vllm import read_vllm

    return _import_results(out, lambda: read_vllm(paths, model=model, hardware=hardware))


def import_stream_command(paths: Sequence[Path], *, out: Path, label: str, hardware: str, model: str) -> int:
    """Make a results document of recorded streams."""
    from draftboard.foreign.stream import read_stream

    return _import_results(out, lambda: read_stream(paths, label=label, model=model, hardware=hardware), figures=True)


def import_counters_command(before: Path, after: Path, *, out: Path, label: str, hardware: str, model: str) -> int:
    """Make a results document of the difference between two pages of counters."""
    from draftboard.foreign.counters import read_counters

    return _import_results(
        out, lambda: read_counters(before, after, label=label, model=model, hardware=hardware), figures=True
    )


def export_files_command(form: str, run: Path, out: Path) -> int:
    """Write a run in another tool's form: `spec-bench`, `specdec-bench` or `vllm`."""
    from draftboard.foreign.folders import refuse_existing, refuse_results
    from draftboard.store import read_run

    refuse_results(run, "exported")
    refuse_existing(out)
    stored = read_run(run)
    done = _exporter(form)(stored, out)
    _tell((*stored.warnings, *done.notes))
    print("\n".join(terminal_text(str(path)) for path in done.paths))
    return 0


def _exporter(form: str) -> "Callable[[StoredRun, Path], Exported]":
    if form == "spec-bench":
        from draftboard.foreign.spec_bench_export import export_spec_bench

        return export_spec_bench
    if form == "specdec-bench":
        from draftboard.foreign.specdec_bench_export import export_specdec_bench

        return export_specdec_bench
    from draftboard.foreign.vllm_export import export_vllm

    return export_vllm


def speed_py_command(method: Path, baseline: Path, *, tokenizer: str, as_json: bool) -> int:
    """Print what Spec-Bench's speed script gives for two answer files, and the same on matched rows."""
    from draftboard.foreign.speed_py import speed_py

    result = speed_py(method, baseline, token_counter(tokenizer))
    _tell(result.notes)
    if as_json:
        print(json.dumps(result.as_json(), allow_nan=False, indent=1))
    else:
        print(_speed_table(result))
    return 0


def token_counter(model: str) -> Callable[[str], int]:
    """Load a model's tokenizer and return the count of its `input_ids` of a text, special tokens included."""
    from draftboard import models

    tokenizer = models.load_tokenizer(models.resolve(model))

    def count(text: str) -> int:
        return len(tokenizer(text).input_ids)

    return count


def _import_results(out: Path, read: Callable[[], Results], *, figures: bool = False) -> int:
    from draftboard.foreign.folders import RESULTS, refuse_existing, write_results

    refuse_existing(out)
    results = read()
    write_results(out, results)
    for group in results.groups:
        for method in group.methods:
            about = f" ({group.model})" if len({other.model for other in results.groups}) > 1 else ""
            print(f"{terminal_text(method.method + about)}: {counted(len(method.overall), 'figure')}")
            if figures:
                _print_figures(method)
            _tell(f"{method.method}: {note}" for note in method.notes)
    _tell(note for group in results.groups for note in group.notes)
    print(f"results: {out / RESULTS}   tables: draftboard show {out}")
    return 0


def _print_figures(method: MethodResult) -> None:
    figures: dict[str, Figure] = dict(method.overall)
    for kind, places in method.positions.items():
        figures |= {f"{kind} place {place}": figure for place, figure in enumerate(places, start=1)}
    footnotes: dict[str, int] = {}
    for name, figure in figures.items():
        value = f"n/a ({figure.reason})" if figure.value is None else f"{figure.value:.6f}".rstrip("0").rstrip(".")
        mark = f" [{footnotes.setdefault(figure.signature, len(footnotes) + 1)}]" if figure.signature else ""
        print(f"  {terminal_text(name)}: {terminal_text(value)}{mark}")
    for note, number in footnotes.items():
        print(f"  [{number}] {terminal_text(note)}")


def _speed_table(result: "SpeedPy") -> str:
    """Full precision, since this is for comparing with another program's output."""
    lines = ["speed.py-compatible, then the same arithmetic on matched rows"]
    for name, task in result.tasks.items():
        own, base, both = task.rows
        lines.append(f"{name}: {counted(own, 'row')}, {base} of the baseline, {both} matched")
        for title, field in (
            ("mean accepted tokens", "mean_accepted"),
            ("tokens per second", "tokens_per_s"),
            ("tokens per second, baseline", "baseline_tokens_per_s"),
            ("speedup", "speedup"),
        ):
            lines.append(f"  {title:<28}{getattr(task.original, field)!r:<22}{getattr(task.matched, field)!r}")
        lines.append(f"  {'speedup, pooled (ours)':<28}{'':<22}{task.pooled_speedup!r}")
    return "\n".join(lines)


def _tell(notes: Iterable[str]) -> None:
    for note in dict.fromkeys(notes):
        print(f"draftboard: {terminal_text(note)}", file=sys.stderr)
