"""Suites by name: `mini`, `spec_bench@PATH`, `mmlu/letter@PATH`, `jsonl@PATH`, and whatever others bring.

Listing names costs nothing: a loader's module is imported only when its suite is asked for. Others add suites
through the entry-point group `draftboard.suites` or with `register_suite` in a file given by `--plugin`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from draftboard.suites.errors import SuiteError, suggestion
from draftboard.suites.request import Request, SuiteSettings
from draftboard.suites.sample import Suite

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "GROUP",
    "Loader",
    "SuiteInfo",
    "describe_suites",
    "load_suite",
    "register_suite",
    "settings_of",
    "suite_names",
]

GROUP = "draftboard.suites"
"""The entry-point group. The name of an entry point is the suite's; its value is a loader."""

Loader = Callable[[str | None], Suite]
"""Called with the part after the `@`, or None if there is none."""

_FILE_ENDINGS = (".jsonl", ".json", ".ndjson", ".csv", ".tsv", ".parquet", ".gz")

_PathUse = Literal["never", "optional", "required"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteInfo:
    """What `draftboard list suites` says of a suite."""

    name: str
    usage: str
    """How it is named on the command line: `mini`, `spec_bench[@PATH]`, `jsonl@PATH`."""
    description: str
    licence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    load: Callable[[Request], Suite]
    description: str
    licence: str
    path: _PathUse
    variants: tuple[str, ...] = ()
    uses: frozenset[str] = frozenset()
    """Names of the `SuiteSettings` that it reads."""
    origin: tuple[str, str] = ("", "")
    """Where a plug-in's loader was written."""


def _built_in(
    module: str,
    description: str,
    licence: str,
    path: _PathUse = "optional",
    *,
    variants: tuple[str, ...] = (),
    uses: tuple[str, ...] = (),
) -> _Entry:
    """An entry whose loader, `load` of that module, is imported when it is first asked for."""

    def load(request: Request) -> Suite:
        suite: Suite = import_module(f"draftboard.suites.{module}").load(request)
        return suite

    return _Entry(
        load=load, description=description, licence=licence, path=path, variants=variants, uses=frozenset(uses)
    )


_MMLU = ("explain", "letter", "k-shot", "loglik")

_BUILT_IN = {
    "mini": _built_in(
        "mini", "bundled: a few texts of our own in each of 17 domains; no download", "Apache-2.0", "never"
    ),
    "spec_bench": _built_in(
        "spec_bench",
        "Spec-Bench: 480 prompts in 6 domains; from a local question.jsonl, else downloaded once",
        "Apache-2.0 (the texts it quotes keep their own)",
        uses=("qa_references",),
    ),
    "speed_bench": _built_in(
        "speed_bench",
        "SPEED-Bench: 880 prompts in 11 domains, or 1,536 of one length; from files that its prepare program made",
        "NVIDIA Evaluation Dataset License (each source keeps its own terms)",
        "required",
        variants=(
            "qualitative", "throughput_1k", "throughput_2k", "throughput_8k", "throughput_16k", "throughput_32k",
        ),
    ),
    "mmlu": _built_in(
        "mmlu",
        "MMLU: four-option questions of 57 subjects, explained (default), by letter, with examples, or by likelihood",
        "MIT",
        variants=_MMLU,
        uses=("shots",),
    ),
    "mmlu_80": _built_in(
        "mmlu",
        "MMLU cut to 80 questions over all subjects, the size of a Spec-Bench domain",
        "MIT",
        variants=_MMLU,
        uses=("shots",),
    ),
    "gsm8k": _built_in("gsm8k", "GSM8K: 1,319 word problems of the test part", "MIT"),
    "ntrex_de_en": _built_in("ntrex", "NTREX-128: German news sentences to be put into English", "CC BY-SA 4.0"),
    "scitldr": _built_in("scitldr", "SciTLDR: abstracts to be summed up in one sentence", "Apache-2.0"),
    "nq_open": _built_in("nq_open", "NQ-open: short factual questions with all accepted answers", "CC BY-SA 3.0"),
    "humaneval": _built_in(
        "humaneval", "HumanEval: 164 functions to be completed; scored only where code may be run", "MIT"
    ),
    "jsonl": _built_in(
        "jsonl", "your own questions: JSON lines, or the same fields as .json, .csv or .parquet", "the file's own",
        "required",
    ),
}  # fmt: skip

# A decorator in somebody else's file has no other place to leave its name.
_registered: dict[str, _Entry] = {}


def register_suite(
    name: str, *, description: str = "", licence: str = "unknown", path: _PathUse = "optional"
) -> Callable[[Loader], Loader]:
    """Register the decorated loader as suite `name`.

    `path` says whether the part after the `@` may or must be given. The description defaults to the first
    line of the loader's docstring. Raises `SuiteError` if the name is taken by another loader or cannot be
    one.
    """
    if not name or "@" in name or "/" in name or any(character.isspace() for character in name):
        raise SuiteError(f"{name!r} cannot name a suite: it may hold neither @ nor / nor blanks")

    def register(loader: Loader) -> Loader:
        taken = _registered.get(name)
        if name in _BUILT_IN or (taken is not None and taken.origin != _origin(loader)):
            raise SuiteError(f"there already is a suite named {name}", advice="Choose another name.")
        _registered[name] = _Entry(
            load=lambda request: loader(request.path),
            description=description or _first_line(loader),
            licence=licence,
            path=path,
            origin=_origin(loader),
        )
        return loader

    return register


def suite_names() -> tuple[str, ...]:
    """All names: the built-in ones, then those of others in alphabetical order. Imports no plugin."""
    others = {*_registered, *_entry_points()} - set(_BUILT_IN)
    return (*_BUILT_IN, *sorted(others))


def describe_suites() -> tuple[SuiteInfo, ...]:
    """One entry per name of `suite_names`; a plugin that cannot be imported is listed with the reason."""
    return tuple(_describe(name) for name in suite_names())


def load_suite(spec: str, settings: SuiteSettings | None = None) -> Suite:
    """The suite that `spec` names: `NAME[/VARIANT][@PATH]`.

    Raises `SuiteError` for an unknown name or variant (with the nearest one and the list), for a path that is missing
    or out of place, and for whatever is wrong with the file.
    """
    full, at, path = spec.partition("@")
    name, slash, variant = full.partition("/")
    entry = _find(name, spec)
    usage = _usage(name, entry)
    if at and not path:
        raise SuiteError(f"{spec}: no path after the @", advice=f"Use --suite {usage}")
    if slash and not entry.variants:
        raise SuiteError(f"{spec}: {name} has no variants", advice=f"Use --suite {usage}")
    if slash and variant not in entry.variants:
        raise SuiteError(f"{spec}: {name} has no variant {variant!r}; {suggestion(variant, entry.variants)}")
    if at and entry.path == "never":
        raise SuiteError(f"{spec}: {name} takes no path", advice=f"Use --suite {name}")
    if not at and entry.path == "required":
        raise SuiteError(f"{name} needs a file", advice=f"Use --suite {usage}")
    request = Request(name=name, variant=variant or None, path=path or None, settings=settings or SuiteSettings())
    suite: object = entry.load(request)
    if not isinstance(suite, Suite):
        raise SuiteError(f"the loader of suite {name} returned {type(suite).__name__}, not a Suite")
    return suite


def settings_of(spec: str) -> frozenset[str]:
    """Names of the `SuiteSettings` that the suite of `spec` reads. Raises `SuiteError` for an unknown name."""
    return _find(spec.partition("@")[0].partition("/")[0], spec).uses


def _find(name: str, spec: str) -> _Entry:
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    if name not in _registered:
        points = _entry_points()
        if name not in points:
            looks_like_file = "@" not in spec and (spec.endswith(_FILE_ENDINGS) or name in ("", ".", "..", "~"))
            advice = f"For a question file of your own use --suite jsonl@{spec}" if spec and looks_like_file else ""
            if spec.startswith("hf://"):
                advice = f"Name the suite that its rows are of as well, such as --suite gsm8k@{spec}"
            raise SuiteError(f"unknown suite {name!r}; {suggestion(name, suite_names())}", advice=advice)
        _import(points[name])
    return _registered[name]


def _import(point: "EntryPoint") -> None:
    try:
        loader = point.load()
    except (ImportError, AttributeError) as error:
        raise SuiteError(f"suite {point.name} cannot be loaded from {point.value}: {error}") from error
    if point.name in _registered:
        return
    if not callable(loader):
        raise SuiteError(f"suite {point.name}: {point.value} is no loader")
    register_suite(point.name)(loader)


def _entry_points() -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points  # slow to import

    return {point.name: point for point in entry_points(group=GROUP)}


def _describe(name: str) -> SuiteInfo:
    try:
        entry = _find(name, name)
    except SuiteError as error:
        return SuiteInfo(name=name, usage=name, description=str(error), licence="unknown")
    return SuiteInfo(name=name, usage=_usage(name, entry), description=entry.description, licence=entry.licence)


def _usage(name: str, entry: _Entry) -> str:
    full = f"{name}[/VARIANT]" if entry.variants else name
    return {"never": full, "optional": f"{full}[@PATH]", "required": f"{full}@PATH"}[entry.path]


def _origin(loader: Loader) -> tuple[str, str]:
    """Two imports of one file give different functions of one origin."""
    code = getattr(loader, "__code__", None)
    return getattr(code, "co_filename", ""), getattr(loader, "__qualname__", repr(loader))


def _first_line(loader: Loader) -> str:
    return (loader.__doc__ or "").strip().partition("\n")[0]
