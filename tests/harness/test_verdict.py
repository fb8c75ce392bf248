"""When a run can be rested on."""

from dataclasses import replace

from draftboard.analysis import analyse
from draftboard.verdict import judge

from made_runs import cell, stored, turn


def test_a_verdict_is_valid_only_with_enough_whole_cells():
    cells = [cell(m, str(i), turn(range(5), 1.0)) for m in ("autoregressive", "m") for i in range(20)]
    run = stored(cells)
    assert judge(run, analyse(run)) == {
        "schema": 1,
        "valid": True,
        "reasons": [],
        "cells": 40,
        "failed": 0,
        "skipped": 0,
    }
    short = stored(cells[:-1])
    assert judge(short, analyse(short))["reasons"] == ["1 of 40 cells have not run"]
    cold = replace(run, plan={**run.plan, "warmup": "none"})
    assert judge(cold, analyse(cold))["reasons"] == ["nothing was warmed up before timing"]
