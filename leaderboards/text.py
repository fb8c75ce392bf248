"""Text from outside, made safe to show: one line, no control characters, no formatting of the medium.

A method's name is whatever someone typed. It has to read as it was typed in every medium and must never act
there: not as markup, not as a formula, not as a terminal escape, not by turning round the direction of its
neighbours.
"""

import re

__all__ = ["csv_text", "html_text", "markdown_text", "one_line", "terminal_text"]

_BREAKS = re.compile("\r\n|[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"}
# What is harmless stays as it is, so that the source is readable, too: token_recycling, samd[eagle2]. An
# underscore between two letters never opens emphasis; brackets alone are no link, as no reference is ever
# defined.
_MARKDOWN = re.compile(
    r"[\\`*|~#$]"
    r"|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
    r"|\](?=[(\[:])|\[(?=\^)|^\["
    r"|:(?=//)|(?<=[Ww]{3})\."
    r"|^[-+=]"
)
_LIST_NUMBER = re.compile(r"^(\d{1,9})([.)])")
_FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def one_line(text: str) -> str:
    """Return `text` with each line break or tab as a blank and what no medium can hold as U+FFFD."""
    return _UNSHOWABLE.sub("\ufffd", _BREAKS.sub(" ", text))


def _numeric_reference(match: re.Match[str]) -> str:
    return f"&#x{ord(match[0]):X};"


def html_text(text: str) -> str:
    """Return `text` escaped for HTML text and quoted attributes; direction marks are inert in the source."""
    escaped = "".join(_HTML.get(character, character) for character in one_line(text))
    return _DIRECTION.sub(_numeric_reference, escaped)


def markdown_text(text: str) -> str:
    """Return `text` so that GitHub Markdown shows it literally: in a table cell, a list item or a heading."""
    escaped = one_line(text).strip().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    escaped = _MARKDOWN.sub(lambda match: "\\" + match[0], escaped).replace("@", "&#64;")
    escaped = _LIST_NUMBER.sub(r"\1\\\2", escaped)
    return _DIRECTION.sub(_numeric_reference, escaped)


def csv_text(text: str) -> str:
    """Return `text` for a CSV cell; a quote in front keeps spreadsheets from taking it for a formula."""
    plain = one_line(text)
    return f"'{plain}" if plain.lstrip().startswith(_FORMULA_STARTS) else plain


def terminal_text(text: str) -> str:
    """Return `text` for a terminal, where direction marks would turn round the line: they become U+FFFD."""
    return _DIRECTION.sub("\ufffd", one_line(text))
