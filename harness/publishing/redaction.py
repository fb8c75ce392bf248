"""What stays at home: folders of the machine that measured, and anything that looks like a key.

A path says who measured and how their disk is laid out, and nothing about the result, so its last part stands for it.
A key in a file is a mistake that nobody can take back, so it stops the publication.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

from draftboard.errors import UserError

__all__ = ["known_environment", "refuse_secrets", "without_paths"]

_PART = r"""[^\s\\/:*?"'<>|,;()\[\]{}`]+"""
_HOME = re.compile(
    rf"(?:file://)?(?:/home/{_PART}|/Users/{_PART}|(?<!\w)/root|[A-Za-z]:\\Users\\{_PART})(?:[\\/]{_PART})*"
)
_HOME_ITSELF = re.compile(r"(?:file://)?(?:/home/[^\\/]+|/Users/[^\\/]+|/root|[A-Za-z]:\\Users\\[^\\/]+)[\\/]?")
# The lookbehind leaves addresses alone: in https://host/a/b no slash follows a blank, a quote or an @.
_ABSOLUTE = re.compile(rf"(?<![\w.:/\\])(?:[A-Za-z]:)?[\\/](?:{_PART}[\\/])+(?:{_PART})?")
_WHOLE = re.compile(r"""(?:(?:[A-Za-z]:)?[\\/]|~[\\/])(?:[^\s:'"<>|]|[^\S\n](?![\\/~]))*""")
_KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{30,}|sk-[A-Za-z0-9_-]{20,}|gh[opsur]_[A-Za-z0-9]{36,}|AKIA[0-9A-Z]{16})"
)
_SECRET_NAMES = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY", re.IGNORECASE)
_SHORTEST_SECRET = 12
_ADDED = ("schema", "hardware", "cost_curve", "peak_rss_bytes", "weight_bytes", "cache_bytes")
"""What a run adds to the record of its machine."""


def without_paths(value: Any) -> Any:
    """Return JSON data, keys included, with each absolute path as its last part."""
    if isinstance(value, str):
        return _without_paths(value)
    if isinstance(value, Mapping):
        return {without_paths(key): without_paths(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_paths(inner) for inner in value]
    return value


def _without_paths(text: str) -> str:
    home = str(Path.home())
    if _WHOLE.fullmatch(text) and len(re.findall(r"[\\/]", text)) > 1:
        return _last_part(text, home)
    if home.count(os.sep) > 1:
        text = re.sub(rf"{re.escape(home)}(?:[\\/]{_PART})*", lambda match: _last_part(match[0], home), text)
    for pattern in (_HOME, _ABSOLUTE):
        text = pattern.sub(lambda match: _last_part(match[0], home), text)
    return text


def _last_part(path: str, home: str) -> str:
    """Return a path's last part; of a home folder itself, whose last part is the name of a person, `~`."""
    parts = [part for part in re.split(r"[\\/]", path) if part]
    is_home = path.rstrip("\\/") == home or _HOME_ITSELF.fullmatch(path)
    return "~" if is_home or not parts else parts[-1]


def known_environment(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `draftboard.hardware` is known to record of a machine, and nothing else that a file may hold."""
    from draftboard.hardware import Environment

    added = {name: record[name] for name in _ADDED if name in record}
    found: dict[str, Any] = without_paths(added | _known(Environment, record))
    return found


def _known(kind: Any, value: Any) -> Any:
    """Return the part of JSON data that a record class, or a collection of one, has fields for."""
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        found = value if isinstance(value, Mapping) else {}
        return {
            field.name: _known(hints[field.name], found[field.name]) for field in fields(kind) if field.name in found
        }
    records = [argument for argument in get_args(kind) if is_dataclass(argument)]
    if records and isinstance(value, list | tuple):
        return [_known(records[0], inner) for inner in value]
    if records and value is not None:
        return _known(records[0], value)
    return value


def refuse_secrets(texts: Iterable[tuple[str, str]]) -> None:
    """Raise UserError if any of these texts, named by file, holds a key or the value of a secret variable."""
    from huggingface_hub import get_token

    secrets = {name: value for name, value in os.environ.items() if _SECRET_NAMES.search(name)}
    secrets["the Hugging Face token"] = get_token() or ""
    secrets = {name: value for name, value in secrets.items() if len(value) >= _SHORTEST_SECRET}
    problems = set()
    for file, text in texts:
        problems |= {f"{file}: holds {name}" for name, value in secrets.items() if value in text}
        if found := _KEYS.search(text):
            problems.add(f"{file}: holds what looks like a key ({found[0][:5]}…)")
    if problems:
        raise UserError(
            "nothing was published: there is a secret in what would be",
            problems=tuple(sorted(problems)),
            advice="Remove it from the run's files, or run again without it; a key that others saw has to be revoked.",
        )
