"""Doubles for testing a method of one's own without a real model.

A `TableTarget` is a target whose next-token distribution is any function of the context, so that what a
method must do can be written down; a `tiny_model` is a real `transformers` model with random weights that
decodes in milliseconds; drafters that replay, that know the answer and that draft nonsense stand beside them.
Importing this module does not import torch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

from draftboard.methods.engine.drafter import Context, Drafter
from draftboard.methods.engine.settings import NONE, HiddenRequest, Limits
from draftboard.methods.engine.tree import TokenTree
from draftboard.suites import Sample, Suite

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from draftboard.methods.engine.gates import Gates
    from draftboard.methods.engine.loop import Clock
    from draftboard.methods.engine.model import LanguageModel
    from draftboard.methods.engine.scores import Scores
    from draftboard.methods.engine.trace import Generation

__all__ = [
    "FakeClock",
    "OracleDrafter",
    "RandomDrafter",
    "ReplayDrafter",
    "ReplayTarget",
    "TableTarget",
    "replay",
    "tiny_model",
    "tiny_suite",
]

NextLogits = Callable[[Sequence[int]], Sequence[float]]
"""Logits [V] of the token after a context."""


@dataclass(slots=True)
class FakeClock:
    """A clock in nanoseconds that moves only when told, and by `tick_ns` at every reading (calling it)."""

    now_ns: int = 0
    tick_ns: int = 0

    def __call__(self) -> int:
        """Return the time and tick."""
        self.now_ns += self.tick_ns
        return self.now_ns

    def advance(self, ns: int) -> None:
        """Let time pass."""
        self.now_ns += ns

    def clock(self) -> Clock:
        """Return it as the engine's clock, for wall and CPU time alike."""
        from draftboard.methods.engine.loop import Clock

        return Clock(wall=self, cpu=lambda: self.now_ns)


class TableTarget:
    """A target whose next-token logits are a function of all ids before, for every node of a tree its own.

    It also serves as a draft model. `ids` is what was committed. Asked for hidden states, it gives [n, 2]: every
    row's token and position, so that a test can see which rows arrive.
    """

    def __init__(
        self,
        logits: NextLogits,
        *,
        window: int = 1 << 30,
        on_forward: Callable[[int], None] | None = None,
    ) -> None:
        """`on_forward` is called with the number of rows of every forward after the prefill."""
        self._logits = logits
        self._known: dict[tuple[int, ...], Tensor] = {}
        self._rows: list[int] = []
        self._on_forward = on_forward
        self.window = window
        self.ids: list[int] = []
        self.forwards: list[TokenTree] = []
        """Every draft that was scored."""

    @classmethod
    def markov(cls, probabilities: Sequence[Sequence[float]], **options: Any) -> Self:
        """Make a target whose next token depends on the last one: `probabilities[last][next]`."""
        from math import inf, log

        rows = [[log(p) if p > 0 else -inf for p in row] for row in probabilities]
        return cls(lambda context: rows[context[-1]], **options)

    @classmethod
    def scripted(cls, ids: Sequence[int], *, vocab_size: int, **options: Any) -> Self:
        """Make a target that wants `ids[n]` after any n ids, the prompt counted; behind the script id 0."""

        def logits(context: Sequence[int]) -> list[float]:
            wanted = ids[len(context)] if len(context) < len(ids) else 0
            return [9.0 if index == wanted else 0.0 for index in range(vocab_size)]

        return cls(logits, **options)

    @property
    def device(self) -> torch.device:
        """The CPU."""
        import torch

        return torch.device("cpu")

    @property
    def vocab_size(self) -> int:
        """Number of logits."""
        return len(self._logits([0]))

    @property
    def length(self) -> int:
        """Number of committed ids."""
        return len(self.ids)

    @property
    def room(self) -> int:
        """What is left of the window."""
        return self.window - len(self.ids)

    def reserve(self, rows: int) -> None:
        """Do nothing: there is room for anything."""

    def synchronize(self) -> None:
        """Do nothing: there is no device."""

    def prefill(self, ids: Sequence[int], *, hidden: HiddenRequest = NONE, all_logits: bool = False) -> Scores:
        """Forget everything and commit these ids."""
        self.ids = list(ids)
        first = 1 if all_logits else len(ids)
        contexts = [self.ids[:end] for end in range(first, len(ids) + 1)]
        return self._score(contexts, hidden, list(zip(ids, range(len(ids)), strict=True)))

    def forward(self, tree: TokenTree, *, gates: Gates | None = None, hidden: HiddenRequest = NONE) -> Scores:
        """Score every node behind the committed ids and its ancestors. There are no layers to bypass."""
        self.forwards.append(tree)
        paths: list[list[int]] = []
        for token, parent in zip(tree.token_list, tree.parent_list, strict=True):
            paths.append([*(paths[parent] if parent >= 0 else self.ids), token])
        self._rows = tree.token_list
        places = [(token, len(self.ids) + depth) for token, depth in zip(tree.token_list, tree.depths, strict=True)]
        scores = self._score(paths, hidden, places)
        if tree.aux is not None:
            scores.aux_logits = self._score(self._aux_contexts(tree), NONE, []).logits
        if self._on_forward is not None:
            self._on_forward(len(tree) + (0 if tree.aux is None else len(tree.aux.tokens)))
        return scores

    def keep(self, path: Sequence[int]) -> None:
        """Commit the tokens of these nodes of the last forward."""
        self.ids.extend(self._rows[node] for node in path)

    def rewind(self, length: int) -> None:
        """Forget everything behind `length` ids."""
        del self.ids[length:]

    def _aux_contexts(self, tree: TokenTree) -> list[list[int]]:
        assert tree.aux is not None
        tokens, positions, mask = (part.tolist() for part in (tree.aux.tokens, tree.aux.positions, tree.aux.mask))
        contexts = []
        for row in mask:
            seen = sorted((positions[i], tokens[i]) for i in range(len(tokens)) if row[1 + i])
            root = tree.token_list[:1] if row[0] else []
            contexts.append([*self.ids, *root, *(token for _, token in seen)])
        return contexts

    def _score(self, contexts: list[list[int]], hidden: HiddenRequest, places: list[tuple[int, int]]) -> Scores:
        import torch

        from draftboard.methods.engine.scores import Scores

        rows = []
        for context in contexts:
            key = tuple(context)
            if key not in self._known:
                self._known[key] = torch.tensor(list(self._logits(context)), dtype=torch.float64)
            rows.append(self._known[key])
        states = {index: torch.tensor(places, dtype=torch.float64) for index in hidden}
        return Scores(torch.stack(rows), states)


