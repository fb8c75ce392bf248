"""A stored run's results: the vectors of the definitions, pairing, domains, what is missing and what is told."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftboard.analysis import analyse, analyse_runs
from draftboard.leaderboards import standings
from draftboard.metrics import METRICS, metric
from draftboard.records import SampleRecord, ScoreRecord
from draftboard.results import Figure, Results
from draftboard.results_file import document, encode, read_results
from draftboard.scored import domain_labels
from draftboard.scoring import Scores, Value
from draftboard.verdict import judge

from made_runs import PAIRS, TRACE, cell, method_of, stored, turn, value


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


def test_the_vector_of_two_arms():
    found = method_of(stored(PAIRS))
    assert value(found.overall, "speedup") == pytest.approx(2.429945, abs=1e-6)
    assert value(found.domains["qa"].figures, "speedup") == pytest.approx(2.429945, abs=1e-6)
    assert found.overall["speedup"].n == 2
    base = method_of(stored(PAIRS), "autoregressive")
    assert value(base.overall, "speedup") == 1.0
    swapped = [replace(c, method={"m": "autoregressive", "autoregressive": "m"}[c.method]) for c in PAIRS]
    assert value(method_of(stored(swapped)).overall, "speedup") == pytest.approx(1 / 2.429945, abs=1e-6)


@settings(max_examples=20, deadline=None)
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


def test_the_predicted_decode_speedup_agrees_with_the_pooled_one_and_not_with_the_mean_over_domains():
    cells = []
    for sample, tokens, drafts in (("1", 9, 3), ("2", 91, 1)):
        steps = tokens - 1
        # A step takes 10 ms in both arms; in the first domain each of the method's keeps four tokens.
        cells.append(cell("autoregressive", sample, timed(tokens, steps)))
        cells.append(cell("m", sample, timed(tokens, steps // (drafts + 1), drafts)))
    found = method_of(stored(cells, domains={"1": "qa", "2": "rag"}))
    measured = value(found.overall, "speedup_decode_pooled")
    assert measured == pytest.approx((8 + 90) / (2 + 45))
    assert value(found.overall, "predicted_decode_speedup") == pytest.approx(measured)
    assert value(found.overall, "speedup_decode") == pytest.approx((4 * 2) ** 0.5)


def timed(tokens, steps, drafts=0):
    """A turn of equal steps of 10 ms behind a first token."""
    columns = ((drafts, drafts, drafts + 1),) * steps
    return turn(range(tokens), steps / 100, steps=columns, ends=[(i + 1) / 100 for i in range(steps)], times=(1, 8, 1))


def test_answers_cut_by_a_limit_are_counted_by_domain():
    ended = turn((1, 2, 3), finish="eos")
    cells = [cell("m", "1", turn(), ended), cell("m", "2", turn(finish="window")), cell("m", "3", ended)]
    domains = method_of(stored(cells, domains={"1": "chat", "2": "qa", "3": "rag"})).domains
    shares = {name: domain.figures["truncated_rate"] for name, domain in domains.items()}
    assert shares == {
        "chat": Figure(value=0.5, n=2),
        "qa": Figure(value=1.0, n=1),
        "rag": Figure(value=0.0, n=1),
    }


def test_a_method_that_was_not_asked_says_why_it_has_no_score():
    score = ScoreRecord(
        method="autoregressive",
        domain="mmlu",
        repeat=0,
        scores=Scores(scorer="letter", signature="s", values={"accuracy": Value(value=0.5, n=1)}),
    )
    skipped = cell("m", "1", status="skipped", reason="only the baseline is asked")
    cells = [cell("autoregressive", "1", turn(finish="choice")), skipped]
    figures = method_of(stored(cells, domains={"1": "mmlu"}, scores=[score])).domains["mmlu"].figures
    for name in ("accuracy", "truncated_rate"):
        assert (figures[name].value, figures[name].reason) == (None, "skipped: only the baseline is asked")


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


def of_domain(suite, domain):
    return SampleRecord(key=f"{suite}/{domain}", suite=suite, sample_id=domain, domain=domain, category="", turns=["?"])


def test_domains_of_two_suites_are_told_apart_only_where_they_share_a_word():
    labels = domain_labels([of_domain("a", "qa"), of_domain("b", "qa"), of_domain("b", "rag")])
    assert labels == {"a/qa": "a: qa", "b/qa": "b: qa", "b/rag": "rag"}


def test_variants_of_one_suite_are_named_once():
    labels = domain_labels([of_domain(suite, "mmlu") for suite in ("mmlu", "mmlu/letter", "mine")])
    assert list(labels.values()) == ["mmlu", "mmlu/letter", "mine: mmlu"]


def test_runs_never_share_a_group():
    results = analyse_runs([stored(PAIRS), stored(PAIRS)], title="Two")
    assert (len(results.groups), results.title) == (2, "Two")


def complete():
    """Two domains, of which one is for quality only, with every reading that a run can have."""
    cells = []
    for method, seconds, drafted in (("autoregressive", 4.0, 0), ("m", 2.0, 2)):
        for sample in ("1", "2", "3"):
            steps = ((drafted, 0, 1),) * 3 if not drafted else ((drafted, 2, 3),)
            one = turn(range(4), seconds, first=0.5, steps=steps, text_tokens=5)
            readings = {"peak_rss_bytes": 7, "peak_device_bytes": 8, "energy_j": 9.0}
            cells.append(cell(method, sample, one, **readings))
    scores = [
        ScoreRecord(
            method="m",
            domain="mmlu",
            repeat=0,
            scores=Scores(
                scorer="letter",
                signature="s",
                values={"accuracy": Value(value=0.5, n=1)},
                extras={"mean_words": Value(value=3.0, n=1)},
                counts={"answers": 1, "unparsed": 1, "rule:none": 1},
            ),
        )
    ]
    run = stored(cells, domains={"1": "qa", "2": "rag", "3": "mmlu"}, scores=scores)
    samples = [replace(record, timed=record.domain != "mmlu") for record in run.samples]
    environment = {**run.environment, "cost_curve": {"rows": [1, 4], "cost": [1.0, 1.5], "one_row_s": 0.1}}
    return replace(run, samples=samples, environment=environment)


def test_every_figure_is_named_in_the_table_of_metrics_and_every_name_is_a_figure():
    found = method_of(complete())
    produced = {name for figures in (found.overall, found.domains["qa"].figures) for name in figures}
    measured = {name for name, m in METRICS.items() if m.kind in ("speed", "acceptance", "time", "machine")}
    assert produced - {"truncated_rate"} == measured
    assert [name for name, figure in found.overall.items() if figure.value is None] == ["noise_floor"]
    assert {metric(name).kind for name in found.overall} == {"speed", "acceptance", "time", "machine"}


def test_samples_for_quality_only_are_in_no_speed_or_acceptance_figure():
    run = complete()
    found = method_of(run)
    assert set(found.domains["mmlu"].figures) == {"accuracy", "mean_words", "accuracy_difference", "truncated_rate"}
    assert found.domains["mmlu"].score_counts == {"answers": 1, "unparsed": 1, "rule:none": 1}
    assert found.domains["mmlu"].positions == {}
    assert found.domains["mmlu"].samples == 1
    assert found.overall["speedup"].n == found.overall["tokens_per_s"].n == found.overall["peak_rss_bytes"].n == 2
    timed = [c for c in run.cells if c.sample != "s/3"]
    without = replace(run, cells=timed, samples=[record for record in run.samples if record.timed], scores=[])
    assert method_of(without).overall == found.overall
    # A cell that is for quality only does not keep a method from being ranked either.
    late = replace(run, cells=timed)
    assert method_of(late).overall["speedup"].value is not None
    nothing = replace(run, samples=[replace(record, timed=False) for record in run.samples])
    assert (method_of(nothing).overall, method_of(nothing).positions) == ({}, {})


def test_the_baseline_against_itself_is_exactly_one_by_every_count():
    base = method_of(complete(), "autoregressive")
    names = [name for name in base.overall if name.startswith("speedup") and name != "speedup_specbench"]
    assert len(names) == 11
    assert {base.overall[name].value for name in names} == {1.0}
    # The script counts its baseline's text again, less one a turn: here exactly what was kept.
    assert base.overall["speedup_specbench"].value == 1.0
    assert base.overall["peak_rss_over_baseline_bytes"].value == 0


def test_overall_pools_samples_where_it_is_no_mean_over_domains():
    overall = method_of(stored(PAIRS, domains={"1": "qa", "2": "rag"})).overall
    assert value(overall, "speedup_time") == pytest.approx(2.230769, abs=1e-6)
    assert value(overall, "speedup_gm") == pytest.approx(2.236068, abs=1e-6)
    assert value(overall, "speedup_mor") == pytest.approx(2.25)
    assert value(overall, "speedup_rom") == pytest.approx(2.285714, abs=1e-6)
    assert value(overall, "speedup_pooled") == pytest.approx(2.429945, abs=1e-6)
    assert value(overall, "speedup_sample_weighted") == pytest.approx((2.0 + 2.5) / 2)


def test_domains_are_weighted_by_their_samples():
    cells = []
    for index, seconds in enumerate((0.25, 0.25, 0.25, 1.0)):
        cells += [
            cell("autoregressive", str(index), turn(range(10), 1.0)),
            cell("m", str(index), turn(range(10), seconds)),
        ]
    overall = method_of(stored(cells, domains={"0": "a", "1": "a", "2": "a", "3": "b"})).overall
    assert value(overall, "speedup_sample_weighted") == pytest.approx((3 * 4.0 + 1.0) / 4)
    assert value(overall, "speedup_mean_of_domains") == pytest.approx(2.5)


def test_positions_of_a_domain_and_overall():
    one = turn(range(12), 0.40, first=0.20, steps=TRACE)
    other = turn(range(2), 0.40, first=0.20, steps=((4, 0, 1),))
    found = method_of(stored([cell("m", "1", one), cell("m", "2", other)], domains={"1": "qa", "2": "rag"}))
    joint = [figure.value for figure in found.domains["qa"].positions["joint"]]
    assert joint == pytest.approx([3 / 4, 3 / 4, 2 / 4, 1 / 3])
    assert [figure.value for figure in found.positions["joint"]] == pytest.approx([3 / 5, 3 / 5, 2 / 5, 1 / 4])
    assert method_of(stored(PAIRS), "autoregressive").positions == {
        "joint": (),
        "conditional": (),
        "all_steps": (),
        "vllm": (),
    }


def test_what_a_run_came_to_survives_its_document(tmp_path):
    results = analyse_runs([complete()])
    path = tmp_path / "results.json"
    path.write_bytes(encode(document(results)))
    assert read_results(path) == results
    odd = replace(method_of(complete()), positions={"joint": (Figure(value=math.nan, n=1),)})
    written = document(Results(groups=(replace(results.groups[0], methods=(odd,)),)))
    assert written["groups"][0]["methods"][0]["positions"]["joint"][0]["value"] is None


def test_diverged_turns_are_counted_by_domain():
    cells = [
        cell("autoregressive", "1", turn(range(9), 1.0), turn(range(9), 1.0, prompt="mine"), turn(3, prompt="deep")),
        cell("m", "1", turn((*range(8), 77), 1.0), turn(range(9), 0.01, prompt="other"), turn(3, prompt="deeper")),
        cell("autoregressive", "2", turn((1, 2, 3))),
        cell("m", "2", turn((1, 2, 3))),
    ]
    run = stored(cells, domains={"1": "chat", "2": "qa"})
    found = method_of(run)
    assert (found.diverged_turns, found.domains["chat"].diverged_turns, found.domains["qa"].diverged_turns) == (2, 2, 0)
    assert method_of(run, "autoregressive").diverged_turns == 0


def test_a_sample_that_the_baseline_lacks_is_told():
    cells = [*PAIRS, cell("autoregressive", "3", status="failed", reason="x"), cell("m", "3", turn((1, 2, 3)))]
    assert "1 samples not paired: the baseline has no answer to them" in method_of(stored(cells)).notes


def test_turns_that_ended_at_once_are_told():
    cells = [*PAIRS, cell("autoregressive", "3", turn([1], 1.0)), cell("m", "3", turn([1], 1.0))]
    found = method_of(stored(cells))
    assert "1 of 3 turns ended with their first emission and are in no decode-only figure" in found.notes
    assert found.overall["speedup_decode"].n == 2


def test_a_gap_between_pooled_and_per_sample_speedup_is_told_once():
    notes = method_of(stored(PAIRS, domains={"1": "qa", "2": "qa"})).notes
    assert notes == ("pooled speedup and geometric mean of samples are over 5 % apart in qa (2.43, 2.24)",)
    assert method_of(stored(PAIRS, domains={"1": "qa", "2": "rag"})).notes == ()


def test_parts_of_steps_on_a_device_need_a_profiled_run():
    run = stored([cell("m", "1", turn(range(12), 1.0, steps=TRACE))])
    on_device = replace(run, plan={**run.plan, "resolved": {"device": "cuda:0"}})
    figures = method_of(on_device).overall
    assert figures["draft_share"].reason == "the device was not synchronised within steps: run with --profile"
    assert figures["verify_ms"].value is None
    profiled = replace(on_device, plan={**on_device.plan, "profile": True})
    assert value(method_of(profiled).overall, "draft_share") == pytest.approx(0.25)
    assert value(method_of(run).overall, "draft_share") == pytest.approx(0.25)


def test_no_baseline_is_no_speedup_with_the_reason():
    run = stored(PAIRS[2:], methods=("m",))
    found = method_of(run)
    for name in ("speedup", "speedup_gm", "speedup_cpu", "predicted_decode_speedup"):
        assert (found.overall[name].value, found.domains["qa"].figures[name].reason) == (
            None,
            "no autoregressive run for tiny",
        )
    assert value(found.overall, "tokens_per_s") == pytest.approx(122 / 2.6)
    assert found.notes == ()
