"""What `draftboard list` prints. Free of torch."""

import json
from typing import Any

from draftboard.bundled import BUNDLED, is_fetched
from draftboard.methods import method_class, method_names
from draftboard.metrics import METRICS
from draftboard.suites import describe_suites

__all__ = ["list_command"]


def list_command(what: str, *, as_json: bool) -> int:
    """Print names with what they are."""
    rows = {"methods": _methods, "suites": _suites, "models": _models, "metrics": _metrics}[what]()
    if as_json:
        print(json.dumps(rows, indent=1))
        return 0
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        extra = "; ".join(f"{key}: {value}" for key, value in row.items() if key not in ("name", "about") and value)
        print(f"{row['name']:<{width}}  {row['about']}" + (f"  ({extra})" if extra else ""))
    return 0


def _methods() -> list[dict[str, Any]]:
    found = []
    for name in method_names():
        cls = method_class(name)
        found.append(
            {
                "name": name,
                "about": cls.about,
                "lossless": "yes" if cls.lossless else "no",
                "training": cls.training,
                "reference": cls.reference,
            }
        )
    return found


def _suites() -> list[dict[str, Any]]:
    return [{"name": info.usage, "about": info.description, "licence": info.licence} for info in describe_suites()]


def _metrics() -> list[dict[str, Any]]:
    return [
        {"name": m.name, "about": f"{m.title}: {m.about}", "unit": m.unit, "kind": m.kind} for m in METRICS.values()
    ]


def _models() -> list[dict[str, Any]]:
    rows = [
        {
            "name": alias,
            "about": f"bundled: {entry.requirement}, {entry.download_bytes / 1e6:.0f} MB to download",
            "licence": entry.licence,
            "fetched": "yes" if is_fetched(alias) else "no",
        }
        for alias, entry in BUNDLED.items()
    ]
    rows.append({"name": "owner/name", "about": "any causal LM of the Hugging Face hub, with --revision"})
    rows.append({"name": "folder, file.gguf", "about": "a local folder with config.json and weights, or a GGUF file"})
    return rows
