"""Names of methods: built in, from entry points, from a plug-in file; and the bracket notation `samd[eagle2]`."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import traceback
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints
from zlib import crc32

import msgspec

from draftboard.methods.errors import MethodError
from draftboard.methods.method import Method

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["build", "load_plugin", "method_class", "method_names", "parse", "register"]

_BUILT_IN = {
    "autoregressive": "draftboard.methods.autoregressive",
    "pld": "draftboard.methods.pld",
    "token_recycling": "draftboard.methods.token_recycling",
    "samd": "draftboard.methods.samd.method",
    "sps": "draftboard.methods.sps",
    "eagle": "draftboard.methods.eagle.method",
    "eagle2": "draftboard.methods.eagle.method",
    "eagle3": "draftboard.methods.eagle.method",
}
_GROUP = "draftboard.methods"
_DEEPEST = 6
"""Wrappers in each other. Deeper ones measure nothing new, and settings that pass down cost more with every level."""
_registered: dict[str, type[Method]] = {}

M = TypeVar("M", bound=type[Method])


def register(name: str) -> Callable[[M], M]:
    """Give a method class its name. Raises MethodError for a bad name or one that is taken by another class."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name) or name == "none":
        raise MethodError(f"{name!r} cannot name a method: use letters, digits, _ . and -")

    def decorate(cls: M) -> M:
        if not (isinstance(cls, type) and issubclass(cls, Method)):
            raise MethodError(f"{name}: a method is a class derived from draftboard.methods.Method, not {cls!r}")
        if inspect.isabstract(cls):
            raise MethodError(f"{name}: {cls.__qualname__} lacks {', '.join(sorted(cls.__abstractmethods__))}()")
        known = _registered.get(name)
        taken = known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__)
        if taken or (name in _BUILT_IN and cls.__module__ != _BUILT_IN[name]):
            raise MethodError(f"a method named {name!r} exists already; choose another name for {cls.__qualname__}")
        cls.name = name
        _registered[name] = cls
        return cls

    return decorate


def load_plugin(path: Path, *, others: Callable[[], int] = lambda: 0) -> None:
    """Run a Python file so that the methods in it register.

    `others` counts whatever else a plug-in may register, such as suites. Raises MethodError if the file is missing,
    fails, or brings nothing.
    """
    if not path.is_file():
        raise MethodError(f"plug-in {path} is not a file")
    # Two files of one stem in different folders are two plug-ins.
    name = f"draftboard_plugin_{path.stem}_{crc32(str(path.resolve()).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise MethodError(f"plug-in {path} is not a Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    again = name in sys.modules
    sys.modules[name] = module
    before, count = dict(_registered), others()
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        _registered.clear()
        _registered.update(before)
        del sys.modules[name]
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f"{path}, line {lines[-1]}" if lines else str(path)
        what = str(error) if isinstance(error, MethodError) else f"{type(error).__name__}: {error}"
        raise MethodError(f"plug-in {where}: {what}") from error
    mine = any(cls.__module__ == name or known not in before for known, cls in _registered.items())
    if not (mine or again or others() > count):
        raise MethodError(f'plug-in {path} registers no method and no suite; decorate one with @register("its_name")')


def method_names() -> list[str]:
    """Return every known name, built-in ones first."""
    from importlib.metadata import entry_points

    others = {entry.name for entry in entry_points(group=_GROUP)} | set(_registered)
    return [*_BUILT_IN, *sorted(others - set(_BUILT_IN))]


def method_class(name: str) -> type[Method]:
    """Return the class of that name. An unknown name raises MethodError with the nearest one and the list."""
    if name not in _registered:
        if name in _BUILT_IN:
            import_module(_BUILT_IN[name])
        else:
            from importlib.metadata import entry_points

            for entry in entry_points(group=_GROUP, name=name):
                register(name)(_loaded(entry))
    if name not in _registered:
        names = method_names()
        near = get_close_matches(name, names, n=1)
        hint = f" — did you mean {near[0]!r}?" if near else "."
        raise MethodError(f"there is no method {name!r}{hint} Known: {', '.join(names)}")
    return _registered[name]


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:
        owner = entry.dist.name if entry.dist else "an installed package"
        raise MethodError(f"method {entry.name!r} of {owner} does not load: {type(error).__name__}: {error}") from error


