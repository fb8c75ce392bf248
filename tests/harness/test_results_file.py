import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.errors import UserError
from draftboard.leaderboards import boards, missing_reasons, render, standings
from draftboard.leaderboards.markdown import markdown
from draftboard.results import Results
from draftboard.results_file import read_results

from made_rows import DATA, by_name, case, overall, write

approx = pytest.approx


def test_case_4_pooled_acceptance_leads_and_the_mean_has_its_own_name():
    (group,) = read_results(case("04")).groups
    assert overall(group, "A", "acceptance_length").value == approx(190 / 110, abs=1e-9)
    assert overall(group, "B", "acceptance_length").value == approx(190 / 91, abs=1e-9)
    assert overall(group, "A", "acceptance_length_mean_of_samples").value == approx(2.75, abs=1e-9)
    assert overall(group, "B", "acceptance_length_mean_of_samples").value == approx(2.25, abs=1e-9)
    (table,) = boards(group)
    assert [(row.method, row.rank) for row in table.rows] == [("B", 1), ("A", 2)]
    titles = [column.title for column in table.columns]
    assert titles == ["τ", "τ, mean of per-sample values"]


ROWS_9 = [
    {"method": method, "question_id": q, "category": "qa", "phase": phase, "new_tokens": n, "wall_time_s": t}
    for method, phase, q, n, t in (
        ("autoregressive", "warmup", 1, 100, 31.0),
        ("autoregressive", "measured", 1, 100, 4.0),
        ("autoregressive", "measured", 2, 200, 5.0),
        ("autoregressive", "measured", 3, 50, 2.0),
        ("method-x", "warmup", 1, 100, 12.0),
        ("method-x", "measured", 1, 100, 2.0),
        ("method-x", "measured", 2, 200, 2.0),
        ("method-x", "measured", 3, 50, 1.0),
    )
]


def test_case_9_speedup_is_totals_over_totals_without_warm_up(tmp_path):
    (group,) = read_results(write(tmp_path, ROWS_9)).groups
    assert overall(group, "method-x", "speedup").value == approx(2.2, abs=1e-9)
    assert overall(group, "method-x", "speedup").n == 3
    assert overall(group, "autoregressive", "tokens_per_s").value == approx(350 / 11, abs=1e-9)
    assert overall(group, "method-x", "tokens_per_s").value == approx(70.0, abs=1e-9)
    assert overall(group, "method-x", "tokens_per_s_mean_of_samples").value == approx(200 / 3, abs=1e-9)
    assert by_name(group)["method-x"].domains["qa"].figures["speedup"].value == approx(2.2, abs=1e-9)


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize("question", [1, 99])
def test_warm_up_counts_nowhere_wherever_it_stands_and_whatever_it_asks(tmp_path, place, question):
    # Right behind it, a measured row of the same question would hide a warm-up that was counted.
    warm = [{**row, "question_id": question} for row in ROWS_9 if row["phase"] == "warmup"]
    measured = [row for row in ROWS_9 if row["phase"] == "measured"]
    (group,) = read_results(write(tmp_path, [*warm, *measured] if place == "first" else [*measured, *warm])).groups
    assert overall(group, "method-x", "speedup").value == approx(2.2, abs=1e-9)
    assert overall(group, "autoregressive", "tokens_per_s").value == approx(350 / 11, abs=1e-9)
    assert overall(group, "method-x", "speedup").n == 3
    assert group.notes == ()


