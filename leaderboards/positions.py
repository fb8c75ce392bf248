"""Acceptance by position: how often the k-th drafted token was accepted, and where the figure stops meaning much.

Deep positions rest on the few steps that drafted so far, which are the easy ones; they are shown faint, and
the deepest are left to `leaderboard.json`.
"""

from collections.abc import Iterable, Sequence

from draftboard.leaderboards.ranking import headline, standings, usable, why_missing
from draftboard.leaderboards.table import NOT_AVAILABLE, Cell, Column, Footnotes, Row, Table
from draftboard.results import Figure, Group, MethodResult

__all__ = ["DEEPEST", "FEW", "positions_table"]

_KINDS = {
    "joint": "joint: accepted to here, of the steps that drafted this far",
    "conditional": "conditional: of those that were right up to the place before",
    "all_steps": "over all steps: accepted and kept to here, of all steps, those without a draft included",
    "vllm": "vLLM: accepted to here, of all drafts",
    "specdec_joint": "specdec_bench, joint: accepted to here, of all chunks",
    "specdec_conditional": "specdec_bench, conditional: of the chunks that came to the next shorter length",
}
FEW = 30
"""Below so many steps a figure is a survivor's, and shown faint."""
_SHALLOW = 8
DEEPEST = 12
"""Positions that are shown at most."""


def positions_table(group: Group) -> Table | None:
    """Return a row for each method and way of counting, a column for each position; None where nothing is known."""
    known = [
        (standing.method, kind, figures)
        for standing in standings(group, headline(group))
        for kind, figures in _positions(standing.method).items()
    ]
    deepest = max((len(figures) for _, _, figures in known), default=0)
    shown = min(deepest, max(_supported([figures for _, _, figures in known]), _SHALLOW), DEEPEST)
    if not shown:
        return None
    notes = Footnotes()
    rows = tuple(
        Row(
            method=method.method,
            rank=None,
            baseline=method.method == group.baseline,
            notes=tuple(map(notes.number, _signatures(figures[:shown]))),
            cells=tuple(_cell(figures[place] if place < len(figures) else None, notes) for place in range(shown)),
            detail=_KINDS[kind].partition(":")[0],
        )
        for method, kind, figures in known
    )
    counted = "; ".join(words for kind, words in _KINDS.items() if any(kind == other for _, other, _ in known))
    caption = f"Share of drafted tokens accepted at each position; {counted}."
    caption += " The last place that a method drafts is a survivor's figure in any case."
    if shown < deepest:
        caption += f" Positions {shown + 1} to {deepest} are in leaderboard.json."
    return Table(
        key="positions",
        title="Acceptance by position",
        caption=caption,
        columns=tuple(Column(title=str(place), unit="") for place in range(1, shown + 1)),
        rows=rows,
        footnotes=tuple(notes.texts),
        ranked=False,
        level="detail",
    )


def _positions(method: MethodResult) -> dict[str, tuple[Figure, ...]]:
    """Return what is known, by way of counting; over all steps or drafts only where that is not the joint shares."""
    found = {
        kind: method.positions[kind]
        for kind in _KINDS
        if any(usable(figure) is not None for figure in method.positions.get(kind, ()))
    }
    joint = [figure.value for figure in found.get("joint", ())]
    return {
        kind: figures
        for kind, figures in found.items()
        if kind not in ("all_steps", "vllm") or [figure.value for figure in figures] != joint
    }


def _signatures(figures: Sequence[Figure]) -> Iterable[str]:
    """Return how the figures of a row were computed where the way of counting does not say all."""
    return dict.fromkeys(figure.signature for figure in figures if figure.signature and usable(figure) is not None)


def _supported(known: Sequence[Sequence[Figure]]) -> int:
    """Return the deepest position that enough steps reached in any row."""
    return max(
        (place for figures in known for place, figure in enumerate(figures, start=1) if (figure.n or 0) >= FEW),
        default=0,
    )


def _cell(figure: Figure | None, notes: Footnotes) -> Cell:
    if figure is None:
        return Cell(
            text=NOT_AVAILABLE, missing=True, notes=(notes.number("nothing drafted this far, or not recorded"),)
        )
    value = usable(figure)
    if value is None:
        return Cell(text=NOT_AVAILABLE, missing=True, notes=(notes.number(why_missing(figure)),))
    few = figure.n is not None and figure.n < FEW
    return Cell(
        text=f"{value:.2f}",
        value=value,
        faint=few,
        detail="" if figure.n is None else f"n={figure.n}",
        notes=(notes.number(f"fewer than {FEW} steps came this far: survivors of easy stretches"),) if few else (),
    )
