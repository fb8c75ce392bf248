from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.errors import UserError
from draftboard.foreign.folders import file_names, refuse_results, results_in, whole_folder, write_files, write_results
from draftboard.results import Group, Results
from draftboard.results_file import read_results


@given(st.lists(st.text(max_size=300), max_size=6, unique=True))
def test_file_names_are_safe_and_no_two_alike(labels):
    names = file_names(labels)
    assert list(names) == labels
    assert len({name.casefold() for name in names.values()}) == len(labels)
    for name in names.values():
        assert name
        assert name == name.strip(" .")
        assert not set(name) & set('/\\:*?"<>|\0\n')
        assert len(name.encode()) < 200


def test_readable_names_stay():
    assert file_names(["samd[eagle2]", "a/b", "a\\b", "CON", "con.x", "..", "モデル"]) == {
        "samd[eagle2]": "samd[eagle2]",
        "a/b": "a_b",
        "a\\b": "a_b-2",
        "CON": "_CON",
        "con.x": "_con.x",
        "..": "method",
        "モデル": "モデル",
    }


def test_a_results_folder_is_known_by_its_document(tmp_path: Path):
    write_results(tmp_path / "out", Results(groups=(Group(model="m", hardware="h", suite="s"),)))
    document = results_in(tmp_path / "out")
    assert document == tmp_path / "out" / "results.json"
    assert read_results(document).groups[0].model == "m"
    with pytest.raises(UserError, match=r"imported results, .* cannot be scored"):
        refuse_results(tmp_path / "out", "scored")
    with pytest.raises(UserError, match="holds imported results already"):
        write_results(tmp_path / "out", Results(groups=()))
    refuse_results(tmp_path, "scored")
    (tmp_path / "out" / "plan.json").write_text("{}")
    assert results_in(tmp_path / "out") is None


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path):
    target = tmp_path / "deep" / "out"

    def stop_half_way() -> None:
        with whole_folder(target) as folder:
            (folder / "a").write_text("x")
            assert not target.exists()
            raise KeyError

    with pytest.raises(KeyError):
        stop_half_way()
    assert list((tmp_path / "deep").iterdir()) == []
    with whole_folder(target) as folder:
        (folder / "a").write_text("x")
    assert (target / "a").read_text() == "x"
    assert list((tmp_path / "deep").iterdir()) == [target]


def test_an_empty_folder_is_filled_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """It may be a mount or the working folder, which no other can take the place of."""
    monkeypatch.chdir(tmp_path)
    before = tmp_path.stat().st_ino
    write_files(Path(), {"a/b.json": b"{}", "plan.json": b"{}"})
    assert tmp_path.stat().st_ino == before
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b.json", "plan.json"]


def test_an_empty_folder_stays_empty_when_it_cannot_be_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    replace = Path.replace

    def full(path: Path, target: Path) -> Path:
        if target == tmp_path / "out" / "b":
            raise OSError(28, "No space left on device")
        return replace(path, target)

    (tmp_path / "out").mkdir()
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UserError, match="No space left on device"):
        write_files(tmp_path / "out", {"a/x": b"1", "b": b"2"})
    assert list((tmp_path / "out").iterdir()) == []
