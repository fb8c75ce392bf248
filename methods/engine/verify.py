"""Which drafted tokens stay. Greedy and sampled verification are lossless; typical acceptance is not, and says so.

Sources: greedy matching and the point-mass rule, native-methods 0.1 and 0.2(a); speculative sampling of chains,
Leviathan et al. 2023 and Chen et al. 2023; siblings drawn without replacement, SpecInfer and EAGLE-1, 0.2(c);
typical acceptance, Cai et al. 2024 (Medusa).
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from draftboard.methods.engine.scores import Scores
from draftboard.methods.engine.settings import Sampling
from draftboard.methods.engine.tree import TokenTree

__all__ = ["LOSSLESS", "Lossless", "Typical", "Verifier", "choose", "warp"]

Path = tuple[list[int], int]
"""Accepted nodes (the root first) and the bonus token."""


class Verifier(Protocol):
    """Decides which path of a draft is accepted."""

    @property
    def lossless(self) -> bool:
        """Whether the output distribution stays the target's."""
        ...

    def judge(self, tree: TokenTree, scores: Scores, sampling: Sampling, generator: torch.Generator) -> Path:
        """Return the accepted path and the bonus."""
        ...


def warp(logits: Tensor, sampling: Sampling) -> Tensor:
    """Return probabilities in float32 (float64 stays) of the same shape [..., V]: temperature, top-k, top-p."""
    scores = logits.to(torch.promote_types(logits.dtype, torch.float32)) / sampling.temperature
    if 0 < sampling.top_k < scores.shape[-1]:
        floor = scores.topk(sampling.top_k).values[..., -1:]
        scores = scores.masked_fill(scores < floor, -torch.inf)
    probabilities = scores.softmax(-1)
    if sampling.top_p < 1:
        ordered, order = probabilities.sort(descending=True, stable=True)
        beyond = ordered.cumsum(-1) - ordered >= sampling.top_p
        probabilities = probabilities.scatter(-1, order, ordered.masked_fill(beyond, 0))
        probabilities = probabilities / probabilities.sum(-1, keepdim=True)
    return probabilities


def choose(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    """Pick one token from logits [V] as the target would."""
    if sampling.greedy:
        return int(logits.argmax())
    return _draw(warp(logits, sampling), generator)


@dataclass(frozen=True, slots=True)
class Lossless:
    """The output distribution equals the target's, whatever was drafted."""

    lossless: bool = True

    def judge(self, tree: TokenTree, scores: Scores, sampling: Sampling, generator: torch.Generator) -> Path:
        """Greedy: follow the target's choice. Sampling: see `_sampled` and `_drawn`."""
        if sampling.greedy:
            best = scores.best()
            return _follow(tree, best.__getitem__)
        if tree.proposal is None:
            return _follow(tree, lambda node: _draw(warp(scores.logits[node], sampling), generator))
        return _drawn(tree, scores.logits, tree.proposal.q, sampling, generator)


LOSSLESS = Lossless()


@dataclass(frozen=True, slots=True)
class Typical:
    """Medusa's typical acceptance: take a drafted token when the target finds it likely enough. Lossy."""

    epsilon: float = 0.09
    alpha: float = 0.3
    lossless: bool = False

    def judge(self, tree: TokenTree, scores: Scores, sampling: Sampling, generator: torch.Generator) -> Path:
        """Accept x when p(x) > min(epsilon, alpha * exp(-entropy)); longest path, ties by likelihood."""
        if sampling.greedy:
            return LOSSLESS.judge(tree, scores, sampling, generator)
        probabilities = warp(scores.logits, sampling)
        entropy = torch.special.entr(probabilities).sum(-1)
        limits = (self.alpha * torch.exp(-entropy)).clamp(max=self.epsilon).tolist()
        best: tuple[int, float, list[int]] = (0, 0.0, [0])
        open_paths = [(0.0, [0])]
        while open_paths:
            likelihood, path = open_paths.pop()
            best = max(best, (len(path) - 1, likelihood, path), key=lambda found: found[:2])
            for child in tree.children[path[-1]]:
                p = float(probabilities[path[-1], tree.token_list[child]])
                if p > limits[path[-1]]:
                    open_paths.append((likelihood + float(torch.log(torch.tensor(p))), [*path, child]))
        path = best[2]
        return path, _draw(probabilities[path[-1]], generator)


def _follow(tree: TokenTree, pick: "_Pick") -> Path:
    """Descend while a child carries the token that the target picks at its parent.

    Drawing once per node and following the child that matches has exactly the distribution of accepting each distinct
    child x with probability p(x) and renormalising (native-methods 0.2(a)).
    """
    path, node = [0], 0
    tokens = tree.token_list
    if tree.is_chain:
        last = len(tokens) - 1
        while (token := pick(node)) is not None and node < last and tokens[node + 1] == token:
            node += 1
            path.append(node)
        return path, token
    while True:
        token = pick(node)
        for child in tree.children[node]:
            if tokens[child] == token:
                node = child
                path.append(child)
                break
        else:
            return path, token


class _Pick(Protocol):
    def __call__(self, node: int, /) -> int: ...


def _drawn(tree: TokenTree, logits: Tensor, q: Tensor, sampling: Sampling, generator: torch.Generator) -> Path:
    """Judge a draft that was sampled from q: children in drawing order, without replacement; a chain has one child.

    Child x is accepted with min(1, p(x) / q(x)); after a rejection p becomes norm(max(p - q, 0)) and x leaves q.
    """
    path, node = [0], 0
    while True:
        p = warp(logits[node], sampling)
        children = tree.children[node]
        rest = q[children[0]].to(p) if children else None
        for child in children:
            assert rest is not None
            token = tree.token_list[child]
            chance = float(rest[token])
            if chance <= 0:
                continue
            if _uniform(p, generator) * chance < float(p[token]):
                node = child
                path.append(child)
                break
            residual = (p - rest).clamp_(min=0)
            total = residual.sum()
            # Rounding can leave nothing where p and q agree; p itself is then the right distribution.
            p = residual / total if total > 0 else p
            rest = rest.clone()
            rest[token] = 0
            left = rest.sum()
            rest = rest / left if left > 0 else rest
        else:
            return path, _draw(p, generator)


def _uniform(like: Tensor, generator: torch.Generator) -> float:
    return float(torch.rand((), generator=generator, device=like.device, dtype=torch.float64))


def _draw(probabilities: Tensor, generator: torch.Generator) -> int:
    return int(torch.multinomial(probabilities, 1, generator=generator))
