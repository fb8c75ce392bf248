"""The one decoding loop. Every method runs through it, autoregressive decoding included, so that a speedup measures
the method and not the code around it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns, process_time_ns
from typing import Protocol

import torch

from draftboard.methods.engine.drafter import Context, Drafter, Verdict
from draftboard.methods.engine.gates import DENSE, Gates
from draftboard.methods.engine.scores import Scores
from draftboard.methods.engine.settings import GREEDY, HiddenRequest, Limits, Sampling
from draftboard.methods.engine.trace import Generation, Trace
from draftboard.methods.engine.tree import TokenTree
from draftboard.methods.engine.verify import LOSSLESS, Verifier, choose
from draftboard.methods.errors import MethodError

__all__ = ["Clock", "Target", "decode"]


@dataclass(frozen=True, slots=True)
class Clock:
    """One monotonic clock and the process CPU clock, both in nanoseconds."""

    wall: Callable[[], int] = perf_counter_ns
    cpu: Callable[[], int] = process_time_ns
    profile: bool = False
    """Synchronise the device at every reading, so that draft, verify and other times are true. Slows CUDA down."""


class Target(Protocol):
    """What the loop needs of a model; `LanguageModel` and the test doubles offer it."""

    @property
    def device(self) -> torch.device:
        """Where logits are."""
        ...

    @property
    def room(self) -> int:
        """Rows that a draft may have now, the root included."""
        ...

    def reserve(self, rows: int) -> None:
        """Make room for that many tokens in all."""
        ...

    def prefill(self, ids: Sequence[int], *, hidden: HiddenRequest = ..., all_logits: bool = ...) -> Scores:
        """Forget everything, commit these ids and score the last position (or all)."""
        ...

    def forward(self, tree: TokenTree, *, gates: Gates = ..., hidden: HiddenRequest = ...) -> Scores:
        """Score every node; commit nothing."""
        ...

    def keep(self, path: Sequence[int]) -> None:
        """Commit these nodes of the last forward and drop the rest."""
        ...

    def synchronize(self) -> None:
        """Wait until the device is idle."""
        ...


@torch.inference_mode()
def decode(
    target: Target,
    drafter: Drafter,
    prompt: Sequence[int],
    *,
    limits: Limits,
    sampling: Sampling = GREEDY,
    verifier: Verifier = LOSSLESS,
    gates: Gates = DENSE,
    generator: torch.Generator | None = None,
    clock: Clock = Clock(),
    keep_drafts: bool = False,
) -> Generation:
    """Generate one turn.

    `prompt`: token ids, at least one. `gates` bypass parts of the target at every verification (a sparse verifier).
    `keep_drafts` records the draft of every step in `Trace.judged`, outside the step's own times.
    Returns the kept ids with the record of every step. Raises ValueError on an empty prompt and MethodError on a draft
    whose node 0 is not the root or that holds an id the target does not know.
    """
    if not prompt:
        raise ValueError("a prompt needs at least one token")
    generator = generator or torch.Generator(device=target.device)
    hidden = drafter.wants_hidden
    read = _reader(target, clock)
    target.reserve(len(prompt) + limits.max_new_tokens + DRAFT_ROOM)
    target.synchronize()
    cpu_start, start = clock.cpu(), clock.wall()
    scores = target.prefill(prompt, hidden=hidden, all_logits=drafter.wants_prompt_logits)
    root, width = choose(scores.logits[-1], sampling, generator), scores.logits.shape[-1]
    target.synchronize()
    first, first_cpu = clock.wall() - start, clock.cpu() - cpu_start
    output, trace = [root], Trace()
    kept, finish = limits.cut(output, 1)
    del output[kept:]
    if not finish:
        drafter.begin(prompt, scores)
    committed = list(prompt)
    context = Context(tokens=committed, root=root, room=0, max_nodes=0, sampling=sampling, generator=generator)
    while not finish:
        room = target.room
        if room < 1:
            finish = "window"
            break
        began = read()
        context.root, context.max_nodes = root, room
        context.room = limits.max_new_tokens - len(output) - 1
        context.signals = {}
        tree = _fitting(_checked(drafter.propose(context), drafter, root, width), room)
        drafted_at = read()
        scores = target.forward(tree, gates=gates, hidden=hidden)
        verified_at = read()
        path, bonus = verifier.judge(tree, scores, sampling, generator)
        # A drafter's ids may be of any integer kind; what is kept and stored is plain.
        emitted = [int(tree.token_list[node]) for node in path[1:]]
        emitted.append(bonus)
        target.keep(path)
        committed.append(root)
        committed.extend(emitted[:-1])
        output.extend(emitted)
        kept, finish = limits.cut(output, len(emitted))
        if finish:
            del output[len(output) - len(emitted) + kept :]
        root = bonus
        judged_at = read()
        if not finish:
            drafter.observe(Verdict(tree=tree, path=path, emitted=emitted, scores=scores))
        ended = read()
        trace.step(
            drafted=tree.depth,
            nodes=len(tree) - 1,
            accepted=len(path) - 1,
            kept=kept,
            draft_ns=drafted_at - began + ended - judged_at,
            verify_ns=verified_at - drafted_at,
            other_ns=judged_at - verified_at,
            end_ns=judged_at - start,
            signals=context.signals,
        )
        if keep_drafts:
            # Not the tree itself: it may hold tensors as wide as the vocabulary.
            trace.judged.append((tree.token_list, tree.parent_list, path))
    target.synchronize()
    end, cpu_end = clock.wall() - start, clock.cpu() - cpu_start
    return Generation(
        token_ids=output,
        finish=finish,
        prompt_tokens=len(prompt),
        prefill_ns=first,
        first_ns=first,
        end_ns=end,
        cpu_ns=cpu_end,
        first_cpu_ns=first_cpu,
        trace=trace,
    )


DRAFT_ROOM = 128
"""Cache rows kept for a draft behind the longest output; a larger draft is cut, never refused."""


def _checked(tree: object, drafter: Drafter, root: int, width: int) -> TokenTree:
    """Refuse a draft that cannot be verified, before it reaches a device that a bad index would break for good."""
    name = type(drafter).__name__
    if not isinstance(tree, TokenTree):
        raise MethodError(f"{name}.propose() returned {type(tree).__name__}, not a TokenTree")
    if tree.token_list[0] != root:
        raise MethodError(f"{name} drafted behind token {tree.token_list[0]}: node 0 must be the root, {root}")
    if min(tree.token_list) < 0 or max(tree.token_list) >= width:
        stray = next(token for token in tree.token_list if not 0 <= token < width)
        raise MethodError(f"{name} drafted token {stray}; the target knows 0 to {width - 1}")
    return tree


def _fitting(tree: TokenTree, room: int) -> TokenTree:
    """Shorten a draft that the cache or the window cannot hold. Aux rows go first."""
    extra = 0 if tree.aux is None else tree.aux.mask.shape[0]
    return tree if len(tree) + extra <= room else tree.shortened(room)


def _reader(target: Target, clock: Clock) -> Callable[[], int]:
    if not clock.profile:
        return clock.wall

    def read() -> int:
        target.synchronize()
        return clock.wall()

    return read
