"""Counters that the machine keeps, read before a watch and after it. Whatever cannot be read says why.

All reading goes through `Machine`, so that tests give a folder in place of /proc and /sys and functions in place of
psutil, and so that a system without a counter costs a sign and never the command.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import psutil

from draftboard.doctor.cgroup import Throttled, throttled
from draftboard.hardware import ask_gpu, visible_gpus

__all__ = ["Machine", "Missing", "Snapshot", "Watch", "Work", "ask", "between", "snapshot"]

T = TypeVar("T")
U = TypeVar("U")
N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a reading is not there."""

    reason: str


def ask(read: Callable[[], T | None]) -> T | Missing:
    """Return a reading, or why there is none: the system lacks it, refuses it or words it in a way of its own."""
    try:
        found = read()
    except (NotImplementedError, AttributeError, FileNotFoundError):
        return Missing("this system has no such reading")
    except (OSError, psutil.Error, ValueError, KeyError, IndexError, RuntimeError) as error:
        return Missing(getattr(error, "strerror", None) or str(error) or type(error).__name__)
    return Missing("this system does not tell it") if found is None else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A process and the processor seconds it has used so far."""

    name: str
    cpu_s: float


def _cpu_times() -> list[Mapping[str, float]]:
    """Return the seconds of each CPU that this process may run on, by kind."""
    every = [one._asdict() for one in psutil.cpu_times(percpu=True)]
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(len(every)))
    chosen = [one for index, one in enumerate(every) if index in allowed]
    # With CPUs taken offline the list has gaps, and an index no longer names a CPU.
    return chosen if len(chosen) == len(allowed) else every


def _processes() -> dict[tuple[int, float], Work]:
    found: dict[tuple[int, float], Work] = {}
    for process in psutil.process_iter(["pid", "name", "create_time", "cpu_times"]):
        told = process.info
        if told["cpu_times"] is not None and told["pid"] != os.getpid():
            used = told["cpu_times"].user + told["cpu_times"].system
            found[told["pid"], told["create_time"] or 0.0] = Work(name=told["name"] or "?", cpu_s=used)
    return found


def _gpu_throttle() -> int | None:
    with visible_gpus() as handles:
        masks = [ask_gpu("nvmlDeviceGetCurrentClocksThrottleReasons", handle) for handle in handles]
    known = [mask for mask in masks if isinstance(mask, int)]
    union = 0
    for mask in known:
        union |= mask
    return union if known else None


def _gpu_processes() -> int | None:
    """Return how many other processes compute on the visible GPUs."""
    with visible_gpus() as handles:
        lists = [ask_gpu("nvmlDeviceGetComputeRunningProcesses", handle) for handle in handles]
    known = [one for one in lists if isinstance(one, list)]
    return len({process.pid for one in known for process in one} - {os.getpid()}) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where signs are read: a file system's root, and functions for what is no file."""

    root: Path = Path("/")
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    own_cpu_s: Callable[[], float] = time.process_time
    load: Callable[[], tuple[float, float, float]] = psutil.getloadavg
    cpu_times: Callable[[], list[Mapping[str, float]]] = _cpu_times
    processes: Callable[[], Mapping[tuple[int, float], Work]] = _processes
    swap: Callable[[], Any] = psutil.swap_memory
    memory: Callable[[], Any] = psutil.virtual_memory
    battery: Callable[[], Any] = field(default=lambda: psutil.sensors_battery())
    frequency: Callable[[], Any] = field(default=lambda: psutil.cpu_freq())
    gpu_throttle: Callable[[], int | None] = _gpu_throttle
    gpu_processes: Callable[[], int | None] = _gpu_processes

    def text(self, path: str) -> str:
        """Return the stripped text of a file below the root. Raises OSError."""
        return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All counters at one moment."""

    time_s: float
    own_s: float
    cpus: int
    """CPUs that the two below are summed over."""
    busy_s: float | Missing
    """Processor seconds that the CPUs of this process have worked, whoever for."""
    steal_s: float | Missing
    """Processor seconds that a hypervisor gave to others."""
    throttled: Throttled | Missing
    heat_events: int | Missing
    """How often the processor slowed itself down for heat."""
    swapped_bytes: int | Missing
    frequency_mhz: float | Missing
    gpu_throttle: int | Missing
    processes: Mapping[tuple[int, float], Work]


def snapshot(machine: Machine) -> Snapshot:
    """Read every counter once."""
    times = ask(machine.cpu_times)
    swap = ask(machine.swap)
    counts = throttled(machine.root)
    processes = ask(machine.processes)
    return Snapshot(
        time_s=machine.clock(),
        own_s=machine.own_cpu_s(),
        cpus=0 if isinstance(times, Missing) else len(times),
        busy_s=times if isinstance(times, Missing) else sum(map(_busy, times)),
        steal_s=times if isinstance(times, Missing) else ask(lambda: _steal(times)),
        throttled=counts or Missing("no group of this process counts it"),
        heat_events=ask(lambda: _heat_events(machine.root)),
        swapped_bytes=swap if isinstance(swap, Missing) else ask(lambda: int(swap.sin + swap.sout)),
        frequency_mhz=ask(lambda: float(machine.frequency().current) or None),
        gpu_throttle=ask(machine.gpu_throttle),
        processes={} if isinstance(processes, Missing) else processes,
    )


def _busy(times: Mapping[str, float]) -> float:
    """Guest time is counted in user time too; steal is not work of this machine."""
    idle = ("idle", "iowait", "steal", "guest", "guest_nice")
    return sum(seconds for kind, seconds in times.items() if kind not in idle)


def _steal(times: list[Mapping[str, float]]) -> float:
    """Raises NotImplementedError on a system that does not count it."""
    if not all("steal" in one for one in times):
        raise NotImplementedError
    return sum(one["steal"] for one in times)


def _heat_events(root: Path) -> int:
    """Return the sum of the kernel's counts of thermal throttling. Raises NotImplementedError where it keeps none."""
    files = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_throttle_count"))
    if not files:
        raise NotImplementedError
    return sum(int(file.read_text(encoding="ascii")) for file in files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What happened between two snapshots."""

    seconds: float
    others_cores: float | Missing
    """Cores' worth of work that was not this process's, on the CPUs that it may use."""
    steal_share: float | Missing
    """Part of the CPUs' time that the hypervisor gave to others."""
    throttled: Throttled | Missing
    heat_events: int | Missing
    swapped_bytes: int | Missing
    frequencies_mhz: tuple[float, float] | Missing
    gpu_throttle: int | Missing
    """Reasons at either end, as the driver's bit mask."""
    busiest: tuple[tuple[str, float], ...]
    """Names of other processes and the cores they used, the busiest first; those that were there all the time."""


def between(before: Snapshot, after: Snapshot) -> Watch:
    """Return the differences. Raises ValueError where no time has passed."""
    seconds = after.time_s - before.time_s
    if seconds <= 0:
        raise ValueError("a watch needs time to pass")
    busy, steal = _grown(before.busy_s, after.busy_s), _grown(before.steal_s, after.steal_s)
    mask = [one.gpu_throttle for one in (before, after)]
    clocks = (before.frequency_mhz, after.frequency_mhz)
    used = [
        (work.name, (work.cpu_s - before.processes[key].cpu_s) / seconds)
        for key, work in after.processes.items()
        if key in before.processes
    ]
    return Watch(
        seconds=seconds,
        # Ticks of a hundredth of a second make an idle machine come out a little below nothing.
        others_cores=_map(busy, lambda grown: max(0.0, grown - (after.own_s - before.own_s)) / seconds),
        steal_share=_map(steal, lambda grown: grown / (seconds * max(1, after.cpus))),
        throttled=_map(
            _both(before.throttled, after.throttled),
            lambda pair: Throttled(
                periods=pair[1].periods - pair[0].periods, waited_s=pair[1].waited_s - pair[0].waited_s
            ),
        ),
        heat_events=_grown(before.heat_events, after.heat_events),
        swapped_bytes=_grown(before.swapped_bytes, after.swapped_bytes),
        frequencies_mhz=_both(*clocks),
        gpu_throttle=_map(_both(*mask), lambda pair: pair[0] | pair[1]),
        busiest=tuple(sorted((one for one in used if one[1] >= _BUSY_CORES), key=lambda one: (-one[1], one[0]))[:3]),
    )


_BUSY_CORES = 0.05
"""A process below a twentieth of a core is not worth a name."""


def _both(first: T | Missing, second: T | Missing) -> tuple[T, T] | Missing:
    if isinstance(first, Missing):
        return first
    return second if isinstance(second, Missing) else (first, second)


def _map(value: T | Missing, change: Callable[[T], U]) -> U | Missing:
    return value if isinstance(value, Missing) else change(value)


def _grown(before: N | Missing, after: N | Missing) -> N | Missing:
    return _map(_both(before, after), lambda pair: pair[1] - pair[0])
