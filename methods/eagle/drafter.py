"""The decode-time side of a head: its pairs, its cache, and the trees that are drafted with it.

Pair i is (feature of position i, token of position i + 1), at rotary position i (native-methods 1.1). The cache keeps
only pairs of true target features; what a step adds for its tree is thrown away. Features wait until a draft needs
them, so that steps that another drafter served, or that were not worth a draft, cost one common forward later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from draftboard.methods.eagle.dynamic import Growth, Ranked, grow
from draftboard.methods.eagle.filling import Filling
from draftboard.methods.eagle.heads import Head
from draftboard.methods.eagle.sizing import Calibration, Sizer
from draftboard.methods.eagle.trees import StaticTree
from draftboard.methods.engine.cache import TreeCache
from draftboard.methods.engine.drafter import Context, Drafter, Verdict
from draftboard.methods.engine.scores import Scores
from draftboard.methods.engine.tree import Proposal, TokenTree
from draftboard.methods.engine.verify import warp

__all__ = ["DynamicDrafter", "Pairs", "StaticDrafter"]

Judged = list[tuple[NDArray[np.float64], int | None]]
"""For every node on the way of what was emitted that was ranked: its children's log-probabilities [k], and the rank of
the token that came."""

_TRIED = 16
"""Latest pairs on which a head is tried that has not drafted for a while."""


class Pairs:
    """A head with the cache of one turn: stable pairs, and behind them the tree of one step."""

    def __init__(self, head: Head, *, vocab_size: int) -> None:
        """`vocab_size`: ids the tokenizer knows; no other is drafted."""
        self.head = head
        self.ids = head.target_ids
        # Ascending ids: those that the tokenizer does not know are the last.
        self.count = int(torch.searchsorted(self.ids, vocab_size))
        self._cache = TreeCache(head.config.layers)
        self._stable = 0
        self._waiting: list[list[Tensor]] = []
        self._known = 0

    @property
    def stable(self) -> int:
        """Pairs in the cache."""
        return self._stable

    @property
    def pending(self) -> int:
        """Pairs whose feature is known and which are not in the cache."""
        return self._known - self._stable

    def queue(self, scores: Scores, path: Sequence[int] | None = None) -> None:
        """Take the target's states of newly committed rows: of all, or of those on an accepted path."""
        states = [scores.hidden[tap] for tap in self.head.config.taps]
        if path is not None:
            count = len(path)
            if path[-1] == count - 1:
                states = [state[:count] for state in states]
            else:
                rows = torch.tensor(path, device=states[0].device)
                states = [state.index_select(0, rows) for state in states]
        self._waiting.append(states)
        self._known += len(states[0])

    def flush(self, tokens: Sequence[int], room: int) -> Tensor:
        """Read the pending pairs and return the head's outputs [m, H] at them; the last one is the root's.

        `tokens` [m]: of these pairs, the root the last of them. `room`: rows that the tree of this step may need.
        """
        start, end = self._stable, self._known
        states = [torch.cat(parts) if len(parts) > 1 else parts[0] for parts in zip(*self._waiting, strict=True)]
        self._waiting.clear()
        ids = torch.tensor([tokens], device=self.ids.device)
        self._cache.rewind(start)
        self._cache.reserve(end + room)
        outputs: Tensor = self.head(self.head.feature(states)[None], ids, cache=self._cache)[0]
        self._cache.keep(range(end - start))
        self._stable = end
        return outputs

    def expand(self, outputs: Tensor, tokens: Sequence[int], depth: int, seen: NDArray[np.bool_] | None) -> Tensor:
        """Run nodes of one depth behind what is in the cache; return their outputs [w, H].

        `outputs` [w, H] of their parents; `seen` bool [w, m]: which of the step's nodes they attend to, these included;
        None where all.
        """
        device = outputs.device
        count = len(tokens)
        mask = None
        if seen is not None and not seen.all():
            mask = torch.ones(1, 1, count, self._stable + seen.shape[1], dtype=torch.bool, device=device)
            mask[0, 0, :, self._stable :] = torch.from_numpy(seen).to(device)
        positions = torch.full((1, count), self._stable + depth - 1, device=device)
        found: Tensor = self.head(
            self.head.recycled(outputs)[None],
            torch.tensor([tokens], device=device),
            positions=positions,
            mask=mask,
            cache=self._cache,
        )[0]
        self._cache.keep(range(count))
        return found

    def forget(self) -> None:
        """Drop the tree's rows."""
        if self._cache.length > self._stable:
            self._cache.rewind(self._stable)

    def rewind(self, length: int) -> None:
        """Forget all pairs behind the first `length`."""
        self._stable = self._known = length
        self._waiting.clear()
        self._cache.rewind(length)

    def logits(self, outputs: Tensor) -> Tensor:
        """Return draft logits [w, count] in float32 (float64 stays)."""
        logits = self.head.logits(outputs)
        if self.count < len(self.ids):
            logits = logits[:, : self.count]
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def rank(self, outputs: Tensor, width: int) -> Ranked:
        """Return the `width` likeliest next tokens behind outputs [w, H]: one transfer from the device."""
        logits = self.logits(outputs)
        values, picks = logits.topk(min(width, self.count))
        logprobs = values - logits.logsumexp(-1, keepdim=True)
        both = torch.stack([logprobs.double(), self.ids[picks].double()]).cpu().numpy()
        return Ranked(both[1].astype(np.int64), both[0])


