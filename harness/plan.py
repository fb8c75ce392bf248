"""A plan with everything decided: which methods run on which samples of which model, and how. Free of torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from draftboard.errors import UserError
from draftboard.methods import Method, MethodError, build, parse
from draftboard.methods.engine.settings import Sampling
from draftboard.options import RunOptions
from draftboard.suites import Sample, Suite, limited, load_suite

__all__ = ["BASELINE", "Entry", "Plan", "make_plan", "sample_key"]

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
    """A run before it is bound to a machine. `options` is what was asked, defaults filled in."""

    model: str
    revision: str | None
    entries: tuple[Entry, ...]
    """The baseline first."""
    suites: tuple[Suite, ...]
    """Already limited."""
    limit: int | None
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


def make_plan(options: RunOptions, *, where: str = "") -> Plan:
    """Decide everything that can be decided without a model. Raises UserError with every fault found at once."""
    problems: list[str] = []
    entries = _entries(options, problems)
    suites = _suites(options, problems)
    _check_values(options, problems)
    if problems:
        raise UserError(f"{len(problems)} problem(s) in the plan", where=where, problems=tuple(problems))
    return Plan(
        model=options.model or DEFAULT_MODEL,
        revision=options.revision,
        entries=tuple(entries),
        suites=tuple(suites),
        limit=options.limit,
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
    )


def _check_values(options: RunOptions, problems: list[str]) -> None:
    """Add what is wrong with the model's name and with single values."""
    from draftboard.models import resolve

    try:
        resolve(options.model or DEFAULT_MODEL, options.revision)
    except UserError as error:
        problems.append(str(error))
    for name, value in _sampling(options).items():
        try:
            Sampling(**{name: value})
        except MethodError as error:
            problems.append(str(error))
    for name in ("limit", "max_new_tokens", "repeats", "threads"):
        value = getattr(options, name)
        if value is not None and value < 1:
            problems.append(f"{name} must be at least 1, not {value}")
    for name in ("limit", "max_new_tokens", "repeats", "threads", "top_k", "seed"):
        value = getattr(options, name)
        if value is not None and abs(value) > _LARGEST:
            problems.append(f"{name} must be at most {_LARGEST}, not {value}")
    for name in ("model", "revision", "suite", "device", "template", "draft_model", "stop"):
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


def _suites(options: RunOptions, problems: list[str]) -> list[Suite]:
    from draftboard.suites import SuiteError

    found: list[Suite] = []
    for spec in options.suite or ("mini",):
        try:
            suite = load_suite(spec)
            if options.limit is not None and options.limit >= 1:
                suite = limited(suite, options.limit, _or(options.seed, 0))
        except SuiteError as error:
            problems.append(str(error))
        else:
            found.append(suite)
    names = [suite.name for suite in found]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        problems.append(f"suite {', '.join(doubled)} is named more than once; a run holds each suite once")
    return found


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
        "notes": list(suite.notes),
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
            found += differences(dict(enumerate_named(a)), dict(enumerate_named(b)), f"{name}.")
        elif a != b:
            found.append(f"{name}: the run has {a!r}, now {b!r}")
    return found


def enumerate_named(items: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return (name, table) pairs of a list of tables that carry a label or a name."""
    return [(str(item.get("label") or item.get("name") or index), item) for index, item in enumerate(items)]
