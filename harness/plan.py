"""A plan with everything decided: which methods run on which samples of which model, and how. Free of torch."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from draftboard.curves import KnownCurve, known_curve
from draftboard.errors import UserError
from draftboard.methods import Method, MethodError, build, parse
from draftboard.methods.engine.settings import Sampling
from draftboard.options import RunOptions
from draftboard.suite_choice import category_names, choose_suites
from draftboard.suites import Part, Sample, Split, Suite

__all__ = ["BASELINE", "Entry", "Plan", "describe", "differences", "make_plan", "sample_key"]

BASELINE = "autoregressive"
DEFAULT_MODEL = "smollm2-135m"
_LARGEST = 2**53 - 1
"""Larger integers do not survive JSON in every language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A method under the label that tables show."""

    label: str
    method: Method


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run before it is bound to a machine: what was asked, defaults filled in."""

    model: str
    revision: str | None
    entries: tuple[Entry, ...]
    """The baseline first."""
    suites: tuple[Suite, ...]
    """What was chosen of them."""
    limit: int | None
    category: tuple[str, ...]
    ids: str | None
    """Name of the file without its folders; the ids themselves are the suite's samples."""
    part: Part
    splits: dict[str, Split]
    """By suite, where a part was asked for."""
    max_prompt_tokens: int | None
    shots: int | None
    history: str
    max_new_tokens: int
    sampling: Sampling
    seed: int
    repeats: int
    dtype: str
    device: str
    threads: int | None
    template: str
    stop: tuple[str, ...]
    warmup: str
    profile: bool
    traces: bool
    curve: KnownCurve | None
    """Taken from another run; None to measure one."""

    @property
    def samples(self) -> list[tuple[Suite, Sample]]:
        """All samples with their suite, in stable order."""
        return [(suite, sample) for suite in self.suites for sample in suite.samples]

    @property
    def cells(self) -> int:
        """How many cells the whole run has."""
        return len(self.samples) * len(self.entries) * self.repeats


def sample_key(suite: Suite, sample: Sample) -> str:
    """Return the id of a sample within a run: ids are unique within a suite only."""
    return f"{suite.name}/{sample.sample_id}"


def make_plan(options: RunOptions, *, where: str = "", suites: Sequence[Suite] = ()) -> Plan:
    """Decide everything that can be decided without a model. Raises UserError with every fault found at once.

    `suites` are loaded already and stand before those that the options name, or in place of the default.
    """
    problems: list[str] = []
    entries = _entries(options, problems)
    chosen, splits = choose_suites(options, suites, problems)
    _check_values(options, problems)
    if problems:
        raise UserError(f"{len(problems)} problem(s) in the plan", where=where, problems=tuple(problems))
    return Plan(
        model=options.model or DEFAULT_MODEL,
        revision=options.revision,
        entries=tuple(entries),
        suites=tuple(chosen),
        limit=options.limit,
        category=category_names(options.category, chosen),
        ids=Path(options.ids).name if options.ids is not None else None,
        part=options.part or "all",
        splits=splits,
        max_prompt_tokens=options.max_prompt_tokens,
        shots=options.shots,
        history=options.history or "live",
        max_new_tokens=_or(options.max_new_tokens, 1024),
        sampling=Sampling(**_sampling(options)),
        seed=_or(options.seed, 0),
        repeats=_or(options.repeats, 1),
        dtype=options.dtype or "auto",
        device=options.device or "auto",
        threads=options.threads,
        template=options.template or "auto",
        stop=options.stop or (),
        warmup=options.warmup or "auto",
        profile=bool(options.profile),
        traces=bool(options.traces),
        curve=known_curve(Path(options.curve)) if options.curve is not None else None,
    )


def _check_values(options: RunOptions, problems: list[str]) -> None:
    """Add what is wrong with the model's name and with single values."""
    from draftboard.models import resolve

    if options.device and not re.fullmatch(r"auto|cpu|cuda(:[0-9]+)?", options.device):
        problems.append(f"unknown device {options.device!r}; known: auto, cpu, cuda, cuda:N")
    try:
        resolve(options.model or DEFAULT_MODEL, options.revision)
    except UserError as error:
        problems.append(str(error))
    for name, value in _sampling(options).items():
        try:
            Sampling(**{name: value})
        except MethodError as error:
            problems.append(str(error))
    for name in ("limit", "max_new_tokens", "max_prompt_tokens", "repeats", "threads"):
        value = getattr(options, name)
        if value is not None and value < 1:
            problems.append(f"{name} must be at least 1, not {value}")
    for name in ("limit", "max_new_tokens", "max_prompt_tokens", "repeats", "threads", "top_k", "seed", "shots"):
        value = getattr(options, name)
        if value is not None and abs(value) > _LARGEST:
            problems.append(f"{name} must be at most {_LARGEST}, not {value}")
    if options.threads is not None and _LARGEST >= options.threads > (os.cpu_count() or options.threads):
        problems.append(f"threads is {options.threads}, and this machine has {os.cpu_count()} cores to run them on")
    for name in ("model", "ids", "qa_references", "device", "template", "curve", "draft_model", "suite"):
        # As from a shell variable that is not set: a default in its place would be another run than the one meant.
        if getattr(options, name) in ("", ()):
            problems.append(f"{name} is empty; leave it out for its default")
    for name in ("model", "revision", "suite", "ids", "qa_references", "device", "template", "draft_model", "stop"):
        said = getattr(options, name) or ()
        if any("\ud800" <= character <= "\udfff" for character in "".join(said)):
            problems.append(f"{name} is not UTF-8 text, which a run could not be stored with")
    if "" in (options.stop or ()):
        problems.append("a stop text must not be empty: every answer would end at once")


