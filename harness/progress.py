"""What a person sees while a run goes on: a bar with the time left, on stderr, and plain lines where there is no
terminal. Log lines stand above the bar and stay."""

import sys
from math import ceil
from pathlib import Path
from shutil import which
from time import monotonic

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from draftboard.records import Cell

__all__ = ["RichProgress", "program"]

_NAME = "draftboard"
_QUIET_S = 30.0
"""Without a terminal, a line at most this often."""


def program() -> str:
    """Return what to type to run this program: its name, or its path where it is not on the search path."""
    return _NAME if which(_NAME) or Path(sys.argv[0]).name != _NAME else sys.argv[0]


class RichProgress:
    """Shows a run's progress."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bar: Progress | None = None
        self._task = TaskID(-1)
        self._total = self._done = self._found = 0
        self._started = self._told = monotonic()

    def say(self, text: str) -> None:
        """Print a line."""
        # Paths and commands are for copying: the terminal may break a line, we must not.
        self._console.print(escape(text), highlight=False, soft_wrap=True)

    def begin(self, total: int, done: int) -> None:
        """Start the bar."""
        self._total, self._done, self._found, self._started = total, done, done, monotonic()
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._task = self._bar.add_task("cells", total=total, completed=done)
            self._bar.start()
        else:
            self.say(f"{total - done} of {total} cells to run")

    def advance(self, cell: Cell) -> None:
        """Count a cell; a failed one is told."""
        self._done += 1
        if cell.status == "failed":
            self.say(f"failed: {cell.method} on {cell.sample}: {cell.reason}")
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=escape(f"{cell.method} · {cell.sample}"[:48]))
        elif monotonic() - self._told > _QUIET_S:
            self._told = monotonic()
            self.say(f"{self._done} of {self._total} cells, {self._done / self._total:.0%}, {self._left()} left")

    def _left(self) -> str:
        """Say how long the rest takes at the pace so far."""
        each = (monotonic() - self._started) / (self._done - self._found)
        minutes = ceil(each * (self._total - self._done) / 60)
        return f"about {minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"about {minutes} min"

    def end(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
