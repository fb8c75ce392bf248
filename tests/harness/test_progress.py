"""What a person is told while a run goes on."""

import sys

import pytest

from draftboard import progress
from draftboard.progress import RichProgress, program
from draftboard.records import Cell


@pytest.mark.parametrize(("each_s", "left"), [(40.0, "about 4 min"), (2400.0, "about 3 h 20 min")])
def test_a_log_tells_how_long_the_rest_takes(monkeypatch, capsys, each_s, left):
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    shown = RichProgress()
    shown.begin(total=10, done=4)  # a resumed run: the pace is that of its own cells
    now[0] += each_s
    shown.advance(Cell(method="pld", sample="mini/1"))
    shown.end()
    assert capsys.readouterr().err.splitlines() == ["6 of 10 cells to run", f"5 of 10 cells, 50%, {left} left"]


def test_what_to_type_is_found_on_the_search_path_or_told_as_a_path(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["env/bin/draftboard", "demo"])
    monkeypatch.setattr(progress, "which", lambda name: None)
    assert program() == "env/bin/draftboard"
    monkeypatch.setattr(progress, "which", lambda name: f"/usr/bin/{name}")
    assert program() == "draftboard"
