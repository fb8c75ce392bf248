"""What a test reads off a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from draftboard.analysis import analyse
from draftboard.results import Figure, Interval
from draftboard.run_result import Measured, NoFigure, RunResult, UnknownName
from draftboard.store import StoredRun

from made_runs import cell, stored, turn

STEPS = ((4, 3, 4), (4, 3, 4), (4, 2, 3))


def result_of(run: StoredRun) -> RunResult:
    return RunResult(run, analyse(run))


def two_samples(**other: object) -> StoredRun:
    return stored(
        [
            cell("autoregressive", "1", turn(12, 1.0)),
            cell("autoregressive", "2", turn(12, 1.0)),
            cell("m", "1", turn(12, 0.5, steps=STEPS)),
            cell("m", "2", turn(12, 0.5, steps=STEPS)),
        ],
        **other,
    )


@pytest.fixture
def result() -> RunResult:
    return result_of(two_samples(domains={"1": "qa", "2": "chat"}))


def test_figures_overall_and_by_domain(result: RunResult) -> None:
    assert list(result) == ["autoregressive", "m"]
    assert result["m"].speedup.value == pytest.approx(2.0)
    assert float(result["m"].figure("speedup", domain="chat")) == pytest.approx(2.0)
    assert result["m"].domain("qa").speedup.n == 1
    assert result["m"].domains == ("qa", "chat")
    assert result["m"].acceptance_length.value == pytest.approx(11 / 3)
    assert result["m"].acceptance_rate.value == pytest.approx(8 / 12)
    assert result.baseline.speedup.value == pytest.approx(1.0)
    assert "speedup_gm" in result["m"].figures
    assert result.path == Path("run")
    assert not result.verdict.valid
    assert "2.00×" in result.show()
    assert len(result.show(headline_only=True)) < len(result.show()) < len(result.show(every=True))


def test_an_interval_is_read_or_its_absence_told() -> None:
    def measured(**figure: object) -> Measured:
        return Measured(name="speedup", method="m", domain=None, figure=Figure(**figure))

    held = measured(value=1.5, n=30, interval=Interval(low=1.2, high=1.8))
    assert (held.low, held.high, held.level, held.n) == (1.2, 1.8, 0.95, 30)
    assert repr(held) == "<speedup of m: 1.5 [1.2, 1.8], n=30>"
    with pytest.raises(NoFigure, match=r"speedup of m is 1\.5 and has no confidence interval; it rests on 1 sample\."):
        _ = measured(value=1.5, n=1).low
    nothing = measured(value=None, n=0, reason="nothing was drafted")
    for read in ("value", "low", "high", "level"):
        with pytest.raises(NoFigure, match="speedup of m has no value: nothing was drafted"):
            getattr(nothing, read)
    assert nothing.reason == "nothing was drafted"


def test_a_method_is_found_as_it_was_asked_for() -> None:
    run = two_samples()
    renamed = [replace(c, method="samd[token_recycling]") if c.method == "m" else c for c in run.cells]
    methods = [run.plan["methods"][0], {**run.plan["methods"][1], "label": "samd[token_recycling]"}]
    result = result_of(replace(run, cells=renamed, plan={**run.plan, "methods": methods}))
    assert result["samd"].label == "samd[token_recycling]"
    assert "samd" in result
    assert "samd[none]" not in result
    assert 3 not in result


def test_unknown_names_are_told_with_the_nearest(result: RunResult) -> None:
    with pytest.raises(UnknownName) as method:
        result["autoregresive"]
    assert str(method.value) == (
        "there is no method 'autoregresive' — did you mean 'autoregressive'? Known: autoregressive, m"
    )
    with pytest.raises(UnknownName, match="no figure 'speed_up' — did you mean 'speedup'"):
        result["m"].figure("speed_up")
    with pytest.raises(UnknownName, match="no domain 'maths'"):
        result["m"].figure("speedup", domain="maths")
    with pytest.raises(UnknownName, match="no domain 'maths'"):
        result["m"].domain("maths")


def test_a_score_has_no_overall_value(result: RunResult) -> None:
    group = result.group
    domains = {**group.methods[1].domains}
    domains["qa"] = replace(domains["qa"], figures={**domains["qa"].figures, "bleu": Figure(value=31.0, n=4)})
    scored = RunResult(
        result.run, replace(group, methods=(group.methods[0], replace(group.methods[1], domains=domains)))
    )
    assert scored["m"].figure("bleu", domain="qa").value == 31.0
    with pytest.raises(NoFigure, match=r'bleu has no overall value: ask with domain="…" \(qa\)'):
        scored["m"].figure("bleu")


def test_lossless_only_where_it_was_seen() -> None:
    assert result_of(two_samples())["m"].lossless
    assert result_of(two_samples())["m"].output == "identical"
    assert result_of(two_samples()).baseline.lossless
    sampled = result_of(two_samples(temperature=0.7))["m"]
    assert (sampled.output, sampled.lossless) == ("", False)
    base = cell("autoregressive", "1", turn(12))
    other = result_of(stored([base, cell("m", "1", turn([0, 1, 5]))]))["m"]
    assert (other.output, other.lossless) == ("different", False)
    lossy = result_of(stored([base, cell("lossy", "1", turn(12))], methods=("autoregressive", "lossy")))["lossy"]
    assert (lossy.output, lossy.lossless) == ("lossy", False)
    half = [base, cell("m", "1", turn(12)), cell("autoregressive", "2", turn(12))]
    failed = result_of(stored([*half, cell("m", "2", status="failed", reason="boom")]))["m"]
    assert (failed.output, failed.lossless) == ("identical", False)


@pytest.mark.parametrize(("output", "lossless"), [("tie-divergent", True), ("text-equal", False), ("", False)])
def test_which_outputs_count_as_lossless(result: RunResult, output: str, lossless: bool) -> None:
    methods = (result.group.methods[0], replace(result.group.methods[1], output=output))
    assert RunResult(result.run, replace(result.group, methods=methods))["m"].lossless is lossless
