"""From many turns to one figure: pooled (sums over sums) or a mean of per-sample values, with n and the reason why not.

A turn for which a figure's parts are not recorded is left out; n counts the samples that remain.
"""

from dataclasses import replace
from statistics import fmean

from draftboard.measures.columns import Turns, distinct
from draftboard.measures.estimate import of_means, of_sums
from draftboard.results import Figure
from draftboard.statistics import Coded, Floats, Statistic, ratio

__all__ = [
    "IMPORTED",
    "NO_ANSWER",
    "NO_DECODE",
    "UNRECORDED",
    "Parts",
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

Parts = tuple[Floats, Floats]
"""Numerators and denominators that turns add to a figure; NaN where they are not recorded."""


def absent(reason: str, n: int = 0) -> Figure:
    """Return a figure without a value."""
    return Figure(value=None, n=n, reason=reason)


def noted(figure: Figure, note: str) -> Figure:
    """Return the figure with a word on how it was computed, if it has a value."""
    return figure if figure.value is None or not note else replace(figure, signature=note)


def unrecorded(turns: Turns, nothing: str = "") -> str:
    """Say why nothing can be read from these turns; `nothing` where there are none."""
    if not len(turns):
        return nothing or NO_ANSWER
    return IMPORTED if turns.imported.any() else UNRECORDED


def pooled(turns: Turns, parts: Parts, *, zero: str, nothing: str = "", scale: float = 1.0) -> Figure:
    """Return Σ numerators over Σ denominators, times `scale`, of the turns that have a denominator.

    `zero` is the reason where none has, `nothing` where there are no turns.
    """
    import numpy as np

    tops, bottoms = parts
    known = ~(np.isnan(tops) | np.isnan(bottoms))
    if not known.any():
        return absent(unrecorded(turns, nothing))
    some = known & (bottoms > 0)
    if not some.any():
        return absent(zero, distinct(turns.sample[known]))
    sample, repeat = turns.sample, turns.repeat
    if not some.all():
        sample, repeat, tops, bottoms = sample[some], repeat[some], tops[some], bottoms[some]
    statistic = Statistic(
        samples=Coded(turns.names, sample), rounds=repeat, columns=[tops, bottoms], formula=ratio(scale)
    )
    return of_sums(float(tops.sum() / bottoms.sum() * scale), distinct(sample), statistic)


def mean_of_samples(turns: Turns, parts: Parts, *, zero: str, nothing: str = "") -> Figure:
    """Return the mean over samples of each one's pooled value; samples without a denominator are left out."""
    import numpy as np

    tops, bottoms = parts
    known = ~(np.isnan(tops) | np.isnan(bottoms))
    some = known & (bottoms > 0)
    if not some.any():
        return absent(zero if known.any() else unrecorded(turns, nothing))
    places = turns.sample[some]
    present = np.flatnonzero(np.bincount(places))
    values = np.bincount(places, tops[some])[present] / np.bincount(places, bottoms[some])[present]
    return of_means(fmean(values.tolist()), Coded(turns.names, present), values)


def decode_pooled(turns: Turns, parts: Parts, nothing: str = "") -> Figure:
    """Return a pooled figure of the tokens after the first emission and the seconds after it."""
    figure = pooled(turns, parts, zero=NO_DECODE, nothing=nothing)
    return absent(NO_DECODE) if figure.value is None and turns.ends_at_once.any() else figure
