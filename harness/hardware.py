"""What the numbers were measured on, recorded before the first sample.

Only what is on the list here is recorded: no host name, no user, no folder, no environment variable. What a
machine does not tell is None; a missing library or driver never stops a run.
"""

import functools
import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

__all__ = [
    "PACKAGES",
    "Cpu",
    "Environment",
    "Gpu",
    "LoadSample",
    "ask_gpu",
    "cpu_has_bfloat16",
    "effective_cores",
    "environment",
    "hardware_name",
    "peak_rss_bytes",
    "sample_load",
    "visible_gpus",
]

SCHEMA = 1

PACKAGES = (
    "accelerate",
    "bitsandbytes",
    "draftboard",
    "gguf",
    "huggingface-hub",
    "numpy",
    "rouge-score",
    "sacrebleu",
    "safetensors",
    "scipy",
    "tokenizers",
    "torch",
    "torchao",
    "transformers",
)
"""The packages whose versions are recorded, when they are installed."""

_FLAGS = (
    "avx2",
    "avx512f",
    "avx512_bf16",
    "avx512_vnni",
    "amx_bf16",
    "amx_int8",
    "amx_tile",
    "asimd",
    "bf16",
    "sve",
)
_BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16", "bf16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """The processor, and how much of it this process may use."""

    model: str
    physical_cores: int | None
    logical_cores: int | None
    usable_cores: int | None
    """Cores that the process is allowed to run on (affinity)."""
    container_cores: float | None
    """Cores' worth of time that a container (cgroup) grants; None without such a limit."""
    flags: tuple[str, ...]
    frequency_mhz: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One NVIDIA device as its driver tells it."""

    name: str
    memory_bytes: int | None
    driver: str
    clock_sm_mhz: int | None
    clock_memory_mhz: int | None
    clock_sm_max_mhz: int | None
    power_limit_w: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSample:
    """How busy and how hot the machine was at one moment; stamped beside what was measured then."""

    time_s: float
    """Seconds since the epoch."""
    load_1min: float | None
    """Mean number of runnable processes over the last minute."""
    frequency_mhz: float | None
    cpu_temperature_c: float | None
    gpu_temperature_c: float | None
    gpu_clock_sm_mhz: int | None
    gpu_throttle: int | None
    """The driver's bit mask of reasons for lower clocks; 0 is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Hardware and software of a run."""

    schema: int
    cpu: Cpu
    gpus: tuple[Gpu, ...]
    memory_bytes: int
    memory_limit_bytes: int | None
    """What a container (cgroup) grants; None without such a limit."""
    system: str
    machine: str
    python: str
    packages: dict[str, str]
    threads: int | None
    """Threads that torch computes with."""
    load: LoadSample


