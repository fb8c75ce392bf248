"""`leaderboard.json` and `leaderboard.csv`: the figures unrounded, for other programs.

The JSON document is what `draftboard.results_file` reads back. The CSV is tidy: one row per figure.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from draftboard.leaderboards.ranking import headline, standings, usable, why_missing
from draftboard.leaderboards.text import csv_text
from draftboard.metrics import metric
from draftboard.results import Figure, Group, MethodResult, Results
from draftboard.results_file import document, encode

__all__ = ["CSV_COLUMNS", "csv_document", "json_document"]

CSV_COLUMNS = (
    "group",
    "model",
    "hardware",
    "suite",
    "baseline",
    "method",
    "rank",
    "output",
    "scope",
    "domain",
    "metric",
    "unit",
    "value",
    "n",
    "low",
    "high",
    "level",
    "reason",
    "signature",
)


def json_document(results: Results) -> bytes:
    """Return the results with each method's rank in its group, as strict JSON."""
    data = document(results)
    for group, content in zip(results.groups, data["groups"], strict=True):
        ranks = _ranks(group)
        content["ranked_by"] = headline(group)
        content["methods"] = [
            {"method": method["method"], "rank": ranks[index], **method}
            for index, method in enumerate(content["methods"])
        ]
    return encode(data)


def csv_document(results: Results) -> bytes:
    """Return one CSV row per group, method, domain and figure; text cells are safe for a spreadsheet."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for number, group in enumerate(results.groups, start=1):
        for rank, method in zip(_ranks(group), group.methods, strict=True):
            head = [
                number,
                *map(csv_text, (group.model, group.hardware, group.suite, group.baseline, method.method)),
            ]
            head += ["" if rank is None else rank, csv_text(method.output)]
            writer.writerows([*head, *figure] for figure in _figures(method))
    return text.getvalue().encode("utf-8")


def _ranks(group: Group) -> list[int | None]:
    """Return the ranks in the order of `group.methods`."""
    placed = {id(standing.method): standing.rank for standing in standings(group, headline(group))}
    return [placed[id(method)] for method in group.methods]


def _figures(method: MethodResult) -> Iterator[list[Any]]:
    for name, figure in [*method.overall.items(), *_by_position(method.positions)]:
        yield ["overall", "", *_figure(name, figure)]
    for domain, result in method.domains.items():
        counts = [(f"count/{name}", Figure(value=count)) for name, count in result.score_counts.items()]
        for name, figure in [*result.figures.items(), *_by_position(result.positions), *counts]:
            yield ["domain", csv_text(domain), *_figure(name, figure)]


def _by_position(positions: Mapping[str, tuple[Figure, ...]]) -> Iterator[tuple[str, Figure]]:
    """Name acceptance by position as figures: `position/joint/1` is the first drafted token's."""
    for kind, figures in positions.items():
        for place, figure in enumerate(figures, start=1):
            yield f"position/{kind}/{place}", figure


def _figure(name: str, figure: Figure) -> list[Any]:
    value = usable(figure)
    interval = figure.interval if value is not None else None
    return [
        csv_text(name),
        metric(name).unit,
        "" if value is None else repr(value),
        "" if figure.n is None else figure.n,
        *(("", "", "") if interval is None else (repr(interval.low), repr(interval.high), repr(interval.level))),
        csv_text(why_missing(figure)) if value is None else csv_text(figure.reason),
        csv_text(figure.signature),
    ]
