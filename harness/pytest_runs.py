"""Small runs inside tests: what a test says becomes a plan, is run, and comes back as a result to assert on.

The target stays loaded from one run to the next while model, dtype, device and the files on disk stay the same.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from inspect import isabstract
from pathlib import Path
from typing import TYPE_CHECKING, Any

from draftboard import models
from draftboard.errors import UserError
from draftboard.methods import Method
from draftboard.options import convert_options, merged, read_options
from draftboard.plan import Plan, make_plan
from draftboard.run_result import RunResult
from draftboard.suites import Sample, Suite

if TYPE_CHECKING:
    from draftboard.session import Reader, Session

__all__ = ["FailedCells", "Models", "layered", "plan_of", "run_in"]

_WHERE = "draftboard_run"
_OWN = ("prompts", "allow_failed")
_TOGETHER = (frozenset({"method", "methods"}), frozenset({"suite", "prompts"}))
"""Two ways of saying one thing: what is said nearer to the test replaces both."""
_SHOWN = 10
"""Failed cells that a message lists."""


class FailedCells(AssertionError):
    """Cells of a run ended with an error."""


def layered(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings of all layers, later ones before earlier ones. None leaves a setting open."""
    found: dict[str, Any] = {}
    for layer in layers:
        said = {key: value for key, value in layer.items() if value is not None}
        for family in _TOGETHER:
            if not family.isdisjoint(said):
                found = {key: value for key, value in found.items() if key not in family}
        found |= said
    return found


def plan_of(said: Mapping[str, Any], plan: str | os.PathLike[str] | None = None) -> Plan:
    """Return the plan that these settings make, on top of a plan file where one is named.

    Settings are those of `RunOptions`; besides, `prompts` takes texts in place of a suite, `suite` also takes `Suite`
    objects and paths of question files, and `method` and `methods` also take methods and method classes. Raises
    UserError, SuiteError or MethodError with everything that is wrong.
    """
    values = dict(said)
    problems: list[str] = []
    tables = _tables(values, problems)
    suites = _suites(values, problems)
    for key, value in values.items():
        if isinstance(value, os.PathLike):
            values[key] = os.fspath(value)
    try:
        options = replace(convert_options(values, _WHERE, others=_OWN), methods=tables or None)
    except UserError as error:
        if not problems:
            raise
        problems += error.problems
    if problems:
        raise UserError(f"{len(problems)} problem(s) in the plan", where=_WHERE, problems=tuple(problems))
    if plan is not None:
        base = read_options(Path(plan))
        if tables:
            base = replace(base, method=None, methods=None)
        if suites:
            base = replace(base, suite=None)
        options = merged(base, options)
    return make_plan(options, where=str(plan or _WHERE), suites=suites)


def _tables(values: dict[str, Any], problems: list[str]) -> tuple[dict[str, Any], ...]:
    """Take the methods out of the settings, each as a table that a plan understands."""
    found: list[dict[str, Any]] = []
    for key in ("method", "methods"):
        asked = values.pop(key, ())
        asked = [asked] if isinstance(asked, str | Mapping | Method | type) else asked
        if not isinstance(asked, Sequence):
            problems.append(f"{key} = {asked!r}: a list of methods is expected")
            continue
        for item in asked:
            table = {**item} if isinstance(item, Mapping) else {"method": item}
            method = _method(table.get("method"), problems)
            if isinstance(method, Method) and not method.notation():
                # Only the class knows what a method is called that no one registered.
                table.setdefault("label", type(method).__name__)
            found.append({**table, "method": method})
    return tuple(found)


def _method(asked: object, problems: list[str]) -> object:
    """A method from its class; a name or a method as it is."""
    if isinstance(asked, str | Method):
        return asked
    if not (isinstance(asked, type) and issubclass(asked, Method)):
        problems.append(f"{asked!r} is no method: give its name, a Method, its class, or a table with method = …")
        return ""
    if isabstract(asked):
        problems.append(f"{asked.__qualname__} lacks {', '.join(sorted(asked.__abstractmethods__))}()")
        return ""
    needed = [f.name for f in fields(asked) if f.default is MISSING and f.default_factory is MISSING]
    if needed:
        problems.append(f"{asked.__qualname__} needs {', '.join(needed)}: give {asked.__qualname__}(…) in its place")
        return ""
    return asked()


