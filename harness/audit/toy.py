"""Verifiers on a vocabulary of four tokens, where the right distribution is known exactly."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import torch

from draftboard.audit.fit import LEVEL, fit, variation
from draftboard.audit.report import SelfCheck, ToyCheck
from draftboard.methods.engine import LOSSLESS, Proposal, Sampling, Scores, TokenTree, Verifier
from draftboard.methods.engine.verify import warp

__all__ = ["check_itself", "check_verifiers"]

_TARGET = ((0.4, 0.3, 0.2, 0.1), (0.1, 0.2, 0.2, 0.5), (0.25, 0.15, 0.45, 0.15), (0.3, 0.35, 0.25, 0.1))
_DRAFT = ((0.2, 0.3, 0.1, 0.4), (0.3, 0.3, 0.2, 0.2), (0.4, 0.2, 0.1, 0.3), (0.1, 0.5, 0.15, 0.25))
"""Row: the last token; column: the next."""
_TOKENS = range(len(_TARGET))
_FACTOR = 2
"""Times the larger total variation of two batches of plain decoding that a right verifier stays below."""

_Propose = Callable[[int], TokenTree]
"""Makes the draft behind a root."""


def check_verifiers(
    verifiers: Sequence[tuple[str, bool, Verifier]], sampling: Sampling, *, draws: int = 20_000, seed: int = 0
) -> tuple[ToyCheck, ...]:
    """Draw two tokens behind a root, over and over, by every distinct verifier and kind of draft.

    `verifiers`: label, whether it claims to be lossless, verifier. A check passes where the total variation from the
    exact distribution is at most twice that of plain decoding and chi-square finds no difference (9.3 a).
    """
    logits = torch.tensor(_TARGET, dtype=torch.float64).log()
    p = warp(logits, sampling).tolist()
    exact = {(a, b): p[0][a] * p[a][b] for a, b in product(_TOKENS, repeat=2)}
    plain = [
        variation(_pairs(lambda root: TokenTree([root]), LOSSLESS, logits, sampling, draws, seed + batch), exact)
        for batch in (1, 2)
    ]
    found = []
    for methods, lossless, verifier in _distinct(verifiers):
        for kind, (name, make) in enumerate(_DRAFTS.items()):
            counts = _pairs(make(sampling, seed), verifier, logits, sampling, draws, seed + 3 + kind)
            far = variation(counts, exact)
            p_value = fit(counts, exact).p_value
            found.append(
                ToyCheck(
                    methods=methods,
                    draft=name,
                    lossless=lossless,
                    draws=draws,
                    variation=far,
                    plain=(plain[0], plain[1]),
                    p_value=p_value,
                    passed=far <= _FACTOR * max(plain) and p_value > LEVEL,
                )
            )
    return tuple(found)


def check_itself(sampling: Sampling, *, steps: int = 500, seed: int = 0) -> SelfCheck:
    """Draft with the target's own probabilities: every token has to be accepted (9.3 c)."""
    logits = torch.tensor(_TARGET, dtype=torch.float64).log()
    p = warp(logits, sampling)
    dice, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    weights = p.tolist()
    accepted = 0
    for _ in range(steps):
        tokens = [0]
        for _ in range(3):
            tokens += dice.choices(_TOKENS, weights[tokens[-1]])
        tree = TokenTree(tokens, proposal=Proposal(q=torch.stack([p[0], *(p[t] for t in tokens[:-1])])))
        accepted += len(LOSSLESS.judge(tree, Scores(logits[tokens]), sampling, generator)[0]) - 1
    return SelfCheck(where="toy", drafted=3 * steps, accepted=accepted, allowed=0.0, passed=accepted == 3 * steps)


def _distinct(verifiers: Sequence[tuple[str, bool, Verifier]]) -> list[tuple[tuple[str, ...], bool, Verifier]]:
    """Put methods with equal verifiers and claims together: what one shows holds for all of them."""
    found: list[tuple[tuple[str, ...], bool, Verifier]] = []
    for label, lossless, verifier in verifiers:
        for index, (labels, claim, known) in enumerate(found):
            if claim == lossless and type(known) is type(verifier) and known == verifier:
                found[index] = ((*labels, label), claim, known)
                break
        else:
            found.append(((label,), lossless, verifier))
    return found


@torch.inference_mode()
def _pairs(
    propose: _Propose, verifier: Verifier, logits: torch.Tensor, sampling: Sampling, draws: int, seed: int
) -> Counter[tuple[int, int]]:
    """Count the first two tokens behind token 0, each step with a fresh draft."""
    generator = torch.Generator().manual_seed(seed)
    counts: Counter[tuple[int, int]] = Counter()
    for _ in range(draws):
        written = [0]
        while len(written) < 3:
            tree = propose(written[-1])
            path, bonus = verifier.judge(tree, Scores(logits[tree.token_list]), sampling, generator)
            written += [*(tree.token_list[node] for node in path[1:]), bonus]
        counts[written[1], written[2]] += 1
    return counts


def _fixed(sampling: Sampling, seed: int) -> _Propose:
    """The same tree every time, as methods that copy from the text make it; siblings doubled."""
    trees = {root: TokenTree([root, 1, 3, 3, 0, 2, 1], [-1, 0, 0, 0, 1, 1, 2]) for root in _TOKENS}
    return trees.__getitem__


def _drawn(widths: tuple[int, ...]) -> Callable[[Sampling, int], _Propose]:
    """Drafts drawn from another model; nodes of one place are drawn in order, without replacement."""

    def make(sampling: Sampling, seed: int) -> _Propose:
        q = warp(torch.tensor(_DRAFT, dtype=torch.float64).log(), sampling)
        weights, dice = q.tolist(), random.Random(seed)
        made: dict[tuple[int, ...], TokenTree] = {}

        def propose(root: int) -> TokenTree:
            tokens, parents, level = [root], [-1], [0]
            for width in widths:
                above, level = level, []
                for parent in above[:1]:
                    for token in _without_replacement(weights[tokens[parent]], width, dice):
                        level.append(len(tokens))
                        tokens.append(token)
                        parents.append(parent)
            at = (*tokens, -1, *parents)
            if at not in made:
                rows = q[[tokens[max(0, parent)] for parent in parents]]
                made[at] = TokenTree(tokens, parents, proposal=Proposal(q=rows))
            return made[at]

        return propose

    return make


def _without_replacement(weights: Sequence[float], count: int, dice: random.Random) -> list[int]:
    left: list[float] = list(weights)
    drawn: list[int] = []
    while len(drawn) < count and any(left):
        drawn += dice.choices(_TOKENS, left)
        left[drawn[-1]] = 0.0
    return drawn


_DRAFTS: Mapping[str, Callable[[Sampling, int], _Propose]] = {
    "fixed tree": _fixed,
    "drawn chain": _drawn((1, 1)),
    "drawn siblings": _drawn((3, 1)),
}
