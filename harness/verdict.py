"""Whether a run can be rested on: valid, or invalid with each reason. Written last, so its absence means unfinished."""

from typing import Any

from draftboard.records import SCHEMA
from draftboard.results import Group
from draftboard.store import StoredRun

__all__ = ["judge"]

_FEW = 20
"""Fewer samples a method than this make no claim about a suite."""


def judge(run: StoredRun, group: Group) -> dict[str, Any]:
    """Return the verdict as plain JSON."""
    reasons: list[str] = []
    imported = "imported" in run.plan
    wanted = len(run.samples) * len(run.plan["methods"]) * int(run.plan["repeats"])
    failed = sum(cell.status == "failed" for cell in run.cells)
    skipped = sum(cell.status == "skipped" for cell in run.cells)
    if imported:
        reasons.append("imported: the conditions that it was measured under are not on record")
    if len(run.cells) < wanted:
        verb = "are not in the imported files" if imported else "have not run"
        reasons.append(f"{wanted - len(run.cells)} of {wanted} cells {verb}")
    if failed:
        reasons.append(f"{failed} of {wanted} cells failed")
    if len(run.samples) < _FEW:
        reasons.append(f"only {len(run.samples)} samples; claims need at least {_FEW}")
    if run.plan.get("warmup") == "none":
        reasons.append("nothing was warmed up before timing")
    device = str((run.plan.get("resolved") or {}).get("device", ""))
    if run.plan.get("profile") and "cuda" in device:
        reasons.append("the device was synchronised inside steps (profile), which slows it down")
    differing = [method.method for method in group.methods if method.output == "different"]
    if differing:
        reasons.append(f"output differs from the baseline by more than rounding: {', '.join(differing)}")
    return {
        "schema": SCHEMA,
        "valid": not reasons,
        "reasons": reasons,
        "cells": len(run.cells),
        "failed": failed,
        "skipped": skipped,
    }
