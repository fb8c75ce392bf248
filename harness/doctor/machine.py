"""Judging the machine: who else works on it, what slows it down, and whether its clock frequency can be trusted."""

from collections.abc import Sequence

from draftboard.doctor.cgroup import granted_cores
from draftboard.doctor.counters import Machine, Missing, Watch, ask
from draftboard.doctor.sign import Sign, State, fine, missing
from draftboard.hardware import Cpu

__all__ = ["GPU_REASONS", "cores_for", "machine_signs"]

_OTHERS_NOTED = 0.1
"""Part of the cores that others may use before it is worth a word."""
_STEAL = (0.005, 0.02)
"""Part of the time: worth a word, stands in the way."""
_SLOWER = 0.9
_GPU_OTHERS_ADVICE = "Stop the other processes on the GPU, or choose a free one with CUDA_VISIBLE_DEVICES."

GPU_REASONS: tuple[tuple[int, str, State, str], ...] = (
    (0x08, "hardware slowdown", "unreliable", "Improve the GPU's cooling or power supply"),
    (0x20, "software thermal slowdown", "unreliable", "Improve the GPU's cooling"),
    (0x40, "hardware thermal slowdown", "unreliable", "Improve the GPU's cooling"),
    (0x80, "power brake", "unreliable", "Give the GPU the power it asks for"),
    (0x04, "power cap", "note", "Lock the GPU's clocks below what its power limit allows (nvidia-smi -lgc)"),
    (0x10, "sync boost", "note", "Take the GPU out of its sync boost group"),
)
"""Bits of NVML's clocks-throttle reasons that matter: bit, name, state, advice. Idle and chosen clocks do not."""


def cores_for(machine: Machine, cpu: Cpu) -> float:
    """Return the cores that the process may use: affinity and every quota of its groups; at least one."""
    limits = [cpu.usable_cores or cpu.logical_cores, cpu.container_cores, granted_cores(machine.root)]
    return min([float(limit) for limit in limits if limit], default=1.0)


def machine_signs(
    machine: Machine,
    cpu: Cpu,
    watches: Sequence[Watch],
    *,
    load: tuple[float, float, float] | Missing,
    threads: int,
    gpu: bool = False,
) -> list[Sign]:
    """Return every sign of the machine, in the order in which they are shown.

    `watches`: at least one. `load`: load averages from before the doctor did any work. `threads`: how many a run
    computes with; on a GPU one, which feeds it.
    """
    cores = cores_for(machine, cpu)
    signs = [
        _cores(cpu, cores, threads),
        _load(load, cores, threads),
        _others(watches, cpu, threads),
        _throttled(watches, cores),
        _steal(watches),
        _governor(machine),
        _turbo(machine),
        _frequency(watches),
        _heat(watches),
        _swap(machine, watches),
        _power(machine),
    ]
    if gpu:
        signs += [_gpu_throttle(watches), _gpu_processes(machine)]
    return signs


def _cores(cpu: Cpu, cores: float, threads: int) -> Sign:
    told = f"{cores:g} usable, {threads} thread{'s' if threads != 1 else ''}"
    state: State = "fine"
    advice = ""
    if threads > cores:
        state, advice = (
            "unreliable",
            f"Use --threads {max(1, int(cores))}: more threads than cores wait for each other.",
        )
    elif cpu.physical_cores is not None and threads > cpu.physical_cores:
        state = "note"
        told += f", {cpu.physical_cores} physical"
        advice = f"Use --threads {cpu.physical_cores}: two threads on one physical core slow each other down."
    return Sign(name="cores", group="machine", state=state, told=told, value=cores, advice=advice)


def _load(load: tuple[float, float, float] | Missing, cores: float, threads: int) -> Sign:
    if isinstance(load, Missing):
        return missing("load average", "machine", load.reason)
    told = f"{load[0]:.2f} in the last minute, {load[1]:.2f} in five"
    if load[0] + threads <= cores + 0.5:
        return fine("load average", "machine", told, load[0])
    advice = "Let the machine come to rest before measuring; the load average counts what waited for a core."
    return Sign(name="load average", group="machine", state="note", told=told, value=load[0], advice=advice)


