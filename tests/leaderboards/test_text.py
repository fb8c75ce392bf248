import csv
import io
import re
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from draftboard.leaderboards.text import csv_text, html_text, latex_text, markdown_text, one_line, terminal_text

HOSTILE = [
    "SpS | 68m",
    "<script>alert(1)</script>",
    "A & B *fast* `k=4`",
    "two\nlines",
    "SP²ec – Ünïcode 方法",
    "**bold** __bold__ _it_ ~~gone~~ ~sub~",
    "[link](http://example.invalid) ![image](x.png) [a][b] [a]: http://example.invalid",
    "# heading #",
    "- item",
    "+ item",
    "1. item",
    "1234) item",
    "123456789. item",
    "> quote",
    "[x] task",
    "[^1] note",
    "@someone and a@b.example",
    "www.example.com https://example.com",
    "&lt;b&gt; &amp; &#124;",
    "\\| \\\\| \\",
    "``` fence",
    "--- rule",
    "===",
    "=cmd|' /C calc'!A0",
    "{{ 7*7 }} {% raw %} ${x} $x$",
    "\u202eright to left\u2069\u202c",
    "\x1b[31mred\x07",
    "x" * 300,
    "\ud800 lone",
    r"\input{/etc/passwd} \write18{ls} \end{tabular} \\\\ \foo",
    "[2pt] at the start of a row",
    "* at the start of a row",
    "``quotes'' ,, --- ?` !` ~^^41 \u201cx\u201d",
    "\u200bzero\u200dwidth\ufeff\xad",
    "![x](javascript:alert(1)) {% include 'x' %}",
    "</script><img src=x onerror=alert(1)>",
    "a_b __init__ token_recycling samd[eagle2] tss[samd[pld]]",
]
LATEX_MEANING = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\symbol{34}": '"',
    r"\textasciigrave{}": "`",
    r"\textendash{}": "–",
    r"\textemdash{}": "—",
    r"\textperiodcentered{}": "·",
    r"\ensuremath{\times}": "×",
    r"\ensuremath{-}": "−",
    r"\ensuremath{\leq}": "≤",
    r"\ensuremath{\geq}": "≥",
    r"\ensuremath{\approx}": "≈",
    r"\ensuremath{\to}": "→",
    r"\ensuremath{\Delta}": "Δ",
    r"\ensuremath{\alpha}": "α",
    r"\ensuremath{\beta}": "β",
    r"\ensuremath{\gamma}": "γ",
    r"\ensuremath{\tau}": "τ",
    "{}": "",
    "{[}": "[",
    "{*}": "*",
}
LATEX_TOKEN = re.compile(
    "|".join(map(re.escape, LATEX_MEANING))
    + r"|\\(?P<character>[{}&%$#_])|\\texttt\{(?P<plain>\(U\+[0-9A-F]+\))\}|(?P<other>[^\\{}&%$#_~^])"
)
ALPHABET = st.sampled_from("|*_`[]()<>&#@\\~!$:-+=.1 ab\n'\"^/") | st.characters()
NAMES = st.text(ALPHABET, max_size=30)


def seen(text):
    """What a reader sees of a text: unshowable characters replaced, outer and repeated blanks not visible."""
    return re.sub(r"\s+", " ", one_line(text)).strip()


class _Text(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.text, self.tags = "", []

    def handle_data(self, data):
        self.text += data

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)


def parsed(source):
    parser = _Text()
    parser.feed(source)
    parser.close()
    return parser


def flattened(tokens):
    for token in tokens:
        yield token
        yield from flattened(token.children or ())


def markdown_it():
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def hostile(test):
    for text in HOSTILE:
        test = example(text)(test)
    return given(NAMES)(test)


@hostile
def test_html_reads_back_as_the_same_text_without_any_tag(text):
    result = parsed(html_text(text))
    assert result.text == one_line(text)
    assert result.tags == []


@hostile
def test_html_is_inert_in_a_quoted_attribute(text):
    class Attribute(HTMLParser):
        def handle_starttag(self, tag, attrs):
            self.found = dict(attrs)

    parser = Attribute(convert_charrefs=True)
    parser.feed(f'<p title="{html_text(text)}">')
    assert parser.found == {"title": one_line(text)}


