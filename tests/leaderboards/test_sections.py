from dataclasses import replace

import pytest

from draftboard.leaderboards.sections import banner, flat, how_measured, section_titles
from draftboard.results import DomainResult, Figure, Group, Interval, MethodResult, Results, Verdict

PLAIN = Group(model="m", hardware="h", suite="s")
OURS = replace(PLAIN, conditions={"device": "cpu", "batch size": "1", "rounds": "1"})


def titles(*groups):
    return section_titles(Results(groups=groups))


def measured(group):
    return dict(how_measured(group))


def test_groups_are_told_apart_by_what_differs_and_then_by_number():
    half, whole = ({"dtype": dtype, "seed": "0"} for dtype in ("float16", "float32"))
    alike = replace(PLAIN, conditions=half)
    found = titles(alike, replace(PLAIN, conditions=whole), alike, replace(PLAIN, hardware="other"))
    assert found == (
        "m · s · h · dtype float16 · run 1 of 2",
        "m · s · h · dtype float32",
        "m · s · h · dtype float16 · run 2 of 2",
        "m · s · other",
    )
    assert titles(PLAIN) == ("m · s · h",)


def test_the_banner_is_the_verdict_and_is_missing_where_nobody_judged():
    judged = banner(replace(PLAIN, verdict=Verdict(valid=False, reasons=("few",))))
    assert (judged.valid, judged.reasons) == (False, ("few",))
    assert banner(PLAIN) is None


def test_timing_is_claimed_only_of_our_own_runs():
    assert "an order that rotates" in measured(OURS)["Timing"]
    assert "rounds" not in measured(OURS)["Timing"]
    assert "3 rounds" in measured(replace(OURS, conditions={**OURS.conditions, "rounds": "3"}))["Timing"]
    imported = replace(OURS, conditions={**OURS.conditions, "imported": "spec-bench: a.jsonl"})
    assert measured(imported)["Timing"] == (
        "Taken from files of another tool (spec-bench: a.jsonl), as that tool timed them."
    )
    assert measured(PLAIN)["Timing"].startswith("Not on record")


def test_pairing_tells_the_turns_under_another_prompt():
    method = MethodResult(method="m", overall={"speedup": Figure(value=2.0)}, diverged_turns=3)
    assert "3 turns had another prompt" in measured(replace(OURS, methods=(method,)))["Pairing"]
    assert "as stated in the file" in measured(replace(PLAIN, methods=(method,)))["Pairing"]
    assert "Pairing" not in measured(OURS)


def test_intervals_ranks_and_outputs_are_what_the_group_has():
    figure = Figure(value=2.0, interval=Interval(low=1.9, high=2.1))
    a = MethodResult(method="a", overall={"speedup": figure}, output="tie-divergent", tied_with=("b",))
    b = MethodResult(method="b", overall={"speedup": figure}, output="lossy", tied_with=("a",))
    found = measured(replace(OURS, methods=(a, b), domains=("x", "y")))
    assert "95 %" in found["Intervals"]
    assert "a and b cannot be told apart" in found["Ranks"]
    assert found["Output"].startswith("tie-divergent: ")
    assert "lossy: " in found["Output"]
    assert found["Overall"].startswith("The geometric mean")
    assert measured(OURS)["Intervals"].startswith("None were computed")
    assert measured(OURS)["Output"].startswith("Not compared")


def test_what_ranks_the_group_is_named():
    tau = MethodResult(
        method="a", overall={"acceptance_length": Figure(value=2.0)}, domains={"x": DomainResult(domain="x")}
    )
    assert "acceptance length τ" in measured(replace(PLAIN, methods=(tau,)))["Ranks"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "not known"),
        (True, "yes"),
        ([1, "a"], "1, a"),
        ([], "none"),
        ([{"a": None}], '[{"a": null}]'),
        ({}, "{}"),
        (2.5, "2.5"),
    ],
)
def test_a_value_of_a_record_in_words(value, words):
    assert flat({"a": value}) == (("a", words),)


def test_a_record_is_flat_and_its_bytes_are_readable():
    assert flat({"cpu": {"model": "x"}, "memory_bytes": 2**31, "cache_bytes": 2**20, "odd_bytes": 2**70}) == (
        ("cpu.model", "x"),
        ("memory_bytes", "2.00 GiB"),
        ("cache_bytes", "1.0 MiB"),
        ("odd_bytes", str(2**70)),
    )


def test_a_deep_record_ends_in_json():
    deep = {}
    for _ in range(200):
        deep = {"a": deep}
    ((name, words),) = flat(deep)
    assert name == "a.a.a.a"
    assert words.count("{") == 197
