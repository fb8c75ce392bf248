"""Longest common subsequences of token lists, 64 cells of the table at a time.

A row of the table grows by nought or one from place to place, so one integer with a bit a place holds it; a row follows
from the one above by an addition (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"). Backtracking asks
the rows for the same comparisons that a full table would answer, so that the tokens found are rouge-score's own.
"""

from collections.abc import Iterable, Mapping, Sequence

__all__ = ["lcs_length", "lcs_places", "token_places"]


def token_places(tokens: Sequence[str]) -> dict[str, int]:
    """Return for each token the bits of the places where it stands."""
    places: dict[str, int] = {}
    for place, token in enumerate(tokens):
        places[token] = places.get(token, 0) | 1 << place
    return places


def _row(above: int, matches: int, full: int) -> int:
    """Return the row below; a bit is off where the row grows."""
    both = above & matches
    return ((above + both) | (above - both)) & full


def lcs_length(rows: Iterable[str], columns: Mapping[str, int], width: int) -> int:
    """Return the length of a longest common subsequence of `rows` and the `width` tokens at the places `columns`."""
    full = (1 << width) - 1
    row = full
    for token in rows:
        matches = columns.get(token)
        if matches:
            row = _row(row, matches, full)
    return width - row.bit_count()


def lcs_places(rows: Sequence[str], columns: Mapping[str, int], width: int) -> list[int]:
    """Return the places in `rows` of the longest common subsequence that rouge-score's backtracking finds, last first.

    At a mismatch it goes left only where the cell to the left holds more than the one above.
    """
    full = (1 << width) - 1
    table = [full]
    # A row without any match repeats the one above, and backtracking passes it straight upwards.
    shared = [(place, columns[token]) for place, token in enumerate(rows) if token in columns]
    for _, matches in shared:
        table.append(_row(table[-1], matches, full))
    found: list[int] = []
    i, j = len(shared), width
    while i > 0 and j > 0:
        place, matches = shared[i - 1]
        if matches >> (j - 1) & 1:
            found.append(place)
            i, j = i - 1, j - 1
        else:
            below = (1 << j) - 1
            if (table[i] & below).bit_count() < (table[i - 1] & below).bit_count():
                j -= 1
            else:
                i -= 1
    return found
