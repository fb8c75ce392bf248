"""The command `draftboard doctor`.

Exit codes: 0 nothing stands in the way of measuring, 1 something makes measurements unreliable, 2 bad input.
"""

from __future__ import annotations

import json as json_
import re
import sys
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from draftboard.errors import UserError
from draftboard.options import RunOptions, Whole
from draftboard.plugins import AsJson

if TYPE_CHECKING:
    from draftboard.doctor import Wish

__all__ = ["doctor", "parse_part"]


def doctor(
    *,
    model: str | None = None,
    revision: str | None = None,
    dtype: Literal["auto", "float32", "float16", "bfloat16"] | None = None,
    device: str | None = None,
    threads: Annotated[int | None, Whole] = None,
    detect: str | None = None,
    power: str | None = None,
    seconds: float | None = None,
    quick: Annotated[bool, Parameter(negative=())] = False,
    json: AsJson = False,
) -> int:
    """Say whether this machine can measure, what to change if not, and how large a run has to be.

    Parameters
    ----------
    model
        The model that cost curve and noise are measured with [default: smollm2-135m].
    revision
        Branch, tag or commit of a Hugging Face id.
    dtype
        Of the model [default: auto: what this device computes fastest].
    device
        auto, cpu, cuda or cuda:N [default: auto].
    threads
        Threads that torch computes with on a CPU [default: the cores that this process may use].
    detect
        The difference in speed that a run is meant to see, 5% or 0.05 [default: 5%].
    power
        The chance with which it is meant to see it, 80% or 0.8 [default: 80%].
    seconds
        Time for the noise measurement [default: 30].
    quick
        Only what needs no model: the machine's signs and its clocks.
    """
    from draftboard.doctor import Machine, document, examine, examine_quickly
    from draftboard.doctor.show import console_text
    from draftboard.leaderboards.text import terminal_text

    wish = _wish(detect, power, seconds)
    if threads is not None and threads < 1:
        raise UserError(f"threads must be at least 1, not {threads}")

    def say(text: str) -> None:
        print(terminal_text(text), file=sys.stderr, flush=True)

    machine = Machine()
    if quick:
        _refuse_model_options(model=model, revision=revision, dtype=dtype, detect=detect, power=power, seconds=seconds)
        report = examine_quickly(machine, threads=threads, gpu=_on_gpu(device), say=say)
    else:
        options = RunOptions(
            model=model, revision=revision, dtype=dtype, device=device, threads=threads, suite=("mini",), limit=1
        )
        report = examine(machine, options, wish, say=say)
    if json:
        print(json_.dumps(document(report), allow_nan=False, indent=1))
    else:
        print(console_text(report), end="")
    return 0 if report.reliable else 1


def parse_part(name: str, text: str) -> float:
    """Read `5%` or `0.05` as 0.05. A number of 1 or more needs its percent sign. Raises UserError."""
    found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(%?)\s*", text, re.ASCII)
    try:
        value = float(found[1]) if found else float("nan")
    except ValueError:
        value = float("nan")
    if found is None or not isfinite(value):
        raise UserError(f"{name}: {text!r} is no number", advice="Write it as 5% or as 0.05.")
    if found[2]:
        return value / 100
    if value >= 1:
        raise UserError(f"{name}: {text!r} is ambiguous", advice=f"Write {text.strip()}% or a number below 1.")
    return value


def _wish(detect: str | None, power: str | None, seconds: float | None) -> Wish:
    from draftboard.doctor import Wish

    wish = Wish()
    wish = Wish(
        detect=wish.detect if detect is None else parse_part("detect", detect),
        power=wish.power if power is None else parse_part("power", power),
        seconds=wish.seconds if seconds is None else seconds,
    )
    problems = []
    if not 0.0001 <= wish.detect <= 1:
        problems.append(f"detect must lie between 0.01% and 100%, not {wish.detect:.4%}")
    if not 0.5 <= wish.power <= 0.999:
        problems.append(f"power must lie between 50% and 99.9%, not {wish.power:.4%}")
    if not 1 <= wish.seconds <= 3600:
        problems.append(f"seconds must lie between 1 and 3600, not {wish.seconds}")
    if problems:
        raise UserError(f"{len(problems)} problem(s) in what the doctor is asked", problems=tuple(problems))
    return wish


def _refuse_model_options(**options: object) -> None:
    given = [f"--{name}" for name, value in options.items() if value is not None]
    if given:
        raise UserError(
            f"--quick measures nothing with a model, so that {', '.join(given)} would have no effect",
            advice="Leave out --quick or the other.",
        )


def _on_gpu(device: str | None) -> bool:
    """Return whether a run would compute on a GPU, as far as that can be told without torch."""
    from draftboard.hardware import visible_gpus

    if device is not None and not re.fullmatch(r"auto|cpu|cuda(:[0-9]+)?", device):
        raise UserError(f"unknown device {device!r}", advice="Devices: auto, cpu, cuda, cuda:N.")
    with visible_gpus() as handles:
        count = len(handles)
    index = int((device or "").partition(":")[2] or 0)
    if device is not None and device.startswith("cuda") and index >= count:
        raise UserError(f"device {device} is not there: {count} NVIDIA device(s) found", advice="Use --device cpu.")
    return device != "cpu" and count > 0
