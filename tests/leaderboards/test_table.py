import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.leaderboards.board import acceptance_across, boards
from draftboard.leaderboards.ranking import missing_reasons, standings
from draftboard.results import DomainResult, Figure, Group, MethodResult, Results


def group_of(values, **about):
    methods = tuple(MethodResult(method=name, overall={"speedup": Figure(value=v)}) for name, v in values.items())
    return Group(model="m", hardware="h", suite="s", methods=methods, **about)


def table_of(group, key):
    return next(table for table in boards(group) if table.key == key)


def cell_of(table, method, title):
    row = next(row for row in table.rows if row.method == method)
    return row.cells[[column.title for column in table.columns].index(title)]


def test_equal_values_share_a_rank_and_stand_in_name_order():
    group = group_of({"zeta": 1.996, "alpha": 1.996, "omega": 2.004, "kappa": 1.5, "beta": 10.2, "gamma": 9.8})
    places = [(place.method.method, place.rank) for place in standings(group, "speedup")]
    assert places == [("beta", 1), ("gamma", 2), ("omega", 3), ("alpha", 4), ("zeta", 4), ("kappa", 6)]


def test_values_that_differ_in_their_last_bits_are_equal():
    group = group_of({"b": 3.6363636363636367, "z": 1.0, "a": 3.6363636363636362})
    assert 3.6363636363636367 != 3.6363636363636362
    places = [(place.method.method, place.rank) for place in standings(group, "speedup")]
    assert places == [("a", 1), ("b", 1), ("z", 3)]
    best = {row.method: row.cells[0].best for row in table_of(group, "speed").rows}
    assert best == {"a": True, "b": True, "z": False}


def test_a_chain_of_close_values_is_not_one_rank():
    step = 7e-13
    group = group_of({name: 2.0 * (1 - place * step) for place, name in enumerate("abcd")})
    places = [(place.method.method, place.rank) for place in standings(group, "speedup")]
    assert places == [("a", 1), ("b", 1), ("c", 3), ("d", 3)]


def tied(group, **ties):
    return replace(group, methods=tuple(replace(m, tied_with=ties.get(m.method, ())) for m in group.methods))


def places(group, metric="speedup"):
    return [(place.method.method, place.rank) for place in standings(group, metric)]


def test_methods_that_cannot_be_told_apart_share_a_rank_and_stand_by_value():
    group = group_of({"a": 1.0, "b": 2.0, "c": 2.1, "d": 1.5})
    assert places(tied(group, b=("c",))) == [("c", 1), ("b", 1), ("d", 3), ("a", 4)]


def test_ties_hold_with_the_best_of_a_rank_only():
    """c is tied with b and b with a, but c not with a: two ranks, where a chain would make one."""
    group = tied(group_of({"a": 2.2, "b": 2.1, "c": 2.0}), a=("b",), b=("a", "c"), c=("b",))
    assert places(group) == [("a", 1), ("b", 1), ("c", 3)]
    # Nobody overtakes a better value: what stands behind an untied one has a rank of its own.
    assert places(tied(group, a=("c",), c=("a",))) == [("a", 1), ("b", 2), ("c", 3)]


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.floats(allow_nan=True) | st.none(), max_size=8))
def test_a_rank_is_one_plus_the_number_of_better_methods(values):
    places = standings(group_of(values), "speedup")
    finite = {name: v for name, v in values.items() if v is not None and abs(v) <= 1e50}
    for place in places:
        name = place.method.method
        if name not in finite:
            assert place.rank is None
            continue
        better = sum(other > finite[name] * (1 + math.copysign(2e-12, finite[name])) for other in finite.values())
        larger = sum(other > finite[name] for other in finite.values())
        assert 1 + better <= place.rank <= 1 + larger
    ranked = [place.rank is not None for place in places]
    assert ranked == sorted(ranked, reverse=True)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), float("-inf")])
