"""What a reader should know of a group before its first number, in plain words for every medium."""

from draftboard.leaderboards.ranking import headline, standings, usable
from draftboard.results import Figure, Group

__all__ = ["interval_line", "tie_lines", "verdict_line"]


def verdict_line(group: Group) -> str:
    """Return whether the group can be rested on, with each reason why not; empty where nobody judged."""
    if group.verdict is None:
        return ""
    if group.verdict.valid:
        return "Valid for claims."
    return f"Not valid for claims: {'; '.join(group.verdict.reasons) or 'no reason was stored'}."


def tie_lines(group: Group) -> tuple[str, ...]:
    """Return which methods cannot be told apart, each pair once, in the order of the ranking."""
    names = [standing.method.method for standing in standings(group, headline(group))]
    ties = {frozenset((method.method, other)) for method in group.methods for other in method.tied_with}
    lines = []
    for place, name in enumerate(names):
        others = [other for other in names[place + 1 :] if frozenset((name, other)) in ties]
        if others:
            lines.append(f"{name} and {', '.join(others)} cannot be told apart")
    return tuple(lines)


def interval_line(group: Group) -> str:
    """Return what the brackets behind the values are; empty where no figure has an interval."""
    figures: list[Figure] = []
    for method in group.methods:
        figures += method.overall.values()
        figures += (figure for domain in method.domains.values() for figure in domain.figures.values())
    levels = {figure.interval.level for figure in figures if figure.interval is not None and usable(figure) is not None}
    if not levels:
        return ""
    return (
        f"Brackets hold {' or '.join(f'{level:.4g}' for level in sorted(level * 100 for level in levels))} % intervals."
    )