def test_case_10_no_baseline_is_a_reason_and_never_another_models(tmp_path):
    results = read_results(case("10"))
    first, second = results.groups
    assert overall(first, "method-x", "speedup").value == approx(2.0, abs=1e-9)
    assert overall(first, "autoregressive", "speedup").value == 1.0
    for method, rate in (("method-x", 30.0), ("method-y", 50.0)):
        assert overall(second, method, "tokens_per_s").value == approx(rate, abs=1e-9)
        assert overall(second, method, "speedup").value is None
        assert overall(second, method, "speedup").reason == "no autoregressive run for model-b"
    assert missing_reasons(results) == ("not ranked: method-x, method-y (no autoregressive run for model-b)",)
    text = markdown(results)
    assert text.count("no autoregressive run for model-b") == 1
    render(results, tmp_path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"new_tokens": None}, "no value"),
        ({"wall_time_s": float("nan")}, "not a number"),
        ({"new_tokens": 0}, "no tokens"),
        ({"tokens_per_s": None, "new_tokens": None, "wall_time_s": None}, "no value"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_baseline_without_speed_is_told_as_the_baselines_lack(tmp_path, change, why, named):
    rows = [json.loads(line) for line in case("10").read_text(encoding="utf-8").splitlines()]
    rows = [{**row, **(change if row["method"] == "autoregressive" else {})} for row in rows]
    if not named:
        rows = [{name: value for name, value in row.items() if name != "question_id"} for row in rows]
    results = read_results(write(tmp_path, rows))
    assert overall(results.groups[0], "method-x", "tokens_per_s").value == approx(60.0)
    assert overall(results.groups[0], "method-x", "speedup").reason == f"autoregressive run for model-a: {why}"
    assert overall(results.groups[0], "autoregressive", "speedup").reason == why
    assert missing_reasons(results) == (
        f"not ranked for model-a: autoregressive ({why})",
        f"not ranked: method-x (autoregressive run for model-a: {why})",
        "not ranked: method-x, method-y (no autoregressive run for model-b)",
    )


def test_a_baseline_that_says_nothing_of_speed_is_there_nevertheless(tmp_path):
    rows = [
        {"method": "autoregressive", "model": "m", "acceptance_length": 1.0},
        {"method": "x", "model": "m", "new_tokens": 10, "wall_time_s": 1.0},
    ]
    (group,) = read_results(write(tmp_path, rows)).groups
    assert overall(group, "x", "speedup").reason == "autoregressive run for m has no speed"


def test_case_12_order_and_ranks():
    (group,) = read_results(case("12")).groups
    places = [(s.method.method, s.method.overall["speedup"].value, s.rank) for s in standings(group, "speedup")]
    assert places == [
        ("beta", 10.2, 1),
        ("gamma", 9.8, 2),
        ("omega", 2.004, 3),
        ("alpha", 1.996, 4),
        ("zeta", 1.996, 4),
        ("kappa", 1.5, 6),
    ]


def test_case_13_missing_null_and_nan():
    (group,) = read_results(case("13")).groups
    places = [(s.method.method, s.rank, s.reason) for s in standings(group, "speedup")]
    assert places == [
        ("full", 1, ""),
        ("slow", 2, ""),
        ("has-nan", None, "2 of 3 domains"),
        ("has-null", None, "2 of 3 domains"),
        ("partial", None, "2 of 3 domains"),
    ]
    assert overall(group, "full", "speedup").value == approx(2.0, abs=1e-12)
    assert overall(group, "slow", "speedup").value == approx(0.72 ** (1 / 3), abs=1e-12)
    assert overall(group, "slow", "speedup_mean_of_domains").value == approx(0.9, abs=1e-12)
    assert by_name(group)["has-nan"].domains["rag"].figures["speedup"].reason == "not a number"
    assert by_name(group)["has-null"].domains["rag"].figures["speedup"].reason == "no value"
    speed = boards(group)[0]
    math_column = [column.title for column in speed.columns].index("math_reasoning")
    assert {row.method: row.cells[math_column].text for row in speed.rows}["partial"] == "n/a"


def test_case_14_speeds_are_ranked_per_machine():
    results = read_results(case("14"))
    found = {
        group.hardware: [
            (s.method.method, s.method.overall["speedup"].value, s.rank) for s in standings(group, "speedup")
        ]
        for group in results.groups
    }
    assert found == {
        "gpu-a": [
            ("eagle", approx(2.8, abs=1e-9), 1),
            ("prompt-lookup", approx(1.6, abs=1e-9), 2),
            ("autoregressive", 1.0, 3),
        ],
        "gpu-b": [
            ("suffix-automaton", approx(2.6, abs=1e-9), 1),
            ("prompt-lookup", approx(1.5, abs=1e-9), 2),
            ("autoregressive", 1.0, 3),
        ],
        "gpu-c": [("token-recycling", None, None)],
    }
    assert missing_reasons(results) == ("not ranked: token-recycling (no autoregressive run on gpu-c)",)


def test_case_15_names_read_as_in_the_input(tmp_path):
    (group,) = read_results(case("15")).groups
    assert [method.method for method in group.methods] == [
        "SpS | 68m",
        "<script>alert(1)</script>",
        "A & B *fast* `k=4`",
        "two\nlines",
        "SP²ec – Ünïcode 方法",
    ]
    page = render(Results(groups=(group,)), tmp_path)[0].read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<b>a</b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_case_16_torn_line_is_dropped_and_the_last_of_a_doubled_question_counts(tmp_path):
    rows = [
        {"question_id": 1, "method": "method-x", "new_tokens": 100, "wall_time_s": 2.0},
        {"question_id": 2, "method": "method-x", "new_tokens": 100, "wall_time_s": 10.0},
        {"question_id": 2, "method": "method-x", "new_tokens": 100, "wall_time_s": 2.5},
        {"question_id": 3, "method": "method-x", "new_tokens": 60, "wall_time_s": 1.0},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows) + '{"question_id": 4, "method": "meth'
    (group,) = read_results(write(tmp_path, text)).groups
    assert overall(group, "method-x", "tokens_per_s").value == approx(260 / 5.5, abs=1e-9)
    assert overall(group, "method-x", "tokens_per_s_mean_of_samples").value == approx(50.0, abs=1e-9)
    assert group.notes == (
        "rows.jsonl: line 5 is unfinished and was dropped",
        "method-x: more than one row for question 2; the last one counts",
    )


LACKING = "no speed for 1 of 3 questions of autoregressive"


@pytest.mark.parametrize(
    "change", [None, {"new_tokens": 0}, {"wall_time_s": None}, {"new_tokens": float("nan")}, {"phase": "warm-up"}]
)
def test_a_method_that_lacks_a_question_of_the_baseline_has_no_speedup_and_no_rank(tmp_path, change):
    rows = [
        {**row, **(change or {})}
        if (row["method"], row["question_id"], row["phase"]) == ("method-x", 2, "measured")
        else row
        for row in ROWS_9
    ]
    rows = [row for row, old in zip(rows, ROWS_9, strict=True) if row is old or change]
    rows += [{**row, "method": "whole"} for row in ROWS_9 if row["method"] == "method-x"]
    results = read_results(write(tmp_path, rows))
    (group,) = results.groups
    names = ("speedup", "speedup_gm", "speedup_mor", "speedup_rom")
    assert {(overall(group, "method-x", name).value, overall(group, "method-x", name).reason) for name in names} == {
        (None, LACKING)
    }
    assert overall(group, "method-x", "tokens_per_s").value == approx(150 / 3)
    assert overall(group, "whole", "speedup").value == approx(2.2, abs=1e-9)
    ranks = {standing.method.method: standing.rank for standing in standings(group, "speedup")}
    assert ranks == {"whole": 1, "autoregressive": 2, "method-x": None}
    assert missing_reasons(results) == (f"not ranked: method-x ({LACKING})",)


def test_a_lacking_turn_is_a_lacking_question_where_both_name_their_turns(tmp_path):
    def rows(method, seconds, *turns):
        return [
            {"method": method, "question_id": 1, "turn": turn, "new_tokens": 10, "wall_time_s": seconds}
            for turn in turns
        ]

    whole = rows("autoregressive", 4.0, 1, 2) + rows("x", 2.0, 1, 2) + rows("y", 2.0, 1) + rows("z", 2.0, None)
    for row in whole:
        if row["turn"] is None:
            del row["turn"]
    (group,) = read_results(write(tmp_path, whole)).groups
    assert overall(group, "x", "speedup").value == approx(2.0)
    assert overall(group, "y", "speedup").reason == "no speed for 1 of 1 questions of autoregressive"
    assert overall(group, "z", "speedup").value == approx(2.0)


def test_questions_that_the_baseline_lacks_are_in_no_speedup_and_told(tmp_path):
    rows = [row for row in ROWS_9 if not (row["method"] == "autoregressive" and row["question_id"] == 2)]
    (group,) = read_results(write(tmp_path, rows)).groups
    figure = overall(group, "method-x", "speedup")
    assert figure.value == approx((6 / 150) / (3 / 150), abs=1e-12)
    assert figure.n == 2
    assert group.notes == ("method-x: 1 question is in no speedup, since autoregressive has no speed there",)


def test_the_pooled_speedup_is_totals_over_totals_over_all_domains(tmp_path):
    # Question 1 of one domain is another one than question 1 of the other.
    def rows(method, *cells):
        return [
            {"method": method, "question_id": 1, "category": name, "new_tokens": tokens, "wall_time_s": seconds}
            for name, tokens, seconds in cells
        ]

    base = rows("autoregressive", ("a", 100, 4.0), ("b", 300, 6.0))
    every = [*base, *rows("x", ("a", 110, 2.0), ("b", 290, 5.0)), *rows("y", ("b", 300, 3.0))]
    (group,) = read_results(write(tmp_path, every)).groups
    pooled = overall(group, "x", "speedup_pooled")
    assert (pooled.value, pooled.n) == (approx((10 / 400) / (7 / 400), abs=1e-12), 2)
    assert overall(group, "autoregressive", "speedup_pooled").value == 1.0
    assert overall(group, "y", "speedup_pooled").reason == "1 of 2 domains"
    # A domain in which the baseline has nothing leaves no overall figure of any name.
    (group,) = read_results(write(tmp_path, [row for row in every if row != base[1]])).groups
    assert overall(group, "x", "speedup_pooled") == overall(group, "x", "speedup")
    assert overall(group, "x", "speedup").reason == "1 of 2 domains"


def test_no_sample_in_common_is_a_reason(tmp_path):
    rows = [
        {"method": "autoregressive", "question_id": 1, "new_tokens": 10, "wall_time_s": 1.0},
        {"method": "x", "question_id": 2, "new_tokens": 10, "wall_time_s": 1.0},
    ]
    (group,) = read_results(write(tmp_path, rows)).groups
    assert overall(group, "x", "speedup").reason == "no sample in common with autoregressive"


def test_overall_is_the_geometric_mean_and_needs_every_domain(tmp_path):
    def rows(method, **seconds):
        return [
            {"method": method, "question_id": f"{c}", "category": c, "new_tokens": 10, "wall_time_s": s}
            for c, s in seconds.items()
        ]

    every = rows("autoregressive", a=8.0, b=8.0) + rows("x", a=1.0, b=4.0) + rows("y", a=1.0)
    (group,) = read_results(write(tmp_path, every)).groups
    assert overall(group, "x", "speedup").value == approx(4.0, abs=1e-12)
    assert overall(group, "x", "speedup").n == 2
    assert overall(group, "y", "speedup").reason == "1 of 2 domains"


def test_acceptance_means_without_steps_are_not_pooled(tmp_path):
    rows = [{"method": "x", "question_id": q, "mean_acceptance_length": a} for q, a in ((1, 2.0), (2, 4.0))]
    (group,) = read_results(write(tmp_path, rows)).groups
    assert overall(group, "x", "acceptance_length").value is None
    assert overall(group, "x", "acceptance_length").reason
    assert overall(group, "x", "acceptance_length_mean_of_samples").value == 3.0


def test_rates_without_token_counts_are_noted(tmp_path):
    rows = [
        {"method": method, "question_id": q, "tokens_per_s": rate}
        for method, rates in (("autoregressive", (10.0, 30.0)), ("x", (20.0, 60.0)))
        for q, rate in enumerate(rates)
    ]
    (group,) = read_results(write(tmp_path, rows)).groups
    assert overall(group, "x", "speedup").value == approx(2.0, abs=1e-12)
    assert group.notes == ("rows give tokens/s without token counts: each counts as equally many tokens",)


def test_rows_of_several_files_are_taken_together_and_groups_by_dtype_stay_apart(tmp_path):
    def row(method, seconds, dtype):
        return {"method": method, "dtype": dtype, "question_id": 1, "new_tokens": 10, "wall_time_s": seconds}

    first = write(tmp_path, [row("autoregressive", 4.0, "bf16"), row("autoregressive", 9.0, "fp32")], "a.jsonl")
    second = write(tmp_path, [row("x", 2.0, "bf16")], "b.jsonl")
    groups = read_results(first, second).groups
    assert [group.conditions["dtype"] for group in groups] == ["bf16", "fp32"]
    assert overall(groups[0], "x", "speedup").value == 2.0
    assert groups[0].conditions["source"] == "a.jsonl, b.jsonl"
    assert "x" not in by_name(groups[1])


def test_byte_order_mark_crlf_and_line_separators_are_read(tmp_path):
    path = tmp_path / "rows.jsonl"
    line = '{"method": "a\u2028b", "speedup": 2.0}'
    path.write_bytes(("\ufeff" + line + "\r\n\r\n").encode("utf-8"))
    (group,) = read_results(path).groups
    assert [method.method for method in group.methods] == ["a\u2028b"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "x.jsonl",
            '{"method": "a", "speedup": 1}\n{broken\n{"method": "b", "speedup": 1}\n',
            r"x\.jsonl:2: ",
        ),
        ("x.json", '{"rows": [\n{"method": }]}', r"x\.json:2: is not valid JSON"),
        ("x.json", '{"something": 1}', "holds neither `rows` nor `groups`"),
        ("x.json", '{"rows": 3}', "`rows` is not a list"),
        ("x.json", '{"rows": []}', "no measured row"),
        ("x.json", '{"rows": [{"method": "a", "speedup": "fast"}]}', "row 1: `speedup` has to be a number"),
        ("x.json", '{"rows": [{"method": "a", "speedup": -1}]}', "row 1: `speedup` has to be above 0"),
        ("x.json", '{"rows": [{"method": "a", "speedup": true}]}', "row 1: `speedup` has to be a number"),
        ("x.json", '{"rows": [{"speedup": 1}]}', "row 1: `method` is missing"),
        ("x.json", '{"rows": [{"method": "a"}]}', "row 1: no figure"),
        ("x.json", '{"rows": [3]}', "row 1: a row has to be an object"),
        ("x.json", '{"groups": [], "schema": 99}', "newer draftboard"),
        ("x.json", '{"groups": [{"model": 3}]}', "not a results document"),
        ("x.json", "[" * 100_000, "nested too deeply"),
        ("x.json", " \n", "is empty"),
        ("x.jsonl", '{"method": "a", "question_id": [1], "speedup": 1}\n', r"x\.jsonl:1: `question_id`"),
        ("x.jsonl", '{"method": "a", "tokens_per_step": [1, -1]}\n', r"x\.jsonl:1: `tokens_per_step`"),
    ],
)
def test_bad_files_are_refused_with_their_place(tmp_path, name, content, message):
    with pytest.raises(UserError, match=message):
        read_results(write(tmp_path, content, name))