def _suites(values: dict[str, Any], problems: list[str]) -> tuple[Suite, ...]:
    """Take prompts and suites that are loaded already out of the settings; names and paths stay there."""
    prompts, asked = values.pop("prompts", None), values.pop("suite", ())
    asked = [asked] if isinstance(asked, str | os.PathLike | Suite) else asked
    if not isinstance(asked, Sequence):
        problems.append(f"suite = {asked!r}: a suite or a list of suites is expected")
        asked = ()
    given = [suite for suite in asked if isinstance(suite, Suite)]
    names = [
        f"jsonl@{os.fspath(suite)}" if isinstance(suite, os.PathLike) else suite
        for suite in asked
        if not isinstance(suite, Suite)
    ]
    if names:
        values["suite"] = names
    if prompts is not None:
        if asked:
            problems.append("suite and prompts exclude each other: prompts are asked in place of a suite")
        given += _asking(prompts, problems)
    return tuple(given)


def _asking(prompts: object, problems: list[str]) -> list[Suite]:
    """A suite of one sample a prompt; a prompt that is itself a list is a conversation of several turns."""
    texts = [prompts] if isinstance(prompts, str) else prompts
    if not isinstance(texts, Sequence) or not texts:
        problems.append(f"prompts = {prompts!r}: a list of texts is expected, at least one")
        return []
    conversations = [(text,) if isinstance(text, str) else text for text in texts]
    for place, turns in enumerate(conversations):
        if not isinstance(turns, Sequence) or not turns or not all(isinstance(turn, str) for turn in turns):
            problems.append(f"prompts[{place}] = {texts[place]!r}: a text, or a list of texts for several turns")
    if problems:
        return []
    samples = tuple(
        Sample(sample_id=str(number), suite="prompts", domain="prompts", category="prompts", turns=tuple(turns))
        for number, turns in enumerate(conversations, start=1)
    )
    digest = hashlib.sha256(json.dumps([list(sample.turns) for sample in samples]).encode()).hexdigest()
    return [Suite(name="prompts", samples=samples, content_hash=digest, source="a test", licence="the test's own")]


class Models:
    """Keeps the target of the last run. One at a time: two might not fit the device."""

    def __init__(self) -> None:
        self._asked: tuple[object, ...] = ()
        self._kept: Session | None = None

    def load(self, plan: Plan, reader: "Reader") -> "Session":
        """Bind the plan to the target that is loaded, or load it."""
        import torch

        from draftboard.session import Session

        asked = (reader.ref, plan.dtype, plan.device)
        kept = self._kept
        if kept is not None and asked == self._asked and models.fingerprint(reader.ref) == kept.fingerprint:
            if plan.threads is not None:
                torch.set_num_threads(plan.threads)
            return replace(kept, plan=plan, reader=reader)
        del kept
        self.drop()
        self._kept = Session.load(plan, reader)
        self._asked = asked
        return self._kept

    def drop(self) -> None:
        """Let go of it."""
        self._kept, self._asked = None, ()


def run_in(
    folder: Path, plan: Plan, loaded: Models, *, allow_failed: bool = False, keep: Callable[[RunResult], None]
) -> RunResult:
    """Run a plan in a new folder and return what it came to.

    `keep` is given the result before cells are looked at. Raises FailedCells, with the first of them, unless
    `allow_failed`; UserError for a model that does not fit. The process computes with as many threads afterwards as
    before.
    """
    import torch

    from draftboard.commands import finish_run
    from draftboard.runner import run_plan
    from draftboard.store import read_run

    threads = torch.get_num_threads()
    try:
        run_plan(plan, folder, load=loaded.load)
        group = finish_run(folder)
    finally:
        torch.set_num_threads(threads)
    result = RunResult(read_run(folder), group)
    keep(result)
    failed = [cell for cell in result.run.cells if cell.status == "failed"]
    if failed and not allow_failed:
        lines = [f"  {cell.method} on {cell.sample}, round {cell.repeat}: {cell.reason}" for cell in failed[:_SHOWN]]
        if len(failed) > _SHOWN:
            lines.append(f"  and {len(failed) - _SHOWN} more")
        raise FailedCells("\n".join([f"{len(failed)} of {plan.cells} cells failed; the run is in {folder}", *lines]))
    return result
