"""What analysis says of how sure its figures are: intervals, noise floors, differences of quality, ties."""

import math
import random
from dataclasses import replace

import pytest

from draftboard.analysis import analyse
from draftboard.records import ScoreRecord
from draftboard.results import Interval, Results
from draftboard.results_file import document, encode
from draftboard.scoring import Answer, score
from draftboard.statistics import ONE_ROUND

from made_rows import by_name
from made_runs import TRACE, cell, method_of, stored, turn


def made(*, samples=24, rounds=1, methods=(("m", 2.0),), noise=0.02, drift=0.0, domains=2, seed=5):
    """A run whose methods are so many times as fast, with noise a cell and rounds of another pace."""
    rng = random.Random(seed)
    cells = []
    for index in range(samples):
        base = rng.uniform(0.5, 3)
        for number in range(rounds):
            pace = 1 + drift * number
            for label, factor in (("autoregressive", 1.0), *methods):
                seconds = base * pace / factor * rng.gauss(1, noise)
                one = turn(range(40), seconds, first=0.1, steps=TRACE, ends=(0.2, 0.3, 0.4, seconds))
                cells.append(cell(label, f"{index:02}", one, repeat=number))
    names = {f"{index:02}": f"d{index % domains}" for index in range(samples)}
    labels = ("autoregressive", *(label for label, _ in methods))
    return stored(cells, domains=names, methods=labels, repeats=rounds)


def test_every_ratio_of_sums_and_mean_has_an_interval_that_holds_it():
    found = method_of(made())
    for figures in (found.overall, found.domains["d0"].figures):
        bare = {name for name, figure in figures.items() if figure.value is not None and figure.interval is None}
        assert {name for name in bare if name.startswith("speedup")} <= {"speedup_specbench"}
        for name in ("speedup", "speedup_gm", "tokens_per_s", "acceptance_length", "acceptance_rate", "draft_share"):
            interval = figures[name].interval
            assert interval.low <= figures[name].value <= interval.high
    assert found.overall["speedup"].interval.low > 1.9
    assert found.overall["speedup"].p < 0.001
    assert found.overall["acceptance_length"].interval == Interval(
        low=found.overall["acceptance_length"].value, high=found.overall["acceptance_length"].value
    )


def test_the_baseline_against_itself_is_one_for_every_speedup():
    overall = method_of(made(rounds=3, drift=0.01), "autoregressive").overall
    for name in (
        "speedup",
        "speedup_decode",
        "speedup_cpu",
        "speedup_time",
        "speedup_gm",
        "speedup_mor",
        "speedup_rom",
    ):
        assert overall[name].value == pytest.approx(1, abs=1e-12)
        assert overall[name].interval == Interval(low=overall[name].value, high=overall[name].value)
    assert overall["speedup"].p == 1


def test_the_same_run_gives_the_same_intervals_in_any_order():
    run = made(methods=(("m", 2.0), ("k", 1.1)))
    turned = replace(
        run,
        cells=run.cells[::-1],
        samples=run.samples[::-1],
        plan={**run.plan, "methods": [run.plan["methods"][i] for i in (0, 2, 1)]},
    )
    for label in ("m", "k"):
        one, other = (by_name(analyse(r))[label].overall for r in (run, turned))
        for name in ("speedup", "speedup_gm", "acceptance_length", "tokens_per_s"):
            assert (one[name].interval.low, one[name].interval.high) == pytest.approx(
                (other[name].interval.low, other[name].interval.high), rel=1e-12
            )


def test_rounds_give_a_noise_floor_that_widens_speedups():
    still, moving = (method_of(made(rounds=3, drift=drift, noise=0.001)) for drift in (0.0, 0.05))
    assert moving.domains["d0"].figures["noise_floor"].value == pytest.approx(math.log(1.1), abs=0.003)
    floor = moving.overall["noise_floor"].value
    assert floor == pytest.approx(math.log(1.1), abs=0.003)
    width = moving.overall["speedup"].interval
    bare = still.overall["speedup"].interval
    assert math.log(width.high / width.low) == pytest.approx(2 * floor + math.log(bare.high / bare.low), abs=0.01)
    assert moving.overall["acceptance_length"].interval.low == moving.overall["acceptance_length"].value


