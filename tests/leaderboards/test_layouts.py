"""The layouts of publications: exact columns in their order, sorted, and never over samples that do not fit."""

from dataclasses import replace
from statistics import fmean, geometric_mean

import pytest

from draftboard.leaderboards import boards
from draftboard.results import DomainResult, Figure, Group, MethodResult

SPEC_BENCH = ["mt_bench", "translation", "summarization", "qa", "math_reasoning", "rag"]
CATEGORIES = [
    "coding", "humanities", "math", "multilingual", "qa", "rag", "reasoning", "roleplay", "stem", "summarization",
    "writing",
]  # fmt: skip
T2D_COUNTS = [80, 80, 80, 80, 80, 71, 51, 48, 80, 78, 70]
SPEC_BENCH_TITLES = [
    "Multi-turn Conversation",
    "Translation",
    "Summarization",
    "Question Answering",
    "Mathematical Reasoning",
    "Retrieval-aug. Generation",
    "#Mean Accepted Tokens",
    "Overall",
]
T2D_TITLES = [
    "Code", "Hum.", "Math", "Multilin.", "QA", "RAG", "Reason.", "Role.", "Stem", "Summ.", "Writing", "Overall",
    "Overall", "Overall",
]  # fmt: skip


def keys(group):
    return {table.key for table in boards(group)}


def titles(table):
    return [column.title for column in table.columns]


def method_with(name, speedups, counts, **overall):
    domains = {
        domain: DomainResult(domain=domain, figures={"speedup": Figure(value=value, n=n)}, samples=n)
        for (domain, value), n in zip(speedups.items(), counts, strict=True)
    }
    return MethodResult(method=name, domains=domains, overall={k: Figure(value=v) for k, v in overall.items()})


def group_with(domains, counts=None, suite="speed_bench", **about):
    counts = counts or [80] * len(domains)
    fast = {domain: 2.0 + index / 10 for index, domain in enumerate(domains)}
    methods = (
        method_with("autoregressive", dict.fromkeys(domains, 1.0), counts, speedup_mean_of_domains=1.0),
        method_with(
            "fast",
            fast,
            counts,
            speedup=geometric_mean(fast.values()),
            speedup_mean_of_domains=fmean(fast.values()),
            speedup_sample_weighted=fmean(fast.values(), weights=counts),
            speedup_pooled=2.6,
        ),
    )
    return Group(model="m", hardware="h", suite=suite, domains=tuple(domains), methods=methods, **about)


def test_spec_benchs_columns_stand_in_its_order_and_form(spec_bench, table_of, cell_of):
    table = table_of(spec_bench, "spec-bench-speed-py")
    assert titles(table) == SPEC_BENCH_TITLES
    assert (table.subject, table.ranked) == ("Models", False)
    assert "speed.py-compatible" in table.title
    assert table.above == "vicuna-7b-v1.3 · one GPU · decoding greedy · dtype float16 · batch size 1"
    assert [row.method for row in table.rows] == ["tss[pld]", "eagle2", "autoregressive"]
    assert cell_of(table, "eagle2", "Multi-turn Conversation").text == "2.55x"
    assert cell_of(table, "eagle2", "#Mean Accepted Tokens").text == "4.34"
    assert cell_of(table, "eagle2", "Overall").text == "2.27x"
    assert "n=80 per column" in table.caption


def test_the_same_table_stands_with_the_headline_and_its_interval(spec_bench, table_of, cell_of):
    table = table_of(spec_bench, "spec-bench")
    assert titles(table) == SPEC_BENCH_TITLES
    cell = cell_of(table, "eagle2", "Overall")
    assert (cell.text, cell.interval) == ("2.22x", "[2.12, 2.32]")
    assert cell_of(table, "eagle2", "Translation").text == "2.00x"


def test_the_compatible_table_is_left_out_where_nobody_has_its_figures(spec_bench):
    def without(method):
        missing = Figure(value=None, reason="the baseline's texts were not tokenised again")
        domains = {
            name: replace(domain, figures={**domain.figures, "speedup_specbench": missing})
            for name, domain in method.domains.items()
        }
        return replace(method, domains=domains, overall={**method.overall, "speedup_specbench": missing})

    group = replace(spec_bench, methods=tuple(without(method) for method in spec_bench.methods))
    assert "spec-bench-speed-py" not in keys(group)
    assert "spec-bench" in keys(group)