Step = Mapping[str, Sequence[int]]
"""One step of a written-down trace: `draft`, the proposed chain, and `target`, the target's pick at each of
its places and one more."""


class ReplayTarget(TableTarget):
    """A target that picks what a trace says it picked, step by step, whatever it is shown.

    When the trace is used up its window is full.
    """

    def __init__(self, prefill_token: int, steps: Sequence[Step]) -> None:
        picks = [[prefill_token], *(list(step["target"]) for step in steps)]
        # A draft may hold ids that the target never picks.
        size = 1 + max(max(row) for row in (*picks, *(step["draft"] for step in steps)) if row)
        self._picks = picks
        self._done = 0
        super().__init__(lambda context: [0.0] * size)

    @property
    def room(self) -> int:
        """What is left of the window: nothing behind the last step."""
        return self.window if self._done < len(self._picks) else 0

    def _score(self, contexts: list[list[int]], hidden: HiddenRequest, places: list[tuple[int, int]]) -> Scores:
        import torch
        from torch.nn.functional import one_hot

        from draftboard.methods.engine.scores import Scores

        picks = self._picks[self._done]
        self._done += 1
        if len(picks) != len(contexts):
            raise ValueError(f"the trace has {len(picks)} picks for a forward of {len(contexts)} rows")
        return Scores(one_hot(torch.tensor(picks), self.vocab_size).double())


