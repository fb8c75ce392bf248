"""Faults in what a user asked of a method: an unknown name, a wrong setting, a model that does not fit."""

__all__ = ["MethodError"]


class MethodError(Exception):
    """A method, a setting or a model that cannot be used as asked; the message says what to do."""