def test_a_value_that_is_none_or_not_finite_is_shown_as_missing_with_a_reason(value):
    table = table_of(group_of({"good": 2.0, "odd": value}), "speed")
    cell = cell_of(table, "odd", "Overall")
    assert (cell.text, cell.value, cell.missing, cell.best) == ("n/a", None, True, False)
    assert table.footnotes[cell.notes[0] - 1] in ("no value", "not a number")
    assert [row.rank for row in table.rows] == [1, None]


def test_bold_follows_the_direction_of_the_metric_and_marks_all_ties(board):
    table = table_of(board.groups[0], "speed")
    assert cell_of(table, "tss[pld]", "TTFT (ms)").best
    assert not cell_of(table, "autoregressive", "TTFT (ms)").best
    assert [row.method for row in table.rows if cell_of(table, row.method, "τ").best] == [
        "a|b*c*",
        "samd[token_recycling]",
    ]


def test_bold_comes_from_unrounded_values():
    table = table_of(group_of({"a": 2.004, "b": 2.0041}), "speed")
    assert [cell_of(table, name, "Overall").best for name in "ab"] == [False, True]
    assert cell_of(table, "a", "Overall").text == cell_of(table, "b", "Overall").text


def test_a_method_that_lacks_a_domain_is_unranked_even_if_it_brings_an_overall_value(board):
    group = board.groups[0]
    flattering = replace(group.methods[-1], overall={"speedup": Figure(value=3.0)})
    table = table_of(replace(group, methods=(*group.methods[:-1], flattering)), "speed")
    row = table.rows[-1]
    assert (row.method, row.rank) == ("partial", None)
    assert table.footnotes[row.notes[0] - 1] == "1 of 2 domains"


def test_a_method_with_failed_samples_is_unranked_and_says_how_many(board):
    group = board.groups[0]
    method = group.methods[1]
    domains = {**method.domains, "qa": replace(method.domains["qa"], failed=3)}
    table = table_of(replace(group, methods=(group.methods[0], replace(method, domains=domains))), "speed")
    assert [row.rank for row in table.rows] == [1, None]
    assert "3 of 83 samples failed" in table.footnotes


def test_each_reason_is_one_footnote():
    reason = Figure(value=None, reason="no autoregressive run for m")
    methods = tuple(MethodResult(method=name, overall={"speedup": reason}) for name in "abc")
    group = Group(model="m", hardware="h", suite="s", methods=methods)
    assert table_of(group, "speed").footnotes == ("no autoregressive run for m",)
    told = missing_reasons(Results(groups=(group,)))
    assert told == ("not ranked: a, b, c (no autoregressive run for m)",)


def test_each_line_about_unranked_methods_names_its_model_once():
    def told(*groups):
        return missing_reasons(Results(groups=groups))

    def of(model, reason, hardware="h", **about):
        method = MethodResult(method="x", overall={"speedup": Figure(value=None, reason=reason)})
        return Group(model=model, hardware=hardware, methods=(method,), **{"suite": "s", **about})

    assert told(of("m", "no value")) == ("not ranked for m: x (no value)",)
    assert told(of("m", "no value"), of("n", "no value")) == (
        "not ranked for m: x (no value)",
        "not ranked for n: x (no value)",
    )
    assert told(of("m", "no plain run for m")) == ("not ranked: x (no plain run for m)",)
    assert told(of("m", "no value", "a"), of("m", "no value", "b")) == (
        "not ranked for m on a: x (no value)",
        "not ranked for m on b: x (no value)",
    )
    by_dtype = [of("m", "no value", conditions={"dtype": dtype}) for dtype in ("fp32", "bf16")]
    assert told(*by_dtype) == ("not ranked for m with fp32: x (no value)", "not ranked for m with bf16: x (no value)")


def test_quality_shows_n_signature_and_what_a_lossy_method_lost(board):
    table = table_of(board.groups[0], "quality")
    assert not table.ranked
    (column,) = table.columns
    assert (column.title, column.detail) == ("translation · BLEU", "n=40")
    assert table.footnotes[column.notes[0] - 1] == "nrefs:1|tok:13a|version:2.6.0"
    assert cell_of(table, "tss[pld]", "translation · BLEU").detail == "Δ -1.5"
    assert cell_of(table, "autoregressive", "translation · BLEU").detail == ""


