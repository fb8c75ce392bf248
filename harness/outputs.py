"""How a method's output compares with the baseline's, of all that a stored run holds of both."""

from collections.abc import Iterable, Mapping, Sequence

from draftboard.lossless import Margin, compare
from draftboard.lossless import Turn as OutputTurn
from draftboard.records import Cell
from draftboard.store import StoredRun

__all__ = ["output_of", "tie_limit"]

_TIE_LIMITS = {"float64": 1e-9, "float32": 1e-3, "float16": 0.03, "bfloat16": 0.25}

Key = tuple[str, int]
"""Sample and round."""


def tie_limit(dtype: str) -> float:
    """Return the logit margin up to which two tokens count as tied in that dtype (suites-and-scoring 9.2)."""
    return _TIE_LIMITS.get(dtype, 1e-3)


def output_of(run: StoredRun, label: str, baseline: Iterable[Cell], mine: Iterable[Cell]) -> str:
    """Return `output` of `MethodResult`, but for `lossy`; empty where it cannot be told."""
    base = {(c.sample, c.repeat): c for c in baseline if c.status == "ok"}
    own = {(c.sample, c.repeat): c for c in mine if c.status == "ok"}
    both = base.keys() & own.keys()
    if "imported" in run.plan:
        return _text_output([(base[key], own[key]) for key in both])
    if run.plan["sampling"]["temperature"] > 0:
        return ""
    margins = {
        ((d.sample, d.repeat), d.turn): Margin(reference=d.baseline_below_best, method=d.method_below_best)
        for d in run.divergences
        if d.method == label
    }
    limit = tie_limit(str(run.plan.get("resolved", {}).get("dtype", "float32")))
    audited = (run.audit or {}).get("limit")
    if audited and audited["source"] == "measured":
        limit = max(limit, float(audited["value"]))
    # Most cells are equal throughout: they need no look at single tokens.
    differing = [key for key in both if not _equal(base[key], own[key])]
    output = compare(_outputs(base, differing), _outputs(own, differing), tie_limit=limit, margins=margins).output
    equal = any(base[key].turns for key in both.difference(differing))
    return output or ("identical" if equal else "")


def _equal(base: Cell, own: Cell) -> bool:
    """Whether all turns were asked and answered with the same ids."""
    if len(base.turns) != len(own.turns):
        return False
    for a, b in zip(base.turns, own.turns, strict=True):
        if a.token_ids != b.token_ids or a.prompt_sha256 != b.prompt_sha256:
            return False
    return True


def _text_output(pairs: Sequence[tuple[Cell, Cell]]) -> str:
    """Compare texts: that is all that is known of an imported answer."""
    if not any(base.turns and own.turns for base, own in pairs):
        return ""
    equal = all(a.text == b.text for base, own in pairs for a, b in zip(base.turns, own.turns, strict=False))
    return "text-equal" if equal else "text-different"


def _outputs(cells: Mapping[Key, Cell], keys: Iterable[Key]) -> dict[Key, list[OutputTurn]]:
    return {
        key: [OutputTurn(token_ids=t.token_ids, prompt=t.prompt_sha256) for t in cells[key].turns]
        for key in sorted(keys)
    }
