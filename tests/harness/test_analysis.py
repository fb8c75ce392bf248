"""Figures from cells written by hand: the vectors of the definitions, pairing, what is missing, how outputs compare."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.analysis import analyse, analyse_runs, domain_labels, tie_limit
from draftboard.leaderboards import standings
from draftboard.records import Cell, Divergence, SampleRecord, ScoreRecord, Turn
from draftboard.results import Figure
from draftboard.scoring import Scores, Value
from draftboard.store import StoredRun
from draftboard.verdict import judge


def turn(tokens=(1, 2, 3), seconds=1.0, *, first=0.0, steps=(), prompt="p", cpu=None):
    """`steps`: (drafted, accepted, kept) each."""
    columns = [list(column) for column in zip(*steps, strict=True)] or [[], [], []]
    times = [1_000_000] * len(columns[0])
    return Turn(
        prompt_tokens=5,
        prompt_sha256=prompt,
        token_ids=list(tokens),
        text="x",
        finish="length",
        prefill_ns=int(first * 1e9),
        first_ns=int(first * 1e9),
        end_ns=round(seconds * 1e9),
        cpu_ns=round((cpu or seconds) * 1e9),
        first_cpu_ns=0,
        steps={
            "drafted": columns[0],
            "accepted": columns[1],
            "kept": columns[2],
            "nodes": columns[0],
            "draft_ns": times,
            "verify_ns": [2 * t for t in times],
            "other_ns": times,
            "end_ns": times,
            "signals": {},
        },
    )


def cell(method, sample, *turns, repeat=0, **other):
    return Cell(method=method, sample=f"s/{sample}", repeat=repeat, turns=list(turns), **other)


def stored(
    cells, *, domains=None, methods=("autoregressive", "m"), repeats=1, temperature=0.0, dtype="float32", **other
):
    domains = domains or dict.fromkeys(sorted({c.sample.partition("/")[2] for c in cells}), "qa")
    plan = {
        "schema": 1,
        "model": "tiny",
        "suites": [{"name": "s", "samples": len(domains), "content_hash": "f" * 64}],
        "methods": [
            {"label": label, "method": label, "settings": {}, "lossless": label != "lossy"} for label in methods
        ],
        "sampling": {"temperature": temperature, "top_p": 1.0, "top_k": 0},
        "max_new_tokens": 8,
        "seed": 0,
        "repeats": repeats,
        "dtype": "auto",
        "device": "auto",
        "template": "auto",
        "warmup": "auto",
        "profile": False,
        "resolved": {"dtype": dtype, "device": "cpu"},
    }
    samples = [
        SampleRecord(key=f"s/{sample}", suite="s", sample_id=sample, domain=domain, category=domain, turns=["?"])
        for sample, domain in domains.items()
    ]
    return StoredRun(
        path=Path("run"), plan=plan, environment={"hardware": "here"}, samples=samples, cells=cells, **other
    )


def method_of(run, label="m"):
    (found,) = [method for method in analyse(run).methods if method.method == label]
    return found


def value(figures, name):
    figure = figures[name]
    assert figure.value is not None, figure.reason
    return figure.value


TRACE = ((4, 4, 5), (4, 0, 1), (4, 2, 3), (3, 3, 2))


def test_the_vector_of_one_turn():
    one = turn(range(12), 0.40, first=0.20, steps=TRACE)
    overall = method_of(stored([cell("m", "1", one)])).overall
    assert value(overall, "acceptance_length") == pytest.approx(2.75)
    assert value(overall, "acceptance_length_mean_of_samples") == pytest.approx(2.75)
    assert value(overall, "acceptance_rate") == pytest.approx(8 / 15)
    assert value(overall, "tokens_per_target_pass") == pytest.approx(2.4)
    assert value(overall, "tokens_per_s") == pytest.approx(30)
    assert value(overall, "decode_tokens_per_s") == pytest.approx(55)
    assert value(overall, "ttft_s") == pytest.approx(0.2)
    assert value(overall, "nodes_per_step") == pytest.approx(15 / 4)
    shares = [value(overall, f"{name}_share") for name in ("draft", "verify", "other")]
    assert shares == pytest.approx([0.25, 0.5, 0.25])
    assert overall["acceptance_length"].n == 1


PAIRS = [
    cell("autoregressive", "1", turn(range(12), 0.8)),
    cell("autoregressive", "2", turn(range(100), 5.0)),
    cell("m", "1", turn(range(12), 0.4)),
    cell("m", "2", turn(range(110), 2.2)),
]


def test_the_vector_of_two_arms():
    found = method_of(stored(PAIRS))
    assert value(found.overall, "speedup") == pytest.approx(2.429945, abs=1e-6)
    assert value(found.domains["qa"].figures, "speedup") == pytest.approx(2.429945, abs=1e-6)
    assert found.overall["speedup"].n == 2
    base = method_of(stored(PAIRS), "autoregressive")
    assert value(base.overall, "speedup") == 1.0
    swapped = [replace(c, method={"m": "autoregressive", "autoregressive": "m"}[c.method]) for c in PAIRS]
    assert value(method_of(stored(swapped)).overall, "speedup") == pytest.approx(1 / 2.429945, abs=1e-6)


@given(
    st.lists(
        st.tuples(st.integers(2, 50), st.floats(0.1, 9), st.integers(2, 50), st.floats(0.1, 9)), min_size=1, max_size=5
    )
)
def test_swapping_arms_inverts_every_speedup(rows):
    def made(one, other):
        cells = []
        for index, (n, t, m, u) in enumerate(rows):
            cells += [cell(one, str(index), turn(range(n), t)), cell(other, str(index), turn(range(m), u))]
        return method_of(stored(cells)).overall

    there, back = made("autoregressive", "m"), made("m", "autoregressive")
    for name in ("speedup", "speedup_decode", "speedup_cpu"):
        assert value(there, name) * value(back, name) == pytest.approx(1)


def test_decode_and_cpu_speedups_use_their_own_times():
    cells = [
        cell("autoregressive", "1", turn(range(11), 3.0, first=1.0, cpu=6.0)),
        cell("m", "1", turn(range(11), 2.0, first=1.0, cpu=2.0)),
    ]
    overall = method_of(stored(cells)).overall
    assert value(overall, "speedup") == pytest.approx(1.5)
    assert value(overall, "speedup_decode") == pytest.approx(2.0)
    assert value(overall, "speedup_cpu") == pytest.approx(3.0)


def test_overall_is_the_geometric_mean_over_domains_and_beside_it_the_other_means():
    cells = [
        cell("autoregressive", "1", turn(range(10), 1.0)),
        cell("m", "1", turn(range(10), 0.25)),
        cell("autoregressive", "2", turn(range(90), 9.0)),
        cell("m", "2", turn(range(90), 9.0)),
    ]
    found = method_of(stored(cells, domains={"1": "qa", "2": "rag"}))
    assert value(found.overall, "speedup") == pytest.approx(2.0)
    assert value(found.overall, "speedup_mean_of_domains") == pytest.approx(2.5)
    assert value(found.overall, "speedup_pooled") == pytest.approx(10.0 / 9.25)


def test_means_of_samples_weigh_samples_and_not_turns_or_rounds():
    cells = [
        # 10 tokens/s over both turns, whose own rates are 100 and 5.5.
        cell(
            "m", "1", turn(range(10), 0.1, steps=((1, 1, 2),)), turn(range(10), 1.9, steps=((1, 0, 1),) * 3), repeat=0
        ),
        cell(
            "m", "1", turn(range(10), 0.1, steps=((1, 1, 2),)), turn(range(10), 1.9, steps=((1, 0, 1),) * 3), repeat=1
        ),
        cell("m", "2", turn(range(30), 1.0, steps=((2, 2, 3),)), repeat=0),
    ]
    overall = method_of(stored(cells, repeats=2)).overall
    assert value(overall, "tokens_per_s_mean_of_samples") == pytest.approx((10 + 30) / 2)
    assert value(overall, "acceptance_length_mean_of_samples") == pytest.approx((5 / 4 + 3) / 2)
    assert overall["acceptance_length_mean_of_samples"].n == 2
    assert overall["tokens_per_s"].n == 2


def test_rounds_of_a_sample_are_averaged_before_samples_are_added():
    cells = [
        cell("autoregressive", "1", turn(range(10), 2.0), repeat=0),
        cell("autoregressive", "1", turn(range(10), 4.0), repeat=1),
        cell("m", "1", turn(range(10), 1.0), repeat=0),
        cell("m", "1", turn(range(10), 2.0), repeat=1),
    ]
    assert value(method_of(stored(cells, repeats=2)).overall, "speedup") == pytest.approx(2.0)


def test_a_turn_whose_prompt_differs_leaves_paired_figures_and_is_told():
    cells = [
        cell("autoregressive", "1", turn(range(10), 1.0), turn(range(10), 1.0, prompt="mine")),
        cell("m", "1", turn((*range(9), 77), 1.0), turn(range(10), 0.01, prompt="other")),
        cell("autoregressive", "2", turn(range(10), 1.0)),
        cell("m", "2", turn(range(10), 0.5)),
    ]
    found = method_of(stored(cells))
    # The first turns have one prompt in both; the second turn of the first sample does not.
    assert value(found.overall, "speedup") == pytest.approx((2.0 / 20) / (1.5 / 20))
    assert found.overall["speedup"].n == 2
    assert "1 of 3 turns not paired with the baseline" in "; ".join(found.notes)
    strangers = [*cells[:2], cell("autoregressive", "3", turn([1], 1.0)), cell("m", "3", turn([1], 9.0, prompt="x"))]
    assert method_of(stored(strangers, domains={"1": "qa", "3": "qa"})).overall["speedup"].n == 1
    assert method_of(stored(cells), "autoregressive").notes == ()
    # Unpaired figures keep it.
    assert found.overall["tokens_per_s"].n == 2


def test_failed_and_missing_cells_make_a_method_unranked_with_the_reason():
    failed = [PAIRS[0], PAIRS[1], PAIRS[2], cell("m", "2", status="failed", reason="RuntimeError: boom")]
    for cells, why in ((failed, "1 of 2 cells failed"), (PAIRS[:3], "1 of 2 cells have not run")):
        group = analyse(stored(cells, domains={"1": "qa", "2": "qa"}))
        method = next(m for m in group.methods if m.method == "m")
        assert method.overall["speedup"].value is None
        assert why in method.overall["speedup"].reason
        assert method.overall["acceptance_length"].n != 0
        places = {standing.method.method: standing for standing in standings(group, "speedup")}
        assert places["autoregressive"].rank == 1
        assert places["m"].rank is None
        assert places["m"].reason
    found = method_of(stored(failed, domains={"1": "qa", "2": "qa"}))
    assert found.notes == ("1 × failed: RuntimeError: boom",)
    assert (found.domains["qa"].failed, found.domains["qa"].samples) == (1, 1)


def test_a_failure_in_one_domain_leaves_the_other_domains_figure():
    cells = [*PAIRS[:3], cell("m", "2", status="failed", reason="x")]
    found = method_of(stored(cells, domains={"1": "qa", "2": "rag"}))
    assert value(found.domains["qa"].figures, "speedup") == pytest.approx(2.0)
    assert found.overall["speedup"].reason == "1 of 2 domains: 1 of 1 cells failed"


def test_skipped_prompts_cost_no_rank():
    cells = [
        *PAIRS,
        *(
            cell(m, "3", status="skipped", reason="turn 1: prompt of 99 tokens, window 96")
            for m in ("autoregressive", "m")
        ),
    ]
    group = analyse(stored(cells))
    assert all(standing.rank for standing in standings(group, "speedup"))
    assert all(method.domains["qa"].skipped == 1 and method.domains["qa"].samples == 2 for method in group.methods)
    assert judge(stored(cells), group)["skipped"] == 2


def test_no_cells_at_all_have_reasons_everywhere():
    found = method_of(stored([], domains={"1": "qa"}))
    for figure in [*found.overall.values(), *found.domains["qa"].figures.values()]:
        assert figure.value is None
        assert figure.reason


def difference(method, sample, place, below, **other):
    return Divergence(
        method=method,
        sample=f"s/{sample}",
        repeat=0,
        turn=0,
        place=place,
        baseline_token=1,
        method_token=2,
        gap=below,
        baseline_below_best=0.0,
        method_below_best=below,
        **other,
    )


@pytest.mark.parametrize(
    ("tokens", "below", "dtype", "output"),
    [
        ((1, 2, 3), None, "float32", "identical"),
        ((1, 2, 4), 1e-4, "float32", "tie-divergent"),
        ((1, 2, 4), 0.1, "float32", "different"),
        ((1, 2, 4), 0.1, "bfloat16", "tie-divergent"),
        ((1, 2, 4), None, "float32", "different"),
        ((1, 2), None, "float32", "different"),
    ],
)
def test_output_classes(tokens, below, dtype, output):
    cells = [cell("autoregressive", "1", turn()), cell("m", "1", turn(tokens))]
    told = [] if below is None else [difference("m", "1", 2, below)]
    run = stored(cells, divergences=told, dtype=dtype)
    assert method_of(run).output == output
    assert method_of(run, "autoregressive").output == ""
    reasons = judge(run, analyse(run))["reasons"]
    assert any("output differs" in reason for reason in reasons) == (output == "different")


def test_another_methods_divergence_excuses_nothing():
    cells = [cell("autoregressive", "1", turn()), cell("m", "1", turn((1, 2, 4)))]
    assert method_of(stored(cells, divergences=[difference("x", "1", 2, 0.0)])).output == "different"


def test_sampling_and_lossy_methods_have_no_class_to_check():
    cells = [cell("autoregressive", "1", turn()), cell("lossy", "1", turn((1, 2, 4)))]
    assert method_of(stored(cells, methods=("autoregressive", "lossy")), "lossy").output == "lossy"
    hot = [cell("autoregressive", "1", turn()), cell("m", "1", turn((1, 2, 4)))]
    assert method_of(stored(hot, temperature=0.5)).output == ""


def test_tie_limits_grow_with_rounding():
    limits = [tie_limit(name) for name in ("float64", "float32", "float16", "bfloat16")]
    assert limits == sorted(limits)
    assert tie_limit("whatever") == tie_limit("float32")


def test_the_forecast_is_tokens_over_the_curves_cost():
    run = stored([cell("m", "1", turn(range(12), 1.0, steps=TRACE))])
    assert method_of(run).overall["forecast_decode"].reason == "no cost curve in this run"
    curve = {"rows": [1, 4, 5], "cost": [1.0, 1.5, 2.0], "one_row_s": 0.1}
    run = replace(run, environment={**run.environment, "cost_curve": curve})
    assert value(method_of(run).overall, "forecast_decode") == pytest.approx(11 / (3 * 2.0 + 1.5))


def test_quality_is_the_mean_over_rounds_and_keeps_signature_and_reason():
    def score(repeat, number, reason=""):
        values = {"bleu": Value(value=number, n=3, reason=reason, signature="sig")}
        return ScoreRecord(
            method="m", domain="qa", repeat=repeat, scores=Scores(scorer="bleu", signature="sig", values=values)
        )

    run = stored(PAIRS, scores=[score(0, 20.0), score(1, 30.0)], repeats=2)
    assert method_of(run).domains["qa"].figures["bleu"] == Figure(value=25.0, n=3, signature="sig")
    run = stored(PAIRS, scores=[score(0, None, "no references")])
    assert method_of(run).domains["qa"].figures["bleu"].reason == "no references"


def test_domains_of_two_suites_are_told_apart_only_where_they_share_a_word():
    def sample(suite, domain):
        return SampleRecord(
            key=f"{suite}/{domain}", suite=suite, sample_id=domain, domain=domain, category="", turns=["?"]
        )

    labels = domain_labels([sample("a", "qa"), sample("b", "qa"), sample("b", "rag")])
    assert labels == {"a/qa": "a: qa", "b/qa": "b: qa", "b/rag": "rag"}


def test_runs_never_share_a_group():
    results = analyse_runs([stored(PAIRS), stored(PAIRS)], title="Two")
    assert (len(results.groups), results.title) == (2, "Two")


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