class _HeadDrafter(Drafter):
    """What all EAGLE drafters share: features in, pairs read when they are needed."""

    def __init__(self, pairs: Pairs, sizer: Sizer | None, *, levels: int, width: int, fixed: bool) -> None:
        self.wants_hidden = pairs.head.config.taps
        self._pairs = pairs
        self._sizer = sizer
        self._levels = levels
        self._width = width
        self._fixed = fixed
        self._unread = 0
        """Pending pairs that no draft of ours was judged on."""

    def begin(self, prompt: Sequence[int], scores: Scores) -> None:
        """Take the features of the prompt."""
        self._pairs.queue(scores)

    def propose(self, context: Context) -> TokenTree:
        """Return a draft, or the root alone where none pays."""
        self._clear()
        if self._sizer is not None:
            self._sizer.begin()
        levels = min(self._levels, context.room - 1)
        outputs = None if levels < 0 or context.max_nodes < 2 else self._read(context, levels)
        tree = TokenTree([context.root], chances=[1.0]) if outputs is None else self._draft(context, outputs, levels)
        self._pairs.forget()
        context.signals["depth"] = tree.depth
        context.signals["nodes"] = len(tree) - 1
        if tree.expected is not None:
            context.signals["expected"] = tree.expected
        return tree

    def observe(self, verdict: Verdict) -> None:
        """Take the features of what was accepted, and learn from it whoever drafted it."""
        self._pairs.queue(verdict.scores, verdict.path)
        sizer = self._sizer
        if sizer is None:
            return
        sizer.done(len(verdict.emitted), len(verdict.tree))
        judged = self._judged(verdict.emitted)
        self._unread = 0 if judged else self._unread + len(verdict.path)
        for depth, (logprobs, rank) in enumerate(judged, 1):
            sizer.calibration.learn(depth, logprobs, rank)

    def _read(self, context: Context, levels: int) -> Tensor | None:
        """Return the root's output [1, H]; None where no draft pays."""
        pairs, sizer = self._pairs, self._sizer
        pending = pairs.pending
        paying = sizer is None or self._fixed or sizer.pays(pending, levels=levels, room=context.room)
        if not paying and sizer is not None and sizer.patient(pending):
            return None
        outputs = pairs.flush([*context.tokens[pairs.stable + 1 :], context.root], self._rows())
        if sizer is not None:
            sizer.spend_root(pending)
            self._try(sizer, outputs, context)
            if not paying:
                paying = sizer.pays(1, levels=levels, room=context.room)
                sizer.tried(paying)
        return outputs[-1:] if paying else None

    def _try(self, sizer: Sizer, outputs: Tensor, context: Context) -> None:
        """Compare what the head says behind pairs that nobody drafted from with the text that came."""
        count = min(self._unread, len(outputs) - 1, _TRIED)
        self._unread = 0
        if count < 1:
            return
        ranked = self._pairs.rank(outputs[-count - 1 : -1], self._width)
        text = [*context.tokens[len(context.tokens) - count + 1 :], context.root]
        for tokens, logprobs, came in zip(ranked.tokens, ranked.logprobs, text, strict=True):
            hits = np.flatnonzero(tokens == came)
            sizer.calibration.note(1, sizer.calibration.chances(1, logprobs))
            sizer.calibration.learn(1, logprobs, int(hits[0]) if len(hits) else None)

    def _note(self, depth: int, ranked: Ranked) -> None:
        """Let the sizer know what the children of the likeliest node of a level look like."""
        if self._sizer is not None:
            calibration = self._sizer.calibration
            calibration.note(depth, calibration.chances(depth, ranked.logprobs[0]))

    def _rows(self) -> int:
        """Return how many head rows a tree may take."""
        return self._levels * self._width + 1

    def _clear(self) -> None:
        """Forget the draft of an earlier step."""
        raise NotImplementedError

    def _draft(self, context: Context, outputs: Tensor, levels: int) -> TokenTree:
        """Return the draft behind the root's output [1, H]; `levels`: further head forwards at most."""
        raise NotImplementedError

    def _judged(self, emitted: Sequence[int]) -> Judged:
        """Return what the draft of this step said of the tokens that came."""
        raise NotImplementedError


