"""Acceptance by position: what deep places rest on is said, and no place is shown that nobody reached."""

import pytest

from draftboard.results import Figure, Group, MethodResult


def shares(*counts):
    return tuple(Figure(value=0.9**place, n=n) for place, n in enumerate(counts, start=1))


def group_of(**positions):
    methods = tuple(MethodResult(method=name, positions=kinds) for name, kinds in positions.items())
    return Group(model="m", hardware="h", suite="s", methods=methods)


def places(table):
    return [column.title for column in table.columns]


def test_each_way_of_counting_is_a_row_with_its_n(spec_bench, table_of):
    table = table_of(spec_bench, "positions")
    assert [(row.method, row.detail) for row in table.rows] == [
        ("eagle2", "joint"),
        ("eagle2", "conditional"),
        ("eagle2", "vLLM"),
    ]
    assert places(table) == ["1", "2", "3", "4", "5"]
    cell = table.rows[0].cells[1]
    assert (cell.text, cell.detail, cell.faint) == ("0.80", "n=250", False)


def test_few_steps_are_faint_and_named_survivors(spec_bench, table_of, notes_of):
    table = table_of(spec_bench, "positions")
    joint = table.rows[0].cells
    assert [cell.faint for cell in joint] == [False, False, False, True, True]
    assert notes_of(table, joint[3]) == ["fewer than 30 steps came this far: survivors of easy stretches"]


def test_a_place_without_a_value_says_why(spec_bench, table_of, notes_of):
    table = table_of(spec_bench, "positions")
    conditional = table.rows[1].cells
    assert notes_of(table, conditional[1]) == ["no step came this far"]
    assert notes_of(table, conditional[2]) == ["nothing drafted this far, or not recorded"]
    assert {cell.text for cell in conditional[1:]} == {"n/a"}


@pytest.mark.parametrize(
    ("counts", "last", "told"),
    [
        ([1000] * 40, "12", "Positions 13 to 40 are in leaderboard.json."),
        ([1000] * 10 + [5] * 10, "10", "Positions 11 to 20 are in leaderboard.json."),
        ([9] * 20, "8", "Positions 9 to 20 are in leaderboard.json."),
        ([9] * 3, "3", ""),
    ],
)
def test_deep_places_are_left_to_the_file(counts, last, told, table_of):
    table = table_of(group_of(x={"joint": shares(*counts)}), "positions")
    assert places(table)[-1] == last
    assert told in table.caption
    assert ("leaderboard.json" in table.caption) is bool(told)


def test_vllms_shares_are_left_out_where_they_are_the_joint_ones(table_of):
    same = group_of(x={"joint": shares(50, 50), "vllm": shares(50, 50)})
    assert [row.detail for row in table_of(same, "positions").rows] == ["joint"]
    alone = group_of(x={"vllm": shares(50, 50)})
    table = table_of(alone, "positions")
    assert [row.detail for row in table.rows] == ["vLLM"]
    assert table.caption.startswith("Share of drafted tokens accepted at each position; vLLM: accepted to here")
    assert "joint" not in table.caption


def test_rates_over_all_steps_stand_beside_the_joint_ones_where_they_differ(table_of):
    other = tuple(Figure(value=0.5**place, n=80) for place in (1, 2))
    table = table_of(group_of(x={"joint": shares(50, 50), "all_steps": other, "vllm": other}), "positions")
    assert [row.detail for row in table.rows] == ["joint", "over all steps", "vLLM"]
    assert "over all steps: accepted and kept to here, of all steps, those without a draft included" in table.caption
    same = group_of(x={"joint": shares(50, 50), "all_steps": shares(50, 50)})
    assert [row.detail for row in table_of(same, "positions").rows] == ["joint"]


@pytest.mark.parametrize("kinds", [{}, {"joint": ()}, {"joint": (Figure(value=None, n=0, reason="nothing drafted"),)}])
def test_nothing_drafted_makes_no_table(kinds, table_of):
    assert table_of(group_of(x=kinds), "positions") is None


def test_how_a_rate_was_computed_is_told(table_of):
    told = "over all steps: how far each drafted was not recorded"
    known = shares(100, 50)
    figures = tuple(Figure(value=figure.value, n=figure.n, signature=told) for figure in known)
    table = table_of(group_of(theirs={"joint": figures}, ours={"joint": known}), "positions")
    notes = {row.method: [table.footnotes[number - 1] for number in row.notes] for row in table.rows}
    assert notes == {"theirs": [told], "ours": []}
