"""The whole examination, from the machine's signs to the recommended size of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import expm1
from typing import TYPE_CHECKING

import psutil

from draftboard.doctor.clocks import clock_signs, cuda_event_sign
from draftboard.doctor.counters import Machine, Missing, Watch, ask, between, snapshot
from draftboard.doctor.curve import curve_sign, falls
from draftboard.doctor.machine import cores_for, machine_signs
from draftboard.doctor.noise import Noise, Times, estimate
from draftboard.doctor.power import ROUNDS, Layout, detectable, recommend
from draftboard.doctor.report import Curve, Measured, Recommendation, Report
from draftboard.doctor.sign import Sign, fine, missing
from draftboard.hardware import Environment, environment, hardware_name
from draftboard.options import RunOptions

if TYPE_CHECKING:
    from draftboard.plan import Plan
    from draftboard.session import Reader, Session

__all__ = ["Wish", "examine", "examine_quickly"]

_IDLE_S = 2.0
_SPEC_BENCH = Layout(domains=6, samples=80)
_WAITING = (0.97, 0.9)
"""Processor seconds over wall seconds of one thread: below the first worth a word, below the second in the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a run is meant to see, and how long the doctor may measure noise."""

    detect: float = 0.05
    power: float = 0.8
    seconds: float = 30.0


def examine_quickly(
    machine: Machine, *, threads: int | None, gpu: bool, say: Callable[[str], None] = lambda text: None
) -> Report:
    """Look at the machine's signs and clocks only. `threads`: how many a run is to use, or None for its default."""
    found = environment(threads=threads)
    load = ask(machine.load)
    say(f"watching the machine for {_IDLE_S:g} s")
    watch = _idle(machine)
    wanted = threads or _default_threads(machine, found)
    signs = machine_signs(machine, found.cpu, [watch], load=load, threads=1 if gpu else wanted, gpu=gpu)
    signs += clock_signs(machine.root)
    return Report(
        environment=found,
        hardware=hardware_name(found, device="auto" if gpu else "cpu"),
        signs=tuple(signs),
        measured=None,
        recommendation=None,
    )


def examine(
    machine: Machine, options: RunOptions, wish: Wish, *, say: Callable[[str], None] = lambda text: None
) -> Report:
    """Look at the machine and measure with a model. Raises UserError for a model that cannot be used."""
    from draftboard.models import resolve_device, resolve_dtype
    from draftboard.plan import make_plan
    from draftboard.session import Session, open_reader

    plan = make_plan(options, where="doctor")
    load = ask(machine.load)
    say(f"watching the machine for {_IDLE_S:g} s")
    idle = _idle(machine)
    reader = open_reader(plan)
    device = resolve_device(plan.device)
    memory = _memory(machine, reader, plan)
    if memory.state == "unreliable":
        found = environment(threads=plan.threads)
        threads = 1 if device.type == "cuda" else plan.threads or _default_threads(machine, found)
        signs = machine_signs(machine, found.cpu, [idle], load=load, threads=threads, gpu=device.type == "cuda")
        return Report(
            environment=found,
            hardware=hardware_name(found, device=str(device)),
            signs=(*signs, memory, *clock_signs(machine.root), missing("cost curve", "curve", "no memory for it")),
            measured=None,
            recommendation=None,
        )
    dtype = str(resolve_dtype(plan.dtype, device)).removeprefix("torch.")
    say(f"loading {plan.model} in {dtype}")
    session = Session.load(plan, reader)
    return _measured(machine, session, wish, [idle], load=load, memory=memory, say=say)


def _measured(
    machine: Machine,
    session: Session,
    wish: Wish,
    watches: list[Watch],
    *,
    load: tuple[float, float, float] | Missing,
    memory: Sign,
    say: Callable[[str], None],
) -> Report:
    import torch

    from draftboard.doctor.model import measure_noise

    device, threads = session.target.device, torch.get_num_threads()
    cuda = device.type == "cuda"
    feeding = 1 if cuda else threads
    quiet_signs = machine_signs(machine, environment().cpu, watches, load=load, threads=feeding, gpu=cuda)
    busy = any(sign.state == "unreliable" for sign in quiet_signs)
    before = snapshot(machine)
    say("measuring the cost curve")
    curve, again = session.measure(), None
    # On a busy machine a fall needs no second look: the curve is bent either way, and the time is better saved.
    if falls(curve) and not busy:
        say("the curve falls: measuring it again")
        again = session.measure()
    pairs = measure_noise(session.target, curve, seconds=wish.seconds, say=say)
    watches = [*watches, between(before, snapshot(machine))]
    found = environment(threads=threads)
    wall, cpu = _estimated("wall", pairs.wall), _estimated("process CPU", pairs.cpu)
    measured = Measured(
        model=session.plan.model,
        dtype=str(session.target.dtype).removeprefix("torch."),
        device=str(device),
        threads=threads,
        curve=Curve(rows=curve.rows, cost=curve.cost, one_row_s=curve.one_row_s),
        rounds=pairs.rounds,
        samples=pairs.samples,
        tokens=pairs.tokens,
        wall=wall,
        cpu=cpu,
    )
    wanted = _recommended(wish, wall, session.plan, measured) if wall is not None else None
    signs = [
        *machine_signs(machine, found.cpu, watches, load=load, threads=feeding, gpu=cuda),
        memory,
        *clock_signs(machine.root),
        cuda_event_sign(device),
        curve_sign(curve, again),
        *_noise_signs(wall, cpu, wanted),
    ]
    if not cuda and threads == 1:
        signs.append(waiting_sign(pairs.wall, pairs.cpu))
    return Report(
        environment=found,
        hardware=hardware_name(found, device=str(device)),
        signs=tuple(signs),
        measured=measured,
        recommendation=wanted,
    )


