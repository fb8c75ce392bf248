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


def test_methods_that_wrote_the_same_stand_with_the_baseline(table_of, notes_of):
    scores = {"a": {"bleu": 30.0, "chrf": 50.0}}
    names = ("autoregressive", "same", "text")
    same = [
        method_with(name, scores, output) for name, output in zip(names, ("", "identical", "text-equal"), strict=True)
    ]
    lossy = method_with("lossy", {"a": {"bleu": 28.0, "chrf": 50.0}}, "lossy", lossless=False)
    odd = method_with("odd", {"a": {"bleu": 29.0, "chrf": 50.0}}, "identical")
    for key, methods in (("quality", (*same, lossy, odd)), ("quality", same), ("quality-details", (*same, lossy))):
        if key == "quality-details":
            methods = [replace(method, domains=with_counts(method)) for method in methods]
        table = table_of(group_of(*methods), key)
        heads = table.rows if table.sortable else table.columns
        shown = [head.method if table.sortable else head.title for head in heads]
        assert shown == [name for name in ("autoregressive", "lossy", "odd") if name in [m.method for m in methods]]
        assert "and 2 with identical output" in heads[0].detail
        assert notes_of(table, heads[0]) == [
            "also the figures of same, text: output identical to that of autoregressive"
        ]
        assert (table.columns[0] if table.sortable else table.rows[0]).detail == "n=40"


def with_counts(method):
    return {name: replace(domain, score_counts={"answers": 40}) for name, domain in method.domains.items()}


def test_answers_cut_by_the_limit_are_told_with_every_score_they_touch(table_of, cell_of, notes_of):
    def method(name, cut, **about):
        scores = {"a": {"accuracy": 0.25, "mean_words": 9.0}, "b": {"accuracy": 0.75}, "chat": {}}
        shares = {"a": cut, "b": 0.0, "chat": 1.0}
        made = method_with(name, scores, **about)
        return replace(
            made,
            domains={
                key: replace(domain, figures={**domain.figures, "truncated_rate": Figure(value=shares[key], n=40)})
                for key, domain in made.domains.items()
            },
        )

    plain = method("autoregressive", 0.75)
    table = table_of(group_of(plain, method("x", 0.75, output="tie-divergent")), "quality")
    cut = "cut: ended by the limit on new tokens or the model's window, and scored as it stands, unfinished"
    details = {column.title: column.detail for column in table.columns}
    assert details == {"a · Accuracy": "n=40 · 30 of 40 cut", "b · Accuracy": "n=40"}
    assert notes_of(table, cell_of(table, "x", "a · Accuracy")) == [cut]
    assert notes_of(table, cell_of(table, "x", "b · Accuracy")) == []
    lossy = method("x", 0.0, output="lossy", lossless=False)
    table = table_of(group_of(plain, lossy), "quality")
    assert cell_of(table, "autoregressive", "a · Accuracy").detail == "30 of 40 cut"
    assert cell_of(table, "x", "a · Accuracy").detail == "Δ +0.000"
    assert notes_of(table, cell_of(table, "x", "a · Accuracy")) == []
    details = table_of(group_of(plain, lossy), "quality-details")
    assert cell_of(details, "x", "a · Answers cut by the limit").text == "0.000"
    assert cell_of(details, "x", "chat · Answers cut by the limit").text == "1.000"
    assert not any(cell.best for row in details.rows if "cut by" in row.method for cell in row.cells)


def test_answers_that_all_came_to_their_end_make_no_table_of_their_own(table_of):
    ended = method_with("autoregressive", {"chat": {"truncated_rate": 0.0}})
    assert table_of(group_of(ended), "quality-details") is None
    cut = method_with("autoregressive", {"chat": {"truncated_rate": 0.025}})
    assert table_of(group_of(cut), "quality-details") is not None
    assert table_of(group_of(cut), "quality") is None
