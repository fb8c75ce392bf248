"""One audit of a stored run: read, compare, ask the model, conclude, store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from draftboard.audit.conclusions import Key, Place, audit_outputs, differing
from draftboard.audit.report import Evidence, Limit, MethodAudit, Report, SamplingAudit, document
from draftboard.errors import UserError
from draftboard.lossless import Turn
from draftboard.outputs import tie_limit
from draftboard.plan import BASELINE
from draftboard.records import Cell
from draftboard.scored import domain_labels
from draftboard.store import AUDIT, StoredRun, read_run, write_json

if TYPE_CHECKING:
    from draftboard.audit.opened import Prompts
    from draftboard.session import Session

__all__ = ["Wish", "audit_run", "check_limit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What an audit is asked for."""

    theta: float | None = None
    """Tie limit in logits; None measures it."""
    positions: int = 1000
    """Positions that the limit is measured over."""
    exact: bool = False
    """Whether ties fail."""
    float32: bool = False
    """Whether differences are looked at in float32 too."""
    with_model: bool = True
    model: str | None = None
    """Where the run's model is now, if it has moved."""
    device: str | None = None
    sampling: bool = False
    """Check sampling in a greedy run too."""
    prompts: int = 4
    draws: int = 50
    """Of each prompt and method, on the run's model."""
    toy_draws: int = 20_000

    def check(self) -> None:
        """Raise UserError for values that cannot be meant."""
        problems = []
        if self.theta is not None:
            problems += check_limit(self.theta)
        for name, least in (("positions", 1), ("prompts", 1), ("draws", 10), ("toy_draws", 100)):
            if getattr(self, name) < least:
                problems.append(f"{name} must be at least {least}, not {getattr(self, name)}")
        if not self.with_model and self.float32:
            problems.append("fp32 needs the model, which --no-model leaves out")
        if problems:
            raise UserError(f"{len(problems)} problem(s) in what the audit is asked", problems=tuple(problems))


def check_limit(theta: float) -> list[str]:
    """Return what is wrong with a tie limit."""
    return [] if isfinite(theta) and theta >= 0 else [f"theta must be a number of at least 0, not {theta}"]


@dataclass(slots=True, kw_only=True)
class _Sides:
    """The cells of a run by method, and what the audit compares of them."""

    run: StoredRun
    baseline: str
    methods: list[dict[str, Any]]
    """Tables of the plan, without the baseline's."""
    base: dict[Key, Cell]
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, run: StoredRun) -> _Sides:
        """Raise UserError for a run that has no token ids or nothing to compare."""
        where = str(run.path)
        if "imported" in run.plan:
            raise UserError(
                "was imported: it holds texts and no token ids, and equal texts prove nothing",
                where=where,
                advice="Audit a run of draftboard run; draftboard show tells whether the texts are equal.",
            )
        baseline = str(run.plan.get("baseline") or BASELINE)
        base = {(c.sample, c.repeat): c for c in run.cells if c.method == baseline and c.status == "ok"}
        if not base:
            raise UserError(
                f"has no answer of {baseline} to compare with",
                where=where,
                advice="Run it with its baseline, or go on with it: draftboard run … --resume.",
            )
        methods = [table for table in run.plan["methods"] if table["label"] != baseline]
        if not methods:
            raise UserError(
                f"has no method beside {baseline}", where=where, advice="Add one: draftboard run --method pld …"
            )
        sides = cls(run=run, baseline=baseline, methods=methods, base=base, notes=list(run.warnings))
        wanted = len(run.samples) * len(run.plan["methods"]) * int(run.plan["repeats"])
        if len(run.cells) < wanted:
            sides.notes.append(
                f"{wanted - len(run.cells)} of {wanted} cells have not run: the audit is of what is there"
            )
        return sides

    def cells(self, label: str) -> dict[Key, Cell]:
        """Return the method's cells that stand beside a good one of the baseline."""
        mine = {(c.sample, c.repeat): c for c in self.run.cells if c.method == label}
        return {key: mine[key] for key in self.base if key in mine}

    def outputs(self, label: str) -> tuple[dict[Key, list[Turn]], dict[Key, list[Turn]]]:
        """Return the baseline's and the method's turns where both ended well."""
        mine = {key: cell for key, cell in self.cells(label).items() if cell.status == "ok"}
        return {key: _turns(self.base[key]) for key in mine}, {key: _turns(cell) for key, cell in mine.items()}

    def stored(self, label: str) -> dict[Place, Evidence]:
        """Return what the run wrote down of its first differences, where that is still what its cells say."""
        ours, theirs = self.outputs(label)
        places = {(t.key, t.turn): (t.place, t.reference_token, t.method_token) for t in differing(ours, theirs)}
        return {
            at: Evidence(best=None, gap=d.gap, baseline_below=d.baseline_below_best, method_below=d.method_below_best)
            for d in self.run.divergences
            if d.method == label
            and places.get(at := ((d.sample, d.repeat), d.turn)) == (d.place, d.baseline_token, d.method_token)
        }

    def told(self, label: str) -> tuple[list[str], list[str]]:
        """Return what keeps the method from passing beside its outputs, and what is only told."""
        cells = self.cells(label)
        failed = sum(cell.status == "failed" for cell in cells.values())
        skipped = sum(cell.status == "skipped" for cell in cells.values())
        lacking = len(self.base) - len(cells)
        faults = [f"{failed} cells failed where {self.baseline} did not"] if failed else []
        notes = [f"{skipped} cells were skipped"] if skipped else []
        if lacking:
            notes.append(f"{lacking} answers of {self.baseline} have none beside them yet")
        return faults, notes


