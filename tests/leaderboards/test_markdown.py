import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from draftboard.leaderboards import boards
from draftboard.leaderboards.markdown import markdown
from draftboard.results import Figure, Group, MethodResult, Results, Verdict

GOLDEN = Path(__file__).parent / "golden"


def check_golden(name, text):
    """Compare with the stored text; DRAFTBOARD_UPDATE_GOLDEN=1 stores it anew, to be read in the diff."""
    path = GOLDEN / name
    if os.environ.get("DRAFTBOARD_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8", newline="\n")
    assert text == path.read_text(encoding="utf-8")


def test_golden(board):
    check_golden("leaderboard.md", markdown(board))


def test_golden_of_layouts_and_details(spec_bench):
    check_golden("spec-bench.md", markdown(Results(groups=(spec_bench,))))


def test_details_open_on_demand_and_still_hold_tables(spec_bench):
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown(Results(groups=(spec_bench,))))
    blocks = [token.content.strip() for token in tokens if token.type == "html_block"]
    tables = [table for table in boards(spec_bench) if table.level == "detail"]
    assert blocks == [
        part for table in tables for part in ("<details>", f"<summary>{table.title}</summary>", "</details>")
    ]
    assert sum(token.type == "table_open" for token in tokens) == len(boards(spec_bench))


@pytest.mark.parametrize("name", ["board", "spec_bench"])
def test_each_row_of_a_table_has_as_many_columns_as_its_header(name, request):
    found = request.getfixturevalue(name)
    results = found if isinstance(found, Results) else Results(groups=(found,))
    for block in markdown(results).split("\n\n"):
        if block.startswith("|"):
            lines = block.strip().split("\n")
            assert len({len(re.split(r"(?<!\\)\|", line)) for line in lines}) == 1
            assert len(lines) >= 3


def test_a_time_stamp_stands_only_where_it_was_passed(board):
    stamped = markdown(board, generated="2026-01-01")
    assert stamped == markdown(board) + "\nGenerated 2026-01-01.\n"


def test_many_footnotes_are_numbered_to_the_end():
    methods = tuple(
        MethodResult(method=f"m{i:02}", overall={"speedup": Figure(value=None, reason=f"reason {i}")})
        for i in range(12)
    )
    text = markdown(Results(groups=(Group(model="m", hardware="", suite="", methods=methods),)))
    assert "| – | m11 | n/a¹² |" in text
    assert "- ¹² reason 11" in text


def test_no_groups_still_make_a_document():
    assert "No results." in markdown(Results(groups=()))


def test_what_keeps_a_group_from_a_claim_stands_directly_under_its_title(board):
    group = replace(board.groups[0], verdict=Verdict(valid=False, reasons=("x|y", "1 of 2 cells have not run")))
    blocks = markdown(Results(groups=(group,))).split("\n\n")
    assert blocks[1] == "## tiny · mini · cpu"
    assert blocks[2] == "> [!WARNING]\n> Not valid for claims: x\\|y; 1 of 2 cells have not run."
