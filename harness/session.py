"""A plan bound to a model: tokenizer, template, prompts, and what methods may use. Imports torch when it loads."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from draftboard import models
from draftboard.errors import UserError
from draftboard.methods import Binding, MethodError, Preflight, Vocabulary
from draftboard.methods.engine.cost import CostCurve, measure_cost
from draftboard.plan import Plan, sample_key
from draftboard.records import SampleRecord
from draftboard.suites import Sample, Suite
from draftboard.templates import Template, encode, render, resolve_template

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from draftboard.methods.engine.model import LanguageModel

__all__ = ["Reader", "Session", "ids_hash", "open_reader", "preflight"]


@dataclass(slots=True, kw_only=True)
class Reader:
    """The target's text side: everything that needs its tokenizer and configuration but not its weights."""

    ref: models.ModelRef
    tokenizer: PreTrainedTokenizerBase
    template: Template
    eos_ids: frozenset[int]
    window: int
    vocabulary: Vocabulary

    def prompt(self, sample: Sample, answers: Sequence[str]) -> tuple[str, list[int]]:
        """Return (rendered text, token ids) of the turn that follows these answers."""
        turns = sample.turns[: len(answers) + 1]
        text = render(self.template, self.tokenizer, sample.system, turns, answers)
        return text, encode(self.tokenizer, text)

    def text(self, ids: Sequence[int], stop: Sequence[str] = ()) -> str:
        """Return the visible text of generated ids: without special tokens, cut before a stop text, stripped."""
        text = str(self.tokenizer.decode(list(ids), skip_special_tokens=True))
        cuts = [text.find(part) for part in stop if part in text]
        return text[: min(cuts)].strip() if cuts else text.strip()

    def record(self, suite: Suite, sample: Sample) -> SampleRecord:
        """Return what is stored of a sample."""
        text, ids = self.prompt(sample, ())
        return SampleRecord(
            key=sample_key(suite, sample),
            suite=suite.name,
            sample_id=sample.sample_id,
            domain=sample.domain,
            category=sample.category,
            turns=list(sample.turns),
            system=sample.system,
            references=[list(sample.references_of(turn)) for turn in range(len(sample.turns))],
            scorer=sample.scorer,
            language=sample.language,
            options=list(sample.options),
            group=sample.group,
            context=sample.context,
            timed=sample.timed,
            prompt_tokens=len(ids),
            prompt_sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        )


def open_reader(plan: Plan) -> Reader:
    """Find the model, refuse what the engine cannot drive, and load its tokenizer. Reads no weights."""
    from draftboard.methods.engine.support import check_config

    ref = models.resolve(plan.model, plan.revision)
    config = models.load_config(ref)
    check_config(config)
    tokenizer = models.load_tokenizer(ref)
    known = models.vocabulary(ref)
    window = int(getattr(config, "max_position_embeddings", 0) or 1 << 30)
    return Reader(
        ref=ref,
        tokenizer=tokenizer,
        template=resolve_template(plan.template, tokenizer),
        eos_ids=known.eos_ids,
        window=window,
        vocabulary=known,
    )


def preflight(plan: Plan, reader: Reader) -> None:
    """Let every method refuse this target before weights are loaded. All refusals are told at once."""

    known = Preflight(
        target=plan.model,
        vocabulary=reader.vocabulary,
        vocabulary_of=lambda name: models.vocabulary(models.resolve(name)),
    )
    problems: list[str] = []
    for entry in plan.entries:
        try:
            entry.method.preflight(known)
        except (MethodError, UserError) as error:
            problems.append(f"{entry.label}: {error}")
    if problems:
        raise UserError(f"{len(problems)} method(s) cannot run with {plan.model}", problems=tuple(problems))


@dataclass(slots=True, kw_only=True)
class Session:
    """The loaded target and the models that methods asked for."""

    plan: Plan
    reader: Reader
    target: LanguageModel
    fingerprint: str
    curve: CostCurve = field(init=False)
    _others: dict[str, LanguageModel] = field(default_factory=dict)

    @classmethod
    def load(cls, plan: Plan, reader: Reader) -> Session:
        """Load the target's weights."""
        import torch

        from draftboard.methods.engine.model import LanguageModel

        if plan.threads is not None:
            torch.set_num_threads(plan.threads)
        target = LanguageModel(models.load_model(reader.ref, dtype=plan.dtype, device=plan.device))
        return cls(plan=plan, reader=reader, target=target, fingerprint=models.fingerprint(reader.ref))

    def measure(self, stored: dict[str, Any] | None = None) -> CostCurve:
        """Measure the target's cost curve, or take the run's own, so that a resumed run drafts as before."""
        if stored is not None:
            self.curve = CostCurve(
                rows=tuple(stored["rows"]), cost=tuple(stored["cost"]), one_row_s=float(stored["one_row_s"])
            )
        else:
            self.curve = measure_cost(self.target, prefix=min(200, max(1, self.reader.window // 2)))
        return self.curve

    def binding(self) -> Binding:
        """Return what drafters may use."""
        return Binding(
            target=self.target,
            vocab_size=len(self.reader.vocabulary.tokens),
            logit_width=self.reader.vocabulary.logit_width,
            eos_ids=self.reader.eos_ids,
            curve=self.curve,
            load_model=self.other,
            fingerprint=self.fingerprint,
        )

    def other(self, name: str) -> LanguageModel:
        """Load another model (a draft model) once, with the target's dtype and device."""
        from draftboard.methods.engine.model import LanguageModel

        if name not in self._others:
            dtype = str(self.target.dtype).removeprefix("torch.")
            self._others[name] = LanguageModel(
                models.load_model(models.resolve(name), dtype=dtype, device=str(self.target.device))
            )
        return self._others[name]


def ids_hash(ids: Sequence[int]) -> str:
    """Return the hash by which prompts are compared."""
    return hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()[:16]
