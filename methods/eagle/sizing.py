"""How far a step should draft: the most tokens for the time, the head's forwards and the target's alike.

Time is counted in one-row forwards of the target. Where the long-run rate is `r` tokens per such forward, a step that
emits E tokens and costs C is worth E - r * C; the policy that maximises this for the r it reaches also maximises r
(Dinkelbach). So a level or a node is added when what it is expected to bring exceeds r times what it costs, and nothing
is drafted where the root alone is worth more.

Chances come from the head's own probabilities, corrected by what was accepted in this turn. Free of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from draftboard.methods.budget import MAX_NODES
from draftboard.methods.eagle.trees import StaticTree
from draftboard.methods.engine.cost import CostCurve

__all__ = ["Calibration", "HeadCost", "Sizer", "fastest"]

Floats = NDArray[np.float64]

SIZES = (1, 4, 8, 16)
"""Row counts at which a head is timed."""

_EDGES = np.array([0.03, 0.1, 0.25, 0.5, 0.75, 0.9])
"""Probabilities at which a bucket begins."""
_DEPTHS = 4
"""Depths told apart; the last stands for all below it."""
_PRIOR = 0.95
"""How often, at first, a drafted token is right, relative to the head's probability. The bundled head has 1.0 to 1.1 on
texts like its training's and 0.9 to 1.0 on answers to Spec-Bench, at every depth alike."""
_WEIGHT = 2.0
"""Expected hits that the prior of a bucket weighs."""
_SUREST = 0.98
_RANKS = (0.5, 0.13, 0.06, 0.04, 0.03, 0.02, 0.02, 0.015, 0.01, 0.01)
"""Chances of the children of a likely node, by rank, before any were seen; about what the bundled head has on its
held-out texts (0.59 to 0.35 from depth 1 to 4 at the first rank, 0.11 to 0.13 at the second)."""
_AHEAD = 4
"""Levels looked ahead."""
_BREADTH = 16
"""Best nodes of an imagined level that are looked at."""
_MEMORY = 0.97
"""Share of what was learned of the rate that a step leaves."""
_PATIENCE = 32
"""Committed tokens after which a head that does not pay is tried on the text that it has not read."""
_MOST_PATIENT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCost:
    """Cost of head forwards relative to a one-row forward of the target."""

    root: CostCurve
    """Over n pairs, ranking behind the last."""
    level: CostCurve
    """Over n nodes, ranking behind each."""

    def document(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        curves = {"head_root": self.root, "head_level": self.level}
        return {name: {"rows": list(curve.rows), "cost": list(curve.cost)} for name, curve in curves.items()}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> HeadCost:
        """Return what `document` wrote."""
        root, level = (
            CostCurve(rows=tuple(curve["rows"]), cost=tuple(curve["cost"]))
            for curve in (document["head_root"], document["head_level"])
        )
        return cls(root=root, level=level)


def fastest(
    contenders: Mapping[Any, Callable[[], object]],
    *,
    repeats: int = 4,
    synchronize: Callable[[], None],
    clock: Callable[[], int] = perf_counter_ns,
) -> dict[Any, int]:
    """Return the fastest of `repeats` runs of each, in nanoseconds; they take turns, as `measure_cost` does it."""
    best: dict[Any, int] = {}
    for turn in range(repeats + 1):
        for name, run in contenders.items():
            synchronize()
            start = clock()
            run()
            synchronize()
            took = max(clock() - start, 1)
            # The first turn warms up.
            if turn:
                best[name] = min(best.get(name, took), took)
    return best


class Calibration:
    """How likely a drafted token is right, given that its parent was: the head's probability times a factor.

    The factor of a bucket (depth, probability) is hits over the sum of the probabilities, with a prior.
    """

    __slots__ = ("_expected", "_factors", "_hits", "_ranks", "_seen")

    def __init__(self, width: int) -> None:
        shape = _DEPTHS, len(_EDGES) + 1
        self._expected = np.full(shape, _WEIGHT)
        self._hits = np.full(shape, _PRIOR * _WEIGHT)
        self._factors = self._hits / self._expected
        ranks = [_RANKS[rank] if rank < len(_RANKS) else _RANKS[-1] for rank in range(width)]
        self._ranks = np.array([ranks] * _DEPTHS) * _PRIOR
        self._seen = np.full(_DEPTHS, 4.0)

    def chances(self, depth: int, logprobs: Floats) -> Floats:
        """Return the chances of children at that depth, of the shape of `logprobs`; a later rank has no larger one."""
        p = np.exp(np.nan_to_num(logprobs, nan=-np.inf))
        factors = self._factors[min(depth, _DEPTHS) - 1]
        found = np.minimum(p * factors[np.searchsorted(_EDGES, p, side="right")], _SUREST)
        return np.minimum.accumulate(found, axis=-1)

    def log_chances(self, depth: int, logprobs: Floats) -> Floats:
        """Return their logarithms, finite."""
        return np.log(np.maximum(self.chances(depth, logprobs), 1e-30))

    def usual(self, depth: int) -> Floats:
        """Return the usual chances of the children of a likely node, by rank."""
        found: Floats = self._ranks[min(depth, _DEPTHS) - 1]
        return found

    def note(self, depth: int, chances: Floats) -> None:
        """Take the children's chances [k] of one likely node into what is usual."""
        row = min(depth, _DEPTHS) - 1
        self._seen[row] = min(self._seen[row] + 1, 64)
        count = min(len(chances), self._ranks.shape[1])
        self._ranks[row, :count] += (chances[:count] - self._ranks[row, :count]) / self._seen[row]

    def learn(self, depth: int, logprobs: Floats, rank: int | None) -> None:
        """Count the children [k] of a node that was right: the rank of the token that came, None if none was it."""
        row = min(depth, _DEPTHS) - 1
        p = np.exp(np.nan_to_num(logprobs, nan=-np.inf))
        buckets = np.searchsorted(_EDGES, p, side="right")
        self._expected[row] += np.bincount(buckets, weights=p, minlength=len(_EDGES) + 1)
        if rank is not None:
            self._hits[row, buckets[rank]] += 1
        self._factors[row] = self._hits[row] / self._expected[row]


class Sizer:
    """Decides the depth and the size of every draft of one turn."""

    def __init__(self, *, cost: HeadCost, curve: CostCurve, width: int, nodes: int = MAX_NODES) -> None:
        """`width`: nodes that a level expands at most; `nodes`: drafted nodes at most."""
        self.calibration = Calibration(width)
        self._cost = cost
        self._curve = curve
        self._verify = np.array([curve.at(rows) for rows in range(1, min(nodes, MAX_NODES) + 2)])
        self._width = width
        self._tokens = self._time = 3.0
        self._spent = 0.0
        self._patience = _PATIENCE

    @property
    def rate(self) -> float:
        """Tokens per one-row forward of the target so far; at least the 1 that plain decoding gives."""
        return max(1.0, self._tokens / self._time)

    def begin(self) -> None:
        """Start a step."""
        self._spent = 0.0

    def pays(self, pending: int, *, levels: int, room: int) -> bool:
        """Whether a draft is worth its head forwards, before any is made.

        `pending`: pairs that the head has yet to read; reading them is paid off over the tokens that the turn has left
        (`room`), as whoever drafts later needs them too.
        """
        one = self._cost.root.at(1)
        root = np.ones(1)
        gain = self._ahead(root, root, 0, levels + 1, nodes=MAX_NODES, first=one) - self._worth(root)
        if gain <= 0:
            return False
        backlog = self._cost.root.at(pending) - one
        return gain * max(1.0, room / self.rate) > self.rate * backlog

    def patient(self, pending: int) -> bool:
        """Whether a head that does not pay may be left alone for now."""
        return pending < self._patience

    def tried(self, paid: bool) -> None:
        """Note what came of trying such a head: one that still does not pay is tried half as often."""
        self._patience = _PATIENCE if paid else min(2 * self._patience, _MOST_PATIENT)

    def spend_root(self, pending: int) -> None:
        """Count the forward over the pending pairs."""
        self._spent += self._cost.root.at(pending)

    def spend_level(self, nodes: int) -> None:
        """Count the forward of a level."""
        self._spent += self._cost.level.at(nodes)

    def wider(self, chances: Floats, frontier: Floats, depth: int, *, levels: int, nodes: int) -> int:
        """Return how many of `frontier` (chances of the last level, best first) to expand; 0 to stop here.

        `chances`: of all candidates; `depth`: of the last level; `levels`: that may still follow.
        """
        known = np.append(chances, 1.0)
        if self._ahead(known, frontier, depth, levels, nodes=nodes) <= self._worth(known, nodes):
            return 0
        return self._breadth(frontier, depth)

    def size(self, chances: Floats, *, nodes: int) -> int:
        """Return how many of the candidates, the likeliest first, to have verified: at most `nodes`."""
        best = np.append(1.0, -np.sort(-chances))[: min(nodes + 1, len(self._verify))]
        value = best.cumsum() - self.rate * self._verify[: len(best)]
        return int(value.argmax())

    def cut(self, tree: StaticTree, first: Floats, *, room: int, nodes: int) -> StaticTree:
        """Return the part of a static tree that is worth most; `first`: chances of the root's children by rank.

        Deeper levels are judged by what is usual, and so before anything is drawn: whatever was cut cannot have
        depended on a drawn token, which keeps the sampled verification exact.
        """
        chances = [1.0]
        for node in range(1, len(tree)):
            depth, rank = tree.depths[node], tree.ranks[node]
            row = first if depth == 1 else np.minimum.accumulate(self.calibration.usual(depth))
            chances.append(chances[tree.parents[node]] * (float(row[rank]) if rank < len(row) else 0.0))
        depths, likely = np.array(tree.depths), np.array(chances)
        best, kept, cost = -np.inf, np.zeros(1, dtype=np.int64), 0.0
        for depth in range(min(tree.depth, room) + 1):
            within = np.flatnonzero(depths <= depth)
            size = 1 + self.size(likely[within[1:]], nodes=nodes)
            chosen = np.sort(within[np.argsort(-likely[within], kind="stable")[:size]])
            if depth > 1:
                cost += self._cost.level.at(
                    len({tree.parents[node] for node in chosen if depths[node] == depth} or {0})
                )
            value = likely[chosen].sum() - self.rate * (self._verify[len(chosen) - 1] + cost)
            if value > best:
                best, kept = value, chosen
        return tree.only(kept.tolist())

    def done(self, emitted: int, rows: int) -> None:
        """Learn the rate from a step: tokens emitted and rows verified."""
        self._tokens = _MEMORY * self._tokens + emitted
        self._time = _MEMORY * self._time + self._spent + self._curve.at(rows)

    def _worth(self, chances: Floats, nodes: int = MAX_NODES) -> float:
        """Return the best value of verifying some of these, the root among them."""
        best = -np.sort(-chances)[: min(nodes + 1, len(self._verify))]
        return float((best.cumsum() - self.rate * self._verify[: len(best)]).max())

    def _breadth(self, frontier: Floats, depth: int) -> int:
        """Return how many of these nodes could have a child that is worth a row of the target's forward."""
        row = (self._verify[-1] - self._verify[0]) / max(1, len(self._verify) - 1)
        likely = frontier * self.calibration.usual(depth + 1)[0]
        return max(1, min(self._width, int((likely > self.rate * row).sum())))

    def _ahead(
        self, known: Floats, frontier: Floats, depth: int, levels: int, *, nodes: int, first: float | None = None
    ) -> float:
        """Return the best value of going 1 to `_AHEAD` levels on, with children as they usually are."""
        best, cost = -np.inf, 0.0
        for step in range(1, min(levels, _AHEAD) + 1):
            frontier = frontier[: self._breadth(frontier, depth)]
            cost += self._cost.level.at(len(frontier)) if step > 1 or first is None else first
            depth += 1
            children = np.multiply.outer(frontier, self.calibration.usual(depth)).ravel()
            frontier = -np.sort(-children)[:_BREADTH]
            known = np.append(known, frontier)
            best = max(best, self._worth(known, nodes) - self.rate * cost)
        return best