@hostile
def test_markdown_cell_reads_back_as_the_same_text_without_formatting(text):
    cell = markdown_text(text)
    source = f"| a | {cell} | b |\n| --- | --- | --- |\n| x | {cell} | y |\n"
    assert all(len(re.split(r"(?<!\\)(?:\\\\)*\|", line)) == 5 for line in source.strip().split("\n"))
    tokens = markdown_it().parse(source)
    kinds = {token.type for token in flattened(tokens) if token.type not in ("text", "text_special", "inline")}
    assert kinds <= {
        f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")
    }
    cells = [inline for inline in tokens if inline.type == "inline"]
    assert len(cells) == 6
    assert seen("".join(child.content for child in cells[4].children)) == seen(text)


@hostile
def test_markdown_reads_back_in_a_list_item_and_in_a_heading(text):
    for prefix, kinds in (("- ", {"bullet_list", "list_item", "paragraph"}), ("## ", {"heading"})):
        tokens = markdown_it().parse(f"{prefix}{markdown_text(text)}\n")
        found = {re.sub("_(open|close)$", "", token.type) for token in flattened(tokens)} - {"inline", "text"}
        assert found <= kinds | {"text_special"}
        shown = "".join(token.content for token in flattened(tokens) if token.type.startswith("text"))
        assert seen(shown) == seen(text)


@hostile
def test_latex_reads_back_as_the_same_text_and_knows_no_other_command(text):
    source = latex_text(text)
    assert typeset(source) == shown_in_latex(text)
    assert not source.startswith(("[", "*"))
    assert not re.search(r"--|,,|''|[`\"<>|~^]", source)


def typeset(source):
    """What LaTeX makes of the few commands that escaping may use; anything else that acts fails."""
    text = ""
    while source:
        match = LATEX_TOKEN.match(source)
        assert match, source
        text += LATEX_MEANING.get(match[0], match["character"] or match["plain"] or match["other"])
        source = source[match.end() :]
    return text


def shown_in_latex(text):
    """The text with what cannot be seen as its code point."""

    def visible(character):
        hidden = character == "\ufffd" or (unicodedata.category(character) == "Cf" and character not in "\u200c\u200d")
        return f"(U+{ord(character):04X})" if hidden else character

    return "".join(map(visible, one_line(text).strip()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("samd[token_recycling]", r"samd[token\_recycling]"),
        ("50 % & $x_1$ #2", r"50 \% \& \$x\_1\$ \#2"),
        (r"\write18{ls}", r"\textbackslash{}write18\{ls\}"),
        ("[x]", "{[}x]"),
        ("a\u202eb\x00", r"a\texttt{(U+202E)}b\texttt{(U+FFFD)}"),
        ("--no-flag", "-{}-no-flag"),
        ("2.0×", r"2.0\ensuremath{\times}"),
        ("方法", "方法"),
        ("", ""),
    ],
)
def test_latex_text(text, expected):
    assert latex_text(text) == expected


@hostile
def test_csv_cells_read_back_and_start_no_formula(text):
    sheet = io.StringIO(newline="")
    csv.writer(sheet, lineterminator="\n").writerow([csv_text(text), "next"])
    ((cell, after),) = csv.reader(io.StringIO(sheet.getvalue(), newline=""))
    assert after == "next"
    assert cell.removeprefix("'") == one_line(text).removeprefix("'")
    assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))


@pytest.mark.parametrize("text", ["token_recycling", "samd[eagle2]", "tss[samd[token_recycling]]", "llama-3.1-8b"])
def test_ordinary_names_stay_readable_as_markdown_source(text):
    assert markdown_text(text) == text


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "  =1", "\t=1", "＝1"])
def test_csv_text_is_no_formula(text):
    assert csv_text(text).startswith("'")


def test_csv_text_leaves_other_names_alone():
    assert csv_text("samd[eagle2] = 1") == "samd[eagle2] = 1"


@hostile
def test_terminal_text_holds_no_control_or_direction_character(text):
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", terminal_text(text))


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\u2028", "\u2029", "\x85", "\v", "\t"])
def test_a_line_break_becomes_one_blank(line_break):
    assert one_line(f"two{line_break}lines") == "two lines"
