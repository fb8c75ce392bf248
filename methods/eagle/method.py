"""EAGLE-1, EAGLE-2 and EAGLE-3: a one-layer head that reads the target's own features (Li et al. 2024, 2024, 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from draftboard.methods.budget import MAX_NODES
from draftboard.methods.eagle.trees import TREES, StaticTree, chain
from draftboard.methods.engine.drafter import Drafter
from draftboard.methods.errors import MethodError
from draftboard.methods.method import Binding, Budget, Method, Preflight
from draftboard.methods.registry import register

if TYPE_CHECKING:
    from draftboard.methods.artifact import Workshop
    from draftboard.methods.eagle.bound import BoundHead, Wanted
    from draftboard.methods.eagle.sizing import Sizer

__all__ = ["PRESETS", "Eagle", "Eagle2", "Eagle3"]

Preset = Literal["library", "evaluation", "qwen3", "paper-7b", "paper-13b", "paper-70b"]

_SIZES: dict[Preset, tuple[int, int, int]] = {
    "library": (60, 7, 10),
    "evaluation": (60, 5, 10),
    "qwen3": (32, 8, 4),
}
_PAPER: dict[Preset, int] = {"paper-7b": 60, "paper-13b": 50, "paper-70b": 48}
PRESETS: dict[str, dict[Preset, tuple[int, int, int]]] = {
    "eagle2": _SIZES | {name: (rows, 5, 10) for name, rows in _PAPER.items()},
    "eagle3": _SIZES | {name: (rows, 7, 10) for name, rows in _PAPER.items()},
}
"""Published sizes by method: total_token, depth, top_k (native-methods 1.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Headed(Method):
    """What the three have in common."""

    training: ClassVar[str] = "trained"
    kind: ClassVar[Literal["eagle", "eagle3"]] = "eagle"

    head: str = "auto"
    """The head: a folder, a hub id, the name of a bundled one; `auto` is the bundled one of the target."""
    draft_vocab: int = 0
    """Draft only that many ids, the most frequent ones of the head's training text; 0: as many as the head does."""
    counts: Path | None = None
    """Folder of the head whose token counts to use, where this one has none."""
    budget: Budget = "auto"

    def preflight(self, known: Preflight) -> None:
        """Check that the head is there and fits the target."""
        from draftboard.methods.eagle.bound import check_head_fits

        check_head_fits(self._wanted(), known)

    def measure(self, binding: Binding) -> dict[str, Any]:
        """Load the head; return what its forwards cost, where drafts are sized to it."""
        bound = self._bound(binding)
        return bound.cost(binding.vocab_size).document() if self._sized() else {}

    @classmethod
    def prepare(cls, workshop: Workshop) -> dict[str, Any]:
        """Train a head for the workshop's target."""
        from draftboard.methods.eagle.prepare import prepare_head

        return prepare_head(workshop, cls.kind)

    def _sized(self) -> bool:
        """Whether drafts are sized to what things cost."""
        return self.budget == "auto"

    def _check(self) -> None:
        if not self.head or self.draft_vocab < 0:
            raise MethodError(f"{self.name}: head must be named and draft_vocab be at least 0")

    def _wanted(self) -> Wanted:
        from draftboard.methods.eagle.bound import Wanted

        return Wanted(
            method=self.name, kind=self.kind, head=self.head, draft_vocab=self.draft_vocab, counts=self.counts
        )

    def _bound(self, binding: Binding) -> BoundHead:
        from draftboard.methods.eagle.bound import bound_head

        return bound_head(self._wanted(), binding)


def _sizer(bound: BoundHead, binding: Binding, *, width: int, nodes: int) -> Sizer:
    from draftboard.methods.eagle.sizing import HeadCost, Sizer

    cost = HeadCost.read(binding.measured) if binding.measured else bound.cost(binding.vocab_size)
    return Sizer(cost=cost, curve=binding.curve, width=width, nodes=nodes)


@register("eagle")
@dataclass(frozen=True, slots=True, kw_only=True)
class Eagle(_Headed):
    """A static tree filled by the head. When the run samples, children are drawn from the head without replacement.

    `budget="paper"` fills all of it; `auto` cuts it to the depth and the nodes that pay on this machine.
    """

    about: ClassVar[str] = "EAGLE-1: autoregression on features, static tree"
    reference: ClassVar[str] = "Li et al. 2024, arXiv:2401.15077"

    tree: Literal["mc_sim_7b_63", "chain"] = "mc_sim_7b_63"
    draft_length: int = 5
    """Of a chain."""

    def __post_init__(self) -> None:
        self._check()
        if not 1 <= self.draft_length <= MAX_NODES:
            raise MethodError(f"{self.name}: draft_length must lie between 1 and {MAX_NODES}")

    def drafter(self, binding: Binding) -> Drafter:
        """Return a drafter around the head, which is loaded once a run."""
        from draftboard.methods.eagle.drafter import Pairs, StaticDrafter

        bound = self._bound(binding)
        tree = self._tree()
        sizer = _sizer(bound, binding, width=max(tree.widths()), nodes=len(tree) - 1) if self._sized() else None
        pairs = Pairs(bound.head, vocab_size=binding.vocab_size)
        return StaticDrafter(pairs, sizer, tree, logit_width=binding.logit_width)

    def _tree(self) -> StaticTree:
        return chain(self.draft_length) if self.tree == "chain" else TREES[self.tree]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dynamic(_Headed):
    """The dynamic tree of EAGLE-2 and EAGLE-3.

    `budget="paper"` drafts with the preset's sizes, or with those that are set beside it. `auto` takes them as limits
    of depth and width, and decides for every step how deep to go and how many nodes to have verified.
    """

    preset: Preset = "paper-7b"
    """Published sizes: `paper-…` of the papers, `evaluation` and `qwen3` of the official scripts, `library` of the
    official constructor."""
    total_token: int | Literal["auto"] | None = None
    """Rows of the target's forward, the root included; `auto`: as many as pay; None: the preset's with
    `budget="paper"`, else `auto`."""
    depth: int | None = None
    """Head forwards beside the root's; None: the preset's."""
    top_k: int | None = None
    """Nodes that a level expands, and children of each; None: the preset's."""
    shape: Literal["tree", "chain"] = "tree"
    """`chain` drafts the likeliest token only, `depth` + 1 times."""

    def __post_init__(self) -> None:
        self._check()
        total, depth, top_k = self.total_token, self.depth, self.top_k
        if isinstance(total, int) and total < 2:
            raise MethodError(f"{self.name}: total_token counts the root and must be at least 2")
        if depth is not None and not 0 <= depth <= MAX_NODES:
            raise MethodError(f"{self.name}: depth must lie between 0 and {MAX_NODES}")
        if top_k is not None and not 1 <= top_k <= MAX_NODES:
            raise MethodError(f"{self.name}: top_k must lie between 1 and {MAX_NODES}")

    def sizes(self) -> tuple[int | Literal["auto"], int, int]:
        """Return total_token, depth and top_k in effect."""
        total, depth, top_k = PRESETS[self.name][self.preset]
        depth = depth if self.depth is None else self.depth
        chained = self.shape == "chain"
        rows: int | Literal["auto"] = depth + 2 if chained else total
        if self.total_token is not None:
            rows = self.total_token
        elif self.budget == "auto":
            rows = "auto"
        return rows, depth, 1 if chained else (top_k if self.top_k is None else self.top_k)

    def settings(self) -> dict[str, object]:
        """Return the settings, sizes as they are in effect."""
        # A dataclass with slots is made anew, which super() without arguments does not know.
        total, depth, top_k = self.sizes()
        return {**_Headed.settings(self), "total_token": total, "depth": depth, "top_k": top_k}

    def drafter(self, binding: Binding) -> Drafter:
        """Return a drafter around the head, which is loaded once a run."""
        from draftboard.methods.eagle.drafter import DynamicDrafter, Pairs

        bound = self._bound(binding)
        total, depth, top_k = self.sizes()
        nodes = MAX_NODES if total == "auto" else total - 1
        sizer = _sizer(bound, binding, width=top_k, nodes=nodes) if self._sized() else None
        pairs = Pairs(bound.head, vocab_size=binding.vocab_size)
        fixed = self.budget == "paper"
        return DynamicDrafter(pairs, sizer, levels=depth, width=top_k, nodes=nodes, fixed=fixed)

    def _sized(self) -> bool:
        return self.budget == "auto" or self.sizes()[0] == "auto"


@register("eagle2")
@dataclass(frozen=True, slots=True, kw_only=True)
class Eagle2(_Dynamic):
    """EAGLE-1's head with a tree that grows where the head is sure."""

    about: ClassVar[str] = "EAGLE-2: EAGLE-1's head, dynamic tree"
    reference: ClassVar[str] = "Li et al. 2024, arXiv:2406.16858"


@register("eagle3")
@dataclass(frozen=True, slots=True, kw_only=True)
class Eagle3(_Dynamic):
    """A head that reads three of the target's layers and was trained on its own drafts; EAGLE-2's tree."""

    about: ClassVar[str] = "EAGLE-3: head on three layers, dynamic tree"
    reference: ClassVar[str] = "Li et al. 2025, arXiv:2503.01840"
    kind: ClassVar[Literal["eagle", "eagle3"]] = "eagle3"
