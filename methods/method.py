"""What a method is: a frozen dataclass whose fields are its settings, and which makes a drafter for every turn.

Free of torch, so that methods can be listed, validated and written into a plan without it.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from draftboard.methods.engine.cost import FLAT, CostCurve
from draftboard.methods.engine.drafter import Drafter
from draftboard.methods.errors import MethodError

if TYPE_CHECKING:
    from draftboard.methods.artifact import Workshop
    from draftboard.methods.engine.loop import Target
    from draftboard.methods.engine.verify import Verifier

__all__ = ["Binding", "Budget", "Method", "Preflight", "Vocabulary"]

Budget = Literal["auto", "paper"]
"""How large drafts are: sized to the measured cost curve and the acceptance seen so far, or as published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """A tokenizer's table and its model's logit width."""

    tokens: dict[str, int]
    logit_width: int
    eos_ids: frozenset[int] = frozenset()

    @property
    def sha256(self) -> str:
        """Hash of the table: equal exactly when ids mean the same tokens."""
        rows = sorted((index, token) for token, index in self.tokens.items())
        return hashlib.sha256(repr(rows).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What can be known before any weights are loaded."""

    target: str
    """Name of the target model."""
    vocabulary: Vocabulary
    vocabulary_of: Callable[[str], Vocabulary]
    """Reads another model's vocabulary by its name."""
    hidden: int = 0
    """Width of the target; 0 where it is not known."""
    layers: int = 0
    """Decoder layers of the target; 0 where they are not known."""
    find_folder: Callable[[str], Path] | None = None
    """Finds the folder of a head by path, bundled name or hub id, and fetches it where it has to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a drafter may use of the run it is part of."""

    target: Target
    vocab_size: int
    """Ids the tokenizer knows; a draft holds no other."""
    logit_width: int
    """Columns of the target's logits; may be wider than the vocabulary."""
    eos_ids: frozenset[int] = frozenset()
    curve: CostCurve = FLAT
    """Measured cost of the target's forward."""
    load_model: Callable[[str], Any] | None = None
    """Loads another model by name as a `LanguageModel`, once a run."""
    fingerprint: str = ""
    """Of the target's weights: artifacts are bound to it."""
    find_folder: Callable[[str], Path] | None = None
    """Finds the folder of a head by path, bundled name or hub id, and fetches it where it has to."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    """What the method's `measure` returned when the run began; empty where it was not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(ABC):
    """A drafter, a verifier policy and their settings, under one name.

    Subclasses are frozen dataclasses decorated with `@register("name")`; their fields are the settings.
    """

    name: ClassVar[str] = ""
    about: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    """The paper."""
    lossless: ClassVar[bool] = True
    """Whether the output distribution is the target's."""
    training: ClassVar[str] = "none"
    """`none`, `calibration` or `trained`."""
    inside: ClassVar[str | None] = None
    """The field that the bracket notation fills, e.g. `auxiliary` for `samd[eagle2]`."""

    @abstractmethod
    def drafter(self, binding: Binding) -> Drafter:
        """Return a fresh drafter for one turn."""

    def preflight(self, known: Preflight) -> None:  # noqa: B027 - an optional step
        """Raise MethodError if this method cannot run with that target; nothing has been loaded yet."""

    def measure(self, binding: Binding) -> dict[str, Any]:
        """Load what the method needs, and return what it measures of this machine, as plain JSON.

        Asked once, when a run begins. The run keeps the answer, and every drafter finds it in `Binding.measured`, after
        a resume too, so that drafts do not depend on when a machine was measured. Raises MethodError for what cannot be
        loaded: told before the first cell.
        """
        return {}

    @classmethod
    def prepare(cls, workshop: Workshop) -> dict[str, Any]:
        """Make the artifact this method needs and return its record. Raises MethodError where none is needed."""
        raise MethodError(f"{cls.name} needs nothing prepared")

    def verifier(self) -> Verifier:
        """Return the verifier policy; lossless unless overridden."""
        from draftboard.methods.engine.verify import LOSSLESS

        return LOSSLESS

    def settings(self) -> dict[str, object]:
        """Return the settings as plain JSON values, nested methods as tables."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    def notation(self) -> str:
        """Return the name in the field's bracket notation."""
        if self.inside is None:
            return self.name
        inner = getattr(self, self.inside)
        return f"{self.name}[{inner.notation() if isinstance(inner, Method) else 'none'}]"

    def with_budget(self, budget: Budget) -> Self:
        """Return this method, and what it wraps, with that draft budget where there is one."""
        changes: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "budget":
                changes[f.name] = budget
            elif isinstance(value, Method):
                changes[f.name] = value.with_budget(budget)
        return replace(self, **changes)


def _plain(value: object) -> object:
    if isinstance(value, Method):
        return {"method": value.name, **value.settings()}
    if isinstance(value, Path):
        return value.name
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
