"""Several runs on one page: which of them were made under the same conditions, side by side and never as one ranking.

Runs keep their own sections and rankings, because their speeds were not interleaved: a machine that was slower during
one of them would pass for a slower method. Where two runs agree in all that a group records (model and its weights,
dtype, device, hardware, suites and their hashes, sampling, limits, template, threads, software, …) their methods stand
in one more table, each over the baseline of its own run, with that baseline's own rate beside it as a check.
"""

from collections.abc import Sequence

from draftboard.leaderboards.ranking import headline, standings, usable
from draftboard.leaderboards.table import Column, Footnotes, Measure, Row, Table, figure_cell
from draftboard.metrics import metric
from draftboard.results import Group, Results

__all__ = ["side_by_side"]

_PASSING = ("imported",)
"""Conditions that name where numbers came from and say nothing of how."""
_NEEDED = ("weights", "suite hash")
"""Conditions without which nobody knows whether two groups are of the same model and the same questions."""
_MEASURES = (
    Measure(name="speedup", title="Speedup, overall"),
    Measure(name="acceptance_length", title="τ"),
    Measure(name="tokens_per_s", title="Tokens/s"),
)


def side_by_side(results: Results, titles: Sequence[str]) -> tuple[Table, ...]:
    """Return one unranked table for each set of two or more groups under the same conditions.

    `titles` are the groups' headings, in their order. Groups that do not record the model's weights and the suite's
    hash are in none.
    """
    families: dict[tuple[object, ...], list[int]] = {}
    for index, group in enumerate(results.groups):
        if all(group.conditions.get(name) for name in _NEEDED):
            families.setdefault(_conditions(group), []).append(index)
    tables = (_table([(titles[index], results.groups[index]) for index in family]) for family in families.values())
    return tuple(table for table in tables if table is not None)


def _conditions(group: Group) -> tuple[object, ...]:
    shared = sorted((name, value) for name, value in group.conditions.items() if name not in _PASSING)
    return group.model, group.hardware, group.suite, group.baseline, group.domains, tuple(shared)


def _table(groups: Sequence[tuple[str, Group]]) -> Table | None:
    if len(groups) < 2:
        return None
    notes = Footnotes()
    entries = [
        (title, group, standing.method) for title, group in groups for standing in standings(group, headline(group))
    ]
    measures = [
        measure
        for measure in _MEASURES
        if any(usable(method.overall.get(measure.name)) is not None for _, _, method in entries)
    ]
    if not measures:
        return None
    rows = tuple(
        Row(
            method=method.method,
            rank=None,
            baseline=method.method == group.baseline,
            cells=tuple(figure_cell(method.overall.get(measure.name), measure.kind, notes) for measure in measures),
            detail=title.rpartition(" · ")[2],
        )
        for title, group, method in entries
    )
    baseline = groups[0][1].baseline
    return Table(
        key="runs",
        title="Runs under the same conditions",
        caption=(
            f"Not ranked: these runs were made one after another, and each speedup is over {baseline} of its own run. "
            f"Where the rates of {baseline} differ, the machine was not equally fast in both."
        ),
        columns=tuple(
            Column(
                title=measure.kind.title,
                metric=measure.name,
                unit=measure.kind.unit,
                higher_is_better=metric(measure.name).higher_is_better,
            )
            for measure in measures
        ),
        rows=rows,
        footnotes=tuple(notes.texts),
        ranked=False,
    )
