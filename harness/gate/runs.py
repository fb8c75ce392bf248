"""A stored run as one side of a comparison."""

from typing import Any

from draftboard.analysis import analyse
from draftboard.errors import UserError
from draftboard.gate.sides import Side, TimedTurn, board_of, measured
from draftboard.measures import TurnFacts, facts
from draftboard.plan import BASELINE
from draftboard.scored import domain_labels
from draftboard.store import StoredRun
from draftboard.verdict import disturbances

__all__ = ["side_of_run"]


def side_of_run(run: StoredRun) -> Side:
    """Return the run's cells and figures. Raises UserError where no timed cell has ended well."""
    labels = domain_labels(run.samples)
    timed = {record.key for record in run.samples if record.timed}
    cells: dict[str, dict[tuple[str, int], list[TimedTurn]]] = {}
    for label in (table["label"] for table in run.plan["methods"]):
        found = facts(cell for cell in run.cells if cell.method == label and cell.sample in timed)
        for fact in found:
            cells.setdefault(label, {}).setdefault((fact.sample, fact.repeat), []).append(_timed(fact))
    if not cells and not timed:
        raise UserError(
            "has no timed sample: its suites are for quality alone",
            where=str(run.path),
            advice="Compare their scores with draftboard show.",
        )
    if not cells:
        raise UserError(
            "has no cell that could be compared: none has ended well",
            where=str(run.path),
            advice="Finish it with draftboard run --resume.",
        )
    group = analyse(run)
    return Side(
        name=str(run.path),
        conditions=_conditions(run),
        board=board_of(group),
        remarks={name: str(version) for name, version in (run.environment.get("packages") or {}).items() if version},
        methods={
            method.method: measured(
                method,
                group.baseline or BASELINE,
                cells.get(method.method),
                missing=_missing(run, method.method),
            )
            for method in group.methods
        },
        domains={key: labels[key] for key in timed},
        disturbed=disturbances(run),
        notes=(*run.warnings, *_imported(run)),
    )


def _missing(run: StoredRun, label: str) -> int:
    """Return how many of the method's cells have not run; an imported run has what its files hold."""
    if "imported" in run.plan:
        return 0
    return len(run.samples) * int(run.plan["repeats"]) - sum(cell.method == label for cell in run.cells)


def _imported(run: StoredRun) -> tuple[str, ...]:
    if "imported" not in run.plan:
        return ()
    return (f"{run.path} was imported: the conditions that it was measured under are not on record",)


def _timed(fact: TurnFacts) -> TimedTurn:
    turn, steps = fact.turn, fact.steps
    return TimedTurn(
        prompt=turn.prompt_sha256,
        tokens=fact.tokens,
        wall_s=fact.seconds or None,
        cpu_s=turn.cpu_ns / 1e9 if turn.cpu_ns else None,
        kept=steps.kept if steps else None,
        steps=steps.count if steps else None,
    )


def _conditions(run: StoredRun) -> dict[str, str]:
    """Name what two runs must share. The samples chosen need not be equal: shared ones are paired."""
    plan = run.plan
    resolved: dict[str, Any] = plan.get("resolved") or {}
    found: dict[str, Any] = {
        "hardware": run.environment.get("hardware"),
        "threads": run.environment.get("threads"),
        "model": plan.get("model_fingerprint") or plan["model"],
        "dtype": resolved.get("dtype", plan["dtype"]),
        "device": resolved.get("device", plan["device"]),
        "template": resolved.get("template_sha256") or resolved.get("template") or plan["template"],
        **{f"suite {suite['name']}": suite["content_hash"] for suite in plan["suites"]},
        "max_new_tokens": plan["max_new_tokens"],
        "stop": plan.get("stop") or None,
        "history": plan.get("history"),
        "profile": plan.get("profile"),
        **{f"sampling {name}": value for name, value in (plan["sampling"] or {}).items()},
    }
    if (plan["sampling"] or {}).get("temperature"):
        found["seed"] = plan["seed"]
    return {name: str(value) for name, value in found.items() if value is not None}
