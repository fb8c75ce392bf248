"""`leaderboard.json`, `leaderboard.csv` and `leaderboard.parquet`: the figures unrounded, for other programs.

The JSON document is what `draftboard.results_file` reads back. CSV and Parquet are tidy: one row per figure.
"""

import csv
import io
from collections.abc import Iterator, Mapping

from draftboard.leaderboards.ranking import headline, standings, usable, why_missing
from draftboard.leaderboards.text import csv_text, one_line
from draftboard.metrics import metric
from draftboard.results import Figure, Group, MethodResult, Results
from draftboard.results_file import document, encode

__all__ = ["CSV_COLUMNS", "csv_document", "figure_rows", "json_document", "parquet_document"]

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

Cell = str | float | int | None
"""One value of a row."""

_FRACTIONS = ("value", "low", "high", "level")
_WHOLE = ("group", "rank", "n")


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
    writer.writerows(map(_csv_cell, row.values()) for row in figure_rows(results))
    return text.getvalue().encode("utf-8")


def parquet_document(results: Results) -> bytes:
    """Return the rows of the CSV as Parquet: numbers as numbers, what is missing as null, text as it is.

    Text is on one line here, too, but without a spreadsheet's quote. A count beyond 64 bits is null.
    """
    import pyarrow
    import pyarrow.parquet

    types = dict.fromkeys(_FRACTIONS, pyarrow.float64()) | dict.fromkeys(_WHOLE, pyarrow.int64())
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in CSV_COLUMNS])
    rows = [{name: _typed(name, cell) for name, cell in row.items()} for row in figure_rows(results)]
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema=schema), buffer)
    return buffer.getvalue()


def figure_rows(results: Results) -> Iterator[dict[str, Cell]]:
    """Yield a row for each figure, keyed by `CSV_COLUMNS` in their order; what is missing is None."""
    for number, group in enumerate(results.groups, start=1):
        for rank, method in zip(_ranks(group), group.methods, strict=True):
            head: list[Cell] = [number, group.model, group.hardware, group.suite, group.baseline, method.method]
            head += [rank, method.output]
            for figure in _figures(method):
                yield dict(zip(CSV_COLUMNS, [*head, *figure], strict=True))


def _csv_cell(value: Cell) -> str | int:
    if value is None:
        return ""
    if isinstance(value, str):
        return csv_text(value)
    return repr(value) if isinstance(value, float) else value


def _typed(name: str, value: Cell) -> Cell:
    if value is None or isinstance(value, str):
        return value and one_line(value)
    if name in _FRACTIONS:
        return float(value)
    return value if -(2**63) <= value < 2**63 else None


def _ranks(group: Group) -> list[int | None]:
    """Return the ranks in the order of `group.methods`."""
    placed = {id(standing.method): standing.rank for standing in standings(group, headline(group))}
    return [placed[id(method)] for method in group.methods]


def _figures(method: MethodResult) -> Iterator[list[Cell]]:
    for name, figure in [*method.overall.items(), *_by_position(method.positions)]:
        yield ["overall", "", *_figure(name, figure)]
    for domain, result in method.domains.items():
        counts = [(f"count/{name}", Figure(value=count)) for name, count in result.score_counts.items()]
        for name, figure in [*result.figures.items(), *_by_position(result.positions), *counts]:
            yield ["domain", domain, *_figure(name, figure)]


def _by_position(positions: Mapping[str, tuple[Figure, ...]]) -> Iterator[tuple[str, Figure]]:
    """Name acceptance by position as figures: `position/joint/1` is the first drafted token's."""
    for kind, figures in positions.items():
        for place, figure in enumerate(figures, start=1):
            yield f"position/{kind}/{place}", figure


def _figure(name: str, figure: Figure) -> list[Cell]:
    value = usable(figure)
    interval = figure.interval if value is not None else None
    return [
        name,
        metric(name).unit,
        value,
        figure.n,
        *((None, None, None) if interval is None else (interval.low, interval.high, interval.level)),
        why_missing(figure) if value is None else figure.reason,
        figure.signature,
    ]
