"""What of a run's record of its machine may be shown: the fields on this list, whatever else a file holds."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from draftboard.hardware import Cpu, Environment, Gpu, LoadSample

__all__ = ["recorded_environment"]

_PLAIN = ("hardware", "cost_curve", "peak_rss_bytes", "weight_bytes", "cache_bytes")
_NESTED = {"cpu": Cpu, "gpus": Gpu, "load": LoadSample}


def recorded_environment(environment: Mapping[str, Any]) -> dict[str, object]:
    """Return the record of hardware and software, without anything that is not on the list of what is recorded."""
    names = (*(field.name for field in fields(Environment) if field.name != "schema"), *_PLAIN)
    return {name: _known(name, environment[name]) for name in names if environment.get(name) is not None}


def _known(name: str, value: Any) -> object:
    kind = _NESTED.get(name)
    if kind is None:
        return value
    wanted = [field.name for field in fields(kind)]
    rows = [
        {field: row[field] for field in wanted if field in row}
        for row in (value if isinstance(value, list) else [value])
        if isinstance(row, dict)
    ]
    return rows if isinstance(value, list) else next(iter(rows), {})
