"""From many turns to one figure: pooled (sums over sums) or a mean of per-sample values, with n and the reason why not.

A turn for which a figure's parts are not recorded is left out; n counts the samples that remain.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from draftboard.measures.estimate import compact, of_means, of_sums
from draftboard.measures.turns import TurnFacts
from draftboard.results import Figure
from draftboard.statistics import Statistic, ratio

__all__ = [
    "IMPORTED",
    "NO_ANSWER",
    "NO_DECODE",
    "UNRECORDED",
    "Read",
    "absent",
    "decode_pooled",
    "mean_of_samples",
    "noted",
    "pooled",
    "unrecorded",
]

IMPORTED = "not recorded in the imported file"
UNRECORDED = "not recorded in this run"
NO_ANSWER = "no sample ended without error"
NO_DECODE = "every answer ended with its first emission"

Read = Callable[[TurnFacts], tuple[float, float] | None]
"""Numerator and denominator that a turn adds to a figure; None where they are not recorded."""


def absent(reason: str, n: int = 0) -> Figure:
    """Return a figure without a value."""
    return Figure(value=None, n=n, reason=reason)


def noted(figure: Figure, note: str) -> Figure:
    """Return the figure with a word on how it was computed, if it has a value."""
    return figure if figure.value is None or not note else replace(figure, signature=note)


def unrecorded(turns: Sequence[TurnFacts], nothing: str = "") -> str:
    """Say why nothing can be read from these turns; `nothing` where there are none."""
    if not turns:
        return nothing or NO_ANSWER
    return IMPORTED if any(turn.imported for turn in turns) else UNRECORDED


def pooled(turns: Sequence[TurnFacts], read: Read, *, zero: str, nothing: str = "", scale: float = 1.0) -> Figure:
    """Return Σ numerators over Σ denominators, times `scale`, of the turns that have a denominator.

    `zero` is the reason where none has, `nothing` where there are no turns.
    """
    import numpy as np

    read_of = [read(turn) for turn in turns]
    known = turns
    if None in read_of:
        known = [turn for turn, parts in zip(turns, read_of, strict=True) if parts is not None]
    if not known:
        return absent(unrecorded(turns, nothing))
    columns = np.array([parts for parts in read_of if parts is not None], np.float64)
    some = columns[:, 1] > 0
    if not some.any():
        return absent(zero, len({turn.sample for turn in known}))
    if not some.all():
        known, columns = [turn for turn, has in zip(known, some.tolist(), strict=True) if has], columns[some]
    samples = [turn.sample for turn in known]
    tops, bottoms = np.ascontiguousarray(columns.T)
    statistic = Statistic(
        samples=samples,
        rounds=compact([turn.repeat for turn in known]),
        columns=[tops, bottoms],
        formula=ratio(scale),
    )
    return of_sums(float(tops.sum() / bottoms.sum() * scale), len(set(samples)), statistic)


def mean_of_samples(turns: Sequence[TurnFacts], read: Read, *, zero: str, nothing: str = "") -> Figure:
    """Return the mean over samples of each one's pooled value; samples without a denominator are left out."""
    sums: dict[str, tuple[float, float]] = {}
    recorded = False
    for turn in turns:
        parts = read(turn)
        if parts is not None:
            recorded = True
            if parts[1] > 0:
                top, bottom = sums.get(turn.sample, (0, 0))
                sums[turn.sample] = top + parts[0], bottom + parts[1]
    if sums:
        values = [top / bottom for top, bottom in sums.values()]
        return of_means(fmean(values), list(sums), values)
    return absent(zero if recorded else unrecorded(turns, nothing))


def decode_pooled(
    turns: Sequence[TurnFacts], read: Callable[[int, float], tuple[float, float]], nothing: str = ""
) -> Figure:
    """Return a pooled figure of the tokens after the first emission and the seconds after it."""
    figure = pooled(turns, lambda turn: read(*turn.decode) if turn.decode else None, zero=NO_DECODE, nothing=nothing)
    return absent(NO_DECODE) if figure.value is None and any(turn.ends_at_once for turn in turns) else figure
