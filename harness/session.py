"""A plan bound to a model: tokenizer, template, prompts, and what methods may use. Imports torch when it loads."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from draftboard import models
from draftboard.errors import UserError
from draftboard.hub import find_folder
from draftboard.methods import Binding, MethodError, Preflight, Vocabulary
from draftboard.methods.engine.cost import CostCurve, measure_cost
from draftboard.plan import Plan
from draftboard.records import SampleRecord, sample_record
from draftboard.suites import Raw, Sample, Suite
from draftboard.templates import Template, encode, render, resolve_template

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from draftboard.methods.engine.model import LanguageModel

__all__ = ["Reader", "Session", "fitted", "ids_hash", "open_reader", "preflight"]


@dataclass(slots=True, kw_only=True)
class Reader:
    """The target's text side: everything that needs its tokenizer and configuration but not its weights."""

    ref: models.ModelRef
    tokenizer: PreTrainedTokenizerBase
    template: Template
    eos_ids: frozenset[int]
    window: int
    vocabulary: Vocabulary
    max_new_tokens: int
    """The run's limit of a turn."""
    hidden: int = 0
    """Width of the model; 0 where its configuration does not say."""
    layers: int = 0
    """Its decoder layers; 0 likewise."""
    stop: tuple[str, ...] = ()
    """The run's stop texts."""

    def prompt(self, sample: Sample, answers: Sequence[str]) -> tuple[str, list[int]]:
        """Return (rendered text, token ids) of the turn that follows these answers."""
        if sample.raw is not None:
            return self._raw(sample)[:2]
        turns = sample.turns[: len(answers) + 1]
        text = render(self.template, self.tokenizer, sample.system, turns, answers)
        return text, encode(self.tokenizer, text)

    def _raw(self, sample: Sample) -> tuple[str, list[int], int]:
        """Return text, ids and number of examples of a raw prompt: as many, from the first on, as the window holds."""
        raw = sample.raw or Raw()
        for count in range(len(raw.examples), -1, -1):
            parts = [raw.header, *raw.examples[:count], sample.turns[0]]
            text = "\n\n".join(part for part in parts if part)
            ids = encode(self.tokenizer, text)
            if len(ids) + max(1, self.budget(sample)) <= self.window:
                break
        return text, ids, count

    def budget(self, sample: Sample) -> int:
        """Return the longest output of a turn: the run's limit, or the suite's own where that is shorter."""
        own = sample.max_new_tokens
        return self.max_new_tokens if own is None else min(own, self.max_new_tokens)

    def stops(self, sample: Sample) -> tuple[str, ...]:
        """Return the texts that end a turn of this sample."""
        return (*self.stop, *sample.stop)

    def longest_prompt(self, sample: Sample) -> int:
        """Return the tokens of the longest prompt that this conversation can come to, every earlier answer at full
        length (suites-and-scoring 3.4)."""
        earlier = len(sample.turns) - 1
        ids = self.prompt(sample, [""] * earlier)[1]
        return len(ids) + earlier * self.budget(sample)

    def continuations(self, sample: Sample) -> list[list[int]]:
        """Return the ids that each of the sample's choices adds to its prompt.

        Raises UserError for a tokenizer that has no ids of their own for them.
        """
        text, ids = self.prompt(sample, ())
        whole = [encode(self.tokenizer, text + choice) for choice in sample.choices]
        if any(one[: len(ids)] != ids or len(one) == len(ids) for one in whole):
            raise UserError(f"the tokenizer merges the choices of sample {sample.sample_id} with its prompt")
        found = [one[len(ids) :] for one in whole]
        if len(set(map(tuple, found))) < len(found):
            raise UserError(f"the tokenizer does not tell the choices of sample {sample.sample_id} apart")
        return found

    def count(self, text: str) -> int:
        """Return how many ids the tokenizer makes of a text, its own special ones included: Spec-Bench's way."""
        return len(self.tokenizer(text, verbose=False)["input_ids"])

    def text(self, ids: Sequence[int], stop: Sequence[str] = ()) -> str:
        """Return the visible text of generated ids: without special tokens, cut before a stop text, stripped."""
        # Not every end token is a special one to the tokenizer.
        kept = list(ids[:-1] if ids and ids[-1] in self.eos_ids else ids)
        text = str(self.tokenizer.decode(kept, skip_special_tokens=True))
        cuts = [text.find(part) for part in stop if part in text]
        return text[: min(cuts)].strip() if cuts else text.strip()

    def record(self, suite: Suite, sample: Sample) -> SampleRecord:
        """Return what is stored of a sample."""
        text, ids = self.prompt(sample, ())
        dropped = len(sample.raw.examples) - self._raw(sample)[2] if sample.raw is not None else 0
        return replace(
            sample_record(suite.name, sample),
            examples_dropped=dropped,
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
        max_new_tokens=plan.max_new_tokens,
        hidden=int(getattr(config.get_text_config(), "hidden_size", 0) or 0),
        layers=int(getattr(config.get_text_config(), "num_hidden_layers", 0) or 0),
        stop=plan.stop,
    )