def test_all_faulty_rows_are_told_at_once(tmp_path):
    path = write(tmp_path, [{"method": "a", "speedup": "x"}, {"method": "b", "speedup": 1.0}, {"speedup": 1.0}])
    with pytest.raises(UserError) as caught:
        read_results(path)
    assert [problem.split(": ")[0] for problem in caught.value.problems] == [f"{path}:1", f"{path}:3"]


def test_a_file_that_is_not_there_or_not_utf8_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"gone\.json: cannot be read"):
        read_results(tmp_path / "gone.json")
    (tmp_path / "latin.jsonl").write_bytes(b'{"method": "a"}\n{"method": "\xe9"}\n')
    with pytest.raises(UserError, match=r"latin\.jsonl:2: is not UTF-8"):
        read_results(tmp_path / "latin.jsonl")


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["autoregressive", "x", "y"]),
            st.integers(0, 3),
            st.sampled_from(["a", "b"]),
            st.integers(0, 50),
            st.floats(0.01, 100) | st.none() | st.just(float("nan")),
        ),
        min_size=1,
    )
)
def test_whatever_rows_say_the_baseline_is_one_and_no_figure_is_without_value_and_reason(rows):
    from draftboard.results_rows import RowFile, results_from_rows

    content = [
        {"method": m, "question_id": q, "category": c, "new_tokens": n, "wall_time_s": t} for m, q, c, n, t in rows
    ]
    groups = results_from_rows([RowFile(path=Path("x"), rows=tuple(enumerate(content)))])
    for method in groups[0].methods:
        figures = [*method.overall.values()]
        figures += [figure for domain in method.domains.values() for figure in domain.figures.values()]
        assert all((figure.value is None) == bool(figure.reason) for figure in figures)
        if method.method == "autoregressive" and method.overall["speedup"].value is not None:
            assert method.overall["speedup"].value == approx(1.0)