def test_rows_that_speed_py_does_not_match_carry_a_warning(spec_bench, table_of, cell_of, notes_of):
    eagle = spec_bench.methods[1]
    short = replace(eagle.domains["rag"], samples=12)
    methods = (spec_bench.methods[0], replace(eagle, domains={**eagle.domains, "rag": short}), spec_bench.methods[2])
    table = table_of(replace(spec_bench, methods=methods), "spec-bench-speed-py")
    assert notes_of(table, cell_of(table, "eagle2", "Overall")) == ["rows are not matched: rag 12 (baseline 80)"]
    assert notes_of(table, cell_of(table, "tss[pld]", "Overall")) == []


def test_a_warning_that_the_figure_brings_itself_is_not_doubled(spec_bench, table_of, cell_of, notes_of):
    eagle = spec_bench.methods[1]
    told = replace(eagle.overall["speedup_specbench"], signature="rows are not matched: 412 against 480")
    short = replace(
        eagle,
        overall={**eagle.overall, "speedup_specbench": told},
        domains={**eagle.domains, "rag": replace(eagle.domains["rag"], samples=12)},
    )
    table = table_of(
        replace(spec_bench, methods=(spec_bench.methods[0], short, spec_bench.methods[2])), "spec-bench-speed-py"
    )
    assert notes_of(table, cell_of(table, "eagle2", "Overall")) == ["rows are not matched: 412 against 480"]


def test_a_lossy_speedup_never_stands_without_its_quality(spec_bench):
    for table in boards(spec_bench):
        if any((column.metric or "").startswith("speedup") for column in table.columns):
            said = {row.method: row.quality for row in table.rows}
        elif any(row.metric.startswith("speedup") for row in table.rows):
            said = {column.title: column.quality for column in table.columns}
        else:
            continue
        assert "BLEU -1.5, Accuracy -0.100 (unparsed +0.100)" in said["tss[pld]"], table.key
        assert said["eagle2"] == said["autoregressive"] == "", table.key


def test_five_of_spec_benchs_domains_make_no_layout(spec_bench):
    assert not keys(replace(spec_bench, domains=spec_bench.domains[:5])) & {"spec-bench", "spec-bench-speed-py"}


def test_the_bundled_suite_mirrors_the_domains_but_is_neither_suite():
    domains = [f"spec_bench/{name}" for name in SPEC_BENCH] + [f"speed_bench/{name}" for name in CATEGORIES]
    assert not keys(group_with(domains, suite="mini")) & {"spec-bench", "t2d"}


def test_t2ds_columns_stand_in_its_order_with_their_counts(table_of, cell_of):
    group = group_with(list(reversed(CATEGORIES)), list(reversed(T2D_COUNTS)), suite="speed_bench")
    table = table_of(group, "t2d")
    assert titles(table) == T2D_TITLES
    assert [column.detail for column in table.columns] == [
        *(f"n={n}" for n in T2D_COUNTS), "plain mean", "sample-weighted mean", "pooled",
    ]  # fmt: skip
    assert cell_of(table, "fast", "Code").text == "3.00×"
    fast = next(row for row in table.rows if row.method == "fast")
    values = [2.0 + index / 10 for index in range(11)][::-1]
    assert [cell.value for cell in fast.cells[-3:]] == pytest.approx(
        [fmean(values), fmean(values, weights=T2D_COUNTS), 2.6]
    )


def test_only_t2ds_counts_are_comparable_with_its_printed_table(table_of):
    assert "T2D-comparable" in table_of(group_with(CATEGORIES, T2D_COUNTS), "t2d").caption
    whole = table_of(group_with(CATEGORIES), "t2d").caption
    assert "T2D-comparable" not in whole
    assert (
        "Not comparable with T2D's printed table: samples RAG 80 (T2D 71), Reason. 80 (T2D 51), Role. 80 (T2D 48), "
        "Summ. 80 (T2D 78), Writing 80 (T2D 70)." in whole
    )


def test_methods_of_different_counts_are_not_comparable(table_of, cell_of):
    group = group_with(CATEGORIES, T2D_COUNTS)
    fast = group.methods[1]
    lacking = replace(fast.domains["coding"], figures={"speedup": Figure(value=2.0, n=79)})
    group = replace(group, methods=(group.methods[0], replace(fast, domains={**fast.domains, "coding": lacking})))
    table = table_of(group, "t2d")
    assert "samples Code 79 or 80 (T2D 80)" in table.caption
    assert (table.columns[0].detail, cell_of(table, "fast", "Code").detail) == ("", "n=79")


