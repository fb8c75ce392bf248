"""The heads themselves: one decoder layer over pairs (feature of position i, token of position i + 1).

Made of transformers' own Llama parts, with a rotary module of their own: a head keeps the base it was trained with,
whatever the target's. Parameters carry the names of the official files. What a head shares with its target (embedding,
output layer) is bound to it and is no parameter of it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, PreTrainedConfig, Qwen3Config
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache
from transformers.models.llama.modeling_llama import (
    LlamaAttention,
    LlamaMLP,
    LlamaRMSNorm,
    LlamaRotaryEmbedding,
)
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from draftboard.methods.eagle.config import HeadConfig
from draftboard.methods.errors import MethodError

__all__ = ["Eagle3Head", "EagleHead", "Head", "make_head"]

Rotation = tuple[Tensor, Tensor]


class Head(nn.Module):
    """What drafters and training see of a head."""

    target_ids: Tensor
    """int64 [Vd]: the target's id of each draft id, ascending."""

    def __init__(self, config: HeadConfig, target_ids: Tensor | None) -> None:
        super().__init__()
        if target_ids is None and config.draft_vocab != config.vocab:
            raise MethodError(f"a head over {config.draft_vocab} of {config.vocab} ids has to say which they are")
        self.config = config
        self.rotary_emb = LlamaRotaryEmbedding(_parts(config, LlamaConfig))
        ids = torch.arange(config.draft_vocab) if target_ids is None else target_ids
        self.register_buffer("target_ids", ids, persistent=False)
        self._embedding: Tensor | None = None
        self._target_lm_head: Tensor | None = None
        self._rows: Tensor | None = None

    @property
    def dtype(self) -> torch.dtype:
        """Of its weights."""
        return next(self.parameters()).dtype

    def bind(self, embedding: Tensor, lm_head: Tensor) -> None:
        """Share the target's embedding [V, Ht] and output layer [V, Ht]. Both stay where they are; rows of a reduced
        vocabulary are copied once."""
        self._embedding = embedding
        self._target_lm_head = lm_head
        self._rows = None

    def restrict(self, ids: Tensor) -> None:
        """Draft only these target ids, int64 ascending. Raises MethodError for an id that the head does not draft."""
        places = torch.searchsorted(self.target_ids, ids).clamp(max=len(self.target_ids) - 1)
        if not torch.equal(self.target_ids[places], ids):
            raise MethodError("a draft vocabulary can only be reduced to ids that the head drafts already")
        self._take_rows(places)
        self.target_ids = ids.to(self.target_ids.device)
        self._rows = None

    def _take_rows(self, places: Tensor) -> None:
        """Reduce an output layer of one's own to these rows."""

    def _borrowed_rows(self, dtype: torch.dtype) -> Tensor:
        """Return the rows of the target's output layer that belong to the draft vocabulary, [Vd, H]."""
        if self._rows is None:
            if self._target_lm_head is None:
                raise RuntimeError("this head borrows its target's output layer: call bind() first")
            whole = len(self.target_ids) == len(self._target_lm_head)
            self._rows = (self._target_lm_head if whole else self._target_lm_head[self.target_ids]).to(dtype)
        return self._rows

    def feature(self, states: Sequence[Tensor]) -> Tensor:
        """Return features [..., H] of the target's states at `config.taps`, [..., Ht] each."""
        raise NotImplementedError

    def forward(
        self,
        features: Tensor,
        tokens: Tensor,
        *,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Return outputs [B, n, H] of pairs (features [B, n, H], target ids int64 [B, n]).

        `positions` int64 [B, n], without which they follow the cache; `mask` bool [B or 1, 1, n, L + n], True where a
        row attends, without which attention is causal; `cache`: keys and values of L earlier pairs, to which these are
        added.
        """
        past = 0 if cache is None else int(cache.get_seq_length())
        count = tokens.shape[1]
        if positions is None:
            positions = torch.arange(past, past + count, device=tokens.device)[None]
        if mask is None and past and count > 1:
            # SDPA's own causal mask starts at the first key, not behind the cached ones.
            mask = torch.ones(1, 1, count, past + count, dtype=torch.bool, device=tokens.device).tril_(past)
        embedded = self._embed(tokens).to(self.dtype)
        features = features.to(self.dtype)
        return self._decode(embedded, features, self.rotary_emb(features, positions), mask, cache)

    def _decode(
        self, embedded: Tensor, features: Tensor, rotation: Rotation, mask: Tensor | None, cache: Cache | None
    ) -> Tensor:
        raise NotImplementedError

    def recycled(self, outputs: Tensor) -> Tensor:
        """Return what stands for the feature one position on."""
        return outputs

    def logits(self, outputs: Tensor) -> Tensor:
        """Return draft logits [..., Vd] of outputs [..., H]."""
        raise NotImplementedError

    def _embed(self, tokens: Tensor) -> Tensor:
        if self._embedding is None:
            raise RuntimeError("a head needs its target's embedding: call bind() first")
        return nn.functional.embedding(tokens, self._embedding)


class EagleHead(Head):
    """The head of EAGLE-1 and EAGLE-2: fc of embedding and feature, then a layer without an input norm."""

    def __init__(self, config: HeadConfig, target_ids: Tensor | None = None) -> None:
        super().__init__(config, target_ids)
        width = config.hidden
        self.embedding_layernorm = LlamaRMSNorm(width, config.eps) if config.input_norms else None
        self.hidden_states_layernorm = LlamaRMSNorm(width, config.eps) if config.input_norms else None
        self.fc = nn.Linear(2 * width, width, bias=config.fc_bias)
        self.layers = nn.ModuleList(_Layer(config, index) for index in range(config.layers))

    def feature(self, states: Sequence[Tensor]) -> Tensor:
        """Return the state behind the target's final norm as it is."""
        return states[0]

    def logits(self, outputs: Tensor) -> Tensor:
        """Score the outputs by the target's output layer; there is no norm before it."""
        return nn.functional.linear(outputs, self._borrowed_rows(outputs.dtype))

    def _decode(
        self, embedded: Tensor, features: Tensor, rotation: Rotation, mask: Tensor | None, cache: Cache | None
    ) -> Tensor:
        if self.embedding_layernorm is not None and self.hidden_states_layernorm is not None:
            embedded, features = self.embedding_layernorm(embedded), self.hidden_states_layernorm(features)
        stream: Tensor = self.fc(torch.cat([embedded, features], -1))
        for layer in self.layers:
            stream = layer(stream, rotation, mask, cache)
        return stream


class Eagle3Head(Head):
    """The head of EAGLE-3: fc of three target states, a layer that reads embedding and feature side by side, its own
    final norm and output layer."""

    def __init__(self, config: HeadConfig, target_ids: Tensor | None = None) -> None:
        super().__init__(config, target_ids)
        width, taps = config.hidden, len(config.taps)
        self.fc = nn.Linear(taps * config.target_hidden, width, bias=config.fc_bias)
        self.input_norm = LlamaRMSNorm(taps * config.target_hidden, config.eps) if config.norm_before_fc else None
        self.fc_norm = (
            nn.ModuleList(LlamaRMSNorm(config.target_hidden, config.eps) for _ in config.taps)
            if config.fc_norm
            else None
        )
        self.midlayer = _WideLayer(config)
        self.norm = LlamaRMSNorm(width, config.eps)
        self.lm_head = nn.Linear(width, config.draft_vocab, bias=False) if config.own_lm_head else None
        self.embed_tokens = nn.Embedding(config.vocab, width) if config.own_embedding else None

    def feature(self, states: Sequence[Tensor]) -> Tensor:
        """Return fc of the target's states, normalised before it where the head is made so."""
        found = [state.to(self.dtype) for state in states]
        if self.fc_norm is not None:
            found = [norm(state) for norm, state in zip(self.fc_norm, found, strict=True)]
        joined = torch.cat(found, -1)
        return torch.as_tensor(self.fc(joined if self.input_norm is None else self.input_norm(joined)))

    def recycled(self, outputs: Tensor) -> Tensor:
        """Return the outputs, behind the final norm where the head is made so (`norm_output`)."""
        return torch.as_tensor(self.norm(outputs)) if self.config.norm_output else outputs

    def logits(self, outputs: Tensor) -> Tensor:
        """Score the outputs behind the final norm by the head's output layer, or by the target's where it has none."""
        normed = self.norm(outputs)
        if self.lm_head is not None:
            return torch.as_tensor(self.lm_head(normed))
        return nn.functional.linear(normed, self._borrowed_rows(normed.dtype))

    def _take_rows(self, places: Tensor) -> None:
        if self.lm_head is not None:
            smaller = nn.Linear(self.config.hidden, len(places), bias=False)
            smaller.weight = nn.Parameter(self.lm_head.weight.detach()[places], requires_grad=False)
            self.lm_head = smaller

    def _decode(
        self, embedded: Tensor, features: Tensor, rotation: Rotation, mask: Tensor | None, cache: Cache | None
    ) -> Tensor:
        return torch.as_tensor(self.midlayer(embedded, features, rotation, mask, cache))

    def _embed(self, tokens: Tensor) -> Tensor:
        return super()._embed(tokens) if self.embed_tokens is None else torch.as_tensor(self.embed_tokens(tokens))


class _Layer(nn.Module):
    """A Llama layer; the first one takes its input as it comes."""

    def __init__(self, config: HeadConfig, index: int) -> None:
        super().__init__()
        self.self_attn = _attention(config, index, config.hidden)
        self.mlp = LlamaMLP(_parts(config, LlamaConfig))
        self.input_layernorm = LlamaRMSNorm(config.hidden, config.eps) if index else None
        self.post_attention_layernorm = LlamaRMSNorm(config.hidden, config.eps)

    def forward(self, stream: Tensor, rotation: Rotation, mask: Tensor | None, cache: Cache | None) -> Tensor:
        taken = stream if self.input_layernorm is None else self.input_layernorm(stream)
        stream = stream + self.self_attn(taken, position_embeddings=rotation, attention_mask=mask, cache=cache)[0]
        return stream + torch.as_tensor(self.mlp(self.post_attention_layernorm(stream)))


class _WideLayer(nn.Module):
    """EAGLE-3's layer: attention reads the normed embedding and the normed feature, 2H wide."""

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        width = config.hidden
        self.self_attn = _attention(config, 0, 2 * width)
        self.mlp = LlamaMLP(_parts(config, LlamaConfig))
        self.hidden_norm = LlamaRMSNorm(width, config.eps)
        self.input_layernorm = LlamaRMSNorm(width, config.eps)
        self.post_attention_layernorm = LlamaRMSNorm(width, config.eps)
        self._residual_is_normed = config.norm_before_residual

    def forward(
        self, embedded: Tensor, feature: Tensor, rotation: Rotation, mask: Tensor | None, cache: Cache | None
    ) -> Tensor:
        normed = self.hidden_norm(feature)
        taken = torch.cat([self.input_layernorm(embedded), normed], -1)
        stream = normed if self._residual_is_normed else feature
        stream = stream + self.self_attn(taken, position_embeddings=rotation, attention_mask=mask, cache=cache)[0]
        return torch.as_tensor(stream + self.mlp(self.post_attention_layernorm(stream)))


def make_head(config: HeadConfig, target_ids: Tensor | None = None) -> Head:
    """Return a head with fresh weights. `target_ids` int64 [Vd], ascending, where its vocabulary is reduced."""
    return EagleHead(config, target_ids) if config.kind == "eagle" else Eagle3Head(config, target_ids)


def _attention(config: HeadConfig, index: int, reads: int) -> nn.Module:
    made: nn.Module = (
        Qwen3Attention(_parts(config, Qwen3Config), index)
        if config.qk_norm
        else LlamaAttention(_parts(config, LlamaConfig), index)
    )
    for name, heads in (("q_proj", config.heads), ("k_proj", config.kv_heads), ("v_proj", config.kv_heads)):
        setattr(made, name, nn.Linear(reads, heads * config.head_dim, bias=config.qkv_bias))
    return made


def _parts(config: HeadConfig, kind: type[PreTrainedConfig]) -> PreTrainedConfig:
    """Return what transformers' parts read. Projections with a bias of their own are replaced afterwards."""
    if config.act not in ACT2FN:
        raise MethodError(f"transformers knows no activation {config.act!r}")
    made = kind(
        hidden_size=config.hidden,
        intermediate_size=config.intermediate,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.head_dim,
        hidden_act=config.act,
        rms_norm_eps=config.eps,
        max_position_embeddings=config.window,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta, **(config.rope_scaling or {})},
        attention_bias=False,
    )
    made._attn_implementation = "sdpa"
    return made
