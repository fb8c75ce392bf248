import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def cases() -> Path:
    return Path(__file__).parents[1] / "data"


@pytest.fixture
def spec_bench_folder(published: Callable[[str], Path]) -> Path:
    folder = published("spec-bench")
    if not (folder / "question.jsonl").is_file():
        pytest.skip(f"DRAFTBOARD_DATA holds no {folder.name}/question.jsonl")
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a question file: objects as JSON, strings and bytes as they are, one a line."""

    def as_text(line: object) -> str:
        return line if isinstance(line, str) else json.dumps(line)

    def write_file(*lines: object, name: str = "questions.jsonl") -> Path:
        parts = [line if isinstance(line, bytes) else as_text(line).encode() for line in lines]
        path = tmp_path / name
        path.write_bytes(b"\n".join(parts))
        return path

    return write_file