def _idle(machine: Machine) -> Watch:
    before = snapshot(machine)
    machine.pause(_IDLE_S)
    return between(before, snapshot(machine))


def _default_threads(machine: Machine, found: Environment) -> int:
    """Return what torch takes by itself: the physical cores, as far as the process may use them."""
    usable = cores_for(machine, found.cpu)
    return max(1, int(min(usable, found.cpu.physical_cores or usable)))


def _memory(machine: Machine, reader: Reader, plan: Plan) -> Sign:
    import torch

    from draftboard.doctor.model import memory_sign, model_size
    from draftboard.models import resolve_device, resolve_dtype

    device = resolve_device(plan.device)
    size = model_size(reader.ref, dtype=resolve_dtype(plan.dtype, device))
    if device.type == "cuda":
        return memory_sign(size, int(torch.cuda.mem_get_info(device)[0]), place="GPU memory")
    free = ask(machine.memory)
    if isinstance(free, Missing):
        return memory_sign(size, None, place="memory")
    granted = environment().memory_limit_bytes
    own = psutil.Process().memory_info().rss
    limits = [int(free.available), *([granted - own] if granted is not None else [])]
    return memory_sign(size, min(limits), place="memory")


def _estimated(clock: str, times: Times) -> Noise | None:
    try:
        return estimate(clock, times)
    except ValueError:
        return None


def _recommended(wish: Wish, wall: Noise, plan: Plan, measured: Measured) -> Recommendation:
    suite, design = "mini", recommend(wall.spread, wish.detect, wish.power, largest=_bundled_layout())
    if design is None:
        suite, design = "spec_bench", recommend(wall.spread, wish.detect, wish.power, largest=_SPEC_BENCH)
    # More rounds help the estimate and raise the floor: which of the two wins depends on the noise.
    smallest = min(detectable(wall.spread, wish.power, layout=_SPEC_BENCH, rounds=rounds) for rounds in ROUNDS)
    told: list[str] = []
    if design is not None:
        told = ["--model", plan.model, *(["--revision", plan.revision] if plan.revision else [])]
        told += ["--dtype", measured.dtype, "--device", measured.device]
        told += ["--threads", str(measured.threads)] if measured.device == "cpu" else []
        told += ["--suite", suite, "--limit", str(design.layout.samples), "--repeats", str(design.rounds)]
    return Recommendation(
        detect=wish.detect, power=wish.power, design=design, smallest=expm1(smallest), run_options=tuple(told)
    )


def _bundled_layout() -> Layout:
    """Return the domains of the bundled suite, which needs no download, as far as all have equally many samples."""
    from draftboard.suites import load_suite

    counts = load_suite("mini").counts.values()
    return Layout(domains=len(counts), samples=min(counts))


def _noise_signs(wall: Noise | None, cpu: Noise | None, wanted: Recommendation | None) -> list[Sign]:
    if wall is None or wanted is None:
        return [missing("noise floor", "noise", "the wall clock is too coarse for these samples")]
    told = f"two rounds of the same work differ by up to {expm1(wall.floor):.1%}"
    if wanted.design is not None:
        return [fine("noise floor", "noise", told, wall.floor, "log")]
    why = ""
    if cpu is not None and cpu.floor < wall.floor / 2:
        why = " (process CPU time is far steadier: it is other work that disturbs)"
    advice = (
        f"Quieten the machine{why}: even all of Spec-Bench in {ROUNDS[0]} to {ROUNDS[-1]} rounds sees no less than "
    )
    advice += f"{wanted.smallest:.1%} in this noise."
    return [
        Sign(
            name="noise floor",
            group="noise",
            state="unreliable",
            told=f"{told}, too much to see {wanted.detect:.2%}",
            value=wall.floor,
            unit="log",
            advice=advice,
        )
    ]


def waiting_sign(wall: Times, cpu: Times) -> Sign:
    """Judge how much of its wall time a single thread really computed."""
    share = sum(sum(pair) for one in cpu for pair in one) / sum(sum(pair) for one in wall for pair in one)
    told = f"the thread computed for {min(1.0, share):.1%} of its wall time"
    if share >= _WAITING[0]:
        return fine("waiting", "noise", told, share, "share")
    return Sign(
        name="waiting",
        group="noise",
        state="unreliable" if share < _WAITING[1] else "note",
        told=told,
        value=share,
        unit="share",
        advice="Give the run a core of its own: for the rest of the time it stood in line for one.",
    )
