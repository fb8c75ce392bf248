"""Signs of a machine that is made up: a folder in place of / and functions in place of psutil."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace as Told

import psutil
import pytest

from draftboard.doctor.cgroup import Throttled, granted_cores, throttled
from draftboard.doctor.counters import Machine, Missing, Watch, Work, between, snapshot
from draftboard.doctor.machine import machine_signs
from draftboard.hardware import Cpu

CPU = Cpu(
    model="AMD EPYC",
    physical_cores=4,
    logical_cores=8,
    usable_cores=8,
    container_cores=None,
    flags=(),
    frequency_mhz=None,
)
QUIET = Watch(
    seconds=2.0,
    others_cores=0.0,
    steal_share=0.0,
    throttled=Throttled(periods=0, waited_s=0.0),
    heat_events=0,
    swapped_bytes=0,
    frequencies_mhz=(3000.0, 3000.0),
    gpu_throttle=1,
    busiest=(),
)
SYS_CPU = "sys/devices/system/cpu"


def refuse():
    raise NotImplementedError


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


def made(root: Path, **readers) -> Machine:
    idle = {"user": 0.0, "system": 0.0, "idle": 100.0, "steal": 0.0}
    values = {
        "root": root,
        "pause": lambda seconds: None,
        "load": lambda: (0.0, 0.0, 0.0),
        "cpu_times": lambda: [idle, idle],
        "processes": dict,
        "swap": lambda: Told(used=0, sin=0, sout=0),
        "memory": lambda: Told(available=2**33),
        "battery": lambda: None,
        "frequency": lambda: Told(current=3000.0),
        "gpu_throttle": lambda: None,
        "gpu_processes": lambda: 0,
    }
    return Machine(**(values | readers))


def signs(root, *, watches=(QUIET,), load=(0.1, 0.1, 0.1), threads=1, gpu=False, cpu=CPU, **readers):
    found = machine_signs(made(root, **readers), cpu, watches, load=load, threads=threads, gpu=gpu)
    for sign in found:
        assert bool(sign.advice) == (sign.state in ("note", "unreliable")), sign
        assert sign.told
        assert "None" not in sign.told
    return {sign.name: sign for sign in found}


def test_a_quiet_machine(tmp_path):
    found = signs(write(tmp_path, {f"{SYS_CPU}/cpu0/cpufreq/scaling_governor": "performance"}))
    states = {name: sign.state for name, sign in found.items()}
    assert states.pop("turbo") == "n/a"
    assert states.pop("power") == "n/a"
    assert set(states.values()) == {"fine"}


def test_a_system_that_tells_nothing_has_reasons_and_no_crash(tmp_path):
    machine = made(
        tmp_path,
        cpu_times=refuse, swap=refuse, memory=refuse, battery=refuse, frequency=refuse, processes=refuse,
        gpu_throttle=refuse, gpu_processes=refuse, load=refuse, clock=count(0.0, 1.0).__next__,
    )  # fmt: skip
    watch = between(snapshot(machine), snapshot(machine))
    cpu = replace(CPU, physical_cores=None, logical_cores=None, usable_cores=None)
    found = machine_signs(machine, cpu, [watch], load=Missing("no load"), threads=1, gpu=True)
    states = {sign.name: sign.state for sign in found}
    assert states.pop("cores") == "fine"
    assert set(states.values()) == {"n/a"}
    assert all(sign.told for sign in found)


@pytest.mark.parametrize(
    ("threads", "quota", "state", "advice"),
    [
        (1, None, "fine", ""),
        (4, None, "fine", ""),
        (6, None, "note", "--threads 4"),
        (9, None, "unreliable", "--threads 8"),
        (2, "150000 100000", "unreliable", "--threads 1"),
        (1, "50000 100000", "unreliable", "--threads 1"),
    ],
)
def test_threads_against_cores(tmp_path, threads, quota, state, advice):
    files = {"proc/self/cgroup": "0::/"} | ({"sys/fs/cgroup/cpu.max": quota} if quota else {})
    sign = signs(write(tmp_path, files), threads=threads)["cores"]
    assert sign.state == state
    assert advice in sign.advice


@pytest.mark.parametrize(
    ("others", "threads", "state"), [(0.1, 8, "fine"), (1.0, 8, "unreliable"), (1.0, 4, "note"), (7.5, 1, "unreliable")]
)
def test_other_work(tmp_path, others, threads, state):
    watch = replace(QUIET, others_cores=others, busiest=(("rustc", 0.9), ("x" * 99, 0.1)))
    sign = signs(tmp_path, watches=[QUIET, watch], threads=threads)["other work"]
    assert (sign.state, sign.value) == (state, others)
    assert "rustc 0.90" in sign.told
    assert "x" * 25 not in sign.told


@pytest.mark.parametrize(
    ("name", "changed", "state"),
    [
        ("quota waits", {"throttled": Throttled(periods=3, waited_s=0.2)}, "unreliable"),
        ("steal", {"steal_share": 0.004}, "fine"),
        ("steal", {"steal_share": 0.01}, "note"),
        ("steal", {"steal_share": 0.05}, "unreliable"),
        ("heat", {"heat_events": 2}, "unreliable"),
        ("swap", {"swapped_bytes": 4096}, "unreliable"),
        ("frequency", {"frequencies_mhz": (3000.0, 2000.0)}, "note"),
        ("frequency", {"frequencies_mhz": (2000.0, 3000.0)}, "fine"),
        ("frequency", {"frequencies_mhz": Missing("no")}, "fine"),
    ],
)
def test_what_happened_while_watched(tmp_path, name, changed, state):
    watches = [QUIET, replace(QUIET, **changed)]
    assert signs(tmp_path, watches=watches)[name].state == state


@pytest.mark.parametrize(
    ("name", "files", "state"),
    [
        ("governor", {f"{SYS_CPU}/cpu0/cpufreq/scaling_governor": "powersave"}, "note"),
        (
            "governor",
            {f"{SYS_CPU}/cpu{n}/cpufreq/scaling_governor": kind for n, kind in enumerate(("performance", "powersave"))},
            "note",
        ),
        ("turbo", {f"{SYS_CPU}/intel_pstate/no_turbo": "0"}, "note"),
        ("turbo", {f"{SYS_CPU}/intel_pstate/no_turbo": "1"}, "fine"),
        ("turbo", {f"{SYS_CPU}/cpufreq/boost": "1"}, "note"),
        ("turbo", {f"{SYS_CPU}/cpufreq/boost": "0"}, "fine"),
    ],
)
def test_clock_settings(tmp_path, name, files, state):
    assert signs(write(tmp_path, files))[name].state == state


def test_power_swap_and_load(tmp_path):
    plugged, unplugged = (Told(power_plugged=on, percent=40.0, secsleft=1) for on in (True, False))
    assert signs(tmp_path, battery=lambda: plugged)["power"].state == "fine"
    assert signs(tmp_path, battery=lambda: unplugged)["power"].state == "unreliable"
    assert signs(tmp_path, battery=lambda: Told(power_plugged=None, percent=1.0))["power"].state == "fine"
    assert signs(tmp_path, swap=lambda: Told(used=2**30, sin=0, sout=0))["swap"].state == "note"
    assert signs(tmp_path, load=(7.9, 1.0, 1.0), threads=2)["load average"].state == "note"


@pytest.mark.parametrize(
    ("mask", "state", "told"),
    [
        (0, "fine", "none"),
        (0x1 | 0x2, "fine", "none"),
        (0x4, "note", "power cap"),
        (0x4 | 0x40, "unreliable", "hardware thermal"),
        (0x80, "unreliable", "power brake"),
    ],
)
def test_gpu_throttling(tmp_path, mask, state, told):
    sign = signs(tmp_path, watches=[QUIET, replace(QUIET, gpu_throttle=mask)], gpu=True)["GPU throttling"]
    assert sign.state == state
    assert told in sign.told


def test_gpu_neighbours(tmp_path):
    assert signs(tmp_path, gpu=True)["GPU neighbours"].state == "fine"
    assert signs(tmp_path, gpu=True, gpu_processes=lambda: 2)["GPU neighbours"].state == "unreliable"
    assert signs(tmp_path, gpu=True, gpu_processes=lambda: None)["GPU neighbours"].state == "n/a"


def test_counters_before_and_after(tmp_path):
    root = write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/",
            "sys/fs/cgroup/cpu.stat": "nr_throttled 5\nthrottled_usec 1000000",
            f"{SYS_CPU}/cpu0/thermal_throttle/core_throttle_count": "1",
        },
    )
    times = {"user": 10.0, "system": 1.0, "idle": 50.0, "iowait": 5.0, "steal": 1.0, "guest": 3.0}
    machine = made(
        root,
        clock=iter((100.0, 102.0)).__next__,
        own_cpu_s=iter((1.0, 2.0)).__next__,
        cpu_times=iter(([times], [times | {"user": 14.0, "idle": 50.5, "steal": 1.5}])).__next__,
        swap=iter((Told(sin=0, sout=0), Told(sin=8, sout=4))).__next__,
        frequency=iter((Told(current=0.0), Told(current=0.0))).__next__,
        processes=iter(
            (
                {(1, 0.5): Work(name="a", cpu_s=1.0), (2, 0.5): Work(name="gone", cpu_s=1.0)},
                {(1, 0.5): Work(name="a", cpu_s=3.0), (3, 9.0): Work(name="new", cpu_s=9.0)},
            )
        ).__next__,
    )
    before = snapshot(machine)
    write(
        root,
        {
            "sys/fs/cgroup/cpu.stat": "nr_throttled 7\nthrottled_usec 1500000",
            f"{SYS_CPU}/cpu0/thermal_throttle/core_throttle_count": "4",
        },
    )
    watch = between(before, snapshot(machine))
    assert watch.others_cores == pytest.approx(1.5)
    assert watch.steal_share == pytest.approx(0.25)
    assert watch.throttled == Throttled(periods=2, waited_s=0.5)
    assert watch.heat_events == 3
    assert watch.swapped_bytes == 12
    assert watch.frequencies_mhz == Missing("this system does not tell it")
    assert watch.busiest == (("a", 1.0),)
    with pytest.raises(ValueError, match="time to pass"):
        between(before, before)


def test_broken_counters_are_told_and_not_raised(tmp_path):
    root = write(tmp_path, {f"{SYS_CPU}/cpu0/thermal_throttle/core_throttle_count": "many"})

    def fail(error):
        def read():
            raise error

        return read

    machine = made(root, cpu_times=fail(psutil.AccessDenied(1)), swap=fail(RuntimeError("sysctl failed")))
    found = snapshot(machine)
    assert isinstance(found.busy_s, Missing)
    assert found.swapped_bytes == Missing("sysctl failed")
    assert isinstance(found.heat_events, Missing)


@pytest.mark.parametrize(
    ("files", "cores", "counts"),
    [
        ({}, None, None),
        ({"proc/self/cgroup": "garbage"}, None, None),
        ({"proc/self/cgroup": "0::/user.slice/a", "sys/fs/cgroup/cpu.max": "200000 100000"}, 2.0, None),
        (
            {
                "proc/self/cgroup": "0::/user.slice/a",
                "sys/fs/cgroup/user.slice/cpu.max": "150000 100000",
                "sys/fs/cgroup/user.slice/a/cpu.max": "max 100000",
                "sys/fs/cgroup/user.slice/cpu.stat": "usage_usec 9\nnr_throttled 4\nthrottled_usec 2000000",
            },
            1.5,
            Throttled(periods=4, waited_s=2.0),
        ),
        (
            {
                "proc/self/cgroup": "4:memory:/x\n3:cpu,cpuacct:/docker/ab\n0::/",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
                "sys/fs/cgroup/cpu,cpuacct/cpu.stat": "nr_periods 9\nnr_throttled 1\nthrottled_time 500000000",
            },
            0.5,
            Throttled(periods=1, waited_s=0.5),
        ),
        (
            {"proc/self/cgroup": "1:cpu:/", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"},
            None,
            None,
        ),
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "nonsense here"}, None, None),
    ],
)
def test_groups(tmp_path, files, cores, counts):
    root = write(tmp_path, files)
    assert granted_cores(root) == cores
    assert throttled(root) == counts