def audit_run(folder: Path, wish: Wish = Wish(), *, say: Callable[[str], None] = lambda text: None) -> Report:
    """Audit a run and store the result as its audit.json.

    A greedy run is compared token by token; a sampling run, and a greedy one on request, has its sampling checked.
    `say` is told how far it is. Raises UserError for a run that cannot be audited; nothing is written then.
    """
    wish.check()
    run = read_run(folder)
    sides = _Sides.of(run)
    greedy = not float((run.plan["sampling"] or {}).get("temperature") or 0)
    session = None
    if wish.with_model:
        from draftboard.audit.opened import open_model

        say("loading the model")
        session = open_model(run, model=wish.model, device=wish.device)
    dtype = str((run.plan.get("resolved") or {}).get("dtype") or run.plan["dtype"])
    limit: Limit | None = None
    methods: tuple[MethodAudit, ...] = ()
    if greedy:
        limit = _limit(sides, session, dtype, wish, say)
        methods = _compared(sides, session, limit.value, wish, say)
        if all(method.verdict == "not compared" for method in methods):
            raise UserError(
                "no turn of any method could be compared", where=str(folder), advice="See draftboard show for why."
            )
    else:
        sides.notes.append("the run samples: its outputs may differ from the baseline's, and are not compared")
    sampling = _sampling(sides, session, wish, say) if wish.sampling or not greedy else None
    report = Report(
        model=str(run.plan["model"]),
        dtype=dtype,
        baseline=sides.baseline,
        exact=wish.exact,
        limit=limit,
        methods=methods,
        sampling=sampling,
        notes=tuple(sides.notes),
    )
    write_json(folder / AUDIT, document(report))
    return report


def _turns(cell: Cell) -> list[Turn]:
    # What is answered by likelihood has no tokens, and two answers without tokens say nothing about decoding.
    return [Turn(token_ids=t.token_ids, prompt=t.prompt_sha256) for t in cell.turns if t.finish != "choice"]


def _limit(sides: _Sides, session: Session | None, dtype: str, wish: Wish, say: Callable[[str], None]) -> Limit:
    if wish.theta is not None:
        return Limit(value=wish.theta, source="given")
    floor = tie_limit(dtype)
    if session is not None:
        from draftboard.audit.margins import measure_limit
        from draftboard.audit.opened import Prompts

        texts = _texts(sides, Prompts(session.reader, sides.run.samples))
        if texts:
            return measure_limit(session.target, texts, floor=floor, positions=wish.positions, say=say)
        sides.notes.append("theta was not measured: no prompt of the run can be made again")
    before = sides.run.audit
    if before is not None and before["limit"] and before["limit"]["source"] == "measured":
        # What an earlier audit measured stays true of the run.
        known = before["limit"]
        return Limit(
            value=known["value"], source="measured", positions=known["positions"], percentile=known["percentile"]
        )
    return Limit(value=floor, source="default")