def test_some_of_speed_benchs_categories_show_what_is_there(table_of):
    table = table_of(group_with(["writing", "coding"], [70, 80]), "t2d")
    assert titles(table)[:2] == ["Code", "Writing"]
    assert "no Hum., Math, Multilin., QA, RAG, Reason., Role., Stem, Summ.." in table.caption


@pytest.mark.parametrize(
    ("suite", "drawn"), [("jsonl", False), ("spec_bench", False), ("", False), ("SPEED-Bench", True)]
)
def test_a_few_common_words_are_no_speed_bench(suite, drawn):
    assert ("t2d" in keys(group_with(["qa", "math", "rag"], suite=suite))) is drawn


def test_all_eleven_names_of_an_unnamed_suite_are_drawn_but_not_called_comparable(table_of):
    table = table_of(group_with(CATEGORIES, T2D_COUNTS, suite=""), "t2d")
    assert "Not comparable with T2D's printed table: nothing says that the suite is SPEED-Bench." in table.caption


def both_suites():
    shared = {"qa", "rag", "summarization"}
    spec = [f"spec_bench: {name}" if name in shared else name for name in SPEC_BENCH]
    speed = [f"speed_bench: {name}" if name in shared else name for name in CATEGORIES]
    return spec, speed


def test_two_suites_in_one_group_get_a_layout_each_over_their_own_domains(table_of, cell_of, notes_of):
    spec, speed = both_suites()
    group = group_with([*spec, *speed], suite="spec_bench + speed_bench")
    table = table_of(group, "spec-bench")
    values = [2.0 + index / 10 for index in range(6)]
    assert titles(table) == [title for title in SPEC_BENCH_TITLES if title != "#Mean Accepted Tokens"]
    assert cell_of(table, "fast", "Overall").value == pytest.approx(geometric_mean(values))
    table = table_of(group, "t2d")
    fast = next(row for row in table.rows if row.method == "fast")
    values = [2.0 + index / 10 for index in range(6, 17)]
    assert [cell.value for cell in fast.cells[-3:-1]] == pytest.approx([fmean(values), fmean(values)])
    assert fast.cells[-1].missing
    assert notes_of(table, fast.cells[-1]) == ["measured over other domains as well; a run of this suite alone has it"]


@pytest.mark.parametrize("odd", [None, 0.0, -1.0, float("nan"), float("inf")])
def test_an_odd_speedup_in_one_of_two_suites_leaves_no_overall(odd, table_of, cell_of, notes_of):
    spec, speed = both_suites()
    group = group_with([*spec, *speed], suite="spec_bench + speed_bench")
    fast = group.methods[1]
    broken = replace(fast.domains["coding"], figures={"speedup": Figure(value=odd, n=80)})
    group = replace(group, methods=(group.methods[0], replace(fast, domains={**fast.domains, "coding": broken})))
    table = table_of(group, "t2d")
    fast = next(row for row in table.rows if row.method == "fast")
    assert all(cell.missing for cell in fast.cells[-3:])
    assert "10 of 11 domains" in notes_of(table, fast.cells[-3])


def test_a_column_without_any_value_is_not_comparable(table_of):
    group = group_with(CATEGORIES, T2D_COUNTS)
    methods = tuple(
        replace(
            m, domains={**m.domains, "coding": DomainResult(domain="coding", figures={"speedup": Figure(value=None)})}
        )
        for m in group.methods
    )
    assert "samples Code none (T2D 80)" in table_of(replace(group, methods=methods), "t2d").caption


def test_a_method_that_lacks_a_column_has_no_overall_and_stands_last(spec_bench, table_of, notes_of):
    eagle = spec_bench.methods[1]
    domains = {name: domain for name, domain in eagle.domains.items() if name != "qa"}
    partial = replace(eagle, method="a", domains=domains)
    group = replace(spec_bench, methods=(partial, *spec_bench.methods))
    table = table_of(group, "spec-bench")
    row = table.rows[-1]
    assert row.method == "a"
    assert notes_of(table, row) == ["5 of 6 domains"]


def test_a_group_without_conditions_or_speeds_has_no_empty_layout():
    domains = tuple(SPEC_BENCH)
    tau = {"acceptance_length": Figure(value=2.0)}
    method = MethodResult(
        method="imported",
        overall=tau,
        domains={domain: DomainResult(domain=domain, figures=dict(tau)) for domain in domains},
    )
    group = Group(model="", hardware="", suite="", domains=domains, methods=(method,))
    assert keys(group) == {"acceptance"}
