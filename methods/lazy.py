"""Packages whose face is resolved on first use, so that naming a thing does not import what it needs."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["on_demand"]


def on_demand(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return a module-level `__getattr__`: `homes` maps each module of the package to the names that live there."""
    places = {name: module for module, names in homes.items() for name in names}

    def resolve(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{places[name]}"), name)

    return resolve
