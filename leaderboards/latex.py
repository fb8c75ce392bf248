r"""`leaderboard.tex`: the board's tables for a paper, to be read in with `\input`.

The tables are those that a paper prints: what ranks the group, publications' layouts, serving and quality. Every text
from outside passes through `latex_text`, so that no name can be a command; the tables need booktabs and threeparttable
and nothing else.
"""

from collections.abc import Iterator

from draftboard.leaderboards.board import acceptance_across, boards
from draftboard.leaderboards.ranking import headline, usable
from draftboard.leaderboards.remarks import interval_line, tie_lines, verdict_line
from draftboard.leaderboards.table import NOTHING, Cell, Column, Row, Table
from draftboard.leaderboards.text import latex_text
from draftboard.results import Group, Results

__all__ = ["latex", "latex_table"]

_PREAMBLE = r"""% Preamble: \usepackage[T1]{fontenc} \usepackage{booktabs,threeparttable}
% Text: \input{leaderboard}
% Needs LaTeX of 2020 or later."""
_WIDE = 8
"""From so many columns on a table is set smaller."""
_IN_CAPTION = ("decoding", "dtype", "device", "threads", "batch size", "max new tokens", "rounds", "software")
_MOST_POINTS = 12


def latex(results: Results, *, generated: str = "") -> str:
    """Return the board's main tables and layouts as LaTeX; the same text for the same results."""
    blocks: list[str] = []
    for number, group in enumerate(results.groups, start=1):
        for place, table in enumerate(table for table in boards(group) if table.level != "detail"):
            conditions = _conditions(group, table, count=_count(group) if place == 0 else "")
            remarks = tie_lines(group) if place == 0 else ()
            label = f"board-{number}-{table.key}"
            blocks.append(latex_table(table, label=label, conditions=conditions, remarks=remarks))
    for number, table in enumerate(acceptance_across(results), start=1):
        blocks.append(latex_table(table, label=f"across-{number}"))
    text = "\n\n".join(blocks or ["No results."])
    head = [_PREAMBLE]
    unusual = sorted({character for character in text if ord(character) > 0xFF})
    if unusual:
        points = " ".join(f"U+{ord(character):04X}" for character in unusual[:_MOST_POINTS])
        more = f" and {len(unusual) - _MOST_POINTS} more" if len(unusual) > _MOST_POINTS else ""
        head.append(f"% Holds characters that pdfLaTeX may not know: {points}{more}.")
        head.append("% Use XeLaTeX or LuaLaTeX with fontspec and a font that has them.")
    if generated:
        head.append(f"% Generated {latex_text(generated)}.")
    return "\n".join(head) + "\n\n" + text + "\n"


def latex_table(table: Table, *, label: str, conditions: str = "", remarks: tuple[str, ...] = ()) -> str:
    """Return one table as a float: best values bold, intervals in brackets, footnotes as notes below it.

    `conditions` are sentences for the caption and `remarks` notes without a mark; both are escaped here.
    """
    rank = ["Rank"] if table.ranked else []
    caption = " ".join(part for part in (f"{table.title}.", table.caption, conditions) if part)
    kinds = ("r" if rank else "") + "l" + "".join("l" if column.words else "r" for column in table.columns)
    header = [*rank, latex_text(table.subject), *map(_header, table.columns)]
    wide = len(header) > _WIDE
    lines = [
        rf"\begin{{table{'*' if wide else ''}}}[tp]",
        r"\centering",
        r"\begin{threeparttable}",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\label{{tab:{label}}}",
        *([r"\scriptsize", r"\setlength{\tabcolsep}{3pt}"] if wide else [r"\small"]),
        rf"\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
        _line(header),
        r"\midrule",
        *(_line([*([_rank(row)] if rank else []), _method(row), *map(_cell, row.cells)]) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *_notes(table, remarks),
        r"\end{threeparttable}",
        rf"\end{{table{'*' if wide else ''}}}",
    ]
    return "\n".join(lines)


def _conditions(group: Group, table: Table, *, count: str) -> str:
    """Return under what the figures of a table were measured, as sentences for its caption."""
    facts = {"Model": group.model, "hardware": group.hardware, "suite": group.suite}
    facts |= {name: group.conditions.get(name, "") for name in _IN_CAPTION} | {"n": count}
    told = ", ".join(f"{name} {value}" for name, value in facts.items() if value)
    brackets = interval_line(group) if any(cell.interval for row in table.rows for cell in row.cells) else ""
    return " ".join(part for part in (f"{told}." if told else "", brackets, verdict_line(group)) if part)


def _count(group: Group) -> str:
    """Return the samples that the ranking rests on, where they are the same for all methods."""
    figures = [method.overall.get(headline(group)) for method in group.methods]
    counts = {figure.n for figure in figures if figure is not None and usable(figure) is not None}
    return str(counts.pop()) if len(counts) == 1 and None not in counts else ""


def _notes(table: Table, remarks: tuple[str, ...]) -> Iterator[str]:
    if not remarks and not table.footnotes:
        return
    yield r"\begin{tablenotes}\footnotesize"
    yield from (rf"\item {latex_text(remark)}." for remark in remarks)
    yield from (rf"\item[{number}] {latex_text(text)}" for number, text in enumerate(table.footnotes, start=1))
    yield r"\end{tablenotes}"


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _header(column: Column) -> str:
    details = ", ".join(part for part in (column.detail, column.quality) if part)
    return latex_text(column.title + (f" ({details})" if details else "")) + _marks(column.notes)


def _rank(row: Row) -> str:
    return latex_text(NOTHING) if row.rank is None else str(row.rank)


def _method(row: Row) -> str:
    details = [part for part in ("baseline" if row.baseline else "", row.detail, row.quality) if part]
    return latex_text(row.method + (f" ({', '.join(details)})" if details else "")) + _marks(row.notes)


def _cell(cell: Cell) -> str:
    text = latex_text(cell.text)
    parts = [rf"\textbf{{{text}}}" if cell.best else text, latex_text(cell.detail)]
    # A bracket behind a value is no argument of anything, so it needs no braces.
    parts.insert(1, cell.interval)
    return " ".join(part for part in parts if part) + _marks(cell.notes)


def _marks(numbers: tuple[int, ...]) -> str:
    return rf"\tnote{{{','.join(map(str, numbers))}}}" if numbers else ""
