"""What one forward of a model saw."""

from torch import Tensor

__all__ = ["Scores"]


class Scores:
    """What one forward saw.

    `logits` [n, V] in the model's dtype, row i for node i (after prefill: one row, the last position, unless all were
    asked for). `hidden[i]` [n, H] for every requested index. `aux_logits` [m, V] for rows that rode along.
    """

    __slots__ = ("aux_logits", "hidden", "logits")

    def __init__(
        self, logits: Tensor, hidden: dict[int, Tensor] | None = None, aux_logits: Tensor | None = None
    ) -> None:
        self.logits = logits
        self.hidden = hidden or {}
        self.aux_logits = aux_logits

    def best(self) -> list[int]:
        """Return the largest logit's id for every row: one transfer from the device."""
        ids: list[int] = self.logits.argmax(-1).tolist()
        return ids