class DynamicDrafter(_HeadDrafter):
    """EAGLE-2 and EAGLE-3: see `dynamic`."""

    def __init__(self, pairs: Pairs, sizer: Sizer | None, *, levels: int, width: int, nodes: int, fixed: bool) -> None:
        """`nodes`: drafted nodes at most; `fixed`: levels and width as given, and only the nodes sized."""
        super().__init__(pairs, sizer, levels=levels, width=width, fixed=fixed)
        self._nodes = nodes
        self._growth: Growth | None = None

    def _clear(self) -> None:
        self._growth = None

    def _draft(self, context: Context, outputs: Tensor, levels: int) -> TokenTree:
        pairs, sizer, width = self._pairs, self._sizer, self._width
        nodes = min(self._nodes, context.max_nodes - 1)
        weigh = go_on = None
        if sizer is not None:
            weigh = sizer.calibration.log_chances
            if not self._fixed:

                def go_on(growth: Growth) -> int:
                    frontier = np.exp(growth.frontier(width)[2])
                    left = levels - growth.depth + 1
                    return sizer.wider(growth.chances(), frontier, growth.depth, levels=left, nodes=nodes)

        block = outputs
        depth = 0

        def expand(rows: NDArray[np.int64], tokens: list[int], seen: NDArray[np.bool_]) -> Ranked:
            nonlocal block, depth
            depth += 1
            above = block.expand(len(tokens), -1) if depth == 1 else block[torch.from_numpy(rows).to(block.device)]
            block = pairs.expand(above, tokens, depth, seen)
            ranked = pairs.rank(block, width)
            if sizer is not None:
                sizer.spend_level(len(tokens))
                self._note(depth + 1, ranked)
            return ranked

        first = pairs.rank(outputs, width)
        self._note(1, first)
        growth = grow(first, expand, width=width, levels=levels, weigh=weigh, go_on=go_on)
        self._growth = growth
        if sizer is not None:
            nodes = sizer.size(growth.chances(), nodes=nodes)
        return growth.best(nodes, context.root, chances=sizer is not None)

    def _judged(self, emitted: Sequence[int]) -> Judged:
        return [] if self._growth is None else self._growth.walk(emitted)


