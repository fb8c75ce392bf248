"""What the scorers said of one method on one domain: the mean over rounds, and the counts that go with it.

A score says little of answers that were cut before their end, so that their share stands beside it.


A score is resampled where it is a mean of its answers' values or a corpus score of their counts; of other extras (a
mean of categories' means, a brevity penalty) the value alone is known.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

from draftboard.measures.columns import Listed, Turns
from draftboard.measures.corpus import corpus_formula
from draftboard.measures.estimate import Estimate, of_sums
from draftboard.measures.pooling import absent, unrecorded
from draftboard.metrics import METRICS, metric
from draftboard.records import Cell, ScoreRecord
from draftboard.results import Figure
from draftboard.scoring import Value
from draftboard.statistics import Floats, Formula, Statistic, both, mcnemar, ratio

__all__ = ["DIFFERENCE", "difference_figures", "quality_figures", "score_counts", "skipped_quality", "truncated_rate"]

DIFFERENCE = "_difference"
"""`bleu_difference` is the method's BLEU less the baseline's, on the answers that both have."""

_CUT = ("length", "window")
"""The limit on new tokens, and the model's window where it is smaller."""


def quality_figures(records: Iterable[ScoreRecord]) -> dict[str, Figure]:
    """Return the scorers' values and extras, each the mean over rounds.

    Where several scorers give a name, samples weigh equally. An extra that no table of ours knows (a plug-in's) is
    named after its scorer, `scorer/extra`, which marks it as a detail.
    """
    found: dict[str, dict[str, list[Value]]] = {}
    listed = list(records)
    for record in listed:
        scorer, extras = record.scores.scorer, record.scores.extras
        named = {name if name in METRICS or "/" in name else f"{scorer}/{name}": extras[name] for name in extras}
        for name, value in {**named, **record.scores.values}.items():
            found.setdefault(name, {}).setdefault(scorer, []).append(value)
    order = sorted(found, key=lambda name: metric(name).kind != "quality")
    return {
        name: _resampled(_joined([_over_rounds(values) for values in found[name].values()]), name, listed)
        for name in order
    }


def difference_figures(own: Sequence[ScoreRecord], baseline: Sequence[ScoreRecord]) -> dict[str, Figure]:
    """Return the method's quality less the baseline's on the answers that both have, a figure a headline score.

    `p`, where every answer is right or wrong, is McNemar's exact one on the first round, for rounds of one question
    are no more questions.
    """
    names = dict.fromkeys(name for record in own for name in record.scores.values if metric(name).kind == "quality")
    found = {}
    for name in names:
        mine, theirs = _rows(name, own), _rows(name, baseline)
        shared = sorted(mine.keys() & theirs.keys())
        if not shared:
            found[name + DIFFERENCE] = absent("no answer that the baseline has too was scored")
            continue
        n = len({_sample(key) for _, key in shared})
        parts = [_statistic(name, {key: rows[key] for key in shared}) for rows in (mine, theirs)]
        value = _value(parts[0]) - _value(parts[1])
        difference = of_sums(value, n, both(parts[0], parts[1], lambda a, b: a - b))
        found[name + DIFFERENCE] = replace(difference, p=None if _is_corpus(name) else _mcnemar(mine, theirs, shared))
    return found


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


def truncated_rate(turns: Listed, nothing: str = "") -> Figure:
    """Return the share of answers that a limit cut, all rounds pooled; n counts the turns of one round.

    Turns that do not say how they ended, as imported ones, are left out. `nothing` is the reason where there are none.
    """
    table = Turns.of(turns)
    ends = [turn.finish for turn in table.records]
    rounds = Counter(repeat for end, repeat in zip(ends, table.repeat.tolist(), strict=True) if end)
    if not rounds:
        return absent(unrecorded(table, nothing))
    return Figure(value=sum(end in _CUT for end in ends) / rounds.total(), n=max(rounds.values()))


def score_counts(records: Iterable[ScoreRecord]) -> dict[str, int]:
    """Return the scorers' counts, all rounds and scorers added."""
    counts: dict[str, int] = {}
    for record in records:
        for name, count in record.scores.counts.items():
            counts[name] = counts.get(name, 0) + count
    return counts


Key = tuple[int, str]
"""Round and `sample#turn`."""


def _rows(name: str, records: Sequence[ScoreRecord]) -> dict[Key, Sequence[float]]:
    """Return what every answer adds to the score of that name: its value, or its counts where it is of a corpus."""
    rows: dict[Key, Sequence[float]] = {}
    for record in records:
        if _is_corpus(name):
            for key, counts in record.scores.statistics.get(name, {}).items():
                rows[record.repeat, key] = counts
        elif name not in record.scores.statistics:
            for key, value in record.scores.per_sample.get(name, {}).items():
                rows[record.repeat, key] = (value,)
    return rows


def _is_corpus(name: str) -> bool:
    return name.removesuffix("_clean") in ("bleu", "chrf")


def _sample(key: str) -> str:
    return key.rpartition("#")[0]


def _statistic(name: str, rows: Mapping[Key, Sequence[float]]) -> Statistic:
    """Return the score as the mean of its rounds' scores."""
    samples, numbers = [_sample(key) for _, key in rows], [number for number, _ in rows]
    if not _is_corpus(name):
        values = [value for (value,) in rows.values()]
        return Statistic(samples=samples, rounds=numbers, columns=[values, [1.0] * len(values)], formula=ratio())
    rounds = sorted(set(numbers))
    width = len(next(iter(rows.values())))
    columns = [
        [
            float(counts[place]) if number == wanted else 0.0
            for number, counts in zip(numbers, rows.values(), strict=True)
        ]
        for wanted in rounds
        for place in range(width)
    ]
    return Statistic(samples=samples, columns=columns, formula=_mean_of(partial(corpus_formula, name), width))


def _mean_of(score: Formula, width: int) -> Callable[[Sequence[Floats]], Floats]:
    def formula(sums: Sequence[Floats]) -> Floats:
        parts = [score(sums[start : start + width]) for start in range(0, len(sums), width)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total / len(parts)

    return formula


def _value(statistic: Statistic) -> float:
    import numpy as np

    return float(statistic.formula([np.asarray(math.fsum(column)) for column in statistic.columns]))


def _resampled(figure: Figure, name: str, records: Sequence[ScoreRecord]) -> Figure:
    """Return the figure with its statistic, where what is known of single answers gives its value."""
    rows = _rows(name, records)
    if figure.value is None or not rows:
        return figure
    statistic = _statistic(name, rows)
    if not math.isclose(_value(statistic), figure.value, rel_tol=1e-9, abs_tol=1e-12):
        return figure
    return Estimate(
        value=figure.value, n=figure.n, reason=figure.reason, signature=figure.signature, statistic=statistic
    )


def _mcnemar(
    mine: Mapping[Key, Sequence[float]], theirs: Mapping[Key, Sequence[float]], shared: Sequence[Key]
) -> float | None:
    first = min(number for number, _ in shared)
    keys = [key for key in shared if key[0] == first]
    return mcnemar({key[1]: theirs[key][0] for key in keys}, {key[1]: mine[key][0] for key in keys})


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
