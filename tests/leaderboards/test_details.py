"""The tables behind the board: everything under its own name, units shown once, and nothing that says nothing."""

from dataclasses import replace

import pytest

from draftboard.leaderboards import boards
from draftboard.metrics import METRICS
from draftboard.results import DomainResult, Figure, Group, MethodResult

NOT_SHOWN = {"itl_burst_mean_s", "itl_burst_p50_s"}
"""Stored, not headlined (suites-and-scoring 7.3)."""


def group_of(*methods, **about):
    return Group(model="m", hardware="h", suite="s", methods=methods, **about)


def overall(name, **values):
    return MethodResult(method=name, overall={key: Figure(value=value, n=9) for key, value in values.items()})


def full(name, value, *, without=()):
    names = [m.name for m in METRICS.values() if not m.kind.startswith("quality") and m.kind not in without]
    return overall(name, **dict.fromkeys(names, value))


def shown(table):
    return {column.metric for column in table.columns} | {row.metric for row in table.rows}


def test_every_figure_but_the_burst_ones_is_in_a_table_of_its_kind():
    group = group_of(full("autoregressive", 1.0), full("x", 2.0))
    tables = boards(group)
    wanted = {metric.name for metric in METRICS.values() if not metric.kind.startswith("quality")}
    assert wanted - set().union(*(shown(table) for table in tables)) == NOT_SHOWN
    assert "Further figures" not in [table.title for table in tables]


def test_all_detail_tables_stand_behind_the_board_in_order():
    methods = [full(name, value, without=("serving",)) for name, value in (("autoregressive", 1.0), ("x", 2.0))]
    tables = boards(group_of(*methods))
    levels = [table.level for table in tables]
    assert levels == sorted(levels, key=["main", "layout", "detail"].index)
    assert [table.title for table in tables if table.level == "detail"] == [
        "Acceptance, by every name",
        "Speedup, by every definition",
        "Tokens per second, by every definition",
        "Latency",
        "Where the time goes",
        "Memory and energy",
    ]


def test_times_are_shown_in_milliseconds_and_memory_in_mebibytes(table_of, cell_of):
    method = overall(
        "x", ttft_s=0.0421, ttft_p99_s=0.5, peak_rss_bytes=3 * 2**30, mean_power_w=71.25, speedup=2.0, draft_ms=1.5
    )
    group = group_of(method)
    latency = table_of(group, "latency")
    cell = cell_of(latency, "x", "TTFT, median (ms)")
    assert (cell.text, cell.value) == ("42.1", pytest.approx(42.1))
    assert cell_of(table_of(group, "resources"), "x", "Peak RSS (MiB)").text == "3072"
    assert cell_of(table_of(group, "time"), "x", "Draft (ms)").text == "1.50"
    assert cell_of(table_of(group, "speed"), "x", "TTFT (ms)").text == "42.1"


def test_the_worked_trace_stands_under_each_of_its_names(table_of, cell_of):
    method = overall(
        "x",
        speedup=1.5,
        acceptance_length=2.75,
        acceptance_length_raw=3.25,
        accepted_per_step=2.0,
        accepted_per_step_raw=2.25,
        block_efficiency=2.75,
        tokens_per_target_pass=2.4,
        spec_bench_mean_accepted=2.4,
        specdec_bench_al=2.2,
        vllm_acceptance_length=3.25,
    )
    table = table_of(group_of(method), "acceptance-names")
    found = {row.method: (row.detail, row.cells[0].text) for row in table.rows}
    assert found["τ, kept"][1] == "2.75"
    assert found["τ, raw"] == ("τ of most papers; SGLang's accept length", "3.25")
    assert found["Mean accepted tokens"] == ("Spec-Bench's leaderboards; TSS's tables", "2.40")
    assert found["AL"] == ("specdec_bench; SPEED-Bench's tables", "2.20")
    assert found["Acceptance length, drafting steps only"][0] == "vLLM's mean acceptance length"


def test_lower_is_best_where_lower_is_better(table_of, cell_of):
    group = group_of(full("autoregressive", 1.0), full("x", 2.0))
    for key, title in (("latency", "TPOT (ms)"), ("resources", "Peak RSS (MiB)"), ("time", "Draft (ms)")):
        assert cell_of(table_of(group, key), "autoregressive", title).best, title
        assert not cell_of(table_of(group, key), "x", title).best, title
    assert not cell_of(table_of(group, "time"), "x", "Draft share").best
    assert not cell_of(table_of(group, "time"), "autoregressive", "Draft share").best


