import csv
import io
import json
import math
from dataclasses import replace

import pyarrow.parquet

from draftboard.leaderboards.export import CSV_COLUMNS, csv_document, json_document, parquet_document
from draftboard.results import Figure, Group, Interval, MethodResult, Results
from draftboard.results_file import read_results


def strict(data):
    def refuse(constant):
        raise AssertionError(f"bare {constant}")

    return json.loads(data, parse_constant=refuse)


def rows_of(results):
    return list(csv.DictReader(io.StringIO(csv_document(results).decode("utf-8"), newline="")))


def test_json_reads_back_as_the_same_results(board, tmp_path):
    path = tmp_path / "leaderboard.json"
    path.write_bytes(json_document(board))
    assert read_results(path) == board


def test_json_is_strict_and_says_why_a_value_is_missing():
    odd = MethodResult(
        method="\ud800 odd",
        overall={
            "speedup": Figure(value=math.nan),
            "ttft_s": Figure(value=1.0, interval=Interval(low=0.0, high=math.inf)),
        },
        settings={"threshold": math.inf, "nested": [math.nan, 1]},
    )
    data = strict(json_document(Results(groups=(Group(model="m", hardware="h", suite="s", methods=(odd,)),))))
    (method,) = data["groups"][0]["methods"]
    assert method["method"] == "\ud800 odd"
    assert method["overall"]["speedup"]["value"] is None
    assert method["overall"]["speedup"]["reason"] == "not a number"
    assert method["overall"]["ttft_s"]["interval"] is None
    assert method["settings"] == {"threshold": None, "nested": [None, 1]}


def test_json_holds_schema_and_ranks(board):
    data = strict(json_document(board))
    assert (data["format"], data["schema"]) == ("draftboard-results", 1)
    ranks = {method["method"]: method["rank"] for method in data["groups"][0]["methods"]}
    assert ranks == {
        "tss[pld]": 1,
        "a|b*c*": 2,
        "samd[token_recycling]": 2,
        "autoregressive": 4,
        "partial": None,
    }
    assert data["groups"][0]["ranked_by"] == "speedup"


def test_csv_has_one_row_per_figure_with_the_unrounded_value(board):
    rows = rows_of(board)
    assert tuple(rows[0]) == CSV_COLUMNS
    figures = sum(
        len(method.overall) + sum(len(domain.figures) for domain in method.domains.values())
        for method in board.groups[0].methods
    )
    assert len(rows) == figures
    (row,) = [r for r in rows if (r["method"], r["domain"], r["metric"]) == ("tss[pld]", "qa", "speedup")]
    assert (row["value"], row["n"], row["rank"], row["scope"], row["unit"]) == (
        "2.004",
        "40",
        "1",
        "domain",
        "×",
    )
    (row,) = [r for r in rows if (r["method"], r["scope"], r["metric"]) == ("partial", "overall", "speedup")]
    assert (row["value"], row["rank"], row["reason"]) == ("", "", "1 of 2 domains")


def test_csv_text_is_no_formula_and_stays_on_one_line(board):
    group = board.groups[0]
    hostile = replace(group, model="=1+1", methods=(replace(group.methods[0], method="@x\n-1"),), baseline="+a")
    text = csv_document(Results(groups=(hostile,))).decode("utf-8")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert {len(row) for row in rows} == {len(CSV_COLUMNS)}
    assert {row[1] for row in rows[1:]} == {"'=1+1"}
    assert {row[5] for row in rows[1:]} == {"'@x -1"}
    assert text.count("\n") == len(rows)


def test_csv_holds_positions_and_counts(spec_bench):
    rows = rows_of(Results(groups=(spec_bench,)))
    joint = {r["metric"]: (r["value"], r["n"]) for r in rows if r["metric"].startswith("position/joint/")}
    assert list(joint) == [f"position/joint/{place}" for place in range(1, 6)]
    assert joint["position/joint/1"] == ("0.9", "1000")
    missing = next(r for r in rows if r["metric"] == "position/conditional/2")
    assert (missing["value"], missing["reason"]) == ("", "no step came this far")
    counts = {(r["method"], r["metric"]): r["value"] for r in rows if r["metric"].startswith("count/")}
    assert counts["tss[pld]", "count/unparsed"] == "10"
    assert counts["autoregressive", "count/rule:stated"] == "18"
    details = {r["metric"] for r in rows if r["scope"] == "domain"}
    assert {"unparsed_rate", "bleu_clean", "mean_words", "speedup_specbench"} <= details


def test_json_holds_positions_and_counts(spec_bench):
    data = strict(json_document(Results(groups=(spec_bench,))))
    methods = {method["method"]: method for method in data["groups"][0]["methods"]}
    assert methods["eagle2"]["positions"]["joint"][1]["n"] == 250
    assert methods["tss[pld]"]["domains"]["math_reasoning"]["score_counts"]["rule:boxed"] == 70


def parquet_rows(results):
    return pyarrow.parquet.read_table(io.BytesIO(parquet_document(results)))


def test_parquet_has_the_rows_of_the_csv_with_typed_columns(spec_bench):
    table, rows = parquet_rows(Results(groups=(spec_bench,))), rows_of(Results(groups=(spec_bench,)))
    assert tuple(table.column_names) == CSV_COLUMNS
    typed = {field.name: str(field.type) for field in table.schema}
    assert {name: typed[name] for name in ("value", "n", "rank", "method")} == {
        "value": "double",
        "n": "int64",
        "rank": "int64",
        "method": "string",
    }
    assert len(table) == len(rows) > 100
    for ours, row in zip(table.to_pylist(), rows, strict=True):
        assert (ours["method"], ours["domain"], ours["metric"], ours["reason"]) == (
            row["method"],
            row["domain"],
            row["metric"],
            row["reason"],
        )
        for name in ("value", "low", "high", "n", "rank"):
            assert ours[name] == (float(row[name]) if row[name] else None)


def test_parquet_holds_odd_text_and_numbers():
    odd = MethodResult(
        method="=1+1 \ud800\n2",
        overall={"speedup": Figure(value=1.5, n=10**30), "ttft_s": Figure(value=math.inf)},
    )
    first, second = parquet_rows(Results(groups=(Group(model="", hardware="", suite="", methods=(odd,)),))).to_pylist()
    assert (first["method"], first["value"], first["n"]) == ("=1+1 \ufffd 2", 1.5, None)
    assert (second["value"], second["reason"]) == (None, "not a number")


def test_parquet_without_any_figure_still_has_its_columns():
    table = parquet_rows(Results(groups=()))
    assert (tuple(table.column_names), len(table)) == (CSV_COLUMNS, 0)
