"""What it takes to import a whole Spec-Bench answer file, and to write one.

    pytest tests/benchmarks -k foreign --benchmark-enable --benchmark-columns=min,median,rounds

An import of 480 rows has two seconds; it takes well under one.
"""

import json
import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from draftboard.foreign.spec_bench import import_spec_bench
from draftboard.foreign.spec_bench_export import export_spec_bench
from draftboard.store import read_run

ROWS = 480
TOKENS = 400
"""Per turn, about what a chat model writes."""


def rows(model: str, *, longest: int) -> Iterator[dict[str, Any]]:
    """Rows of the size of real ones: 80 of two turns, 400 of one."""
    rng = random.Random(len(model))
    for question in range(81, 81 + ROWS):
        pieces = []
        for _ in range(2 if question < 161 else 1):
            entries: list[int] = []
            while sum(entries) < TOKENS:
                entries.append(rng.randint(1, longest))
            pieces.append(entries)
        yield {
            "question_id": question,
            "category": "writing" if question < 161 else "qa",
            "answer_id": f"answer-{question}",
            "model_id": model,
            "choices": [
                {
                    "index": 0,
                    "turns": [" ".join(["word"] * TOKENS)] * len(pieces),
                    "decoding_steps": [len(entries) for entries in pieces],
                    "new_tokens": [sum(entries) for entries in pieces],
                    "wall_time": [rng.random() * 10 for _ in pieces],
                    "accept_lengths": [entry for entries in pieces for entry in entries],
                }
            ],
            "tstamp": 1.7e9,
        }


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = []
    for model, longest in (("plain", 1), ("fast", 5)):
        path = tmp_path / f"{model}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows(model, longest=longest)), encoding="utf-8")
        paths.append(path)
    return paths


def test_bench_foreign_import_of_an_answer_file(benchmark: Any, files: list[Path], tmp_path: Path) -> None:
    numbers = count()
    made = benchmark(lambda: import_spec_bench(files[1:], tmp_path / f"run-{next(numbers)}"))
    assert len(made.methods[0].rows) == ROWS


def test_bench_foreign_export_of_two_methods(benchmark: Any, files: list[Path], tmp_path: Path) -> None:
    import_spec_bench(files, tmp_path / "run")
    run = read_run(tmp_path / "run")
    numbers = count()
    done = benchmark(lambda: export_spec_bench(run, tmp_path / f"out-{next(numbers)}"))
    assert len(done.paths) == 2
