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
        "remarks": ["one round: run-to-run drift is not in the intervals; use --repeats 3"],
    }
    short = stored(cells[:-1])
    assert judge(short, analyse(short))["reasons"] == ["1 of 40 cells have not run; go on with draftboard run --resume"]
    cold = replace(run, plan={**run.plan, "warmup": "none"})
    assert judge(cold, analyse(cold))["reasons"] == ["nothing was warmed up before timing"]


def whole(*, seconds=0.5, loads=(None,), **environment):
    cells = [
        cell(m, str(i), turn(range(5), 1.0 if m != "m" else seconds), load_1min=loads[i % len(loads)])
        for m in ("autoregressive", "m")
        for i in range(20)
    ]
    run = stored(cells)
    return replace(run, environment={**run.environment, **environment})


def reasons(run):
    return judge(run, analyse(run))["reasons"]


def test_foreign_load_counts_beyond_the_threads_of_the_run():
    assert reasons(whole(loads=(2.9,), threads=2)) == []
    assert reasons(whole(loads=(3.5,), threads=4)) == []
    assert reasons(whole(loads=(3.5, *[1.0] * 19), threads=2)) == []
    assert reasons(whole(loads=(3.5, 1.0), threads=2)) == [
        "foreign load on the machine: load average over 3 (2 threads of the run and 1) before 20 of 40 cells"
    ]


def test_a_falling_cost_curve_tells_of_a_disturbed_machine():
    def curve(*cost):
        return {"rows": [1, 2, 4, 8][: len(cost)], "cost": list(cost), "one_row_s": 0.1}

    assert reasons(whole(cost_curve=curve(1.0, 1.05, 0.98, 1.3))) == []
    assert reasons(whole(cost_curve=curve(1.0, 2.0, 1.2, 1.5))) == [
        "the cost curve falls by 40 % from 2 to 4 rows: the machine was disturbed when it was measured"
    ]


def test_a_throttled_gpu_is_a_reason_and_an_idle_one_is_none():
    assert reasons(whole(load={"gpu_throttle": 0x1 | 0x4})) == []
    assert reasons(whole(load={"gpu_throttle": 0x1 | 0x40})) == [
        "the GPU was throttled when the run began: hardware thermal"
    ]


def test_a_speedup_that_noise_hides_is_a_reason_and_a_tie_is_none():
    def run(factors):
        cells = [cell("autoregressive", str(i), turn(range(5), 1.0)) for i in range(20)]
        cells += [cell("m", str(i), turn(range(5), factors[i % len(factors)])) for i in range(20)]
        return stored(cells)

    assert reasons(run((0.97, 1.03))) == []
    (told,) = reasons(run((0.2, 1.4)))
    assert told.startswith("noise hides whether there is a speedup: m 1.25 [")
