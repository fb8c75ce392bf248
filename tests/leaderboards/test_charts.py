from dataclasses import replace

import altair
import pytest

from draftboard.leaderboards.charts import COLOURS, charts
from draftboard.leaderboards.page_scripts import resource
from draftboard.results import DomainResult, Figure, Group, Interval, MethodResult


def method(name, speedup=None, *, domains=None, **overall):
    """A method with an overall speedup, the same in each of `domains`, and other figures by name."""
    figures = {key: Figure(value=value) for key, value in {"speedup": speedup, **overall}.items() if value is not None}
    return MethodResult(
        method=name,
        overall=figures,
        domains={
            domain: DomainResult(domain=domain, figures={"speedup": Figure(value=speedup, n=9), **more})
            for domain, more in (domains or {}).items()
        },
    )


def group_of(*methods, domains=()):
    return Group(model="m", hardware="h", suite="s", methods=methods, domains=tuple(domains))


def chart(group, key):
    (found,) = [chart for chart in charts(group) if chart.key == key]
    return found


def points(spec):
    data = spec["data"] if "data" in spec else spec["layer"][-1]["data"]
    return spec["datasets"][data["name"]]


def timed(**parts):
    return {f"{part}_ms": value for part, value in parts.items()}


@pytest.fixture
def full(spec_bench):
    """A group of which every chart can be drawn."""
    methods = [
        replace(
            each,
            overall={**each.overall, **{f"{part}_ms": Figure(value=2.0) for part in ("draft", "verify", "other")}},
        )
        for each in spec_bench.methods
    ]
    return replace(spec_bench, methods=tuple(methods))


def test_every_specification_is_valid_vega_lite(full):
    found = charts(full)
    assert [chart.key for chart in found if chart.spec is None] == []
    assert len(found) == 8
    for each in found:
        altair.Chart.from_dict(each.spec, validate=True)


def test_speedups_stand_with_their_intervals_and_without_the_baseline(spec_bench):
    found = {(point["method"], point["row"]): point for point in points(chart(spec_bench, "speedup").spec)}
    assert {name for name, _ in found} == {"eagle2", "tss[pld]"}
    assert found["eagle2", "mt_bench"] == {
        "method": "eagle2",
        "row": "mt_bench",
        "x": 2.5,
        "xtold": "2.50×, n=80",
    }
    overall = found["tss[pld]", "All domains"]
    assert (overall["x"], overall["xlow"], overall["xhigh"]) == (2.72, 2.62, 2.82)
    assert overall["xtold"] == "2.72× [2.62×, 2.82×], n=480"


def test_a_domain_may_have_the_name_of_the_overall_row():
    names = ("All domains", "qa")
    both = [method(name, value, domains={each: {} for each in names}) for name, value in (("a", 2), ("b", 3))]
    found = points(chart(group_of(*both, domains=names), "speedup").spec)
    assert {point["row"] for point in found} == {"All domains", "qa", "(All domains)"}


def test_a_single_domain_needs_no_overall_row():
    found = points(chart(group_of(method("a", 2, domains={"qa": {}}), domains=["qa"]), "speedup").spec)
    assert [point["row"] for point in found] == ["qa"]


def test_a_method_looks_the_same_in_every_chart(full):
    looks = {}
    for each in charts(full):
        encoding = each.spec.get("encoding") or each.spec["layer"][-1]["encoding"]
        for channel in ("color", "shape"):
            if encoding.get(channel, {}).get("field") == "method":
                scale = encoding[channel]["scale"]
                for name, look in zip(scale["domain"], scale["range"], strict=True):
                    looks.setdefault((name, channel), set()).add(look)
    assert {len(found) for found in looks.values()} == {1}
    assert looks["autoregressive", "color"] == {"var(--chart-0)"}
    assert looks["eagle2", "color"] != looks["tss[pld]", "color"]


def test_every_colour_of_a_method_is_in_the_style_sheet():
    style = resource("style.css")
    assert [number for number in range(COLOURS + 1) if style.count(f"--chart-{number}:") != 2] == []  # light and dark


