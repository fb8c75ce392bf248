"""What the scorers said of one method on one domain: the mean over rounds, and the counts that go with it."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from draftboard.metrics import METRICS, metric
from draftboard.records import ScoreRecord
from draftboard.results import Figure
from draftboard.scoring import Value

__all__ = ["quality_figures", "score_counts"]


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