def test_the_documented_examples_can_be_read(tmp_path):
    text = (DATA.parent.parent / "docs" / "results-file.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(jsonl?)\n(.*?)```", text, flags=re.DOTALL)
    lines, rows, document = (
        read_results(write(tmp_path, content, f"{place}.{suffix}")) for place, (suffix, content) in enumerate(blocks)
    )
    assert overall(lines.groups[0], "pld", "speedup").value == approx(1.6, abs=1e-12)
    assert overall(rows.groups[0], "pld", "speedup").reason == "1 of 2 domains"
    assert [(s.rank, s.method.method) for s in standings(document.groups[0], "speedup")] == [(1, "pld")]


def test_nul_bytes_that_a_crash_left_are_skipped(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"method": "a", "speedup": 2.0}\n\0\0\0\n\0\0{"method": "b", "speedup": 3.0}\n')
    (group,) = read_results(path).groups
    assert [method.method for method in group.methods] == ["a", "b"]


def test_a_byte_order_mark_in_the_middle_is_named_and_drops_no_row(tmp_path):
    rows = [json.dumps({"method": name, "speedup": 2.0}) for name in "abc"]
    for place in (1, 2):
        marked = [("\ufeff" if index == place else "") + row for index, row in enumerate(rows)]
        # As when files with a mark each were joined; without a line end it might be taken for an unfinished line.
        with pytest.raises(UserError) as told:
            read_results(write(tmp_path, "\n".join(marked)))
        (problem,) = told.value.problems
        assert f"rows.jsonl:{place + 1}: a byte-order mark (U+FEFF) in the middle of the file, at column 1" in problem
    with pytest.raises(UserError, match=r"x\.json:2: .*byte-order mark \(U\+FEFF\)"):
        read_results(write(tmp_path, '{"rows": [\n \ufeff{"method": "a"}]}', "x.json"))


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.jsonl.gz"])
def test_gzip_files_are_named(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b'{"method": "a", "speedup": 2.0}\n'))
    with pytest.raises(UserError, match=rf"{name}: is gzip-compressed\nunpack it"):
        read_results(path)