def _others(watches: Sequence[Watch], cpu: Cpu, threads: int) -> Sign:
    known = [one for one in watches if not isinstance(one.others_cores, Missing)]
    if not known:
        return missing("other work", "machine", _reason(watches[0].others_cores))
    worst = max(known, key=lambda one: float(one.others_cores))  # type: ignore[arg-type]
    others = float(worst.others_cores)  # type: ignore[arg-type]
    room = float(cpu.usable_cores or cpu.logical_cores or 1)
    names = ", ".join(f"{name[:24]} {share:.2f}" for name, share in worst.busiest)
    told = f"{others:.2f} of {room:g} cores" + (f": {names}" if names else "")
    state: State = "fine"
    advice = ""
    if room - others < 0.9 * threads:
        state = "unreliable"
        advice = "Stop the other work on this machine, or wait for its end."
        if int(room - others) >= 1:
            advice = f"Stop the other work on this machine, or leave it a core with --threads {int(room - others)}."
    elif others > _OTHERS_NOTED * room:
        state = "note"
        advice = "Stop the other work on this machine: it shares caches, memory and clock frequency with the run."
    return Sign(name="other work", group="machine", state=state, told=told, value=others, unit="cores", advice=advice)


def _throttled(watches: Sequence[Watch], cores: float) -> Sign:
    found = [one.throttled for one in watches if not isinstance(one.throttled, Missing)]
    if not found:
        return missing("quota waits", "machine", _reason(watches[0].throttled))
    periods, waited = sum(one.periods for one in found), sum(one.waited_s for one in found)
    if periods == 0:
        return fine("quota waits", "machine", "none while watched", 0, "periods")
    advice = f"Raise the container's CPU quota, or use fewer threads than the {cores:g} cores that it grants."
    told = f"{periods} period(s) of the CPU quota used up, {waited:.2g} s waited"
    return Sign(
        name="quota waits", group="machine", state="unreliable", told=told, value=periods, unit="periods", advice=advice
    )


def _steal(watches: Sequence[Watch]) -> Sign:
    found = [one.steal_share for one in watches if not isinstance(one.steal_share, Missing)]
    if not found:
        return missing("steal", "machine", _reason(watches[0].steal_share))
    share = max(found)
    told = f"{share:.1%} of the time went to other virtual machines"
    if share < _STEAL[0]:
        return fine("steal", "machine", told, share, "share")
    return Sign(
        name="steal",
        group="machine",
        state="unreliable" if share >= _STEAL[1] else "note",
        told=told,
        value=share,
        unit="share",
        advice="Measure on a dedicated host, or when the machines that share this one are idle.",
    )


