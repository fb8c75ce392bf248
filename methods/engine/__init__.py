"""The decoding engine: model, cache, tree, gates, verification, the loop and its trace.

What methods are written with (drafter, tree, settings, trace) is free of torch; the rest is imported on first use.
"""

from typing import TYPE_CHECKING

from draftboard.methods.engine.drafter import Context, Drafter, RootOnly, Verdict
from draftboard.methods.engine.settings import GREEDY, NONE, HiddenRequest, Limits, Sampling, StopRule
from draftboard.methods.engine.trace import Generation, Trace
from draftboard.methods.engine.tree import AuxRows, Proposal, TokenTree
from draftboard.methods.lazy import on_demand

if TYPE_CHECKING:
    from draftboard.methods.engine.gates import DENSE, Gates
    from draftboard.methods.engine.loop import Clock, Target, decode
    from draftboard.methods.engine.model import LanguageModel
    from draftboard.methods.engine.scores import Scores
    from draftboard.methods.engine.verify import LOSSLESS, Lossless, Typical, Verifier

__all__ = [
    "DENSE",
    "GREEDY",
    "LOSSLESS",
    "NONE",
    "AuxRows",
    "Clock",
    "Context",
    "Drafter",
    "Gates",
    "Generation",
    "HiddenRequest",
    "LanguageModel",
    "Limits",
    "Lossless",
    "Proposal",
    "RootOnly",
    "Sampling",
    "Scores",
    "StopRule",
    "Target",
    "TokenTree",
    "Trace",
    "Typical",
    "Verdict",
    "Verifier",
    "decode",
]

__getattr__ = on_demand(
    __name__,
    {
        "gates": ("DENSE", "Gates"),
        "loop": ("Clock", "Target", "decode"),
        "model": ("LanguageModel",),
        "scores": ("Scores",),
        "verify": ("LOSSLESS", "Lossless", "Typical", "Verifier"),
    },
)