def _sampling(options: RunOptions) -> dict[str, Any]:
    said = {name: getattr(options, name) for name in ("temperature", "top_p", "top_k")}
    return {name: value for name, value in said.items() if value is not None}


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _entries(options: RunOptions, problems: list[str]) -> list[Entry]:
    found: list[Entry] = []
    for notation in options.method or ():
        try:
            method = parse(notation)
        except MethodError as error:
            problems.append(str(error))
        else:
            found.append(Entry(label=method.notation(), method=_filled(method, options, {})))
    for index, table in enumerate(options.methods or ()):
        settings = dict(table)
        label = settings.pop("label", None)
        label = label.strip() if isinstance(label, str) else label
        try:
            method = build(settings, where=f"methods[{index}]")
        except MethodError as error:
            problems.append(str(error))
            continue
        if label is not None and (not isinstance(label, str) or not label):
            problems.append(f"methods[{index}]: label must be a text")
            continue
        if label == BASELINE != method.name:
            problems.append(f"methods[{index}]: {BASELINE} is the baseline's name; give {method.name} another label")
            continue
        found.append(Entry(label=label or method.notation(), method=_filled(method, options, settings)))
    if not any(entry.label == BASELINE for entry in found):
        found.insert(0, Entry(label=BASELINE, method=parse(BASELINE)))
    found.sort(key=lambda entry: entry.label != BASELINE)
    labels = [entry.label for entry in found]
    doubled = sorted({label for label in labels if labels.count(label) > 1})
    if doubled:
        problems.append(f"several methods are called {', '.join(doubled)}: give each its own label in a plan file")
    return found


def _filled(method: Method, options: RunOptions, said: Mapping[str, Any]) -> Method:
    """Return the method with the run-wide settings that it has a place for and its table, `said`, leaves open."""
    changes: dict[str, Any] = {}
    for f in fields(method):
        value = getattr(method, f.name)
        if f.name == "budget" and options.budget is not None and "budget" not in said:
            changes[f.name] = options.budget
        elif f.name == "draft" and value == "" and options.draft_model is not None:
            changes[f.name] = options.draft_model
        elif is_dataclass(value) and isinstance(value, Method):
            inner = said.get(f.name)
            changes[f.name] = _filled(value, options, inner if isinstance(inner, Mapping) else {})
    return replace(method, **changes)


def describe(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain JSON: what must be equal for a run to be resumed."""
    return {
        "model": plan.model,
        "revision": plan.revision,
        "methods": [
            {
                "label": entry.label,
                "method": entry.method.notation(),
                "settings": entry.method.settings(),
                "lossless": entry.method.lossless,
                "reference": entry.method.reference,
            }
            for entry in plan.entries
        ],
        "suites": [_describe_suite(suite) for suite in plan.suites],
        "limit": plan.limit,
        "category": list(plan.category),
        "ids": plan.ids,
        "part": plan.part,
        "splits": {name: _describe_split(found) for name, found in plan.splits.items()},
        "max_prompt_tokens": plan.max_prompt_tokens,
        "shots": plan.shots,
        "history": plan.history,
        "max_new_tokens": plan.max_new_tokens,
        "sampling": {
            "temperature": plan.sampling.temperature,
            "top_p": plan.sampling.top_p,
            "top_k": plan.sampling.top_k,
        },
        "seed": plan.seed,
        "repeats": plan.repeats,
        "dtype": plan.dtype,
        "device": plan.device,
        "threads": plan.threads,
        "template": plan.template,
        "stop": list(plan.stop),
        "warmup": plan.warmup,
        "profile": plan.profile,
        "baseline": BASELINE,
        # Named only where asked for, so that runs from before there were traces resume.
        **({"traces": True} if plan.traces else {}),
    }


def _describe_suite(suite: Suite) -> dict[str, Any]:
    return {
        "name": suite.name,
        "source": suite.source,
        "content_hash": suite.content_hash,
        "licence": suite.licence,
        "wording_version": suite.wording_version,
        "samples": len(suite.samples),
        "counts": dict(suite.counts),
        "max_new_tokens": sorted({s.max_new_tokens for s in suite.samples if s.max_new_tokens is not None}),
        "notes": list(suite.all_notes),
    }


def _describe_split(found: Split) -> dict[str, Any]:
    return {
        "fraction": found.fraction,
        "seed": found.seed,
        "calibration": list(found.calibration),
        "test": list(found.test),
    }


def differences(old: dict[str, Any], new: dict[str, Any], path: str = "") -> Sequence[str]:
    """Return where two plans differ, one line each."""
    found: list[str] = []
    for key in sorted({*old, *new}):
        a, b = old.get(key), new.get(key)
        name = f"{path}{key}"
        if isinstance(a, dict) and isinstance(b, dict):
            found += differences(a, b, f"{name}.")
        elif isinstance(a, list) and isinstance(b, list) and all(isinstance(x, dict) for x in [*a, *b]):
            found += differences(_by_name(a), _by_name(b), f"{name}.")
        elif a != b:
            found.append(f"{name}: the run has {a!r}, now {b!r}")
    return found


def _by_name(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Tables that carry a label or a name, by it; others by their place."""
    return {str(item.get("label") or item.get("name") or index): item for index, item in enumerate(items)}
