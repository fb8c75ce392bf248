"""Counters of memory and energy: differences, wrap-around, what is missing or may not be read."""

import pytest

from draftboard.meters import EnergyCounter, Meters, Reading, device_energy, package_energy


def zone(folder, name, energy, size=1000):
    path = folder / name
    path.mkdir()
    (path / "energy_uj").write_text(f"{energy}\n")
    (path / "max_energy_range_uj").write_text(f"{size}\n")
    return path


def test_packages_add_up_and_their_parts_are_not_counted_twice(tmp_path):
    first, second = zone(tmp_path, "intel-rapl:0", 100), zone(tmp_path, "intel-rapl:1", 900)
    part = zone(tmp_path, "intel-rapl:0:0", 50)
    counter = package_energy(tmp_path)
    assert counter is not None
    counter.start()
    (first / "energy_uj").write_text("300\n")
    (second / "energy_uj").write_text("50\n")  # past its largest value of 1000
    (part / "energy_uj").write_text("999\n")
    assert counter.taken_j() == pytest.approx((200 + 150) / 1e6)


def test_without_counters_there_is_no_energy(tmp_path):
    assert package_energy(tmp_path) is None
    broken = zone(tmp_path, "intel-rapl:0", 1)
    (broken / "energy_uj").write_text("not a number")
    assert package_energy(tmp_path) is None


def test_a_counter_that_fails_or_starts_anew_gives_none():
    values = iter([5, 3, 7])
    counter = EnergyCounter([(lambda: next(values), None)])
    assert counter.taken_j() is None  # never started; takes 5
    counter.start()
    assert counter.taken_j() == pytest.approx(4e-6)
    falling = iter([5, 3])
    counter = EnergyCounter([(lambda: next(falling), None)])
    counter.start()
    assert counter.taken_j() is None

    def fails():
        raise OSError("gone")

    counter = EnergyCounter([(fails, None)])
    counter.start()
    assert counter.taken_j() is None


def test_a_device_without_a_driver_has_no_counter():
    assert device_energy(7) is None


def test_the_peak_is_that_of_the_cell():
    import torch

    meters = Meters(torch.device("cpu"))
    meters.start()
    block = torch.ones(32 * 1024 * 1024, dtype=torch.float32)
    high = meters.read()
    del block
    meters.start()
    low = meters.read()
    if high.peak_rss_bytes is None:
        pytest.skip("this system does not let a process forget its peak")
    assert low.peak_rss_bytes is not None
    assert high.peak_rss_bytes - low.peak_rss_bytes > 64 * 1024 * 1024
    assert Reading() == Reading(peak_rss_bytes=None, peak_device_bytes=None, energy_j=None)
