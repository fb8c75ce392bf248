"""Quality beside speed: what a lossy method lost, how answers were read, and what a change of format did."""

from dataclasses import replace

import pytest

from draftboard.leaderboards.quality import quality_note
from draftboard.results import DomainResult, Figure, Group, MethodResult


def method_with(name, scores, output="", lossless=None, counts=None):
    domains = {
        domain: DomainResult(
            domain=domain,
            figures={metric: Figure(value=value, n=40) for metric, value in figures.items()},
            score_counts=counts or {},
        )
        for domain, figures in scores.items()
    }
    return MethodResult(method=name, domains=domains, output=output, lossless=lossless)


def group_of(*methods):
    domains = dict.fromkeys(domain for method in methods for domain in method.domains)
    return Group(model="m", hardware="h", suite="s", domains=tuple(domains), methods=methods)


PLAIN = method_with(
    "autoregressive", {"a": {"bleu": 30.0, "chrf": 50.0}, "b": {"bleu": 20.0}, "c": {"rougeL": 25.0, "rouge1": 30.0}}
)
WORSE = {"a": {"bleu": 28.0, "chrf": 40.0}, "b": {"bleu": 19.0}, "c": {"rougeL": 25.5, "rouge1": 10.0}}


def test_a_note_has_one_difference_a_leading_metric_and_says_over_how_many_domains():
    method = method_with("x", WORSE, "lossy", lossless=False)
    group = group_of(PLAIN, method)
    assert quality_note(method, group) == "lossy: BLEU -1.5 in 2 domains, ROUGE-L +0.5"
    assert quality_note(method, group, with_class=False) == "BLEU -1.5 in 2 domains, ROUGE-L +0.5"


@pytest.mark.parametrize(
    ("output", "lossless", "note"),
    [
        ("identical", False, ""),
        ("text-equal", None, ""),
        ("", True, ""),
        ("", None, ""),
        ("tie-divergent", True, ""),
        ("text-different", None, ""),
        ("lossy", False, "lossy: quality not compared"),
        ("different", True, "different: quality not compared"),
        ("", False, "lossy: quality not compared"),
        ("something else", None, ""),
    ],
)
def test_without_scores_a_note_stands_only_where_the_text_may_differ(output, lossless, note):
    method = method_with("x", {"a": {}}, output, lossless)
    assert quality_note(method, group_of(PLAIN, method)) == note


def test_the_difference_of_a_rounding_tie_is_told_where_it_was_measured():
    method = method_with("x", {"a": {"bleu": 29.9}}, "tie-divergent", lossless=True)
    assert quality_note(method, group_of(PLAIN, method)) == "tie-divergent: BLEU -0.1"


def test_without_the_baseline_nothing_can_be_compared():
    method = method_with("x", WORSE, "lossy", lossless=False)
    assert quality_note(method, group_of(method)) == "lossy: quality not compared"
    assert quality_note(PLAIN, group_of(PLAIN, method)) == ""


def test_a_change_of_format_stands_with_the_change_in_accuracy(spec_bench, table_of, cell_of):
    cell = cell_of(table_of(spec_bench, "quality"), "tss[pld]", "math_reasoning · Accuracy")
    assert (cell.text, cell.detail) == ("0.400", "Δ -0.100 (unparsed Δ +0.100)")


def test_an_unchanged_share_of_unreadable_answers_is_not_mentioned(table_of, cell_of):
    plain = method_with("autoregressive", {"m": {"accuracy": 0.5, "unparsed_rate": 0.1}})
    other = method_with("x", {"m": {"accuracy": 0.4, "unparsed_rate": 0.1}}, "lossy", lossless=False)
    group = group_of(plain, other)
    assert cell_of(table_of(group, "quality"), "x", "m · Accuracy").detail == "Δ -0.100"
    assert quality_note(other, group) == "lossy: Accuracy -0.100"


def test_the_board_shows_leading_figures_and_the_detail_shows_all(spec_bench, table_of):
    group = group_of(PLAIN, method_with("x", WORSE, "identical"))
    short = [column.title for column in table_of(group, "quality").columns]
    assert short == ["autoregressive", "x"]
    assert [row.method for row in table_of(group, "quality").rows] == [
        "a · BLEU",
        "a · chrF",
        "b · BLEU",
        "c · ROUGE-L",
    ]
    details = table_of(group, "quality-details")
    assert "c · ROUGE-1" in [row.method for row in details.rows]
    assert details.level == "detail"


def test_the_detail_holds_rules_counts_and_cleaned_scores(spec_bench, table_of, cell_of):
    table = table_of(spec_bench, "quality-details")
    rows = [row.method for row in table.rows]
    accuracy = rows.index("math_reasoning · Accuracy")
    assert "math_reasoning · Unparsed answers" in rows[accuracy:]
    assert cell_of(table, "tss[pld]", "translation · BLEU, cleaned").detail == "Δ +0.0"
    bleu = cell_of(table, "tss[pld]", "translation · BLEU")
    assert (bleu.text, bleu.interval, bleu.detail) == ("28.5", "[26.5, 30.5]", "Δ -1.5")
    assert cell_of(table, "tss[pld]", "rag · Token F1").detail == "n=79 Δ -0.5"
    assert cell_of(table, "tss[pld]", "math_reasoning · answers in which nothing was found").text == "10"
    rule = "math_reasoning · answers read by the rule stated"
    assert cell_of(table, "autoregressive", rule).text == "18"
    assert cell_of(table, "tss[pld]", rule).missing
    assert "math_reasoning · failed answers" not in rows


def test_nothing_is_best_where_more_is_not_better(spec_bench, table_of, cell_of):
    table = table_of(spec_bench, "quality-details")
    assert not cell_of(table, "autoregressive", "math_reasoning · Mean words").best
    assert cell_of(table, "autoregressive", "math_reasoning · Accuracy").best
    assert cell_of(table, "autoregressive", "math_reasoning · Unparsed answers").best


def test_the_length_of_answers_stands_with_contains(table_of):
    scores = {"qa": {"contains": 0.5, "f1": 20.0, "em": 0.0, "mean_words": 40.0}}
    group = group_of(method_with("autoregressive", scores), method_with("x", scores, "identical"))
    rows = [row.method for row in table_of(group, "quality").rows]
    assert rows == ["qa · Contains", "qa · Token F1", "qa · Mean words"]


def test_no_quality_at_all_makes_no_table(spec_bench, table_of):
    bare = replace(spec_bench, methods=(spec_bench.methods[1],))
    assert table_of(bare, "quality") is None
    assert table_of(bare, "quality-details") is None