class StaticDrafter(_HeadDrafter):
    """EAGLE-1: a tree of fixed shape, filled by rank when the run is greedy and by draws otherwise."""

    def __init__(self, pairs: Pairs, sizer: Sizer | None, tree: StaticTree, *, logit_width: int) -> None:
        super().__init__(pairs, sizer, levels=tree.depth - 1, width=max(tree.counts), fixed=sizer is None)
        self._tree = tree
        self._widest = max(tree.widths())
        self._logit_width = logit_width
        self._filling: Filling | None = None

    def _rows(self) -> int:
        return self._levels * self._widest + 1

    def _clear(self) -> None:
        self._filling = None

    def _draft(self, context: Context, outputs: Tensor, levels: int) -> TokenTree:
        pairs, sizer, width = self._pairs, self._sizer, self._width
        draws = None if context.sampling.greedy else _Draws(pairs, context)
        rank = pairs.rank if draws is None else draws.rank
        ranked = rank(outputs, width)
        tree = self._tree.within(nodes=context.max_nodes, depth=levels + 1)
        self._note(1, ranked)
        if sizer is not None:
            first = sizer.calibration.chances(1, ranked.logprobs[0])
            # Drawn tokens play no part in it.
            tree = sizer.cut(tree, first, room=context.room, nodes=context.max_nodes - 1)
        self._filling = filling = Filling(tree, context.root)
        filling.take(ranked)
        block = outputs
        for depth in range(1, tree.depth):
            rows, tokens, seen = filling.advance()
            if not tokens:
                break
            block = pairs.expand(block[torch.tensor(rows, device=block.device)], tokens, depth, seen)
            ranked = rank(block, width)
            if sizer is not None:
                sizer.spend_level(len(tokens))
                self._note(depth + 1, ranked)
            filling.take(ranked)
        nodes, parents, ranks = filling.nodes()
        if draws is not None:
            return TokenTree(nodes, parents, proposal=draws.proposal(filling.ranked(), parents, self._logit_width))
        chances = None if sizer is None else _chances(filling, parents, ranks, sizer.calibration)
        return TokenTree(nodes, parents, chances=chances)

    def _judged(self, emitted: Sequence[int]) -> Judged:
        return [] if self._filling is None else self._filling.walk(emitted)


def _chances(filling: Filling, parents: list[int], ranks: list[int], calibration: Calibration) -> list[float]:
    """Return the chances of the nodes of a filled tree."""
    depths = [0] * len(parents)
    for node, parent in enumerate(parents[1:], 1):
        depths[node] = depths[parent] + 1
    rows = {
        node: calibration.chances(depths[node] + 1, row).tolist()
        for node, row in zip(filling.ranked(), filling.logprobs(), strict=True)
    }
    found = [1.0]
    for parent, rank in zip(parents[1:], ranks[1:], strict=True):
        found.append(found[parent] * rows[parent][rank])
    return found


class _Draws:
    """Children drawn without replacement from the head's warped distribution, which is kept for the verifier."""

    def __init__(self, pairs: Pairs, context: Context) -> None:
        self._pairs = pairs
        self._sampling = context.sampling
        self._generator = context.generator
        self._q: list[Tensor] = []

    def rank(self, outputs: Tensor, width: int) -> Ranked:
        """Return `width` draws a row in their order, -1 where the distribution has no further token; the
        log-probabilities are those of the likeliest tokens, whatever was drawn."""
        q = warp(torch.nan_to_num(self._pairs.logits(outputs)), self._sampling)
        self._q.append(q)
        width = min(width, q.shape[-1])
        picks = torch.multinomial(q, width, replacement=False, generator=self._generator)
        tokens = self._pairs.ids[picks].masked_fill(q.gather(-1, picks) <= 0, -1)
        both = torch.stack([q.topk(width).values.log().double(), tokens.double()]).cpu().numpy()
        return Ranked(both[1].astype(np.int64), both[0])

    def proposal(self, ranked: list[int], parents: list[int], logit_width: int) -> Proposal | None:
        """Return what every node was drawn from, zero outside the draft vocabulary; `ranked`: the node of each row."""
        if len(parents) < 2:
            return None
        rows = {node: row for row, node in enumerate(ranked)}
        drawn = torch.cat(self._q)
        drawn = drawn[torch.tensor([rows[max(parent, 0)] for parent in parents], device=drawn.device)]
        q = drawn.new_zeros(len(parents), logit_width)
        q[:, self._pairs.ids[: self._pairs.count]] = drawn
        return Proposal(q=q)
