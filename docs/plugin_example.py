"""A method of one's own: draft what followed the same token last time. Run it with `--plugin plugin_example.py`."""

from dataclasses import dataclass
from itertools import pairwise

from draftboard.methods import Binding, Method, register
from draftboard.methods.engine import Context, Drafter, TokenTree


@register("last_time")
@dataclass(frozen=True, slots=True, kw_only=True)
class LastTime(Method):
    """A chain of tokens, each the one that most recently followed its predecessor."""

    about = "what followed the same token last time"
    draft_length: int = 4

    def drafter(self, binding: Binding) -> Drafter:
        """Return a drafter for one turn."""
        return Follow(self.draft_length)


class Follow(Drafter):
    """Reads the text so far as a table of successors."""

    def __init__(self, draft_length: int) -> None:
        self.draft_length = draft_length

    def propose(self, context: Context) -> TokenTree:
        """Return the root and the chain behind it; the target verifies it, so that a wrong guess costs only time."""
        text = [*context.tokens, context.root]
        successor = dict(pairwise(text))
        chain = [context.root]
        while chain[-1] in successor and len(chain) <= min(self.draft_length, context.room):
            chain.append(successor[chain[-1]])
        return TokenTree(chain)
