"""Under what conditions a run's figures came about, in words for a board: only what was recorded, never a guess."""

from typing import Any

from draftboard.store import StoredRun

__all__ = ["conditions", "notes"]


def conditions(run: StoredRun) -> dict[str, str]:
    """Return what all methods of the run share, ready to be shown; what is not known is left out."""
    plan, resolved = run.plan, run.plan.get("resolved") or {}
    found: dict[str, Any] = {
        "imported": _imported(plan),
        "decoding": _decoding(plan.get("sampling")),
        "max new tokens": plan.get("max_new_tokens"),
        "batch size": None if "imported" in plan else 1,
        "dtype": resolved.get("dtype", plan.get("dtype")),
        "device": resolved.get("device", plan.get("device")),
        "threads": run.environment.get("threads"),
        "template": resolved.get("template", plan.get("template")),
        "history": plan["history"] if plan.get("history") == "reference" else None,
        "part": plan["part"] if plan.get("part") in ("calibration", "test") else None,
        "categories": ", ".join(plan.get("category") or ()),
        "ids": plan.get("ids"),
        "limit": f"{plan['limit']} per domain" if plan.get("limit") else None,
        "max prompt tokens": plan.get("max_prompt_tokens"),
        "seed": plan.get("seed"),
        "rounds": plan.get("repeats"),
        "samples": ", ".join(f"{suite['name']} {suite['samples']}" for suite in plan["suites"]),
        "suite hash": ", ".join(
            f"{suite['name']} {suite['content_hash'][:12]}" for suite in plan["suites"] if suite["content_hash"]
        ),
        "weights": str(plan.get("model_fingerprint") or "")[:12],
        "tokenizer": plan.get("tokenizer") if "imported" in plan else None,
        "software": _software(run.environment.get("packages") or {}),
    }
    return {name: str(value) for name, value in found.items() if value not in (None, "")}


def notes(run: StoredRun) -> tuple[str, ...]:
    """Return what explains the figures: what was dropped on reading and the suites' notes."""
    imported = run.plan.get("imported") or {}
    found = [*run.warnings, *([run.stale_scores] if run.stale_scores else []), *imported.get("notes", ())]
    for suite in run.plan["suites"]:
        found += [f"{suite['name']}: {note}" for note in suite.get("notes", ())]
    return tuple(found)


def _imported(plan: dict[str, Any]) -> str:
    imported = plan.get("imported") or {}
    files = [file if isinstance(file, str) else str(file.get("name", "")) for file in imported.get("files", ())]
    named = ", ".join(name for name in files if name)
    return ": ".join(part for part in (str(imported.get("format", "")), named) if part)


def _decoding(sampling: dict[str, Any] | None) -> str:
    if not sampling:
        return ""
    if sampling["temperature"] == 0:
        return "greedy"
    return f"temperature {sampling['temperature']:g}, top-p {sampling['top_p']:g}, top-k {sampling['top_k'] or 'all'}"


def _software(packages: dict[str, Any]) -> str:
    known = (name for name in ("draftboard", "torch", "transformers") if packages.get(name))
    return ", ".join(f"{name} {packages[name]}" for name in known)
