"""How finely the clocks of a measurement tick, measured and not only as the system claims it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter_ns, process_time_ns
from typing import Any

from draftboard.doctor.sign import Sign, fine, missing

__all__ = ["Ticks", "clock_signs", "cuda_event_sign", "ticks"]

_COARSE_NS = 1_000_000
"""A step of a decoding takes milliseconds: a clock that ticks in milliseconds cannot time it."""
_SLOW_READ_NS = 50_000
_SLOW_SOURCES = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """A clock's smallest step forward and what a reading costs, in nanoseconds."""

    step_ns: int
    read_ns: int


def ticks(
    clock: Callable[[], int], *, reads: int = 2_000, most_ns: int = 200_000_000, watch: Callable[[], int] | None = None
) -> Ticks | None:
    """Read a clock over and over until it has moved `reads` times or `most_ns` of `watch` have passed.

    None where the clock never moved. `watch` is the monotonic clock unless said otherwise.
    """
    watch = watch or perf_counter_ns
    start = watch()
    steps: list[int] = []
    last = clock()
    while len(steps) < reads and watch() - start < most_ns:
        value = clock()
        if value > last:
            steps.append(value - last)
            last = value
    start = watch()
    for _ in range(reads):
        clock()
    return Ticks(step_ns=min(steps), read_ns=(watch() - start) // reads) if steps else None


def clock_signs(root: Path, clocks: Sequence[tuple[str, Callable[[], int]]] = ()) -> list[Sign]:
    """Return the signs of the monotonic and the process CPU clock, and of what the kernel keeps time by."""
    known = clocks or (("monotonic", perf_counter_ns), ("process CPU", process_time_ns))
    signs = [_sign(name, ticks(clock)) for name, clock in known]
    source = root / "sys/devices/system/clocksource/clocksource0/current_clocksource"
    try:
        name = source.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return [*signs, missing("clock source", "clocks", "the system does not name it")]
    if name not in _SLOW_SOURCES:
        return [*signs, fine("clock source", "clocks", name)]
    advice = f"Let the kernel keep time by its fastest source (clocksource=tsc where it is stable) instead of {name}."
    return [*signs, Sign(name="clock source", group="clocks", state="note", told=name, advice=advice)]


def _sign(name: str, found: Ticks | None) -> Sign:
    label = f"{name} clock"
    if found is None:
        told = "did not move while it was watched"
    else:
        told = f"ticks in {_duration(found.step_ns)}, a reading costs {_duration(found.read_ns)}"
        if found.step_ns < _COARSE_NS and found.read_ns < _SLOW_READ_NS:
            return fine(label, "clocks", told, found.step_ns, "ns")
    coarse = found is None or found.step_ns >= _COARSE_NS
    monotonic = name == "monotonic"
    if not coarse:
        advice = "Keep the CPU-side steps long against the cost of reading the clock, for example with a larger model."
    elif monotonic:
        advice = "Measure on a system whose monotonic clock ticks finer than a millisecond."
    else:
        advice = "Leave CPU times of short samples aside here and go by wall time."
    return Sign(
        name=label,
        group="clocks",
        state="unreliable" if coarse and monotonic else "note",
        told=told,
        value=None if found is None else found.step_ns,
        unit="ns",
        advice=advice,
    )


def cuda_event_sign(device: Any, pairs: int = 200) -> Sign:
    """Return the smallest time between two events of a CUDA device; `n/a` for another `torch.device`."""
    if device.type != "cuda":
        return missing("CUDA event", "clocks", f"the model runs on {device.type}")
    import torch

    with torch.cuda.device(device):
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(pairs)]  # type: ignore[no-untyped-call]
        for start, end in events:
            start.record()
            end.record()
        torch.cuda.synchronize()
        times_ns = [1e6 * start.elapsed_time(end) for start, end in events]
    step = round(median(times_ns))
    return fine("CUDA event", "clocks", f"two in a row are {_duration(step)} apart", step, "ns")


def _duration(nanoseconds: int) -> str:
    for size, unit in ((1_000_000, "ms"), (1_000, "µs")):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds} ns"
