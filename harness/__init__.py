"""draftboard: benchmark harness and leaderboard generator for speculative decoding.

This package stays light: importing it imports neither torch nor transformers, so that `--help`, suites and
leaderboards are quick everywhere.
"""

from draftboard.errors import UserError

__all__ = ["UserError", "__version__"]


def __getattr__(name: str) -> str:
    # Reading a distribution's metadata takes longer than everything else here, and is rarely asked for.
    if name == "__version__":
        from importlib.metadata import version

        return version("draftboard")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