def test_many_methods_are_cut_and_the_caption_says_so():
    domains = [f"d{index}" for index in range(30)]
    many = [method(f"m{index:02}", 1 + index, domains={key: {} for key in domains}) for index in range(20)]
    found = chart(group_of(*many, domains=domains), "speedup")
    assert {point["method"] for point in points(found.spec)} == {"m19", "m18", "m17", "m16", "m15"}
    assert "Shown are the 5 of 20 methods that stand first; the tables have all." in found.caption


def test_what_has_no_data_is_left_out_with_the_reason_of_its_figures():
    lost = MethodResult(
        method="lost",
        overall={
            "speedup": Figure(value=None, reason="no baseline run"),
            "draft_ms": Figure(value=None, reason="run with --profile"),
        },
    )
    reasons = {each.key: each.reason for each in charts(group_of(lost))}
    assert reasons["speedup"] == "no baseline run"
    assert reasons["tau"] == "no baseline run"
    assert reasons["time"] == "run with --profile"
    assert reasons["positions-joint"] == "no method has acceptance by position"
    assert reasons["quality-1"] == "no quality was scored"
    assert all(each.spec is None for each in charts(group_of(lost)))


def test_the_baseline_alone_makes_no_chart_of_acceptance_or_time():
    alone = method("autoregressive", 1.0, acceptance_length=1.0, **timed(draft=0.0, verify=20.0, other=1.0))
    assert [each.key for each in charts(group_of(alone)) if each.spec] == []


def test_a_group_without_methods_has_no_charts():
    assert charts(group_of()) == ()


def test_times_are_milliseconds_or_else_shares():
    parts = {"draft_share": 0.25, "verify_share": 0.5, "other_share": 0.25}
    found = chart(group_of(method("m", **parts)), "time").spec
    assert found["encoding"]["x"]["title"] == "Share of a step's time"
    assert [(point["part"], point["value"]) for point in points(found)] == [
        ("draft", 0.25),
        ("verify", 0.5),
        ("other", 0.25),
    ]
    ours = chart(group_of(method("m", **parts, **timed(draft=1.5, verify=20.0, other=1.0))), "time").spec
    assert ours["encoding"]["x"]["title"] == "Milliseconds per step"
    assert [point["value"] for point in points(ours)] == [1.5, 20.0, 1.0]


def test_quality_is_drawn_where_methods_differ_in_it(spec_bench):
    keys = {each.title: each for each in charts(spec_bench) if each.key.startswith("quality")}
    assert list(keys) == [
        "Quality and speed: BLEU, translation",
        "Quality and speed: Accuracy, math_reasoning",
        "Quality and speed: Token F1, rag",
    ]
    bleu = {point["method"]: point for point in points(keys["Quality and speed: BLEU, translation"].spec)}
    assert (bleu["tss[pld]"]["x"], bleu["tss[pld]"]["y"], bleu["tss[pld]"]["ylow"]) == (2.5, 28.5, 26.5)
    assert "eagle2" not in bleu  # nobody scored it


def test_equal_quality_is_no_chart():
    both = [method(name, 2.0, domains={"qa": {"accuracy": Figure(value=0.5)}}) for name in "ab"]
    found = chart(group_of(*both, domains=["qa"]), "quality-1")
    assert found.spec is None
    assert "equal quality" in found.reason


def test_positions_on_few_steps_are_faint(spec_bench):
    found = points(chart(spec_bench, "positions-joint").spec)
    assert [point["few"] for point in found] == [False, False, False, True, True]
    assert [point["place"] for point in found] == [1, 2, 3, 4, 5]


def test_an_endless_interval_is_not_drawn():
    endless = Figure(value=2.0, interval=Interval(low=1.0, high=float("inf")))
    found = points(chart(group_of(MethodResult(method="m", overall={"speedup": endless})), "speedup").spec)
    assert found == [{"method": "m", "row": "All domains", "x": 2.0, "xtold": "2.00×"}]


def test_the_same_group_makes_the_same_specifications(full):
    assert charts(full) == charts(full)
