"""Tables on narrow terminals: what fits is whole, what does not fit is named, no footnote stands without its mark."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from draftboard.leaderboards import terminal_table
from draftboard.leaderboards.terminal import _fold
from draftboard.results import DomainResult, Figure, Group, MethodResult, Verdict

DOMAINS = ("spec_bench/math_reasoning", "spec_bench/summarization", "speed_bench/humanities")
NAMES = ("autoregressive", "pld", "samd[token_recycling]", "token_recycling", "samd[none]")


def printed(group, width=80, **how):
    with open("/dev/null", "w") as nowhere:  # noqa: PTH123
        console = Console(width=width, record=True, file=nowhere)
        console.print(terminal_table(group, **how))
        return console.export_text()


def group_of(names=NAMES, domains=DOMAINS, **about):
    methods = tuple(
        MethodResult(
            method=name,
            output="" if name == "autoregressive" else "identical",
            lossless=True,
            overall={
                "speedup": Figure(value=1.25, n=17),
                "acceptance_length": Figure(value=1.5, n=17),
                "acceptance_rate": Figure(value=None, reason="nothing was drafted"),
                "tokens_per_s": Figure(value=1234.5, n=17),
                "ttft_s": Figure(value=0.5512, n=17),
                "speedup_decode": Figure(value=None, reason="every answer ended with its first emission"),
            },
            domains={
                domain: DomainResult(domain=domain, figures={"speedup": Figure(value=1.25, n=1)}) for domain in domains
            },
        )
        for name in names
    )
    return Group(model="tiny", hardware="cpu", suite="mini", domains=domains, methods=methods, **about)


def test_the_ranking_fits_into_80_columns():
    text = printed(group_of(), headline_only=True)
    assert "continued" not in text
    assert "left out" not in text
    assert all(title in text for title in ("Overall", "Output", "Tokens/s", "TTFT"))
    assert max(map(cell_len, text.splitlines())) <= 80


@pytest.mark.parametrize("how", [{}, {"every": True}])
def test_names_break_only_where_a_reader_would(how):
    text = printed(group_of(), **how)
    parts = [part for name in (*NAMES, *DOMAINS) for part in re.split(r"(?<=[/_])|(?=\[)", name)]
    assert [part for part in parts if part not in text] == []


def test_columns_that_do_not_fit_are_counted_and_named():
    text = printed(group_of(), width=56)
    assert "continued" not in text
    told = " ".join(text.split())
    assert re.search(r"\d columns left out for want of width \([^)]*Tokens/s, TTFT \(ms\)\): widen the terminal", told)
    assert "TTFT" not in text[: text.index("left out")]
    assert "use show --all, --json or render" in told
    assert "left out" not in printed(group_of(), width=200)


def test_methods_that_do_not_fit_beside_the_domains_are_named():
    many = group_of(tuple(f"method_{index:02}" for index in range(12)))
    text = printed(many)
    by_domain = text[text.index("Speed by domain") :]
    left = re.search(r"(\d+) columns left out for want of width \(([^)]*)\)", " ".join(by_domain.split()))
    assert int(left[1]) == len(left[2].split(", ")) > 0
    assert "method_11" in left[2]
    row = next(line for line in by_domain.splitlines() if "1.25×" in line)
    assert row.count("1.25×") + int(left[1]) == 12


def test_asked_for_everything_a_table_goes_on_below_in_equal_shares():
    many = group_of(tuple(f"method_{index:02}" for index in range(9)))
    text = printed(many, every=True)
    assert "left out" not in text
    by_domain = text[text.index("Speed by domain") :]
    parts = re.split("Speed by domain(?:, continued)?", by_domain)[1:]
    rows = [next(line for line in part.splitlines() if "1.25×" in line) for part in parts]
    counts = [row.count("1.25×") for row in rows]
    assert sum(counts) == 9
    assert max(counts) - min(counts) <= len(counts) - 1
    assert min(counts) > 1


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("every", [True, False])
def test_every_footnote_has_its_mark_and_every_mark_its_footnote(width, every):
    text = printed(group_of(), width=width, every=every)
    blocks = re.split(r"^(?=Speed +$|Acceptance)", text, flags=re.MULTILINE)
    for block in blocks:
        notes = set(re.findall(r"^\[(\d+)\]", block, re.MULTILINE))
        marks = set(re.findall(r"n/a \[(\d+)\]", block))
        assert notes == marks, block
        assert notes == {str(number) for number in range(1, len(notes) + 1)}
    # A figure that only the whole table has leaves no reason behind.
    assert ("every answer ended with its" in " ".join(text.split())) == every


def test_what_keeps_a_run_from_a_claim_is_the_first_line_under_the_title():
    group = group_of(verdict=Verdict(valid=False, reasons=("only 3 samples",)), notes=("a note",))
    for how in ({}, {"headline_only": True}):
        lines = printed(group, **how).splitlines()
        assert lines[:2] == ["tiny · mini · cpu", "Not valid for claims: only 3 samples."]
        assert sum("Not valid" in line for line in lines) == 1


def test_a_long_footnote_breaks_between_its_parts():
    signature = "|".join(f"part{index}:value-{index}" for index in range(12))
    figure = Figure(value=0.5, n=2, signature=signature)
    method = MethodResult(method="x", domains={"d": DomainResult(domain="d", figures={"bleu": figure})})
    group = replace(group_of(), domains=("d",), methods=(method,))
    lines = printed(group, width=60).splitlines()
    told = [line for line in lines if "part" in line]
    assert "".join(told).removeprefix("[1] ") == signature
    assert all(line.endswith("|") for line in told[:-1])


@settings(max_examples=200)
@given(st.text(st.sampled_from("ab/_-[]() |,漢é"), max_size=40), st.integers(1, 12))
def test_folding_keeps_the_text_and_the_width(text, width):
    lines = _fold(Text(text), width).plain.split("\n")
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(cell_len(line) <= max(width, 2) for line in lines)
