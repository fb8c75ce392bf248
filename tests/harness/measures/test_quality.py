"""Scores as figures: means over rounds, details named so that they stay details, counts added."""

from draftboard.measures import quality_figures, score_counts, skipped_quality, truncated_rate
from draftboard.metrics import metric
from draftboard.records import Cell, ScoreRecord
from draftboard.results import Figure
from draftboard.scoring import Scores, Value

from made_runs import imported_turn, turn


def record(scorer="bleu", repeat=0, values=None, extras=None, counts=None):
    return ScoreRecord(
        method="m",
        domain="qa",
        repeat=repeat,
        scores=Scores(scorer=scorer, signature="sig", values=values or {}, extras=extras or {}, counts=counts or {}),
    )


def value(number, n=3, reason="", signature="sig"):
    return Value(value=number, n=n, reason=reason, signature=signature)


def test_values_are_means_over_rounds_with_signature_and_reason():
    records = [record(values={"bleu": value(20.0)}), record(repeat=1, values={"bleu": value(30.0)})]
    assert quality_figures(records) == {"bleu": Figure(value=25.0, n=3, signature="sig")}
    lacking = quality_figures([record(values={"bleu": value(None, 0, "no references")})])["bleu"]
    assert (lacking.value, lacking.reason) == (None, "no references")
    half = [record(values={"bleu": value(None, 0, "x")}), record(repeat=1, values={"bleu": value(30.0)})]
    assert (quality_figures(half)["bleu"].value, quality_figures(half)["bleu"].reason) == (30.0, "")


def test_extras_are_details_whatever_scorer_they_come_from():
    extras = {"mean_words": value(9.0), "bleu/zh": value(40.0), "odd": value(1.0)}
    figures = quality_figures([record(scorer="mine", values={"own": value(2.0)}, extras=extras)])
    assert set(figures) == {"own", "mean_words", "bleu/zh", "mine/odd"}
    assert {name: metric(name).kind for name in figures} == {
        "own": "quality",
        "mean_words": "quality_detail",
        "bleu/zh": "quality_detail",
        "mine/odd": "quality_detail",
    }


def test_headlines_stand_before_details():
    records = [record(values={"bleu": value(1.0), "chrf": value(2.0)}, extras={"mean_words": value(9.0)})]
    assert list(quality_figures(records)) == ["bleu", "chrf", "mean_words"]
    plugin = record(scorer="mine", values={"own": value(2.0)}, extras={"mean_words": value(9.0)})
    assert list(quality_figures([plugin])) == ["own", "mean_words"]


def test_one_name_of_two_scorers_is_a_mean_over_their_samples():
    records = [
        record("letter", values={"accuracy": value(1.0, 1, signature="a")}),
        record("last_number", values={"accuracy": value(0.0, 3, signature="b")}),
        record("last_number", 1, values={"accuracy": value(1.0, 3, signature="b")}),
    ]
    assert quality_figures(records)["accuracy"] == Figure(value=(1.0 + 3 * 0.5) / 4, n=4, signature="a; b")
    assert quality_figures([*records, record("x", values={"accuracy": value(None, 0)})])["accuracy"].n == 4


def test_counts_add_up():
    records = [record(counts={"answers": 3, "empty": 1}), record(repeat=1, counts={"answers": 3, "rule:boxed": 2})]
    assert score_counts(records) == {"answers": 6, "empty": 1, "rule:boxed": 2}
    assert score_counts([]) == {}
    assert quality_figures([]) == {}


def test_the_share_of_cut_answers_pools_rounds_and_leaves_out_what_is_not_known(of):
    turns = [
        *of(turn(finish="length"), turn(finish="eos"), sample="1"),
        *of(turn(finish="length"), turn(finish="window"), sample="1", repeat=1),
        *of(turn(finish="stop"), sample="2"),
    ]
    assert truncated_rate(turns) == Figure(value=3 / 5, n=3)
    unknown = of(imported_turn(kept=[1, 2]))
    assert truncated_rate([*turns, *unknown]) == truncated_rate(turns)
    assert truncated_rate(unknown) == Figure(value=None, n=0, reason="not recorded in the imported file")
    assert truncated_rate([], "1 of 1 cells failed").reason == "1 of 1 cells failed"


def test_only_what_was_skipped_altogether_has_that_for_a_reason():
    def cells(*states):
        return [Cell(method="m", sample=str(i), status=status, reason=why) for i, (status, why) in enumerate(states)]

    records = [record(values={"bleu": value(20.0)})]
    why = Figure(value=None, n=0, reason="skipped: too long, and 1 other reasons")
    both = cells(("skipped", "too long"), ("skipped", "too long"), ("skipped", "not asked"))
    assert skipped_quality(records, both) == {"truncated_rate": why, "bleu": why}
    assert skipped_quality(records, cells(("skipped", "too long"), ("ok", ""))) == {}
    assert skipped_quality(records, []) == {}