def parse(notation: str) -> Method:
    """Build a method from the bracket notation, with default settings: `pld`, `samd[token_recycling]`, `samd[none]`."""
    if notation.count("[") > _DEEPEST:
        raise MethodError(f"{notation[:40]!r}… has more than {_DEEPEST} methods in each other")
    match = re.fullmatch(r"\s*([^\[\]\s]+)\s*(?:\[(.*)\])?\s*", notation)
    if match is None:
        raise MethodError(f"{notation!r} is not a method; write name or name[inner], for example samd[token_recycling]")
    name, inner = match[1], match[2]
    cls = method_class(name)
    return _create(cls, {}, where=notation) if inner is None else wrap(cls, inner)


def wrap(cls: type[Method], inner: str) -> Method:
    """Build `cls[inner]`. Raises MethodError with the reason when it wraps nothing or does not fit."""
    if cls.inside is None:
        raise MethodError(f"{cls.name} wraps no other method, so {cls.name}[{inner}] means nothing")
    if inner.strip() == "none":
        if not _may_be_none(get_type_hints(cls)[cls.inside]):
            raise MethodError(f"{cls.name} cannot do without a method inside, so {cls.name}[none] means nothing")
        return _create(cls, {cls.inside: None}, where=f"{cls.name}[none]")
    content = parse(inner)
    usual = _default(cls, cls.inside)
    # What a wrapper holds by default may have settings of its own there (samd's smaller recycling tree).
    if type(usual) is type(content) and content == type(content)():
        content = usual
    return _create(cls, {cls.inside: content}, where=f"{cls.name}[{inner}]")


def build(table: Mapping[str, object], *, where: str = "method") -> Method:
    """Build a method from a table: `method` names it (brackets allowed) or is one, the other keys are its settings.

    Raises MethodError that names the key for an unknown setting (with the nearest one) or a value of a wrong type.
    """
    settings = dict(table)
    notation = settings.pop("method", None)
    if not isinstance(notation, str | Method):
        raise MethodError(f'{where}: a method table needs method = "name"')
    base = parse(notation) if isinstance(notation, str) else notation
    return _apply(base, settings, where=where) if settings else base


def _apply(base: Method, settings: Mapping[str, object], *, where: str) -> Method:
    changes = {key: _value(type(base), key, value, where) for key, value in settings.items()}
    try:
        return replace(base, **changes)
    except (ValueError, MethodError) as error:
        raise MethodError(f"{where}: {error}") from error


def _create(cls: type[Method], values: Mapping[str, Any], *, where: str) -> Method:
    required = [f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING]
    missing = [name for name in required if name not in values]
    if missing:
        raise MethodError(f"{where}: {cls.name} needs {', '.join(missing)}; set it in a plan's method table")
    return cls(**values)


def _value(cls: type[Method], key: str, value: object, where: str) -> object:
    kinds = get_type_hints(cls)
    names = [f.name for f in fields(cls)]
    if key not in names:
        near = get_close_matches(key, names, n=1)
        hint = f" — did you mean {near[0]!r}?" if near else "."
        raise MethodError(f"{where}: {cls.name} has no setting {key!r}{hint} Settings: {', '.join(names) or 'none'}")
    kind = kinds[key]
    if _holds_method(kind):
        if (value is None or value == "none") and _may_be_none(kind):
            return None
        if isinstance(value, Method):
            return value
        if isinstance(value, Mapping):
            if where.count(".") >= _DEEPEST:
                raise MethodError(f"{where}: more than {_DEEPEST} methods in each other")
            return build(value, where=f"{where}.{key}")
        if isinstance(value, str):
            return parse(value)
        raise MethodError(f"{where}: {key} takes a method, not {value!r}")
    try:
        return msgspec.convert(value, kind, strict=True, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise MethodError(f"{where}: {key} = {value!r}: {error}") from error


def _decode(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise ValueError(f"expected {kind.__name__}")


def _default(cls: type[Method], name: str) -> object:
    field = next(f for f in fields(cls) if f.name == name)
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _may_be_none(kind: Any) -> bool:
    return type(None) in get_args(kind)


def _holds_method(kind: Any) -> bool:
    if get_origin(kind) in (Union, types.UnionType):
        return any(_holds_method(arg) for arg in get_args(kind))
    return isinstance(kind, type) and issubclass(kind, Method)