def _governor(machine: Machine) -> Sign:
    def read() -> list[str]:
        files = sorted((machine.root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
        if not files:
            raise NotImplementedError
        return sorted({file.read_text(encoding="ascii").strip() for file in files})

    found = ask(read)
    if isinstance(found, Missing):
        return missing("governor", "machine", found.reason)
    told = ", ".join(found)
    if found == ["performance"]:
        return fine("governor", "machine", told)
    advice = "Set the CPU governor to performance (cpupower frequency-set -g performance)."
    return Sign(name="governor", group="machine", state="note", told=told, advice=advice)


def _turbo(machine: Machine) -> Sign:
    base = "sys/devices/system/cpu"
    no_turbo = ask(lambda: machine.text(f"{base}/intel_pstate/no_turbo"))
    boost = ask(lambda: machine.text(f"{base}/cpufreq/boost"))
    if isinstance(no_turbo, str):
        on = no_turbo == "0"
    elif isinstance(boost, str):
        on = boost != "0"
    else:
        return missing("turbo", "machine", boost.reason)
    if not on:
        return fine("turbo", "machine", "off", 0)
    advice = "Switch turbo off for the steadiest clock: how long it lasts depends on heat and on the other cores."
    return Sign(name="turbo", group="machine", state="note", told="on", value=1, advice=advice)


def _frequency(watches: Sequence[Watch]) -> Sign:
    found = [one.frequencies_mhz for one in watches if not isinstance(one.frequencies_mhz, Missing)]
    if not found:
        return missing("frequency", "machine", _reason(watches[0].frequencies_mhz))
    first, last = found[-1]
    told = f"{last:.0f} MHz" if abs(last - first) < 1 else f"{first:.0f} MHz, {last:.0f} MHz at the end"
    # Idle ends are slow by design: only a fall while the doctor worked says something.
    if last >= _SLOWER * first or len(found) < 2:
        return fine("frequency", "machine", told, last, "MHz")
    advice = "Fix the clock frequency, or let a run warm up for longer: it fell while the same work was done."
    return Sign(name="frequency", group="machine", state="note", told=told, value=last, unit="MHz", advice=advice)


def _heat(watches: Sequence[Watch]) -> Sign:
    found = [one.heat_events for one in watches if not isinstance(one.heat_events, Missing)]
    if not found:
        return missing("heat", "machine", _reason(watches[0].heat_events))
    events = sum(found)
    if events <= 0:
        return fine("heat", "machine", "no thermal throttling while watched", 0, "events")
    advice = "Improve the cooling or lower the power limit until the processor no longer slows itself down."
    told = f"{events} thermal throttling event(s) while watched"
    return Sign(name="heat", group="machine", state="unreliable", told=told, value=events, unit="events", advice=advice)


def _swap(machine: Machine, watches: Sequence[Watch]) -> Sign:
    swap = ask(machine.swap)
    if isinstance(swap, Missing):
        return missing("swap", "machine", swap.reason)
    moved = sum(one.swapped_bytes for one in watches if not isinstance(one.swapped_bytes, Missing))
    used = int(swap.used)
    told = f"{_size(used)} in use, {_size(moved)} moved while watched" if used or moved else "not in use"
    if moved > 0:
        state: State = "unreliable"
        advice = "Free memory until nothing is swapped while measuring."
    elif used > 0:
        state, advice = "note", "Free memory and empty the swap, so that no page has to come back during a run."
    else:
        return fine("swap", "machine", told, 0, "bytes")
    return Sign(name="swap", group="machine", state=state, told=told, value=used, unit="bytes", advice=advice)


def _power(machine: Machine) -> Sign:
    battery = ask(machine.battery)
    if isinstance(battery, Missing):
        return missing("power", "machine", "no battery")
    if battery.power_plugged is not False:
        return fine("power", "machine", "plugged in" if battery.power_plugged else "a battery of unknown state")
    told = f"on battery, {battery.percent:.0f} % left"
    advice = "Plug the machine in: on battery it saves power at its own discretion."
    return Sign(name="power", group="machine", state="unreliable", told=told, advice=advice)


def _gpu_throttle(watches: Sequence[Watch]) -> Sign:
    found = [one.gpu_throttle for one in watches if not isinstance(one.gpu_throttle, Missing)]
    if not found:
        return missing("GPU throttling", "machine", _reason(watches[0].gpu_throttle))
    mask = 0
    for one in found:
        mask |= one
    hit = [reason for reason in GPU_REASONS if mask & reason[0]]
    if not hit:
        return fine("GPU throttling", "machine", "none while watched", mask)
    state: State = "unreliable" if any(reason[2] == "unreliable" for reason in hit) else "note"
    return Sign(
        name="GPU throttling",
        group="machine",
        state=state,
        told=", ".join(reason[1] for reason in hit),
        value=mask,
        advice="; ".join(dict.fromkeys(reason[3] for reason in hit)) + ".",
    )


def _gpu_processes(machine: Machine) -> Sign:
    count = ask(machine.gpu_processes)
    if count is None or isinstance(count, Missing):
        return missing("GPU neighbours", "machine", _reason(count))
    told = f"{count} other process(es) on the GPU"
    if not count:
        return fine("GPU neighbours", "machine", told, 0)
    return Sign(
        name="GPU neighbours", group="machine", state="unreliable", told=told, value=count, advice=_GPU_OTHERS_ADVICE
    )


def _reason(value: object) -> str:
    return value.reason if isinstance(value, Missing) else "this system does not tell it"


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
