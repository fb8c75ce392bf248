"""A head whose outputs and logits are a closed form, and which keeps which pairs it was fed."""

from dataclasses import dataclass

import torch

from draftboard.methods.eagle.config import HeadConfig
from draftboard.methods.eagle.heads import Head
from draftboard.methods.eagle.sizing import HeadCost
from draftboard.methods.engine.cost import CostCurve

FREE = HeadCost(root=CostCurve(rows=(1, 64), cost=(0.01, 0.02)), level=CostCurve(rows=(1, 64), cost=(0.01, 0.02)))
"""A head that is worth its forwards as long as anything is accepted."""
DEAR = HeadCost(root=CostCurve(rows=(1, 64), cost=(9.0, 9.0)), level=CostCurve(rows=(1, 64), cost=(9.0, 9.0)))
"""A head that never pays."""


@dataclass
class Row:
    """One pair as it arrived."""

    feature: tuple[float, float]
    token: int
    position: int
    sees: list[tuple[int, int]]
    """(token, position) of every pair it attends to, in the order of the cache."""


class ToldHead(Head):
    """Made for `TableTarget`, whose hidden state of a row is (token, position). Its own output is (token, position) of
    the pair; what follows depends on the token alone."""

    def __init__(self, logits, ids=None):
        """`logits[token]`: over the draft vocabulary `ids`."""
        vocab = len(logits)
        config = HeadConfig(
            kind="eagle",
            hidden=2,
            target_hidden=2,
            vocab=vocab,
            draft_vocab=vocab if ids is None else len(ids),
            heads=1,
            kv_heads=1,
            head_dim=2,
            intermediate=2,
            taps=(1,),
            own_lm_head=False,
        )
        super().__init__(config, None if ids is None else torch.tensor(ids))
        self.table = torch.tensor(logits, dtype=torch.float64)
        self.rows: list[Row] = []
        self.records = True

    def feature(self, states):
        return states[0]

    def forward(self, features, tokens, *, positions=None, mask=None, cache=None):
        past, count = cache.length, tokens.shape[1]
        if positions is None:
            positions = torch.arange(past, past + count)[None]
        if mask is None:
            mask = torch.ones(1, 1, count, past + count, dtype=torch.bool).tril_(past)
        own = torch.stack([tokens, positions], -1).double()
        keys = cache.layers[0].update(own[:, None], own[:, None])[0]
        if not self.records:
            return own
        known = [(int(token), int(place)) for token, place in keys[0, 0].tolist()]
        for row in range(count):
            sees = [pair for pair, seen in zip(known, mask[0, 0, row].tolist(), strict=True) if seen]
            self.rows.append(Row(tuple(features[0, row].tolist()), int(tokens[0, row]), int(positions[0, row]), sees))
        return own

    def logits(self, outputs):
        return self.table[outputs[..., 0].long()]
