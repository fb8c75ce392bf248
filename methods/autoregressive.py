"""Plain decoding through the same loop and cache as every method: what a speedup is relative to."""

from dataclasses import dataclass

from draftboard.methods.engine import Drafter, RootOnly
from draftboard.methods.method import Binding, Method
from draftboard.methods.registry import register

__all__ = ["Autoregressive"]


@register("autoregressive")
@dataclass(frozen=True, slots=True, kw_only=True)
class Autoregressive(Method):
    """One token a forward."""

    about = "plain decoding, one token per target forward"

    def drafter(self, binding: Binding) -> Drafter:
        """Return the drafter that proposes nothing."""
        return RootOnly()
