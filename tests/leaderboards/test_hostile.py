"""Names that would act if a renderer let them, in every place that takes a text from outside, in every medium."""

import csv
import functools
import io
import re

import pytest
from markdown_it import MarkdownIt

from draftboard.leaderboards.export import csv_document
from draftboard.leaderboards.html import html
from draftboard.leaderboards.latex import latex
from draftboard.leaderboards.markdown import markdown, spec_bench_markdown
from draftboard.leaderboards.text import one_line
from draftboard.results import DomainResult, Figure, Group, Interval, MethodResult, Results, Verdict

from made_latex import check_latex

HOSTILE = (
    "{{7*7}}",
    "{% include 'x' %}",
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "![x](javascript:alert(1)) [y](javascript:alert(1))",
    "`a` ``` | b | \\| c",
    "\u202eabc\u2066\u200f",
    "zero\u200bwidth\ufeff",
    "nul\x00 bell\x07 \x1b[31mred",
    "y" * 300,
    "=1+1",
    "+1",
    "-1",
    "@sum",
    "\t=1",
    "\\input{/etc/passwd}",
    "\\write18{ls} \\end{tabular} ^^5cinput",
    "[2pt] $x$ & y \\\\ % z",
    "two\r\nlines",
)


def results_with(text):
    """Results that have the text in every place that a name, a note or a value of a file can come from."""
    figure = Figure(value=2.0, n=3, interval=Interval(low=1.0, high=3.0), signature=text)
    missing = Figure(value=None, reason=text)

    def method(name, **figures):
        bleu = {"bleu": figure, "accuracy": missing}
        return MethodResult(
            method=name,
            domains={text: DomainResult(domain=text, figures={"speedup": figure, **bleu}, samples=3)},
            overall={"speedup": figure, "acceptance_length": missing, **figures},
            output="lossy",
            settings={text: text, "deep": {text: [text]}},
            reference=text,
            notes=(text,),
            tied_with=("other",),
            artifact={"kind": text},
        )

    group = Group(
        model=text,
        hardware=text,
        suite=text,
        baseline=text,
        conditions={"dtype": text, text: text, "software": text},
        domains=(text,),
        methods=(method(text), method("other", ttft_s=missing)),
        notes=(text,),
        verdict=Verdict(valid=False, reasons=(text,)),
        environment={"cpu": {"model": text}, text: text},
    )
    return Results(groups=(group,), title=text)


@pytest.fixture(params=HOSTILE, ids=range(len(HOSTILE)))
def name(request):
    return request.param


@functools.cache
def harmless(render):
    return render(results_with("harmless"))


def test_html_has_the_tags_and_attributes_of_a_harmless_board(page, name):
    text = html(results_with(name))
    plain, hostile = page(harmless(html)), page(text)
    # Rows stand in name order, and headings may break behind the slashes and underscores of a name.
    assert set(hostile.tags) <= {*plain.tags, "wbr"}
    for tag in ("script", "style", "meta", "link", "img", "a", "b", "table", "tr", "td"):
        assert hostile.tags.count(tag) == plain.tags.count(tag), tag
    names = {attribute for _, attributes in plain.attributes for attribute in attributes}
    assert {attribute for _, attributes in hostile.attributes for attribute in attributes} <= names
    links = [attributes.get("href") or attributes.get("src") or "" for _, attributes in hostile.attributes]
    assert not [link for link in links if "javascript" in link]
    assert " ".join(one_line(name).split()) in " ".join("".join(hostile.texts).split())
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f]|[\u202a-\u202e\u2066-\u2069\u200f]", text)


@pytest.mark.parametrize("render", [markdown, spec_bench_markdown])
def test_markdown_has_the_blocks_of_a_harmless_board(render, name):
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

    def kinds(text):
        tokens = parser.parse(text)
        children = [child for token in tokens for child in token.children or ()]
        inline = {child.type for child in children} - {"text", "text_special"}
        blocks = [token.content for token in tokens if token.type == "html_block"]
        assert not [block for block in blocks if not re.fullmatch(r"</?(details|summary)[^\n]*", block.strip())]
        return [token.type for token in tokens], inline

    assert kinds(render(results_with(name))) == kinds(harmless(render))


def test_latex_has_its_own_commands_only(name):
    text = latex(results_with(name))
    check_latex(text)
    assert text.count(r"\begin{") == harmless(latex).count(r"\begin{")


def test_csv_has_its_columns_and_no_formula(name):
    def read(content):
        return list(csv.reader(io.StringIO(content.decode("utf-8"), newline="")))

    rows, plain = read(csv_document(results_with(name))), read(harmless(csv_document))
    assert [len(row) for row in rows] == [len(row) for row in plain]
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