def environment(*, threads: int | None = None) -> Environment:
    """Record the machine and the software as they are now. `threads` is torch's, told by who set it."""
    return Environment(
        schema=SCHEMA,
        cpu=_cpu(),
        gpus=_gpus(),
        memory_bytes=psutil.virtual_memory().total,
        memory_limit_bytes=_container_memory(),
        system=_system(),
        machine=platform.machine(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages=_packages(PACKAGES),
        threads=threads,
        load=sample_load(),
    )


def hardware_name(environment: Environment, *, device: str = "auto") -> str:
    """A short label that groups comparable results: `NVIDIA H200`, `AMD EPYC 9V74 · 2 cores`, or `· 1 thread` where
    fewer threads compute than there are cores.

    `device` is what the target ran on (`cpu`, `cuda`, `cuda:0`); `auto` means the first GPU if there is one.
    """
    if device != "cpu" and environment.gpus:
        index = int(device.partition(":")[2] or 0)
        if index < len(environment.gpus):
            return environment.gpus[index].name
    cores = effective_cores(environment.cpu)
    unit = "core"
    if environment.threads is not None and (not cores or environment.threads < cores):
        cores, unit = environment.threads, "thread"
    unit += "" if cores == 1 else "s"
    return f"{environment.cpu.model} · {cores:g} {unit}" if cores else environment.cpu.model


def sample_load() -> LoadSample:
    """Read load, clocks and temperatures, as far as the machine lets us."""
    temperature, clock, throttle = _gpu_state()
    return LoadSample(
        time_s=time.time(),
        load_1min=_load(),
        frequency_mhz=_frequency(),
        cpu_temperature_c=_temperature(),
        gpu_temperature_c=temperature,
        gpu_clock_sm_mhz=clock,
        gpu_throttle=throttle,
    )


def peak_rss_bytes() -> int | None:
    """The most resident memory this process has had so far, in bytes; None where no count is kept."""
    # getrusage starts a child at its parent's peak on Linux; the kernel's own high-water mark does not.
    for line in (_read(Path("/proc/self/status")) or "").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:
        return getattr(psutil.Process().memory_info(), "peak_wset", None)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@functools.cache
def cpu_has_bfloat16() -> bool:
    """Whether the processor has instructions for bfloat16 products (AVX512-BF16, AMX or Arm BF16)."""
    return not _BFLOAT16.isdisjoint(_cpu_facts()[1])


def _cpu() -> Cpu:
    model, flags = _cpu_facts()
    affinity = getattr(os, "sched_getaffinity", None)
    return Cpu(
        model=model,
        physical_cores=psutil.cpu_count(logical=False),
        logical_cores=psutil.cpu_count(logical=True),
        usable_cores=len(affinity(0)) if affinity else None,
        container_cores=_container_cores(),
        flags=tuple(flag for flag in _FLAGS if flag in flags),
        frequency_mhz=_frequency(),
    )


def _cpu_facts(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, frozenset[str]]:
    """Model name and feature flags; from Linux directly, elsewhere through py-cpuinfo, which is slow."""
    try:
        fields = _parse_cpuinfo(cpuinfo.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        fields = {}
    if "flags" in fields or "Features" in fields:
        name = fields.get("model name") or fields.get("Model") or platform.machine()
        flags = fields.get("flags") or fields.get("Features") or ""
        return _tidy(name), frozenset(flags.split())
    import cpuinfo as py_cpuinfo

    told = py_cpuinfo.get_cpu_info()
    name = str(told.get("brand_raw") or platform.processor() or platform.machine())
    return _tidy(name), frozenset(str(flag) for flag in told.get("flags", ()))


def _parse_cpuinfo(text: str) -> dict[str, str]:
    """The first value of each field; the cores of one machine repeat them."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip():
            fields.setdefault(key.strip(), value.strip())
    return fields


def _tidy(name: str) -> str:
    """Vendor decoration away, so that the same chip has the same name."""
    name = re.sub(r"\((?:R|TM|C)\)|\s+@.*$|\bCPU\b|\b\d+-Core Processor\b|\bProcessor\b", " ", name)
    return " ".join(name.split()) or "unknown CPU"


def effective_cores(cpu: Cpu) -> float:
    """Cores that the process may use by affinity and by the container's grant; 0 where neither is known."""
    limits = [cores for cores in (cpu.usable_cores or cpu.logical_cores, cpu.container_cores) if cores]
    return min(limits, default=0)


def _container_cores(root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """The cgroup's share of processor time in cores, version 2 first, then version 1."""
    quota, period = (_read(root / "cpu.max") or "max").partition(" ")[::2]
    if quota == "max":
        quota = _read(root / "cpu/cpu.cfs_quota_us") or "-1"
        period = _read(root / "cpu/cpu.cfs_period_us") or "100000"
    try:
        granted, interval = float(quota), float(period or 100_000)
    except ValueError:
        return None
    return granted / interval if granted > 0 and interval > 0 else None


def _container_memory(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    text = _read(root / "memory.max") or _read(root / "memory/memory.limit_in_bytes") or "max"
    # Version 1 says "no limit" with a number near 2**63.
    return int(text) if text.isdecimal() and int(text) < 2**60 else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None


def _frequency() -> float | None:
    try:
        told = psutil.cpu_freq()
    except (OSError, NotImplementedError, AttributeError):
        return None
    return float(told.current) if told is not None and told.current else None


def _temperature() -> float | None:
    sensors = getattr(psutil, "sensors_temperatures", None)
    if sensors is None:
        return None
    try:
        readings = sensors()
    except (OSError, ValueError):
        return None
    for name in ("coretemp", "k10temp", "zenpower", "cpu_thermal"):
        values = [reading.current for reading in readings.get(name, ()) if reading.current]
        if values:
            return float(max(values))
    return None


def _system() -> str:
    """Kernel and distribution, never the host name that `uname` would add."""
    try:
        distribution = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except (OSError, AttributeError):
        distribution = ""
    kernel = f"{platform.system()} {platform.release()}"
    return f"{distribution} ({kernel})" if distribution else kernel


def _packages(names: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@contextmanager
def visible_gpus() -> Iterator[list[object]]:
    """The driver's handles of the NVIDIA devices that CUDA shows this process; none without driver or device."""
    import pynvml as nvml

    try:
        nvml.nvmlInit()
    except nvml.NVMLError:  # no driver, no device
        yield []
        return
    try:
        try:
            handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        except nvml.NVMLError:
            handles = []
        yield _visible(handles)
    finally:
        nvml.nvmlShutdown()


def _gpus() -> tuple[Gpu, ...]:
    import pynvml as nvml

    with visible_gpus() as handles:
        try:
            return tuple(_gpu(handle) for handle in handles)
        except nvml.NVMLError:
            return ()


def _visible(handles: list[object]) -> list[object]:
    """The devices that CUDA shows this process, in its order; the driver lists all of them."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return handles
    parts = [part.strip() for part in chosen.split(",")]
    if not all(part.isdecimal() for part in parts):
        return handles if any(parts) else []  # devices named by UUID: their order is not worth a guess
    return [handles[int(part)] for part in parts if int(part) < len(handles)]


def _gpu(handle: object) -> Gpu:
    import pynvml as nvml

    memory = ask_gpu("nvmlDeviceGetMemoryInfo", handle)
    power = ask_gpu("nvmlDeviceGetEnforcedPowerLimit", handle)
    return Gpu(
        name=_text(nvml.nvmlDeviceGetName(handle)),
        memory_bytes=int(memory.total) if memory is not None else None,  # type: ignore[attr-defined]
        driver=_text(nvml.nvmlSystemGetDriverVersion()),
        clock_sm_mhz=_whole(ask_gpu("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_SM)),
        clock_memory_mhz=_whole(ask_gpu("nvmlDeviceGetClockInfo", handle, nvml.NVML_CLOCK_MEM)),
        clock_sm_max_mhz=_whole(ask_gpu("nvmlDeviceGetMaxClockInfo", handle, nvml.NVML_CLOCK_SM)),
        power_limit_w=power / 1000 if isinstance(power, int) else None,
    )


def _gpu_state() -> tuple[float | None, int | None, int | None]:
    """Temperature, SM clock and throttle mask of the first visible GPU."""
    import pynvml as nvml

    with visible_gpus() as handles:
        if not handles:
            return None, None, None
        temperature = _whole(ask_gpu("nvmlDeviceGetTemperature", handles[0], nvml.NVML_TEMPERATURE_GPU))
        clock = _whole(ask_gpu("nvmlDeviceGetClockInfo", handles[0], nvml.NVML_CLOCK_SM))
        throttle = _whole(ask_gpu("nvmlDeviceGetCurrentClocksThrottleReasons", handles[0]))
        return float(temperature) if temperature is not None else None, clock, throttle


def ask_gpu(function: str, handle: object, *arguments: object) -> object | None:
    """One question to the driver; None where this device does not answer it (each answers another set)."""
    import pynvml as nvml

    try:
        answer: object = getattr(nvml, function)(handle, *arguments)
    except nvml.NVMLError:
        return None
    return answer


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int) else None


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