def fitted(plan: Plan, reader: Reader) -> Plan:
    """Leave out the samples that may need a longer prompt than `max_prompt_tokens`; a note of the suite counts them.

    Raises UserError if a suite has none left.
    """
    limit = plan.max_prompt_tokens
    if limit is None:
        return plan
    suites = []
    for suite in plan.suites:
        kept = [sample for sample in suite.samples if reader.longest_prompt(sample) <= limit]
        if not kept:
            raise UserError(
                f"no sample of suite {suite.name} fits into max_prompt_tokens = {limit}", advice="Choose a larger one."
            )
        out = Counter(sample.category for sample in suite.samples) - Counter(sample.category for sample in kept)
        note = f"{out.total()} samples left out, whose prompts may need more than {limit} tokens: " + ", ".join(
            f"{category} {count}" for category, count in out.items()
        )
        suites.append(replace(suite, samples=tuple(kept), notes=(*suite.notes, *([note] if out else []))))
    return replace(plan, suites=tuple(suites))


def preflight(plan: Plan, reader: Reader) -> None:
    """Let every method refuse this target before weights are loaded, all refusals at once; then check its choices."""

    known = Preflight(
        target=plan.model,
        vocabulary=reader.vocabulary,
        vocabulary_of=lambda name: models.vocabulary(models.resolve(name)),
        hidden=reader.hidden,
        layers=reader.layers,
        find_folder=find_folder,
    )
    problems: list[str] = []
    for entry in plan.entries:
        try:
            entry.method.preflight(known)
        except (MethodError, UserError) as error:
            problems.append(f"{entry.label}: {error}")
    if problems:
        raise UserError(f"{len(problems)} method(s) cannot run with {plan.model}", problems=tuple(problems))
    for suite in plan.suites:
        # The samples of a suite have the same choices behind the same last words.
        first = next((sample for sample in suite.samples if sample.choices), None)
        if first is not None:
            reader.continuations(first)


@dataclass(slots=True, kw_only=True)
class Session:
    """The loaded target and the models that methods asked for."""

    plan: Plan
    reader: Reader
    target: LanguageModel
    fingerprint: str
    curve: CostCurve = field(init=False)
    measured: dict[str, Any] = field(default_factory=dict)
    """What methods measured, by label."""
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

    def measure_methods(self, stored: Mapping[str, Any] | None = None) -> None:
        """Let every method load what it needs and measure; what the run, or another one, has of it already stands.

        Raises UserError with all methods that cannot.
        """
        known = stored or {}
        problems: list[str] = []
        for entry in self.plan.entries:
            try:
                found = entry.method.measure(self.binding())
            except (MethodError, UserError) as error:
                problems.append(f"{entry.label}: {error}")
                continue
            if found:
                self.measured[entry.label] = known.get(entry.label, found)
        if problems:
            raise UserError(f"{len(problems)} method(s) cannot run with {self.plan.model}", problems=tuple(problems))

    def binding(self, label: str = "") -> Binding:
        """Return what drafters may use: those of the method `label`."""
        return Binding(
            target=self.target,
            vocab_size=len(self.reader.vocabulary.tokens),
            logit_width=self.reader.vocabulary.logit_width,
            eos_ids=self.reader.eos_ids,
            curve=self.curve.rising(),
            load_model=self.other,
            fingerprint=self.fingerprint,
            find_folder=find_folder,
            measured=self.measured.get(label, {}),
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
