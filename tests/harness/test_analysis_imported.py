"""Results of imported runs: what their files say, and reasons for the rest."""

from dataclasses import replace

import pytest

from draftboard.analysis import analyse
from draftboard.statistics import ONE_ROUND
from draftboard.verdict import judge

from made_runs import cell, imported_turn, method_of, stored, value

IMPORTED = [
    cell("vicuna", "1", imported_turn((1,) * 4, seconds=2.0)),
    cell("vicuna", "2", imported_turn((1,) * 4, seconds=2.0)),
    cell("eagle", "1", imported_turn((1, 3), seconds=1.0)),
    cell("eagle", "2", imported_turn((2, 2), seconds=1.0)),
]


def imported(cells=IMPORTED, *, baseline="vicuna", **other):
    """A run as an importer makes it: what its files do not say is null."""
    run = stored(cells, methods=tuple(dict.fromkeys(c.method for c in cells)), **other)
    unknown = dict.fromkeys(("max_new_tokens", "sampling", "seed"))
    plan = {name: inner for name, inner in run.plan.items() if name != "resolved"}
    plan |= {**unknown, "dtype": "", "device": "", "template": "", "warmup": "", "baseline": baseline}
    plan["methods"] = [{**table, "lossless": None, "reference": ""} for table in plan["methods"]]
    plan["imported"] = {"format": "spec-bench", "files": [{"name": "a.jsonl"}, {"name": "b.jsonl"}], "notes": ["odd"]}
    return replace(run, plan=plan, environment={"hardware": ""})


def test_an_imported_run_has_what_its_files_say_and_reasons_for_the_rest():
    run = imported()
    group = analyse(run)
    eagle = method_of(run, "eagle")
    assert (group.baseline, eagle.lossless, eagle.output) == ("vicuna", None, "text-equal")
    assert value(eagle.overall, "speedup") == pytest.approx(2.0)
    assert value(eagle.overall, "acceptance_length") == pytest.approx(2.0)
    assert value(eagle.overall, "spec_bench_mean_accepted") == pytest.approx(2.0)
    lacking = {name: figure.reason for name, figure in eagle.overall.items() if figure.value is None}
    for name in ("ttft_s", "speedup_decode", "speedup_cpu", "acceptance_rate", "draft_ms", "peak_rss_bytes", "tpot_s"):
        assert "not recorded in the imported file" in lacking[name], name
    assert set(lacking.values()) <= {
        "not recorded in the imported file",
        "0 of 1 domains: not recorded in the imported file",
        "the baseline's texts were not tokenised again",
        "no cost curve in this run",
        ONE_ROUND,
    }
    assert group.notes == ("odd",)
    assert judge(run, group)["reasons"][0].startswith("imported")
    assert not any("None" in text for text in (*group.conditions.values(), *group.conditions, *group.notes))


def test_an_imported_text_that_differs_is_no_verdict_on_the_method():
    cells = [*IMPORTED[:3], cell("eagle", "2", imported_turn((2, 2), seconds=1.0, text="y"))]
    run = imported(cells)
    assert method_of(run, "eagle").output == "text-different"
    assert not any("output differs" in reason for reason in judge(run, analyse(run))["reasons"])
    failed = [*IMPORTED[:2], cell("eagle", "1", status="failed", reason="ERROR")]
    assert method_of(imported(failed), "eagle").output == ""


def test_an_imported_method_is_complete_with_what_the_baseline_answers():
    extra = [*IMPORTED, cell("eagle", "3", imported_turn((2, 2), seconds=1.0))]
    assert value(method_of(imported(extra), "eagle").overall, "speedup") == pytest.approx(2.0)
    assert value(method_of(imported(extra), "vicuna").overall, "speedup") == 1.0
    found = method_of(imported(IMPORTED[:3]), "eagle").overall
    assert "1 of 2 cells are not in the imported file" in found["speedup"].reason


def test_imported_files_without_plain_decoding_have_no_speedup():
    found = analyse(imported(IMPORTED[2:], baseline=None))
    assert found.baseline == "autoregressive"
    assert found.methods[0].overall["speedup"].reason == "0 of 1 domains: no autoregressive run for tiny"
    assert value(found.methods[0].overall, "tokens_per_s") == pytest.approx(4.0)
    assert found.methods[0].output == ""
