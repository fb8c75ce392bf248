"""What the scorers said of one method on one domain: the mean over rounds, and the counts that go with it.

A score says little of answers that were cut before their end, so that their share stands beside it.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean

from draftboard.measures.pooling import absent, unrecorded
from draftboard.measures.turns import TurnFacts
from draftboard.metrics import METRICS, metric
from draftboard.records import Cell, ScoreRecord
from draftboard.results import Figure
from draftboard.scoring import Value

__all__ = ["quality_figures", "score_counts", "skipped_quality", "truncated_rate"]

_CUT = ("length", "window")
"""The limit on new tokens, and the model's window where it is smaller."""


def quality_figures(records: Iterable[ScoreRecord]) -> dict[str, Figure]:
    """Return the scorers' values and extras, each the mean over rounds.

    Where several scorers give a name, samples weigh equally. An extra that no table of ours knows (a plug-in's) is
    named after its scorer, `scorer/extra`, which marks it as a detail.
    """
    found: dict[str, dict[str, list[Value]]] = {}
    for record in records:
        scorer, extras = record.scores.scorer, record.scores.extras
        named = {name if name in METRICS or "/" in name else f"{scorer}/{name}": extras[name] for name in extras}
        for name, value in {**named, **record.scores.values}.items():
            found.setdefault(name, {}).setdefault(scorer, []).append(value)
    order = sorted(found, key=lambda name: metric(name).kind != "quality")
    return {name: _joined([_over_rounds(values) for values in found[name].values()]) for name in order}


def skipped_quality(records: Iterable[ScoreRecord], cells: Sequence[Cell]) -> dict[str, Figure]:
    """Return why a method has no quality figure in a domain of which all its cells were skipped; else nothing.

    `records` are what the scorers say of the other methods there: they name the figures.
    """
    reasons = dict.fromkeys(cell.reason for cell in cells if cell.status == "skipped")
    if not reasons or any(cell.status != "skipped" for cell in cells):
        return {}
    first, *others = reasons
    why = f"skipped: {first}" + (f", and {len(others)} other reasons" if others else "")
    return dict.fromkeys(("truncated_rate", *quality_figures(records)), absent(why))


def truncated_rate(turns: Sequence[TurnFacts], nothing: str = "") -> Figure:
    """Return the share of answers that a limit cut, all rounds pooled; n counts the turns of one round.

    Turns that do not say how they ended, as imported ones, are left out. `nothing` is the reason where there are none.
    """
    known = [turn for turn in turns if turn.turn.finish]
    if not known:
        return absent(unrecorded(turns, nothing))
    rounds: dict[int, int] = {}
    for turn in known:
        rounds[turn.repeat] = rounds.get(turn.repeat, 0) + 1
    return Figure(value=sum(turn.turn.finish in _CUT for turn in known) / len(known), n=max(rounds.values()))


def score_counts(records: Iterable[ScoreRecord]) -> dict[str, int]:
    """Return the scorers' counts, all rounds and scorers added."""
    counts: dict[str, int] = {}
    for record in records:
        for name, count in record.scores.counts.items():
            counts[name] = counts.get(name, 0) + count
    return counts


def _over_rounds(values: Sequence[Value]) -> Figure:
    numbers = [value.value for value in values if value.value is not None]
    return Figure(
        value=fmean(numbers) if numbers else None,
        n=values[0].n,
        reason="" if numbers else values[0].reason,
        signature=values[0].signature,
    )


def _joined(figures: Sequence[Figure]) -> Figure:
    """Return one figure of several scorers': means over their samples."""
    known = [figure for figure in figures if figure.value is not None]
    if len(known) <= 1:
        return known[0] if known else figures[0]
    n = sum(figure.n or 0 for figure in known)
    value = sum((figure.value or 0.0) * (figure.n or 0) for figure in known) / n if n else None
    signatures = dict.fromkeys(figure.signature for figure in known if figure.signature)
    return Figure(value=value, n=n, signature="; ".join(signatures), reason="" if n else "nothing scored")
