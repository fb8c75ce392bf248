"""What is shown: ranked tables of results, as a page, Markdown, JSON, CSV and in a terminal.

Reads only the plain result types of `draftboard.results`; imports neither torch nor any method.
"""

from draftboard.leaderboards.board import boards
from draftboard.leaderboards.ranking import missing_reasons, standings
from draftboard.leaderboards.render import render
from draftboard.leaderboards.table import Table
from draftboard.leaderboards.terminal import terminal_table

__all__ = ["Table", "boards", "missing_reasons", "render", "standings", "terminal_table"]
