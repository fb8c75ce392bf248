import getpass
import os
import platform
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from draftboard import hardware
from draftboard.hardware import Cpu, Environment, Gpu, environment, hardware_name, peak_rss_bytes, sample_load

CPUINFO_X86 = """\
processor\t: 0
model name\t: AMD EPYC 9V74 80-Core Processor
flags\t\t: fpu avx2 avx512f avx512_bf16

processor\t: 1
model name\t: AMD EPYC 9V74 80-Core Processor
flags\t\t: fpu avx2 avx512f avx512_bf16
"""
CPUINFO_ARM = "processor\t: 0\nFeatures\t: fp asimd bf16 sve\n"


def made(*, gpus: tuple[Gpu, ...] = (), threads: int | None = None, **cpu: object) -> Environment:
    values: dict[str, object] = {
        "model": "AMD EPYC",
        "physical_cores": 8,
        "logical_cores": 16,
        "usable_cores": None,
        "container_cores": None,
        "flags": (),
        "frequency_mhz": None,
    }
    template = environment(threads=threads)
    return Environment(
        schema=template.schema,
        cpu=Cpu(**(values | cpu)),  # type: ignore[arg-type]
        gpus=gpus,
        memory_bytes=1,
        memory_limit_bytes=None,
        system="Linux",
        machine="x86_64",
        python="CPython 3.11",
        packages={},
        threads=threads,
        load=template.load,
    )


def gpu(name: str) -> Gpu:
    return Gpu(
        name=name,
        memory_bytes=None,
        driver="1",
        clock_sm_mhz=None,
        clock_memory_mhz=None,
        clock_sm_max_mhz=None,
        power_limit_w=None,
    )


def test_the_record_is_strict_json_and_comes_back() -> None:
    found = environment(threads=2)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Environment) == found
    assert found.threads == 2
    assert found.memory_bytes > 2**20
    assert found.packages["torch"]
    assert set(found.packages) <= set(hardware.PACKAGES)


def test_the_record_tells_nothing_private(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTBOARD_TEST_SECRET", "hunter2-in-the-environment")
    text = msgspec.json.encode(environment()).decode()
    private = [str(Path.home()), os.getcwd(), "hunter2"]  # noqa: PTH109
    private += [word for word in (platform.node(), getpass.getuser()) if len(word) > 4]
    assert [word for word in private if word in text] == []


@pytest.mark.parametrize(
    ("threads", "cpu", "label"),
    [
        (None, {}, "AMD EPYC · 16 cores"),
        (None, {"usable_cores": 4}, "AMD EPYC · 4 cores"),
        (None, {"usable_cores": 4, "container_cores": 1.5}, "AMD EPYC · 1.5 cores"),
        (1, {"usable_cores": 4}, "AMD EPYC · 1 thread"),
        (2, {"usable_cores": 4}, "AMD EPYC · 2 threads"),
        (1, {"usable_cores": 1}, "AMD EPYC · 1 core"),
        (8, {"usable_cores": 2}, "AMD EPYC · 2 cores"),
        (None, {"logical_cores": None}, "AMD EPYC"),
    ],
)
def test_cpu_label(threads: int | None, cpu: dict[str, object], label: str) -> None:
    assert hardware_name(made(threads=threads, **cpu)) == label


def test_gpu_label_follows_the_device() -> None:
    both = made(gpus=(gpu("NVIDIA H200"), gpu("NVIDIA L4")), usable_cores=2)
    assert hardware_name(both) == "NVIDIA H200"
    assert hardware_name(both, device="cuda") == "NVIDIA H200"
    assert hardware_name(both, device="cuda:1") == "NVIDIA L4"
    assert hardware_name(both, device="cpu") == "AMD EPYC · 2 cores"


@pytest.mark.parametrize(
    ("text", "name", "bfloat16"),
    [
        (CPUINFO_X86, "AMD EPYC 9V74", True),
        (CPUINFO_ARM, platform.machine(), True),
        (CPUINFO_X86.replace(" avx512_bf16", ""), "AMD EPYC 9V74", False),
    ],
)
def test_cpu_facts(tmp_path: Path, text: str, name: str, bfloat16: bool) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(text)
    found, flags = hardware._cpu_facts(path)
    assert found == name
    assert (not hardware._BFLOAT16.isdisjoint(flags)) == bfloat16


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("Intel(R) Xeon(R) Platinum 8488C CPU @ 2.40GHz", "Intel Xeon Platinum 8488C"),
        ("Apple M2 Pro", "Apple M2 Pro"),
        ("  ", "unknown CPU"),
    ],
)
def test_cpu_names_lose_their_decoration(told: str, name: str) -> None:
    assert hardware._tidy(told) == name


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000"}, 1.5),
        ({"cpu.max": "max 100000"}, None),
        ({}, None),
        ({"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}, 2.0),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({"cpu.max": "nonsense here"}, None),
    ],
)
def test_container_limits(tmp_path: Path, files: dict[str, str], cores: float | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert hardware._container_cores(tmp_path) == cores


@pytest.mark.parametrize(("text", "limit"), [("max", None), ("1073741824", 2**30), (str(2**63 - 4096), None)])
def test_container_memory(tmp_path: Path, text: str, limit: int | None) -> None:
    (tmp_path / "memory.max").write_text(text)
    assert hardware._container_memory(tmp_path) == limit


@pytest.mark.parametrize(
    ("chosen", "visible"),
    [(None, "abc"), ("2,0", "ca"), ("", ""), ("1", "b"), ("7", ""), ("GPU-12ab", "abc")],
)
def test_visible_gpus(monkeypatch: pytest.MonkeyPatch, chosen: str | None, visible: str) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert hardware._visible(list("abc")) == list(visible)


def test_a_machine_that_tells_nothing_still_has_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError("not here")

    monkeypatch.setattr(os, "getloadavg", refuse)
    monkeypatch.setattr(hardware.psutil, "cpu_freq", refuse)
    monkeypatch.setattr(hardware.psutil, "sensors_temperatures", refuse, raising=False)
    found = sample_load()
    assert (found.load_1min, found.frequency_mhz, found.cpu_temperature_c) == (None, None, None)
    assert found.time_s > 1.6e9


def test_peak_memory_grows_and_never_shrinks() -> None:
    code = (
        "from draftboard.hardware import peak_rss_bytes as peak\n"
        "before = peak(); block = bytearray(64 << 20); during = peak(); del block\n"
        "assert during - before > 32 << 20, (before, during)\n"
        "assert peak() - before > 32 << 20\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert peak_rss_bytes() is not None


def test_asking_the_machine_needs_no_torch() -> None:
    code = "import sys, draftboard.hardware as h; h.environment(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
