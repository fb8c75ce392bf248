"""Resamples of a domain's samples, the same ones for every figure and method, and sums over them.

A resample is how often each sample was drawn. Sums over many resamples are then one matrix product, whatever the
number of figures, and a figure that is a function of sums can be made again without a look at the samples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
else:
    # Whoever only names a figure's type need not wait for numpy.
    Floats = Any

__all__ = [
    "LEVEL",
    "MANY",
    "RESAMPLES",
    "RESAMPLES_OF_MANY",
    "ROUNDS_DRAWN",
    "Floats",
    "Sampling",
    "resampled_sums",
    "resamples_for",
]

RESAMPLES = 10_000
MANY = 2_000
"""Samples of a domain beyond which fewer resamples are drawn."""
RESAMPLES_OF_MANY = 2_000
"""The end of a 95 % interval is then uncertain by 0.06 standard errors, with `RESAMPLES` by 0.03. Resampling costs
samples times resamples, and of so many samples a standard error is small already."""
LEVEL = 0.95
ROUNDS_DRAWN = 5
"""With at least so many rounds of both arms runs are drawn too; fewer say too little of how runs differ."""

_BATCH = 2_000_000
"""Counts held at a time, 16 MB of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How resamples are drawn: the same seed gives the same ones."""

    seed: int = 0
    resamples: int = RESAMPLES
    level: float = LEVEL
    rounds: int = 1
    """Rounds of the run; from `ROUNDS_DRAWN` on they are drawn before samples are."""

    def generator(self, stratum: str) -> np.random.Generator:
        """Return the generator of a domain's draws, which depends on the seed and the domain's name alone."""
        import numpy as np

        return np.random.default_rng([self.seed, *_words(stratum)])

    def round_counts(self) -> NDArray[np.int64] | None:
        """Return how often each round is in each resample, [resamples, rounds]; None where rounds are not drawn.

        All domains share it: a run drifts as a whole.
        """
        import numpy as np

        if self.rounds < ROUNDS_DRAWN:
            return None
        generator = np.random.default_rng([self.seed, *_words("rounds of the run")])
        return _counts(generator.integers(0, self.rounds, (self.resamples, self.rounds)), self.rounds)


def resamples_for(samples: int) -> int:
    """Return how many resamples a run is drawn whose largest domain has so many samples."""
    return RESAMPLES_OF_MANY if samples > MANY else RESAMPLES


def resampled_sums(columns: Floats, sampling: Sampling, stratum: str) -> Floats:
    """Return the sums of each column over each resample, [resamples, columns].

    `columns`: [samples, columns], the samples in an order that does not depend on how they came. Drawn in batches, so
    that memory is bounded.
    """
    import numpy as np

    found = np.empty((sampling.resamples, columns.shape[1]))
    for start, counts in _batches(len(columns), sampling, stratum):
        np.matmul(counts.astype(np.float64), columns, out=found[start : start + len(counts)])
    return found


def _batches(n: int, sampling: Sampling, stratum: str) -> Iterator[tuple[int, NDArray[np.int64]]]:
    generator = sampling.generator(stratum)
    size = max(1, _BATCH // n)
    for start in range(0, sampling.resamples, size):
        drawn = generator.integers(0, n, (min(size, sampling.resamples - start), n))
        yield start, _counts(drawn, n)


def _counts(drawn: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return how often each of n is in each row of `drawn`."""
    import numpy as np

    rows = len(drawn)
    drawn += n * np.arange(rows)[:, None]
    return np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)


def _words(text: str) -> Sequence[int]:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return [int.from_bytes(digest[i : i + 4], "little") for i in (0, 4)]
