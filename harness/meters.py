"""Peak memory and energy of one cell, read from the counters that the system keeps by itself. Free of torch at import.

Neither costs anything inside a timed region: counters are read before a cell and after it. Energy is what the whole
counter took, everything else on the machine included, and is left out where there is no counter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draftboard.hardware import peak_rss_bytes

__all__ = ["EnergyCounter", "Meters", "Reading", "device_energy", "package_energy"]

_POWERCAP = Path("/sys/class/powercap")
_CLEAR_REFS = Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a cell took; None where it is not counted."""

    peak_rss_bytes: int | None = None
    peak_device_bytes: int | None = None
    energy_j: float | None = None


class EnergyCounter:
    """Counters that only grow, in microjoules; one that has a largest value starts again from 0."""

    def __init__(self, counters: list[tuple[Any, int | None]]) -> None:
        """`counters` are pairs of a function that reads one, and its range."""
        self._counters = counters
        self._start: list[int] | None = None

    def start(self) -> None:
        """Remember where the counters stand."""
        self._start = self._read()

    def taken_j(self) -> float | None:
        """Joules since `start`, or None where a counter could not be read."""
        end = self._read()
        if self._start is None or end is None or not end:
            return None
        total = 0
        for before, after, (_, size) in zip(self._start, end, self._counters, strict=True):
            if after < before and size is None:
                return None
            total += after - before + (size or 0 if after < before else 0)
        return total / 1e6

    def _read(self) -> list[int] | None:
        try:
            return [int(read()) for read, _ in self._counters]
        except (OSError, ValueError):
            return None


def package_energy(folder: Path = _POWERCAP) -> EnergyCounter | None:
    """Return the processor packages' RAPL counters; None where there are none or they may not be read."""
    counters: list[tuple[Any, int | None]] = []
    for zone in sorted(folder.glob("intel-rapl:*")):
        # A package's own parts (cores, memory) are zones below it, with a second colon.
        if zone.name.count(":") != 1:
            continue
        try:
            int((zone / "energy_uj").read_text())
            size = int((zone / "max_energy_range_uj").read_text())
        except (OSError, ValueError):
            return None
        counters.append(((zone / "energy_uj").read_text, size))
    return EnergyCounter(counters) if counters else None


def device_energy(index: int) -> EnergyCounter | None:
    """Return the total-energy counter of a CUDA device; None where the driver has none."""
    import pynvml

    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    except pynvml.NVMLError:
        return None

    def read() -> int:
        try:
            return int(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) * 1000
        except pynvml.NVMLError as error:
            raise OSError(str(error)) from error

    return EnergyCounter([(read, None)])


class Meters:
    """The counters of a target's device."""

    def __init__(self, device: Any) -> None:
        """`device` is a `torch.device`."""
        self._device = device
        self._cuda = device.type == "cuda"
        self._energy = device_energy(device.index or 0) if self._cuda else package_energy()
        self._rss = _forget_peak()

    def start(self) -> None:
        """Begin a cell."""
        self._rss = _forget_peak()
        if self._cuda:
            import torch

            torch.cuda.reset_peak_memory_stats(self._device)
        if self._energy is not None:
            self._energy.start()

    def read(self) -> Reading:
        """Return what was taken since `start`."""
        device = None
        if self._cuda:
            import torch

            device = int(torch.cuda.max_memory_allocated(self._device))
        return Reading(
            # Without a fresh start the peak is that of the whole process, and would be put down to the wrong method.
            peak_rss_bytes=peak_rss_bytes() if self._rss else None,
            peak_device_bytes=device,
            energy_j=self._energy.taken_j() if self._energy is not None else None,
        )


def _forget_peak() -> bool:
    """Start the kernel's high-water mark of resident memory anew; return whether it did."""
    try:
        _CLEAR_REFS.write_text("5")
    except OSError:
        return False
    return True
