"""Text handling that scorers share: making text safe, cleaning chatty answers, words of any script."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

__all__ = [
    "clean",
    "main_language",
    "mostly_non_latin",
    "non_latin_share",
    "split_spaceless",
    "tidy",
    "unicode_tokens",
]

_SPACELESS = (
    (0x0E00, 0x0EFF, "th"),  # Thai and Lao
    (0x0F00, 0x0FFF, "bo"),
    (0x1000, 0x109F, "my"),
    (0x1780, 0x17FF, "km"),
    (0x3040, 0x30FF, "kana"),
    (0x3105, 0x312F, "han"),  # Bopomofo
    (0x31F0, 0x31FF, "kana"),
    (0x3400, 0x4DBF, "han"),
    (0x4E00, 0x9FFF, "han"),
    (0xF900, 0xFAFF, "han"),
    (0xFF66, 0xFF9F, "kana"),
    (0x20000, 0x3FFFF, "han"),
)
_HANGUL = ((0x1100, 0x11FF), (0x3130, 0x318F), (0xAC00, 0xD7FF))
_MOSTLY = 0.3
"""Share of letters from which a text counts as written in a script: low, since one Han letter is a word."""

_UNSAFE = re.compile("[\ud800-\udfff]")
_PARAGRAPH = re.compile(r"(?:\n[^\S\n]*\n|\u2029)\s*")
_EMPHASIS = "*_ \t\r"
# A colon between digits is a time or a ratio and introduces nothing.
_COLON = re.compile(r"(?<!\d):|:(?!\d)|：")
_TRANSLATION = re.compile(r"\btranslation\b", re.IGNORECASE)
_CLOSED_EMPHASIS = re.compile(r"^[*_]+")
_CLOSING = {
    **{mark: (mark,) for mark in "\"'`”’"},
    "“": ("”", "“"),
    "„": ("“", "”"),
    "‘": ("’",),
    "‚": ("‘", "’"),
    "«": ("»",),
    "»": ("«", "»"),
    "‹": ("›",),
    "›": ("‹", "›"),
    "「": ("」",),
    "『": ("』",),
}
_ASCII_WORD = re.compile("[a-z0-9]+")


def tidy(text: str) -> str:
    """Return text that every tokenizer accepts: lone surrogates become U+FFFD, NUL becomes a blank."""
    return _UNSAFE.sub("\ufffd", text).replace("\0", " ")


def clean(text: str) -> str:
    """Return the answer proper of a chatty translation or one-sentence summary (the `clean` variant).

    The first paragraph, or the second if the first ends in a colon; of "… translation …: X" only X; without
    one pair of enclosing quotation marks. Emphasis of Markdown around such a colon does not hide it. The result
    is always a piece of the text, and never empty unless the text is.
    """
    paragraphs = _PARAGRAPH.split(text.strip())
    kept = paragraphs[0]
    if kept.rstrip(_EMPHASIS).endswith((":", "：")) and len(paragraphs) > 1:
        kept = paragraphs[1]
    return _unquoted(_after_introduction(kept.strip()))


def _after_introduction(text: str) -> str:
    """Return X of "… translation …: X", or the text itself where it has no such form or X no letter."""
    colon = _COLON.search(text)
    if colon is None or not _TRANSLATION.search(text, 0, colon.start()):
        return text
    rest = text[colon.end() :]
    if not any(char.isalnum() for char in rest):
        return text
    return _CLOSED_EMPHASIS.sub("", rest, count=1).strip()


def _unquoted(text: str) -> str:
    """Drop the quotation marks that enclose the whole text, if the same pair does both."""
    if len(text) < 2 or text[-1] not in _CLOSING.get(text[0], ()):
        return text
    opening, closing, inner = text[0], text[-1], text[1:-1]
    depth = 1
    for place, char in enumerate(inner, 1):
        if char == closing and not _apostrophe(text, place):
            depth -= 1
        elif char == opening and not _apostrophe(text, place):
            depth += 1
        if depth == 0:  # `"Yes," he said, "now."` begins and ends with a mark, but no pair encloses it.
            return text
    return inner.strip() or text


def _apostrophe(text: str, place: int) -> bool:
    return text[place] in "'’‘" and text[place - 1].isalnum() and text[place + 1 : place + 2].isalnum()


def _script(char: str) -> str:
    point = ord(char)
    if point < 0x0E00:
        return ""
    for low, high, name in _SPACELESS:
        if low <= point <= high:
            return name
    return "hangul" if any(low <= point <= high for low, high in _HANGUL) else ""


def unicode_tokens(text: str) -> list[str]:
    """Split text of any script into lower-case words (NFKC); scripts written without blanks give letters.

    A word is a run of letters and digits with their combining marks; everything else separates.
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    tokens: list[str] = []
    open_word = False
    for char in unicodedata.normalize("NFKC", text).lower():
        kind = unicodedata.category(char)[0]
        if kind == "M" and tokens:
            tokens[-1] += char
        elif kind in "LN":
            alone = _script(char) not in ("", "hangul")
            if open_word and not alone:
                tokens[-1] += char
            else:
                tokens.append(char)
            open_word = not alone
        elif char not in "\u200c\u200d":  # joiners stand inside words
            open_word = False
    return tokens


def split_spaceless(text: str) -> str:
    """Set blanks around letters of scripts that are written without them; CJK punctuation becomes a blank."""
    if text.isascii():
        return text
    parts: list[str] = []
    for char in text:
        if "\u3000" <= char <= "\u303f":
            parts.append(" ")
        elif _script(char) not in ("", "hangul"):
            parts.append(char if unicodedata.category(char)[0] == "M" else f" {char}")
        else:
            # The blank after the last letter of a run.
            parts.append(f" {char}" if parts and _script(parts[-1][-1]) not in ("", "hangul") else char)
    return "".join(parts)


def non_latin_share(text: str) -> float:
    """Return which share of the letters of `text` is not of the Latin script; 0 without letters."""
    if text.isascii():
        return 0.0
    letters = [char for char in unicodedata.normalize("NFKC", text) if char.isalpha()]
    other = sum(not unicodedata.name(char, "").startswith("LATIN") for char in letters)
    return other / len(letters) if letters else 0.0


def mostly_non_latin(text: str) -> bool:
    """Tell whether a text is written in a script that a Latin-only tokenizer would delete."""
    return non_latin_share(text) > _MOSTLY


def main_language(texts: Iterable[str]) -> str | None:
    """Guess zh, ja, ko, th, km, my or bo from the script of the texts together; None for all others."""
    scripts = Counter(_script(char) for text in texts for char in text if char.isalpha())
    total = sum(scripts.values())
    if not total:
        return None
    east_asian = scripts["han"] + scripts["kana"]
    if east_asian / total > _MOSTLY:
        return "ja" if scripts["kana"] / east_asian > 0.05 else "zh"
    if scripts["hangul"] / total > _MOSTLY:
        return "ko"
    return next((name for name in ("th", "km", "my", "bo") if scripts[name] / total > _MOSTLY), None)
