"""Our exports of answer files say which of them is the baseline's, and imports read it."""

import json
from pathlib import Path

import pytest

from draftboard.errors import UserError
from draftboard.foreign.spec_bench import META, import_spec_bench
from draftboard.foreign.spec_bench_export import export_spec_bench
from draftboard.foreign.speed_py import speed_py
from draftboard.records import Cell
from draftboard.store import read_run


@pytest.fixture
def exported(stored, turn, tmp_path: Path):
    """Answer files of a run in which no method drafted anything."""
    cells = [
        Cell(method=method, sample=f"spec_bench/{number}", turns=[turn([0, 0], [1, 1], end=seconds)])
        for method, seconds in (("autoregressive", 2.0), ("pld", 1.0))
        for number in (1, 2)
    ]
    return export_spec_bench(stored(cells), tmp_path / "out").paths


def rows(path: Path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def rewrite(path: Path, found, **marks):
    path.write_text("".join(json.dumps({**row, **marks}) + "\n" for row in found))
    return path


def test_the_baseline_of_an_export_is_known_where_all_is_plain_decoding(exported, tmp_path: Path):
    assert [{row["is_baseline"] for row in rows(path)} for path in exported] == [{True}, {False}]
    made = import_spec_bench(exported, tmp_path / "back")
    assert made.baseline == read_run(tmp_path / "back").plan["baseline"] == "autoregressive"
    assert not any("baseline" in note for note in made.notes)
    kept = [json.loads(line)["meta"] for line in (tmp_path / "back" / META).read_text().splitlines()]
    assert all("is_baseline" not in meta for meta in kept)
    assert speed_py(exported[1], exported[0], len).tasks["qa"].pooled_speedup == pytest.approx(2.0)


def test_the_order_of_the_files_does_not_matter(exported, tmp_path: Path):
    assert import_spec_bench(exported[::-1], tmp_path / "back").baseline == "autoregressive"


def test_an_export_without_its_baseline_has_none(exported, tmp_path: Path):
    """That the other method drafted nothing does not make it the baseline."""
    made = import_spec_bench(exported[1:], tmp_path / "back")
    assert made.baseline == ""
    assert any(note.startswith("no baseline is marked") for note in made.notes)


def test_an_imported_run_without_baseline_marks_nothing(exported, tmp_path: Path):
    import_spec_bench([rewrite(exported[1], rows(exported[1]), is_baseline=False)], tmp_path / "back")
    (path,) = export_spec_bench(read_run(tmp_path / "back"), tmp_path / "again").paths
    assert all("is_baseline" not in row for row in rows(path))


def test_the_baseline_named_goes_before_the_mark_and_the_difference_is_told(exported, tmp_path: Path):
    made = import_spec_bench(exported, tmp_path / "back", baseline="pld")
    assert made.baseline == "pld"
    assert "autoregressive is marked as the baseline, but pld was named" in made.notes


def test_marks_that_contradict_each_other_are_one_error(exported, tmp_path: Path):
    plain, other = exported
    rewrite(other, rows(other), is_baseline=True)
    first, *rest = rows(plain)
    rewrite(plain, [{**first, "is_baseline": None}, *rest])
    with pytest.raises(UserError) as caught:
        import_spec_bench(exported, tmp_path / "back")
    assert str(caught.value).splitlines() == [
        "the files do not agree on which answers are the baseline's",
        "  several methods are marked: autoregressive, pld",
        "  autoregressive: marked in some of its rows only",
        "Name the baseline with --baseline.",
    ]
    assert not (tmp_path / "back").exists()
    assert import_spec_bench(exported, tmp_path / "back", baseline="autoregressive").baseline == "autoregressive"


def test_a_marked_method_goes_before_an_unmarked_plain_one(exported, write, answer, tmp_path: Path):
    theirs = write("theirs.jsonl", [answer(1, ("a", [1], 0.1), model="theirs")])
    assert import_spec_bench([theirs, *exported], tmp_path / "back").baseline == "autoregressive"


def test_a_mark_of_another_kind_is_an_error_of_its_row(exported, tmp_path: Path):
    rewrite(exported[0], rows(exported[0]), is_baseline="yes")
    with pytest.raises(UserError, match="is_baseline"):
        import_spec_bench(exported, tmp_path / "back")
