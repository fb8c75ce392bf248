"""The decoding methods and their registry. Free of torch until a drafter is made."""

from draftboard.methods.errors import MethodError
from draftboard.methods.method import Binding, Budget, Method, Preflight, Vocabulary
from draftboard.methods.registry import build, load_plugin, method_class, method_names, parse, register

__all__ = [
    "Binding", "Budget", "Method", "MethodError", "Preflight", "Vocabulary", "build", "load_plugin", "method_class",
    "method_names", "parse", "register",
]
