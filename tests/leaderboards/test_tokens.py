import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.leaderboards.tokens import lines_html, token_html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" the", " the"),
        (" ", "<i>·</i>"),
        ("   ", "<i>·</i>" * 3),
        ("  in", "<i>·</i> in"),
        ("end ", "end<i>·</i>"),
        ("a b", "a b"),
        ("\n", "<i>↵</i>\n"),
        (".\n\n", ".<i>↵</i>\n<i>↵</i>\n"),
        ("\t", "<i>⇥</i>"),
        ("\0", "<i>U+0000</i>"),
        ("\u200b", "<i>U+200B</i>"),
        ("\u2028", "<i>U+2028</i>"),
        ("\u202eabc", "<i>U+202E</i>abc"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("مرحبا", "مرحبا"),
        ("你好", "你好"),
        ("<b>&", "&lt;b&gt;&amp;"),
        ("", ""),
    ],
)
def test_what_cannot_be_seen_has_a_sign(text, shown):
    assert token_html(text) == shown


@given(st.text(max_size=12))
def test_a_token_adds_no_markup_and_no_direction(text):
    shown = token_html(text)
    assert re.fullmatch(r"(?:[^<>&]|&[#\w]+;|<i>[^<>&]+</i>)*", shown)
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", shown)
    if text.strip() or text:
        assert any(not character.isspace() and unicodedata.category(character) != "Cf" for character in shown)


def test_lines_stay_lines():
    assert lines_html("a<b>\r\nb\u202e\n\nc") == "a&lt;b&gt;\nb[U+202E]\n\nc"
