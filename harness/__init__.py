"""draftboard: benchmark harness and leaderboard generator for speculative decoding.

This package stays light: importing it imports neither torch nor transformers, so that `--help`, suites and
leaderboards are quick everywhere.
"""

from importlib.metadata import version

from draftboard.errors import UserError

__all__ = ["UserError", "__version__"]

__version__ = version("draftboard")
