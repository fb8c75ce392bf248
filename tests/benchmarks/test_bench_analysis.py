"""What it takes to read, analyse and render a large run: 100,000 cells, five methods on 20,000 samples.

    pytest tests/benchmarks -k "analysis or board" --benchmark-enable --benchmark-columns=min,median,rounds

The board of such a run is to take 20 seconds and 1.5 GB in all, on two quiet cores. Times are of the process, so that
whatever else runs on the machine weighs less. `-k small` is a tenth.
"""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from draftboard.analysis import analyse
from draftboard.records import Cell, Turn
from draftboard.store import CELLS, create_run, read_run

from made_runs import stored

METHODS = ("autoregressive", "a", "b", "c", "d")


def cells(samples: int) -> Iterator[Cell]:
    """Answers of 8 to 24 tokens: the number of cells is what counts here, not their length."""
    rng = random.Random(1)
    for index in range(samples):
        ids = [rng.randrange(50_000) for _ in range(rng.randint(8, 24))]
        for method in METHODS:
            kept: list[int] = []
            while sum(kept) < len(ids) - 1:
                most = len(ids) - 1 - sum(kept)
                kept.append(min(most, 1 if method == "autoregressive" else rng.randint(1, 4)))
            times = [max(1, round(rng.gauss(30e6, 1e6))) for _ in kept]
            yield Cell(method=method, sample=f"s/{index}", turns=[_turn(ids, kept, times)], load_1min=1.0)


def _turn(ids: list[int], kept: list[int], times: list[int]) -> Turn:
    ends = [50_000_000]
    for step in times:
        ends.append(ends[-1] + step)
    drafted = [0 if max(kept) == 1 else 4] * len(kept)
    part = [step // 3 for step in times]
    return Turn(
        prompt_tokens=30,
        prompt_sha256="p",
        token_ids=ids,
        text="word " * len(ids),
        finish="eos",
        prefill_ns=49_000_000,
        first_ns=50_000_000,
        end_ns=ends[-1],
        cpu_ns=ends[-1],
        first_cpu_ns=50_000_000,
        steps={
            "drafted": drafted,
            "nodes": drafted,
            "accepted": [count - 1 for count in kept],
            "kept": kept,
            "draft_ns": part,
            "verify_ns": part,
            "other_ns": part,
            "end_ns": ends[1:],
        },
    )


def write(path: Path, samples: int) -> None:
    domains = {str(index): f"domain {index % 6}" for index in range(samples)}
    run = stored([], domains=domains, methods=METHODS)
    create_run(path, run.plan, run.environment, run.samples)
    with (path / CELLS).open("wb") as file:
        file.writelines(msgspec.json.encode(cell) + b"\n" for cell in cells(samples))


SIZES = pytest.mark.parametrize("samples", [pytest.param(2_000, id="small"), pytest.param(20_000, id="large")])


@SIZES
@pytest.mark.benchmark(timer=time.process_time)
def test_bench_analysis_of_a_stored_run(benchmark: Any, request: Any, tmp_path: Path, samples: int) -> None:
    # Without timings a few samples prove that this works.
    if not request.config.getoption("--benchmark-enable"):
        samples = 50
    write(tmp_path, samples)
    group = benchmark.pedantic(lambda: analyse(read_run(tmp_path)), rounds=1)
    assert group.methods[1].overall["speedup"].interval.low > 1


@SIZES
def test_bench_board_of_a_stored_run(benchmark: Any, request: Any, tmp_path: Path, samples: int) -> None:
    """The whole command in a process of its own; the largest resident set of all such stands in `extra_info`."""
    if not request.config.getoption("--benchmark-enable"):
        pytest.skip("tests of rendering prove that this works")
    import resource

    write(tmp_path / "run", samples)
    command = [sys.executable, "-m", "draftboard", "render", str(tmp_path / "run"), "-o", str(tmp_path / "site")]
    benchmark.pedantic(lambda: subprocess.run(command, check=True, capture_output=True), rounds=1)
    benchmark.extra_info["peak_kb"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert (tmp_path / "site" / "index.html").is_file()