def test_a_missing_figure_beside_others_says_why(table_of, cell_of, notes_of):
    method = overall("x", speedup=2.0, peak_rss_bytes=2.0**30)
    reason = Figure(value=None, reason="no energy counter on this machine")
    group = group_of(replace(method, overall={**method.overall, "energy_j_per_token": reason}))
    table = table_of(group, "resources")
    cell = cell_of(table, "x", "Energy per token (J)")
    assert cell.text == "n/a"
    assert notes_of(table, cell) == ["no energy counter on this machine"]


def test_a_table_without_any_value_is_left_out():
    reason = Figure(value=None, reason="not recorded")
    names = ("energy_j_per_token", "peak_rss_bytes", "tpot_s", "draft_ms", "specdec_bench_al", "speedup_gm")
    method = MethodResult(method="x", overall={"speedup": Figure(value=2.0), **dict.fromkeys(names, reason)})
    assert [table.key for table in boards(group_of(method))] == ["speed"]


def test_what_the_board_shows_already_makes_no_detail():
    method = overall("x", speedup=2.0, speedup_decode=2.1, acceptance_length=3.0, acceptance_rate=0.5, ttft_s=0.1)
    assert [table.key for table in boards(group_of(method))] == ["speed"]


def test_the_longer_side_of_a_table_goes_down(table_of):
    few = table_of(group_of(full("autoregressive", 1.0), full("x", 2.0)), "latency")
    assert (few.subject, few.sortable, [column.title for column in few.columns]) == (
        "Figure",
        False,
        ["x", "autoregressive"],
    )
    assert (few.columns[1].detail, few.rows[0].unit) == ("baseline", "ms")
    many = table_of(group_of(*(full(f"m{index:02}", 1.0 + index) for index in range(30))), "latency")
    assert (many.subject, many.sortable, len(many.rows)) == ("Method", True, 30)
    assert many.columns[0].title == "TTFT, median (ms)"


def test_a_domain_that_is_not_timed_has_quality_and_no_speed(table_of):
    quiet = DomainResult(domain="mmlu", figures={"accuracy": Figure(value=0.5, n=80)})
    timed = DomainResult(domain="qa", figures={"speedup": Figure(value=2.0, n=80)})
    method = replace(overall("x", speedup=2.0), domains={"mmlu": quiet, "qa": timed})
    group = group_of(method, domains=("mmlu", "qa"))
    table = table_of(group, "speed")
    assert [column.title for column in table.columns] == ["Overall", "qa", "n"]
    assert [row.rank for row in table.rows] == [1]
    assert [column.title for column in table_of(group, "quality").columns] == ["mmlu · Accuracy"]


def test_what_a_server_gave_stands_on_the_board_and_its_times_with_the_others(table_of, cell_of):
    figures = {"output_tokens_per_s": 1234.5, "e2e_p99_s": 2.0, "drafts": 1000.0, "vllm_acceptance_length": 2.6}
    group = group_of(overall("c=64", acceptance_rate=0.5, ttft_s=0.1, **figures))
    assert [table.key for table in boards(group)] == ["serving", "acceptance-names", "latency"]
    assert cell_of(table_of(group, "acceptance-names"), "c=64", "α").text == "0.50"
    assert cell_of(table_of(group, "serving"), "c=64", "Output tokens/s").text == "1234.5"
    assert cell_of(table_of(group, "latency"), "c=64", "Request, p99 (ms)").text == "2000.0"


def test_figures_that_no_table_knows_are_shown_all_the_same(table_of, cell_of):
    group = group_of(overall("x", speedup=2.0, tokens_per_dollar=3.5))
    assert cell_of(table_of(group, "further"), "x", "tokens_per_dollar").text == "3.50"


def test_details_make_the_board_where_they_are_all_there_is():
    (table,) = boards(group_of(overall("x", specdec_bench_al=2.2)))
    assert (table.key, table.level) == ("acceptance-names", "main")
    rates = overall("y", tokens_per_s=20.0, tokens_per_s_mean_of_samples=19.0, itl_uniform_mean_s=0.05)
    assert [(table.key, table.level) for table in boards(group_of(rates))] == [("rates", "main"), ("latency", "main")]


def test_a_prediction_stands_beside_the_measured_value_of_its_kind(table_of):
    overall_of = {"speedup": 1.2, "speedup_decode": 1.7, "speedup_decode_pooled": 1.31, "predicted_decode_speedup": 1.3}
    table = table_of(group_of(overall("x", **overall_of)), "time")
    found = {row.method: (row.detail, row.cells[0].text) for row in table.rows}
    assert found["Decode speedup, predicted"] == ("pooled", "1.30×")
    assert found["Decode speedup, measured"] == ("pooled", "1.31×")
