"""The decoding methods and their registry. Free of torch until a drafter is made."""

from typing import TYPE_CHECKING

from draftboard.methods.errors import MethodError
from draftboard.methods.lazy import on_demand

if TYPE_CHECKING:
    from draftboard.methods.method import Binding, Budget, Method, Preflight, Vocabulary
    from draftboard.methods.registry import build, load_plugin, method_class, method_names, parse, register

__all__ = [
    "Binding",
    "Budget",
    "Method",
    "MethodError",
    "Preflight",
    "Vocabulary",
    "build",
    "load_plugin",
    "method_class",
    "method_names",
    "parse",
    "register",
]

__getattr__ = on_demand(
    __name__,
    {
        "method": ("Binding", "Budget", "Method", "Preflight", "Vocabulary"),
        "registry": ("build", "load_plugin", "method_class", "method_names", "parse", "register"),
    },
)
