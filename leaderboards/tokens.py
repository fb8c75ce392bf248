"""Text of single tokens, made visible: blanks, line ends and what cannot be seen have a sign of their own."""

import re
import unicodedata

from draftboard.leaderboards.text import html_text

__all__ = ["lines_html", "token_html"]

_ISOLATE = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Direction controls that reach beyond their token: they are shown and never obeyed."""
_BREAK = re.compile("\r\n?|[\n\x0b\x0c\x85\u2028\u2029]")
_SIGNS = {"\n": "↵", "\t": "⇥", "\r": "␍", "\xa0": "⍽"}


def token_html(text: str) -> str:
    """Return a token's text as markup of ours: signs stand in `<i>`, a line end is also a line end.

    A blank has a sign where it would not be seen: alone, doubled, or at the end of its token.
    """
    unseen = all(character.isspace() or _is_format(character) for character in text)
    found: list[str] = []
    for index, character in enumerate(text):
        behind = text[index + 1 : index + 2]
        if character == "\n":
            found.append(f"{_sign('↵')}\n")
        elif character == " ":
            found.append(_sign("·") if unseen or not behind or behind.isspace() else " ")
        elif character in _SIGNS:
            found.append(_sign(_SIGNS[character]))
        elif _ISOLATE.match(character) or unicodedata.category(character) in ("Cc", "Zl", "Zp") or unseen:
            found.append(_sign(f"U+{ord(character):04X}"))
        else:
            found.append(html_text(character))
    return "".join(found)


def lines_html(text: str) -> str:
    """Return a text of several lines, escaped; its line ends stay."""
    plain = _ISOLATE.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)
    return "\n".join(map(html_text, _BREAK.split(plain)))


def _is_format(character: str) -> bool:
    return unicodedata.category(character) == "Cf"


def _sign(text: str) -> str:
    return f"<i>{text}</i>"
