"""The gate: is a candidate slower than what was measured before, and is its output still the target's?

`read_side` makes one form of whatever was measured, `compare` judges it, `reports` say so.
"""

from draftboard.gate.judging import Rules, compare
from draftboard.gate.report import Change, Check, Report
from draftboard.gate.sides import Side, TimedTurn, read_side

__all__ = ["Change", "Check", "Report", "Rules", "Side", "TimedTurn", "compare", "read_side"]
