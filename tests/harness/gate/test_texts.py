"""Reports in every form, whatever the names hold."""

import json
from xml.etree import ElementTree as Xml

import pytest
from rich.console import Console

from draftboard.gate import Rules, compare
from draftboard.gate.texts import document, headline, junit, lines_of, markdown, shown

from made_sides import one_turn, side

HOSTILE = [
    "a|b",
    "<script>alert(1)</script>",
    "{{7*7}}",
    "]]>&",
    "x\x00\x1b[31m\ufffe",
    "‮evil",
    "n" * 300,
    "a\nb",
    "**b**",
]


def report(label, *, slow=1.0):
    before, after = (
        side(
            name,
            {
                "autoregressive": {(f"s{i}", 0): [one_turn(2.0 + i)] for i in range(6)},
                label: {(f"s{i}", 0): [one_turn((1.0 + i) * pace)] for i in range(6)},
            },
        )
        for name, pace in (("before", 1.0), ("after", slow))
    )
    return compare(before, after, Rules())


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_labels_are_inert(label):
    found = report(label, slow=1.5)
    suite = Xml.fromstring(junit(found)).find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert len(suite.findall("testcase/failure")) == 1
    table = [line for line in markdown(found).splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1
    assert "<script" not in markdown(found)
    plain = json.loads(json.dumps(document(found), allow_nan=False))
    assert plain["checks"][1]["method"] == label
    assert plain["exit_code"] == 1


def test_the_failure_names_method_figure_and_interval():
    found = report("samd", slow=1.5)
    assert headline(found) == "FAILS: samd; passes: autoregressive"
    (line,) = [line for line in lines_of(found) if line.startswith("samd: ")]
    assert "speedup (pooled)" in line
    assert "95% interval" in line
    failure = Xml.fromstring(junit(found)).find("testsuite/testcase/failure")
    assert failure.text in line


def test_what_is_not_comparable_is_an_error_of_the_build():
    here = side("a", {"m": {("s", 0): [one_turn(1.0)]}}, conditions={"hardware": "a"})
    there = side("b", {"m": {("s", 0): [one_turn(1.0)]}}, conditions={"hardware": "b"})
    found = compare(here, there, Rules())
    suite = Xml.fromstring(junit(found)).find("testsuite")
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    assert suite.find("testcase/error").text == "hardware: a → b"
    assert "hardware: a → b" in markdown(found)
    assert document(found)["exit_code"] == 2


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_the_table_keeps_names_readable_at_every_width(width):
    found = report("token_recycling", slow=1.5)
    console = Console(width=width, color_system=None)
    with console.capture() as said:
        console.print(shown(found, width))
    lines = said.get().splitlines()
    assert max(map(len, lines)) <= width
    assert any(line.startswith("token_recycling") for line in lines)
    assert "-33.3%" in said.get()
    assert ("--json" in said.get()) == (width < 70)


def test_direction_marks_stay_out_of_the_terminal_and_of_junit():
    found = report("\u202eevil\n\u2066x", slow=1.5)
    console = Console(width=100, color_system=None)
    with console.capture() as said:
        console.print(shown(found, 100))
    for text in (said.get(), junit(found).decode("utf-8")):
        assert not {"\u202e", "\u2066"} & set(text)
        assert "evil" in text
