"""Peaks and energy: over cells, against the baseline, and not below what a counter can tell."""

import pytest

from draftboard.measures import machine_figures
from draftboard.records import Cell


@pytest.fixture
def cell(turn):
    def made(sample="1", *, tokens=10, seconds=1.0, status="ok", **readings):
        turns = [turn(tokens, seconds)] if status == "ok" else []
        return Cell(method="m", sample=sample, status=status, turns=turns, **readings)

    return made


def test_peaks_are_the_largest_and_differ_from_the_baseline(cell):
    mine = [cell(peak_rss_bytes=300, peak_device_bytes=70), cell("2", peak_rss_bytes=500, peak_device_bytes=60)]
    theirs = [cell(peak_rss_bytes=450, peak_device_bytes=90), cell("2", peak_rss_bytes=100)]
    figures = machine_figures(mine, theirs)
    assert {name: figure.value for name, figure in figures.items() if name.startswith("peak")} == {
        "peak_rss_bytes": 500,
        "peak_rss_over_baseline_bytes": 50,
        "peak_device_bytes": 70,
        "peak_device_over_baseline_bytes": -20,
    }
    assert figures["peak_rss_bytes"].n == 2


def test_failed_cells_do_not_count(cell):
    mine = [cell(peak_rss_bytes=300), cell("2", status="failed", peak_rss_bytes=999)]
    assert machine_figures(mine, mine)["peak_rss_bytes"].value == 300


def test_energy_is_summed_over_cells(cell):
    mine = [cell(tokens=10, seconds=2.0, energy_j=30.0), cell("2", tokens=30, seconds=3.0, energy_j=50.0)]
    figures = machine_figures(mine, [])
    assert figures["energy_j_per_token"].value == pytest.approx(2.0)
    assert figures["mean_power_w"].value == pytest.approx(16.0)
    assert figures["mean_power_w"].n == 2


def test_under_a_second_there_is_no_energy(cell):
    figures = machine_figures([cell(seconds=0.9, energy_j=30.0)], [])
    assert {figures[name].reason for name in ("energy_j_per_token", "mean_power_w")} == {"under 1 s of generation"}


def test_cells_without_a_reading_are_left_out_with_their_time(cell):
    figures = machine_figures([cell(seconds=2.0, energy_j=30.0), cell("2", seconds=50.0)], [])
    assert (figures["mean_power_w"].value, figures["mean_power_w"].n) == (pytest.approx(15.0), 1)


def test_what_was_not_recorded_says_so(cell, imported):
    figures = machine_figures([cell()], [cell()])
    assert {(figure.value, figure.reason) for figure in figures.values()} == {(None, "not recorded in this run")}
    figures = machine_figures([cell(peak_rss_bytes=5)], [cell()])
    assert figures["peak_rss_over_baseline_bytes"].reason == "not recorded of the baseline"
    foreign = Cell(method="m", sample="1", turns=[imported([2])])
    assert {figure.reason for figure in machine_figures([foreign], []).values()} == {
        "not recorded in the imported file"
    }
    assert {figure.reason for figure in machine_figures([], [], "why").values()} == {"why"}
