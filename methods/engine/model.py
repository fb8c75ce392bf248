"""A causal language model whose cache holds a committed prefix and, behind it, a scratch area for one draft.

Models come from `transformers` through their public interface: input ids, a 4-D attention mask, position ids and a
cache object. Nothing of a model is copied or patched.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from draftboard.methods.engine.cache import TreeCache
from draftboard.methods.engine.gates import DENSE, Gates, GateSwitch
from draftboard.methods.engine.scores import Scores
from draftboard.methods.engine.settings import NONE, HiddenRequest
from draftboard.methods.engine.support import check_config, check_forward
from draftboard.methods.engine.tree import TokenTree
from draftboard.methods.errors import MethodError

__all__ = ["LanguageModel"]


_LOGIT_CHANGES = ("logit_scale", "logits_scaling", "final_logit_softcapping", "output_multiplier_scale")
"""Configuration fields by which models change what their output layer gives."""


class LanguageModel:
    """The target, and also any separate draft model. Batch size 1; holds the cache of one conversation turn."""

    def __init__(self, model: Any) -> None:
        """`model`: a `transformers` causal LM in eval mode. Raises MethodError if the engine cannot drive it."""
        check_config(model.config)
        check_forward(model)
        self.model = model
        self.config = model.config
        self.device: torch.device = model.device
        self.dtype: torch.dtype = model.dtype
        self.vocab_size = int(model.config.vocab_size)
        self.window = int(getattr(model.config, "max_position_embeddings", 0) or 1 << 30)
        self._eager = model.config._attn_implementation == "eager"
        if not self._eager and model.config._attn_implementation != "sdpa":
            raise MethodError(
                f"attention implementation {model.config._attn_implementation!r} takes no tree mask; load with sdpa"
            )
        self._cache = TreeCache(int(model.config.num_hidden_layers))
        self._switch: GateSwitch | None = None
        self.attached: dict[Any, Any] = {}
        """What methods made for this model and keep with it, such as heads, by keys of their own."""

    @property
    def input_embedding(self) -> Tensor:
        """Weight [V, H] of the input embedding. Raises MethodError where the model has no plain one."""
        return _plain_weight(self.model.get_input_embeddings(), type(self.model).__name__, "input embedding")

    @property
    def output_embedding(self) -> Tensor:
        """Weight [V, H] whose product with the last hidden state is the logits.

        Raises MethodError where there is none, or where the model does more than this product.
        """
        name = type(self.model).__name__
        layer = self.model.get_output_embeddings()
        weight = _plain_weight(layer, name, "output layer")
        extras = [field for field in _LOGIT_CHANGES if getattr(self.config, field, None) not in (None, 1, 1.0)]
        if getattr(layer, "bias", None) is not None:
            extras.append("a bias")
        if extras:
            raise MethodError(
                f"the logits of {name} are more than a product with its output layer ({', '.join(extras)}); "
                "a head that borrows this layer cannot score with it"
            )
        return weight

    @property
    def length(self) -> int:
        """Committed tokens."""
        return self._cache.length

    @property
    def room(self) -> int:
        """Rows that a draft may have now: what is left of the cache and of the model's window."""
        return min(self._cache.capacity, self.window) - self._cache.length

    @property
    def cache_bytes(self) -> int:
        """Size of the key/value cache in bytes."""
        return self._cache.nbytes()

    def reserve(self, rows: int) -> None:
        """Make room for `rows` tokens in all (prefix and draft)."""
        self._cache.reserve(rows)

    def prefill(self, ids: Sequence[int], *, hidden: HiddenRequest = NONE, all_logits: bool = False) -> Scores:
        """Forget everything, commit these ids and return the scores of the last position (or of all)."""
        self._cache.rewind(0)
        self._cache.reserve(len(ids) + 1)
        inputs = torch.tensor([ids], device=self.device)
        scores = self._run(inputs, None, None, hidden, 0 if all_logits else 1)
        self._cache.length = len(ids)
        return scores

    def forward(self, tree: TokenTree, *, gates: Gates = DENSE, hidden: HiddenRequest = NONE) -> Scores:
        """Score every node against the committed prefix, its ancestors and itself. Commits nothing."""
        aux = tree.aux
        count = len(tree)
        ids = torch.tensor([tree.token_list])
        if aux is None and count == 1:
            mask = positions = None
        else:
            mask = self._mask(tree)
            depths = torch.tensor([tree.depths])
            if aux is not None:
                ids = torch.cat([ids, aux.tokens[None].to(ids.device)], 1)
                depths = torch.cat([depths, aux.positions[None].to(depths.device)], 1)
            positions = (depths + self._cache.length).to(self.device)
        ids = ids.to(self.device)
        if gates.dense:
            scores = self._run(ids, mask, positions, hidden, 0)
        else:
            with self._gate_switch().set(gates):
                scores = self._run(ids, mask, positions, hidden, 0)
        if aux is not None:
            scores = Scores(
                scores.logits[:count], {i: rows[:count] for i, rows in scores.hidden.items()}, scores.logits[count:]
            )
        return scores

    def keep(self, path: Sequence[int]) -> None:
        """Commit the rows of these nodes of the last forward, in order; drop the rest."""
        self._cache.keep(path)

    def rewind(self, length: int) -> None:
        """Forget everything behind `length` tokens."""
        self._cache.rewind(length)

    def synchronize(self) -> None:
        """Wait until the device is idle, so that a clock reading means something."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _run(
        self, ids: Tensor, mask: Tensor | None, positions: Tensor | None, hidden: HiddenRequest, keep: int
    ) -> Scores:
        extra: dict[str, Any] = {"output_hidden_states": list(hidden)} if hidden else {}
        out = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            cache=self._cache,
            use_cache=True,
            logits_to_keep=keep,
            **extra,
        )
        states = {index: out.hidden_states[index][0] for index in hidden}
        return Scores(out.logits[0], states)

    def _mask(self, tree: TokenTree) -> Tensor:
        """Return [1, 1, n, L + n]: bool for sdpa, additive for eager (which would add a bool mask silently)."""
        start, count = self._cache.length, len(tree)
        block = tree.ancestors()
        if tree.aux is not None:
            extra = tree.aux.mask.shape[0]
            wide = torch.zeros(count + extra, count + extra, dtype=torch.bool)
            wide[:count, :count] = block
            wide[count:, 0] = tree.aux.mask[:, 0]
            wide[count:, count:] = tree.aux.mask[:, 1:]
            block, count = wide, count + extra
        mask = torch.ones(1, 1, count, start + count, dtype=torch.bool, device=self.device)
        mask[0, 0, :, start:] = block.to(self.device)
        if not self._eager:
            return mask
        return torch.zeros(mask.shape, dtype=self.dtype, device=self.device).masked_fill_(
            ~mask, torch.finfo(self.dtype).min
        )

    def _gate_switch(self) -> GateSwitch:
        if self._switch is None:
            decoder = getattr(self.model, self.model.base_model_prefix, None)
            layers = getattr(decoder, "layers", None)
            if layers is None:
                raise MethodError(f"{type(self.model).__name__} has no list of decoder layers to bypass")
            self._switch = GateSwitch(layers)
        return self._switch


def _plain_weight(layer: Any, model: str, what: str) -> Tensor:
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, Tensor) or weight.dim() != 2 or not weight.is_floating_point():
        raise MethodError(f"{model} has no {what} with plain weights, which a head would share with it")
    return weight.detach()
