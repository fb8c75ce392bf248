"""Whether a run can be rested on: valid, or invalid with each reason. Written last, so its absence means unfinished.

A reason speaks of the run, not of its methods: that a method cannot be told from the baseline is a result. It is a
reason only where the run seems to claim something, a speedup more than `_CLAIM` away from 1 whose interval holds 1.
"""

from typing import Any

from draftboard.curves import FALL, deepest_fall
from draftboard.records import SCHEMA
from draftboard.results import Group
from draftboard.statistics import ONE_ROUND
from draftboard.store import StoredRun
from draftboard.wording import counted, named

__all__ = ["disturbances", "judge"]

_FEW = 20
"""Fewer samples a method than this make no claim about a suite."""
_CLAIM = 0.05
"""A speedup nearer to 1 claims nothing."""
_BUSY = 1.0
"""Runnable processes beyond the run's own threads that count as foreign load."""
_SHARE = 0.1
"""Up to this share of the cells may have met foreign load."""
_SLOWED = {0x08: "hardware slowdown", 0x20: "software thermal", 0x40: "hardware thermal", 0x80: "power brake"}
"""Bits of the driver's mask that mean lower clocks against one's will; idling and chosen limits are no reason."""


def disturbances(run: StoredRun) -> tuple[str, ...]:
    """Return the signs that the machine was not the run's alone, or not at its full speed."""
    return (*_load(run), *_throttling(run), *_curve(run))


def judge(run: StoredRun, group: Group) -> dict[str, Any]:
    """Return the verdict as plain JSON."""
    wanted = len(run.samples) * len(run.plan["methods"]) * int(run.plan["repeats"])
    failed = sum(cell.status == "failed" for cell in run.cells)
    reasons = [
        *_cells(run, wanted, failed),
        *_preparation(run),
        *_output(group),
        *_noise(group),
        *disturbances(run),
    ]
    return {
        "schema": SCHEMA,
        "valid": not reasons,
        "reasons": reasons,
        "cells": len(run.cells),
        "failed": failed,
        "skipped": sum(cell.status == "skipped" for cell in run.cells),
        "remarks": [ONE_ROUND] if int(run.plan["repeats"]) < 2 and "imported" not in run.plan else [],
    }


def _cells(run: StoredRun, wanted: int, failed: int) -> list[str]:
    imported = "imported" in run.plan
    found = ["imported: the conditions that it was measured under are not on record"] if imported else []
    if len(run.cells) < wanted:
        verb = "are not in the imported files" if imported else "have not run; go on with draftboard run --resume"
        found.append(f"{wanted - len(run.cells)} of {wanted} cells {verb}")
    if failed:
        found.append(f"{failed} of {wanted} cells failed")
    if len(run.samples) < _FEW:
        found.append(f"only {counted(len(run.samples), 'sample')}; claims need at least {_FEW}")
    return found


def _preparation(run: StoredRun) -> list[str]:
    found = []
    if run.plan.get("warmup") == "none":
        found.append("nothing was warmed up before timing")
    device = str((run.plan.get("resolved") or {}).get("device", ""))
    if run.plan.get("profile") and "cuda" in device:
        found.append("the device was synchronised inside steps (profile), which slows it down")
    return found


def _output(group: Group) -> list[str]:
    differing = [method.method for method in group.methods if method.output == "different"]
    if not differing:
        return []
    return [f"output differs from the baseline by more than rounding: {named(differing)}"]


def _noise(group: Group) -> list[str]:
    """Name the methods whose speedup looks like one and may be none."""
    hidden = []
    for method in group.methods:
        figure = method.overall.get("speedup")
        if figure is None or figure.value is None or figure.interval is None:
            continue
        interval = figure.interval
        if abs(figure.value - 1) > _CLAIM and interval.low <= 1 <= interval.high:
            hidden.append(f"{method.method} {figure.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]")
    if not hidden:
        return []
    return [f"noise hides whether there is a speedup: {', '.join(hidden)}; more samples or rounds can tell"]


def _load(run: StoredRun) -> list[str]:
    """Count the cells before which more was runnable on the machine than the run itself."""
    threads = run.environment.get("threads") or run.plan.get("threads")
    known = [cell.load_1min for cell in run.cells if cell.load_1min is not None]
    if not isinstance(threads, int) or not known:
        return []
    busy = sum(load > threads + _BUSY for load in known)
    if busy <= _SHARE * len(known):
        return []
    return [
        f"foreign load on the machine: load average over {threads + _BUSY:g} ({threads} threads of the run and "
        f"{_BUSY:g}) before {busy} of {len(known)} cells"
    ]


def _throttling(run: StoredRun) -> list[str]:
    mask = (run.environment.get("load") or {}).get("gpu_throttle")
    if not isinstance(mask, int):
        return []
    kinds = [name for bit, name in _SLOWED.items() if mask & bit]
    return [f"the GPU was throttled when the run began: {', '.join(kinds)}"] if kinds else []


def _curve(run: StoredRun) -> list[str]:
    curve = run.environment.get("cost_curve")
    if not curve:
        return []
    fall = deepest_fall(curve["rows"], curve["cost"])
    if fall is None or fall.depth <= FALL:
        return []
    return [
        f"the cost curve falls by {100 * fall.depth:.0f} % from {fall.fewer} to {fall.rows} rows: the machine was "
        "disturbed when it was measured"
    ]