class ReplayDrafter(Drafter):
    """Proposes the drafts of a trace in order, however long; the root alone when they run out."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._drafts = iter([list(step["draft"]) for step in steps])

    def propose(self, context: Context) -> TokenTree:
        """Return the next draft behind the root."""
        return TokenTree([context.root, *next(self._drafts, [])])


def replay(trace: Mapping[str, Any]) -> Generation:
    """Run a trace (`prefill_token`, `eos_token_ids`, `max_new_tokens`, `steps`) through the decoding loop."""
    from draftboard.methods.engine.loop import decode

    limits = Limits(max_new_tokens=trace["max_new_tokens"], eos_ids=frozenset(trace["eos_token_ids"]))
    target = ReplayTarget(trace["prefill_token"], trace["steps"])
    return decode(target, ReplayDrafter(trace["steps"]), [0], limits=limits)


class OracleDrafter(Drafter):
    """Drafts the known continuation, so that everything is accepted: τ is `depth` + 1 except at the end.

    `output`: the ids that plain decoding gives after the prompt. With `decoys`, each drafted token comes
    behind that many wrong siblings.
    """

    def __init__(self, output: Sequence[int], depth: int, *, decoys: int = 0) -> None:
        self._output = list(output)
        self._depth = depth
        self._decoys = decoys
        self._prompt = 0

    def begin(self, prompt: Sequence[int], scores: Scores) -> None:
        """Note where the output starts."""
        self._prompt = len(prompt)

    def propose(self, context: Context) -> TokenTree:
        """Return the next tokens of the output."""
        done = len(context.tokens) - self._prompt + 1
        depth = min(self._depth, context.room, (context.max_nodes - 1) // (1 + self._decoys))
        tokens, parents, last = [context.root], [-1], 0
        for token in self._output[done : done + max(0, depth)]:
            wrong = [decoy for decoy in range(self._decoys + 1) if decoy != token]
            tokens += [*wrong[: self._decoys], token]
            parents += [last] * (1 + self._decoys)
            last = len(tokens) - 1
        return TokenTree(tokens, parents)


class RandomDrafter(Drafter):
    """Adversarial drafts: random trees, duplicated siblings, repeated tokens, often the root alone.

    With `output`, the ids of plain decoding, about half of the nodes are the right ones for their place, so
    that blocks of all lengths are accepted. It heeds no limit but `nodes`: the loop cuts what does not fit.
    """

    def __init__(self, vocab_size: int, *, seed: int = 0, nodes: int = 12, output: Sequence[int] = ()) -> None:
        self._random = random.Random(seed)
        self._vocab_size = vocab_size
        self._nodes = nodes
        self._output = list(output)
        self._prompt = 0

    def begin(self, prompt: Sequence[int], scores: Scores) -> None:
        """Note where the output starts."""
        self._prompt = len(prompt)

    def propose(self, context: Context) -> TokenTree:
        """Return a random tree behind the root."""
        dice = self._random
        done = len(context.tokens) - self._prompt + 1
        tokens, parents, depths = [context.root], [-1], [0]
        for node in range(1, 1 + dice.choice((0, 1, 2, self._nodes, dice.randint(0, self._nodes)))):
            parent = dice.choice((node - 1, dice.randrange(node)))
            place = done + depths[parent]
            if place < len(self._output) and dice.random() < 0.5:
                token = self._output[place]
            else:
                token = dice.choice((dice.randrange(self._vocab_size), tokens[-1]))
            tokens.append(token)
            parents.append(parent)
            depths.append(depths[parent] + 1)
        return TokenTree(tokens, parents)


def tiny_model(
    *,
    vocab_size: int = 64,
    layers: int = 2,
    window: int = 512,
    seed: int = 0,
    dtype: str = "float32",
    attention: str = "sdpa",
    **config: Any,
) -> LanguageModel:
    """Return a Llama with random weights on the CPU; `config` goes to `LlamaConfig`.

    Its weights are larger than a fresh model's, so that its greedy output is not one repeated token. `.model`
    is the `transformers` model.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from draftboard.methods.engine.model import LanguageModel

    settings = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "initializer_range": 0.3,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
        **config,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        shape = LlamaConfig(
            vocab_size=vocab_size,
            num_hidden_layers=layers,
            max_position_embeddings=window,
            attn_implementation=attention,
            **settings,
        )
        model = LlamaForCausalLM(shape)
    return LanguageModel(model.to(getattr(torch, dtype)).eval())


def tiny_suite() -> Suite:
    """Return four samples of two domains: one with two turns, one without a reference, one not English."""
    samples = (
        Sample(
            sample_id="sum",
            suite="tiny",
            domain="math",
            category="math",
            turns=("What is 2 + 3?",),
            references=(("5",),),
            scorer="last_number",
        ),
        Sample(
            sample_id="follow-up",
            suite="tiny",
            domain="math",
            category="math",
            turns=("Ann has 4 pens and buys 3. How many?", "She loses 2. How many now?"),
            references=(("7",), ("5",)),
            scorer="last_number",
        ),
        Sample(sample_id="greeting", suite="tiny", domain="chat", category="chat", turns=("Say hello.",)),
        Sample(
            sample_id="german",
            suite="tiny",
            domain="chat",
            category="translation",
            turns=("Übersetze ins Deutsche: The ferry leaves at nine.",),
            references=(("Die Fähre fährt um neun ab.",),),
            scorer="bleu",
            language="de",
        ),
    )
    digest = sha256("\n".join(turn for sample in samples for turn in sample.turns).encode()).hexdigest()
    return Suite(name="tiny", samples=samples, content_hash=digest, source="draftboard.testing", licence="Apache-2.0")