def _texts(sides: _Sides, prompts: Prompts) -> list[list[int]]:
    """Return prompt and answer of the baseline's turns in the first round."""
    found = []
    for (_, repeat), cell in sides.base.items():
        for index, turn in enumerate(cell.turns if repeat == 0 else ()):
            ids = prompts.ids(cell, index)
            if ids is not None:
                found.append([*ids, *turn.token_ids])
    return found


def _compared(
    sides: _Sides, session: Session | None, limit: float, wish: Wish, say: Callable[[str], None]
) -> tuple[MethodAudit, ...]:
    seen: dict[str, dict[Place, Evidence]] = {}
    again: dict[str, dict[Place, Evidence]] = {}
    labels = [str(table["label"]) for table in sides.methods]
    if session is not None:
        from draftboard.audit.opened import Prompts

        prompts = Prompts(session.reader, sides.run.samples)
        for label in labels:
            say(f"looking at the differences of {label}")
            seen[label] = _looked(sides, session.target, prompts, label)
        if wish.float32:
            again = _in_float32(sides, session, prompts, labels, seen, say)
    found = []
    for table in sides.methods:
        label = str(table["label"])
        ours, theirs = sides.outputs(label)
        faults, notes = sides.told(label)
        found.append(
            audit_outputs(
                label,
                ours,
                theirs,
                limit=limit,
                exact=wish.exact,
                lossless=bool(table.get("lossless", True)),
                domains=domain_labels(sides.run.samples),
                evidence=seen.get(label),
                stored=sides.stored(label),
                float32=again.get(label),
                failed=faults,
                notes=notes,
            )
        )
    return tuple(found)


def _looked(sides: _Sides, target: Any, prompts: Prompts, label: str) -> dict[Place, Evidence]:
    from draftboard.audit.margins import look

    ours, theirs = sides.outputs(label)
    found: dict[Place, Evidence] = {}
    for turn in differing(ours, theirs):
        cell, place = sides.base[turn.key], turn.place or 0
        ids = prompts.ids(cell, turn.turn)
        if ids is None or turn.reference_token is None or turn.method_token is None:
            continue
        prefix = [*ids, *cell.turns[turn.turn].token_ids[:place]]
        evidence = look(target, prefix, turn.reference_token, turn.method_token)
        if evidence is not None:
            found[turn.key, turn.turn] = evidence
    return found


def _in_float32(
    sides: _Sides,
    session: Session,
    prompts: Prompts,
    labels: Sequence[str],
    seen: dict[str, dict[Place, Evidence]],
    say: Callable[[str], None],
) -> dict[str, dict[Place, Evidence]]:
    import torch

    from draftboard import models
    from draftboard.methods.engine.model import LanguageModel

    if session.target.dtype in (torch.float32, torch.float64) or not any(seen.values()):
        return seen
    say("loading the model in float32")
    try:
        model = models.load_model(session.reader.ref, dtype="float32", device=str(session.target.device))
    except UserError as error:
        sides.notes.append(f"not looked at in float32: {error.what}; {' '.join(error.problems)}".rstrip("; "))
        return {}
    target = LanguageModel(model)
    return {label: _looked(sides, target, prompts, label) for label in labels}


def _sampling(sides: _Sides, session: Session | None, wish: Wish, say: Callable[[str], None]) -> SamplingAudit:
    from draftboard.audit.sampling import Asked, check_sampling

    asked = []
    if session is not None:
        from draftboard.audit.opened import Prompts

        prompts = Prompts(session.reader, sides.run.samples)
        for (sample, repeat), cell in sides.base.items():
            ids = prompts.ids(cell, 0) if cell.turns and repeat == 0 else None
            if ids is not None:
                asked.append(Asked(sample=sample, prompt=ids, answer=tuple(cell.turns[0].token_ids)))
    return check_sampling(sides.methods, sides.run.plan["sampling"] or {}, session, asked, wish, say)
