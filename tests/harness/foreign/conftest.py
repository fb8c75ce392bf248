"""Stored runs and answer files that need neither a model nor other people's data."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from draftboard.records import Cell, SampleRecord, Turn
from draftboard.store import CELLS, StoredRun, create_run, read_run

DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def case() -> Callable[[str], Path]:
    return lambda name: DATA / name


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write JSON lines: objects as JSON, text and bytes as they are."""

    def write_lines(name: str, rows: Iterable[Any], *, end: bytes = b"\n", start: bytes = b"") -> Path:
        parts = [
            row if isinstance(row, bytes) else (row if isinstance(row, str) else json.dumps(row)).encode()
            for row in rows
        ]
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(start + end.join(parts) + end)
        return path

    return write_lines


def answer(
    question: int | str,
    *turns: tuple[str, list[int], float],
    model: str = "m",
    category: str | None = "qa",
    **more: Any,
) -> dict[str, Any]:
    """One row; each turn is (text, entries of accept_lengths, seconds)."""
    choice = {
        "index": 0,
        "turns": [text for text, _, _ in turns],
        "decoding_steps": [len(entries) for _, entries, _ in turns],
        "new_tokens": [sum(entries) for _, entries, _ in turns],
        "wall_time": [seconds for _, _, seconds in turns],
        "accept_lengths": [entry for _, entries, _ in turns for entry in entries],
    }
    row = {
        "question_id": question,
        "category": category,
        "answer_id": f"a{question}",
        "model_id": model,
        "choices": [choice],
        "tstamp": 1.7e9,
    }
    return {**row, **more}


@pytest.fixture(name="answer")
def answer_fixture() -> Callable[..., dict[str, Any]]:
    return answer


def turn(
    accepted: list[int],
    kept: list[int],
    *,
    drafted: list[int] | None = None,
    ends: list[float] | None = None,
    first: float = 0.2,
    end: float | None = None,
    finish: str = "length",
    text: str = "some text",
    emits: int = 1,
) -> Turn:
    """A turn of our own engine; times in seconds."""
    drafted = accepted if drafted is None else drafted
    ends = [first + 0.05 * (step + 1) for step in range(len(kept))] if ends is None else ends
    count = sum(kept) + emits
    return Turn(
        prompt_tokens=10,
        prompt_sha256="p",
        token_ids=list(range(count)),
        text=text,
        finish=finish,
        prefill_ns=round(first * 1e9),
        first_ns=round(first * 1e9),
        end_ns=round((ends[-1] if end is None and ends else end or first) * 1e9),
        cpu_ns=1000,
        first_cpu_ns=500,
        steps={
            "drafted": drafted,
            "nodes": drafted,
            "accepted": accepted,
            "kept": kept,
            "draft_ns": [1] * len(kept),
            "verify_ns": [1] * len(kept),
            "other_ns": [1] * len(kept),
            "end_ns": [round(second * 1e9) for second in ends],
        },
        prefill_emits=emits,
    )


@pytest.fixture(name="turn")
def turn_fixture() -> Callable[..., Turn]:
    return turn


@pytest.fixture
def vector() -> Turn:
    """The turn of suites-and-scoring 11.1; its last kept token is the end token."""
    return turn(
        [4, 0, 2, 3], [5, 1, 3, 2], drafted=[4, 4, 4, 3], ends=[0.25, 0.30, 0.35, 0.40], finish="eos", text="a b c"
    )


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., StoredRun]:
    """Write a run of these cells and read it back."""

    def make(
        cells: list[Cell],
        *,
        samples: dict[str, dict[str, Any]] | None = None,
        methods: list[str] | None = None,
        name: str = "ours",
        repeats: int = 1,
    ) -> StoredRun:
        folder = tmp_path / name
        wanted = samples or {key: {} for key in dict.fromkeys(cell.sample for cell in cells)}
        records = [
            SampleRecord(
                **{
                    "key": key,
                    "suite": key.partition("/")[0],
                    "sample_id": key.partition("/")[2],
                    "domain": "qa",
                    "category": "qa",
                    "turns": ["?"],
                    **more,
                }
            )
            for key, more in wanted.items()
        ]
        labels = methods or list(dict.fromkeys(cell.method for cell in cells))
        suites = dict.fromkeys(record.suite for record in records)
        plan = {
            "model": "tiny",
            "suites": [{"name": suite, "samples": len(records), "content_hash": "f" * 64} for suite in suites],
            "methods": [{"label": label, "method": label, "settings": {}} for label in labels],
            "sampling": {"temperature": 0.0, "top_p": 1.0, "top_k": 0},
            "max_new_tokens": 64,
            "seed": 0,
            "repeats": repeats,
            "dtype": "float32",
            "device": "cpu",
            "template": "auto",
            "warmup": "auto",
            "profile": False,
            "baseline": "autoregressive",
        }
        create_run(folder, plan, {"hardware": "here", "load": {"time_s": 1_700_000_000.0}}, records)
        (folder / CELLS).write_bytes(b"".join(msgspec.json.encode(cell) + b"\n" for cell in cells))
        return read_run(folder)

    return make
