"""What it takes to load a suite; the first samples of a run wait for it.

    pytest tests/benchmarks -k suites --benchmark-enable --benchmark-columns=min,median,rounds

Spec-Bench is to be loaded within a second, with and without answers for its qa questions. `DRAFTBOARD_DATA` names the
folder with the published data; without it, as much text in the same form is made up.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from draftboard.suites import SuiteSettings, load_suite
from draftboard.suites.spec_bench import DOMAINS


@pytest.fixture(scope="module")
def spec_bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = os.environ.get("DRAFTBOARD_DATA")
    if root and (Path(root) / "spec-bench" / "question.jsonl").is_file():
        return Path(root) / "spec-bench" / "question.jsonl"
    path = tmp_path_factory.mktemp("suites") / "question.jsonl"
    categories = [name for names in DOMAINS.values() for name in names for _ in range(80 // len(names))]
    rows = [
        {"question_id": number, "category": name, "turns": ["Why, and how? " * 100], "reference": [["so"]]}
        for number, name in enumerate(categories)
        if name != "qa"
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_load_spec_bench(benchmark: Any, spec_bench: Path) -> None:
    suite = benchmark(load_suite, f"spec_bench@{spec_bench}")
    assert len(suite.samples) >= 400


def test_load_spec_bench_with_answers(benchmark: Any) -> None:
    root = Path(os.environ.get("DRAFTBOARD_DATA", ""))
    answers = root / "nq-open" / "spec_bench_qa_references_43.jsonl"
    if not answers.is_file():
        pytest.skip("DRAFTBOARD_DATA holds no nq-open/spec_bench_qa_references_43.jsonl")
    settings = SuiteSettings(qa_references=str(answers))
    suite = benchmark(load_suite, f"spec_bench@{root / 'spec-bench'}", settings)
    assert sum(sample.scorer == "qa" for sample in suite.samples) == 123


def test_load_gsm8k(benchmark: Any) -> None:
    folder = Path(os.environ.get("DRAFTBOARD_DATA", "")) / "gsm8k"
    if not (folder / "test.jsonl").is_file():
        pytest.skip("DRAFTBOARD_DATA holds no gsm8k/test.jsonl")
    assert len(benchmark(load_suite, f"gsm8k@{folder}").samples) == 1319