def test_scores_with_different_signatures_carry_their_own():
    methods = tuple(
        MethodResult(
            method=name,
            domains={"d": DomainResult(domain="d", figures={"bleu": Figure(value=1.0, n=n, signature=name)})},
        )
        for name, n in (("a", 1), ("b", 2))
    )
    group = Group(model="", hardware="", suite="", domains=("d",), methods=methods)
    table = table_of(group, "quality")
    assert table.columns[0].notes == ()
    assert [table.footnotes[row.cells[0].notes[0] - 1] for row in table.rows] == ["a", "b"]
    assert [row.cells[0].detail for row in table.rows] == ["n=1", "n=2"]


def test_an_interval_stands_beside_its_value(board):
    assert cell_of(table_of(board.groups[0], "speed"), "tss[pld]", "Overall").interval == "[1.90, 2.00]"


def test_groups_rank_apart_and_only_acceptance_stands_side_by_side():
    def group(hardware, tau):
        overall = {"speedup": Figure(value=tau), "acceptance_length": Figure(value=tau)}
        return Group(model="m", hardware=hardware, suite="s", methods=(MethodResult(method="x", overall=overall),))

    results = Results(groups=(group("gpu-a", 3.0), group("gpu-b", 2.0)))
    assert [table_of(one, "speed").rows[0].rank for one in results.groups] == [1, 1]
    (across,) = acceptance_across(results)
    assert not across.ranked
    assert [column.title for column in across.columns] == ["gpu-a", "gpu-b"]
    assert [cell.text for cell in across.rows[0].cells] == ["3.00", "2.00"]
    assert acceptance_across(Results(groups=results.groups[:1])) == ()


def test_the_baselines_comparison_with_itself_is_never_bold():
    slower = table_of(group_of({"autoregressive": 1.0, "x": 0.9, "y": 0.8}), "speed")
    assert not any(cell_of(slower, name, "Overall").best for name in ("autoregressive", "x", "y"))
    faster = table_of(group_of({"autoregressive": 1.0, "x": 1.1}), "speed")
    assert [cell_of(faster, name, "Overall").best for name in ("autoregressive", "x")] == [False, True]
    level = table_of(group_of({"autoregressive": 1.0, "x": 1.0, "y": 0.5}), "speed")
    assert [cell_of(level, name, "Overall").best for name in ("autoregressive", "x", "y")] == [True, True, False]


def test_a_lead_that_is_no_comparison_with_itself_stays_bold():
    methods = tuple(
        MethodResult(
            method=name,
            overall={
                "speedup": Figure(value=value),
                "tokens_per_s": Figure(value=10 * value),
                "peak_rss_bytes": Figure(value=2**30 / value),
                "peak_rss_over_baseline_bytes": Figure(value=2**30 / value - 2**30),
            },
        )
        for name, value in (("autoregressive", 1.0), ("x", 0.5))
    )
    group = Group(model="m", hardware="h", suite="s", methods=methods)
    assert cell_of(table_of(group, "speed"), "autoregressive", "Tokens/s").best
    resources = table_of(group, "resources")
    assert cell_of(resources, "autoregressive", "Peak RSS (MiB)").best
    assert not cell_of(resources, "autoregressive", "Peak RSS over the baseline (MiB)").best


@pytest.mark.parametrize(("value", "text"), [(-0.2 * 2**20, "0"), (-(2.0**20), "-1"), (0.0, "0"), (-0.0, "0")])
def test_what_rounds_to_zero_has_no_sign(value, text):
    overall = {"speedup": Figure(value=1.0), "peak_rss_over_baseline_bytes": Figure(value=value)}
    method = MethodResult(method="x", overall={**overall, "peak_rss_bytes": Figure(value=1.0)})
    table = table_of(Group(model="m", hardware="h", suite="s", methods=(method,)), "resources")
    assert table.rows[1].cells[0].text == text
