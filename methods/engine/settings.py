"""What a caller asks of one generation: how tokens are chosen and when to stop. Free of torch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from draftboard.methods.errors import MethodError

__all__ = ["GREEDY", "NONE", "HiddenRequest", "Limits", "Sampling", "StopRule"]

HiddenRequest = tuple[int, ...]
"""Indices into a model's hidden states: 0 = embeddings, i = input of layer i, last = after the final norm."""

NONE: HiddenRequest = ()

StopRule = Callable[[Sequence[int]], int | None]
"""Given all generated ids, how many of them it took to complete a stop text, else None.

Ids behind that one are dropped; the text itself is cut where ids become text, so that the output does not depend on
how many ids arrived in one step.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the target chooses: greedy at temperature 0, else temperature, then top-k, then top-p.

    The same warp applies at every node, at the bonus and at the first token after prefill.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    """0 keeps every token."""

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise MethodError(f"temperature must be a number of at least 0, not {self.temperature}")
        # Beyond these bounds float32 logits and probabilities become infinite or zero.
        if self.temperature and not 1e-9 <= self.temperature <= 1e9:
            raise MethodError(f"temperature must be 0 (greedy) or lie in [1e-9, 1e9], not {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise MethodError(f"top_p must lie in (0, 1], not {self.top_p}")
        if self.top_p < 1e-9:
            raise MethodError(f"top_p must be at least 1e-9, not {self.top_p}")
        if self.top_k < 0:
            raise MethodError(f"top_k must be at least 0 (0 keeps every token), not {self.top_k}")

    @property
    def greedy(self) -> bool:
        """Whether the largest logit decides."""
        return self.temperature == 0


GREEDY = Sampling()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a generation ends. Tokens behind the end count neither as output nor as accepted."""

    max_new_tokens: int
    eos_ids: frozenset[int] = frozenset()
    stop: StopRule | None = None

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise MethodError(f"max_new_tokens must be at least 1, not {self.max_new_tokens}")

    def cut(self, generated: list[int], new: int) -> tuple[int, str]:
        """Return how many of the last `new` ids of `generated` stay, and why decoding ends ("" = it goes on).

        The earliest end wins: the first end-of-sequence id, the stop text, or the length limit.
        """
        start = len(generated) - new
        keep, finish = len(generated), ""
        if keep >= self.max_new_tokens:
            keep, finish = self.max_new_tokens, "length"
        for index in range(start, keep):
            if generated[index] in self.eos_ids:
                keep, finish = index + 1, "eos"
                break
        if self.stop is not None:
            stopped = self.stop(generated[:keep])
            if stopped is not None and stopped <= keep:
                keep, finish = max(stopped, start + 1), "stop"
        return keep - start, finish
