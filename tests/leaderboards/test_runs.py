from dataclasses import replace

import pytest

from draftboard.leaderboards.runs import side_by_side
from draftboard.results import Figure, Group, MethodResult, Results

CONDITIONS = {"dtype": "float32", "weights": "abc", "suite hash": "s 123", "software": "torch 1"}


def run(*methods, **other):
    made = tuple(
        MethodResult(
            method=name, overall={"speedup": Figure(value=speedup), "tokens_per_s": Figure(value=10 * speedup)}
        )
        for name, speedup in methods
    )
    return Group(**{"model": "m", "hardware": "h", "suite": "s", "conditions": CONDITIONS, "methods": made} | other)


def tables(*groups):
    return side_by_side(Results(groups=groups), [f"m · run {number}" for number in range(1, len(groups) + 1)])


def test_runs_under_the_same_conditions_stand_side_by_side_and_are_not_ranked():
    first, second = run(("autoregressive", 1.0), ("pld", 1.5)), run(("autoregressive", 1.0), ("samd", 2.0))
    (table,) = tables(first, run(("x", 3.0), hardware="other"), second)
    assert not table.ranked
    assert [(row.method, row.detail, row.rank, row.baseline) for row in table.rows] == [
        ("pld", "run 1", None, False),
        ("autoregressive", "run 1", None, True),
        ("samd", "run 3", None, False),
        ("autoregressive", "run 3", None, True),
    ]
    assert [column.title for column in table.columns] == ["Speedup, overall", "Tokens/s"]
    assert not any(cell.best for row in table.rows for cell in row.cells)
    assert table.caption.startswith("Not ranked")


@pytest.mark.parametrize("name", ["dtype", "weights", "suite hash", "software"])
def test_any_condition_that_differs_keeps_runs_apart(name):
    other = {**CONDITIONS, name: "another"}
    assert tables(run(("a", 1.0)), run(("a", 1.0), conditions=other)) == ()


@pytest.mark.parametrize("lacking", ["weights", "suite hash"])
def test_without_a_fingerprint_nobody_knows_whether_runs_are_alike(lacking):
    known = run(("a", 1.0))
    unknown = replace(known, conditions={name: text for name, text in CONDITIONS.items() if name != lacking})
    assert tables(unknown, unknown) == ()
    assert len(tables(known, known)) == 1
