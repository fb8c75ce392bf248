"""Suites by name: `mini`, `spec_bench`, `spec_bench@PATH`, `jsonl@PATH`, and whatever others bring.

Listing names costs nothing: a loader's module is imported only when its suite is asked for. Others add suites
through the entry-point group `draftboard.suites` or with `register_suite` in a file given by `--plugin`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Literal

from draftboard.suites.errors import SuiteError, suggestion
from draftboard.suites.sample import Suite

__all__ = ["GROUP", "Loader", "SuiteInfo", "describe_suites", "load_suite", "register_suite", "suite_names"]

GROUP = "draftboard.suites"
"""The entry-point group. The name of an entry point is the suite's; its value is a loader."""

Loader = Callable[[str | None], Suite]
"""Called with the part after the `@`, or None if there is none."""

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
    load: Loader
    description: str
    licence: str
    path: _PathUse


def _mini(path: str | None) -> Suite:
    from draftboard.suites.mini import load_mini

    return load_mini()


def _spec_bench(path: str | None) -> Suite:
    from draftboard.suites.spec_bench import load_spec_bench

    return load_spec_bench(path)


def _jsonl(path: str | None) -> Suite:
    from draftboard.suites.jsonl import load_jsonl

    return load_jsonl(path or "")


_BUILT_IN = {
    "mini": _Entry(
        load=_mini,
        description="bundled: a few texts of our own in each of 17 domains; no download",
        licence="Apache-2.0",
        path="never",
    ),
    "spec_bench": _Entry(
        load=_spec_bench,
        description="Spec-Bench: 480 prompts in 6 domains; from a local question.jsonl, else downloaded once",
        licence="Apache-2.0 (the texts it quotes keep their own)",
        path="optional",
    ),
    "jsonl": _Entry(
        load=_jsonl,
        description="your own questions: one JSON object a line",
        licence="the file's own",
        path="required",
    ),
}

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
    if not name or "@" in name or any(character.isspace() for character in name):
        raise SuiteError(f"{name!r} cannot name a suite: it may hold neither @ nor blanks")

    def register(loader: Loader) -> Loader:
        taken = _registered.get(name)
        if name in _BUILT_IN or (taken is not None and _origin(taken.load) != _origin(loader)):
            raise SuiteError(f"there already is a suite named {name}", advice="Choose another name.")
        _registered[name] = _Entry(
            load=loader, description=description or _first_line(loader), licence=licence, path=path
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


def load_suite(spec: str) -> Suite:
    """The suite that `spec` names: `NAME` or `NAME@PATH`.

    Raises `SuiteError` for an unknown name (with the nearest one and the list), for a path that is missing or
    out of place, and for whatever is wrong with the file.
    """
    name, at, path = spec.partition("@")
    entry = _find(name, spec)
    if at and not path:
        raise SuiteError(f"{spec}: no path after the @", advice=f"Use --suite {_usage(name, entry.path)}")
    if at and entry.path == "never":
        raise SuiteError(f"{spec}: {name} takes no path", advice=f"Use --suite {name}")
    if not at and entry.path == "required":
        raise SuiteError(f"{name} needs a file", advice=f"Use --suite {name}@PATH")
    suite: object = entry.load(path or None)
    if not isinstance(suite, Suite):
        raise SuiteError(f"the loader of suite {name} returned {type(suite).__name__}, not a Suite")
    return suite


def _find(name: str, spec: str) -> _Entry:
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    if name not in _registered:
        points = _entry_points()
        if name not in points:
            looks_like_file = "@" not in spec and (spec.endswith(".jsonl") or "/" in spec)
            advice = f"For a question file of your own use --suite jsonl@{spec}" if looks_like_file else ""
            raise SuiteError(f"unknown suite {name!r}; {suggestion(name, suite_names())}", advice=advice)
        _import(points[name])
    return _registered[name]


def _import(point: EntryPoint) -> None:
    try:
        loader = point.load()
    except (ImportError, AttributeError) as error:
        raise SuiteError(f"suite {point.name} cannot be loaded from {point.value}: {error}") from error
    if point.name in _registered:
        return
    if not callable(loader):
        raise SuiteError(f"suite {point.name}: {point.value} is no loader")
    register_suite(point.name)(loader)


def _entry_points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def _describe(name: str) -> SuiteInfo:
    try:
        entry = _find(name, name)
    except SuiteError as error:
        return SuiteInfo(name=name, usage=name, description=str(error), licence="unknown")
    return SuiteInfo(name=name, usage=_usage(name, entry.path), description=entry.description, licence=entry.licence)


def _usage(name: str, path: _PathUse) -> str:
    return {"never": name, "optional": f"{name}[@PATH]", "required": f"{name}@PATH"}[path]


def _origin(loader: Loader) -> tuple[str, str]:
    """Two imports of one file give different functions of one origin."""
    code = getattr(loader, "__code__", None)
    return getattr(code, "co_filename", ""), getattr(loader, "__qualname__", repr(loader))


def _first_line(loader: Loader) -> str:
    return (loader.__doc__ or "").strip().partition("\n")[0]
