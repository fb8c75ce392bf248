"""Text from outside, made safe to show: one line, no control characters, no formatting of the medium.

A method's name is whatever someone typed. It has to read as it was typed in every medium and must never act
there: not as markup, not as a formula, not as a terminal escape, not by turning round the direction of its
neighbours.
"""

import re
import unicodedata

__all__ = ["csv_text", "html_text", "latex_text", "markdown_text", "one_line", "terminal_text"]

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
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # babel gives the double quote a meaning in German and others.
    '"': r"\symbol{34}",
    "`": r"\textasciigrave{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "×": r"\ensuremath{\times}",
    "·": r"\textperiodcentered{}",
    "−": r"\ensuremath{-}",
    "≤": r"\ensuremath{\leq}",
    "≥": r"\ensuremath{\geq}",
    "≈": r"\ensuremath{\approx}",
    "→": r"\ensuremath{\to}",
    "Δ": r"\ensuremath{\Delta}",
    "α": r"\ensuremath{\alpha}",
    "β": r"\ensuremath{\beta}",
    "γ": r"\ensuremath{\gamma}",
    "τ": r"\ensuremath{\tau}",
}
_LIGATURE = re.compile("-(?=-)|,(?=,)|'(?=')")
_JOINERS = "\u200c\u200d"
"""Invisible, but letters of several scripts and emoji change with them."""
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


def latex_text(text: str) -> str:
    r"""Return `text` so that LaTeX typesets it literally, in a table cell, a caption or a list item.

    Characters that cannot be seen, such as direction marks, are written as their code points. A bracket or star in
    front is in braces, because `\\` before it would take it as its own argument. Needs LaTeX of 2020 or later;
    letters beyond Latin are left as they are, for XeLaTeX and LuaLaTeX.
    """
    plain = _LIGATURE.sub(lambda match: match[0] + "\0", one_line(text).strip())
    escaped = "".join(map(_latex_character, plain))
    return f"{{{escaped[0]}}}{escaped[1:]}" if escaped.startswith(("[", "*")) else escaped


def _latex_character(character: str) -> str:
    if character == "\0":  # no text holds it any more: it marks where two characters must not become one
        return "{}"
    if character == "\ufffd" or (unicodedata.category(character) == "Cf" and character not in _JOINERS):
        return rf"\texttt{{(U+{ord(character):04X})}}"
    return _LATEX.get(character, character)


def csv_text(text: str) -> str:
    """Return `text` for a CSV cell; a quote in front keeps spreadsheets from taking it for a formula."""
    plain = one_line(text)
    return f"'{plain}" if plain.lstrip().startswith(_FORMULA_STARTS) else plain


def terminal_text(text: str) -> str:
    """Return `text` for a terminal, where direction marks would turn round the line: they become U+FFFD."""
    return _DIRECTION.sub("\ufffd", one_line(text))
