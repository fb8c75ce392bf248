"""Against a computation of suites-and-scoring 2.6 from the raw lines, written here anew."""

import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from draftboard.foreign.spec_bench_export import export_spec_bench
from draftboard.foreign.speed_py import speed_py
from draftboard.records import Cell

CONVERSATION = ["writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"]
TASKS = ["mt_bench", "translation", "summarization", "qa", "math_reasoning", "rag", "overall"]


def count(text: str) -> int:
    """A tokenizer with a start token."""
    return 1 + len(text.split())


def average(values):
    values = list(values)
    return sum(values) / len(values) if values else math.nan


def by_the_definition(method: Path, baseline: Path, task: str) -> dict[str, float]:
    def rows(path):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line:
                row = json.loads(line)
                in_task = row["category"] in CONVERSATION if task == "mt_bench" else row["category"] == task
                if task == "overall" or in_task:
                    yield row["choices"][0]

    own = average(sum(c["new_tokens"]) / sum(c["wall_time"]) for c in rows(method))
    base = average(sum(count(text) - 1 for text in c["turns"]) / sum(c["wall_time"]) for c in rows(baseline))
    return {
        "tokens_per_s": own,
        "baseline_tokens_per_s": base,
        "speedup": own / base if base else math.nan,
        "mean_accepted": average(entry for c in rows(method) for entry in c["accept_lengths"]),
    }


def check(method: Path, baseline: Path) -> None:
    found = speed_py(method, baseline, count)
    assert list(found.tasks) == TASKS
    for task in TASKS:
        wanted = by_the_definition(method, baseline, task)
        assert asdict(found.tasks[task].original) == pytest.approx(wanted, abs=1e-6, rel=1e-9, nan_ok=True), task


ROW = st.tuples(
    st.sampled_from([*CONVERSATION, "translation", "summarization", "qa", "math_reasoning", "rag", "chess"]),
    st.lists(
        st.tuples(
            st.integers(1, 30).map(lambda words: "w " * words),
            st.lists(st.integers(1, 9), min_size=1, max_size=6),
            st.floats(0.01, 100),
        ),
        min_size=1,
        max_size=2,
    ),
    st.integers(1, 6),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROW, min_size=1, max_size=12), st.lists(ROW, min_size=1, max_size=12))
def test_the_original_numbers_on_any_files(write, answer, mine, theirs):
    def rows(found, model):
        return [answer(number, *turns, model=model, category=category) for category, turns, number in found]

    check(write("method.jsonl", rows(mine, "m")), write("base.jsonl", rows(theirs, "plain")))


def test_the_original_numbers_on_our_exports(stored, vector, turn, tmp_path: Path):
    cells = []
    for number, category in enumerate([*CONVERSATION, "qa", "rag"]):
        turns = [turn([0] * 9, [1] * 9, text="w " * (5 + number), end=0.3 + number)]
        cells.append(Cell(method="autoregressive", sample=f"s/{number}", turns=turns * (1 + (category != "qa"))))
        cells.append(Cell(method="eagle", sample=f"s/{number}", turns=[vector]))
    samples = {f"s/{n}": {"category": c} for n, c in enumerate([*CONVERSATION, "qa", "rag"])}
    paths = {path.stem: path for path in export_spec_bench(stored(cells, samples=samples), tmp_path / "out").paths}
    check(paths["eagle"], paths["autoregressive"])
    found = speed_py(paths["eagle"], paths["autoregressive"], count)
    assert found.notes == ()
    assert found.tasks["mt_bench"].rows == (8, 8, 8)
    assert math.isnan(found.tasks["translation"].original.speedup)
    assert found.tasks["overall"].original == found.tasks["overall"].matched


def test_a_baseline_against_itself_is_above_one_but_pooled_is_one(write, answer):
    path = write("a.jsonl", [answer(1, ("w " * 9, [1] * 12, 0.4), model="plain")])
    found = speed_py(path, path, count)
    assert found.tasks["qa"].original.speedup == pytest.approx(12 / 9)
    assert found.tasks["qa"].pooled_speedup == 1.0


def test_unmatched_files_get_the_original_value_a_warning_and_the_matched_one(write, answer):
    base = write(
        "base.jsonl", [answer(q, ("w " * 10, [1] * 10, seconds), model="plain") for q, seconds in ((1, 1.0), (2, 4.0))]
    )
    mine = write("mine.jsonl", [answer(1, ("w " * 10, [5, 5], 0.5), model="fast")])
    found = speed_py(mine, base, count)
    assert found.tasks["qa"].original.speedup == pytest.approx(20 / 6.25)
    assert found.tasks["qa"].matched.speedup == pytest.approx(2.0)
    assert found.tasks["qa"].pooled_speedup == pytest.approx(2.0)
    assert found.tasks["qa"].rows == (1, 2, 1)
    (note,) = found.notes
    assert note.startswith("base.jsonl: 1 question(s) without a good row in mine.jsonl (2)")


def test_doubled_and_error_rows_count_in_the_original_only(write, answer):
    base = write("base.jsonl", [answer(q, ("w " * 10, [1] * 10, 1.0), model="plain") for q in (1, 2)])
    rows = [
        answer(1, ("x", [5, 5], 5.0), model="fast"),
        answer(1, ("x", [5, 5], 0.5), model="fast"),
        answer(2, ("ERROR", [5, 5], 0.5), model="fast"),
    ]
    found = speed_py(write("mine.jsonl", rows), base, count)
    assert found.tasks["overall"].original.tokens_per_s == pytest.approx((2 + 20 + 20) / 3)
    assert found.tasks["overall"].matched.tokens_per_s == pytest.approx(20)
    assert any("1 doubled" in note for note in found.notes)
    assert any("1 row(s) with ERROR" in note for note in found.notes)


def test_rows_at_which_the_original_stops_are_told(write, answer):
    base = write("base.jsonl", [answer(q, ("w " * 10, [1] * 10, 1.0), model="plain") for q in (1, 2)])
    still, bare = answer(1, ("x", [5], 0.0), model="fast"), answer(2, ("x", [5], 1.0), model="fast")
    bare["choices"][0]["wall_time"] = [None]
    found = speed_py(write("mine.jsonl", [still, bare]), base, count)
    assert math.isnan(found.tasks["overall"].original.speedup)
    assert any("1 row(s) without time" in note for note in found.notes)
    assert any("1 row(s) without numbers" in note for note in found.notes)


def test_several_models_in_a_file_are_told(write, answer):
    base = write("base.jsonl", [answer(1, ("w " * 10, [1] * 10, 1.0), model="plain")])
    rows = [answer(1, ("x", [5], 1.0), model=model) for model in ("a", "b")]
    assert any("rows of 2 models (a, b)" in note for note in speed_py(write("mine.jsonl", rows), base, count).notes)


def test_as_json_nan_is_null(write, answer):
    path = write("a.jsonl", [answer(1, ("w " * 9, [1] * 12, 0.4), model="plain")])
    data = json.loads(json.dumps(speed_py(path, path, count).as_json(), allow_nan=False))
    assert data["tasks"]["rag"]["original"]["speedup"] is None
    assert data["tasks"]["qa"]["matched"]["pooled_speedup"] == 1.0
    assert data["tasks"]["qa"]["rows"] == {"method": 1, "baseline": 1, "matched": 1}