def test_one_round_has_no_floor_and_says_so():
    run = made()
    group = analyse(run)
    assert by_name(group)["m"].overall["noise_floor"].reason == ONE_ROUND
    assert ONE_ROUND in group.notes
    assert ONE_ROUND not in analyse(made(rounds=2)).notes


def test_a_lone_sample_has_no_interval_and_says_so():
    group = analyse(made(samples=3, domains=2))
    m = by_name(group)["m"]
    assert m.domains["d0"].figures["speedup"].interval is not None
    assert m.domains["d1"].figures["speedup"].interval is None
    assert m.overall["speedup"].interval is None
    assert "no interval for d1, nor overall: it takes two samples of a domain" in group.notes


def test_methods_that_cannot_be_told_apart_are_tied():
    methods = by_name(analyse(made(methods=(("a", 2.0), ("b", 2.004), ("c", 1.5), ("d", 1.001)))))
    assert methods["a"].tied_with == ("b",)
    assert methods["b"].tied_with == ("a",)
    assert methods["c"].tied_with == ()
    assert methods["d"].tied_with == ("autoregressive",)


def scored(texts, scorer="bleu", references=("the cat sat on the mat today", "a dog ran over the green hill")):
    records = []
    for method, answers in texts.items():
        answered = [
            Answer(sample_id=f"s/{i:02}", turn=0, text=text, references=(references[i % len(references)],))
            for i, text in enumerate(answers)
        ]
        records.append(ScoreRecord(method=method, domain="qa", repeat=0, scores=score(answered, scorer)))
    return records


def with_scores(records, samples):
    cells = [cell(m, f"{i:02}", turn()) for m in ("autoregressive", "m") for i in range(samples)]
    return stored(cells, scores=records)


def test_corpus_scores_and_their_differences_have_intervals():
    good = ["the cat sat on the mat today", "a dog ran over the green hill"] * 10
    worse = ["the cat sat on a mat", "a dog ran over the hill"] * 10
    found = by_name(analyse(with_scores(scored({"autoregressive": good, "m": worse}), 20)))["m"].domains["qa"].figures
    assert found["bleu"].interval.low <= found["bleu"].value <= found["bleu"].interval.high
    assert found["bleu_difference"].value == pytest.approx(found["bleu"].value - 100)
    assert found["bleu_difference"].interval.high < 0
    assert found["chrf_difference"].interval.high < 0
    same = by_name(analyse(with_scores(scored({"autoregressive": good, "m": good}), 20)))
    difference = same["m"].domains["qa"].figures["bleu_difference"]
    assert (difference.value, difference.interval) == (0, Interval(low=0, high=0))
    assert "bleu_difference" not in same["autoregressive"].domains["qa"].figures


def test_accuracies_differ_by_mcnemar():
    right, wrong = "the answer is 4", "the answer is 5"
    records = scored({"autoregressive": [right] * 20, "m": [wrong] * 6 + [right] * 14}, "last_number", ("4",))
    found = by_name(analyse(with_scores(records, 20)))["m"].domains["qa"].figures["accuracy_difference"]
    assert found.value == pytest.approx(-0.3)
    assert found.p == pytest.approx(2 * 0.5**6)
    assert found.interval.low < -0.3 < found.interval.high < 0


def test_results_with_intervals_are_plain_json():
    run = made(rounds=2)
    assert b"statistic" not in encode(document(Results(groups=(analyse(run),))))


def test_the_group_has_its_verdict_and_the_record_of_its_machine():
    run = made()
    run = replace(run, environment={**run.environment, "threads": 2, "user": "me", "cpu": {"model": "x", "path": "/h"}})
    group = analyse(run)
    assert group.verdict.valid
    assert group.environment == {"cpu": {"model": "x"}, "threads": 2, "hardware": "here"}
    # What was stored before the run went on says nothing of what it has become.
    stale = replace(run, verdict={"valid": False, "reasons": ["1 of 40 cells have not run"]})
    assert analyse(stale).verdict.valid
