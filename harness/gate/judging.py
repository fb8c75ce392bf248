"""The gate's rules, applied to two sides.

Never on noise alone: a slowdown fails only if it is larger than allowed *and* its interval excludes none at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from draftboard.errors import UserError
from draftboard.gate.figures import Row, acceptance_change, cell_change, stored_change
from draftboard.gate.report import Change, Check, Report
from draftboard.gate.sides import Clock, Measured, Side, TimedTurn
from draftboard.statistics import ONE_ROUND, Sampling

__all__ = ["MAX_SLOWDOWN", "Quantity", "Rules", "compare"]

MAX_SLOWDOWN = 0.02
"""At 3 % noise a cell and three rounds of 48 samples, a slowdown of 5 % is then found and equal code passes, each at
least 19 times in 20 (tests/harness/gate/test_power.py)."""

Quantity = Literal["speedup", "time"]

_FEW = "too few samples for an interval: nothing can be told from noise"
_HALF = ("float16", "bfloat16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a candidate may do."""

    max_slowdown: float = MAX_SLOWDOWN
    """Share by which it may be slower; 0.02 is 2 %."""
    min_acceptance_drop: float | None = None
    """Share by which the acceptance length has to fall for the gate to fail; None: it is shown only."""
    require_lossless: bool = False
    clock: Clock = "wall"
    quantity: Quantity | None = None
    """None: the speedup where both sides have their baseline, else the time per token."""
    methods: tuple[str, ...] = ()
    """Only these; all that the first side has if empty."""
    seed: int = 0

    def told(self) -> dict[str, str]:
        """Return the rules as words."""
        drop = self.min_acceptance_drop
        return {
            "slower by at most": f"{self.max_slowdown:.2%}",
            "acceptance length": "shown only" if drop is None else f"fails from a drop of {drop:.2%}",
            "output": "must be the target's" if self.require_lossless else "shown only",
            "clock": {"wall": "wall time", "cpu": "process CPU time"}[self.clock],
        }


def compare(before: Side, after: Side, rules: Rules) -> Report:
    """Judge `after` against `before`. Raises UserError where the rules ask for what the sides cannot give."""
    refused = _differences(before, after)
    checks: tuple[Check, ...] = ()
    if not refused:
        checks = tuple(_check(label, before, after, rules) for label in _labels(before, after, rules))
    changed = [
        f"{name} {before.remarks.get(name, 'absent')} → {after.remarks.get(name, 'absent')}"
        for name in sorted(before.remarks.keys() | after.remarks.keys() if before.remarks and after.remarks else ())
        if before.remarks.get(name) != after.remarks.get(name)
    ]
    return Report(
        before=before.name,
        after=after.name,
        rules=rules.told(),
        checks=checks,
        refused=tuple(refused),
        notes=tuple(
            dict.fromkeys(
                (
                    *_unsaid(before, after),
                    *(f"{side.name}: {sign}" for side in (before, after) for sign in side.disturbed),
                    *(f"versions differ: {text}" for text in changed),
                    *before.notes,
                    *after.notes,
                )
            )
        ),
    )


def _differences(before: Side, after: Side) -> list[str]:
    old, new = before.conditions, after.conditions
    boards = _are_boards(before, after)
    if boards:
        old, new = before.board, after.board
    return [
        f"{name}: {old.get(name) or 'not said'} → {new.get(name) or 'not said'}"
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name) and not (boards and (name not in old or name not in new))
    ]


def _are_boards(before: Side, after: Side) -> bool:
    """Whether only what boards say of themselves can be held against each other."""
    return bool(before.board and after.board) and not (before.has_cells and after.has_cells)


def _unsaid(before: Side, after: Side) -> tuple[str, ...]:
    """Name the conditions that one of two boards does not state, so that nothing says whether they are equal."""
    if not _are_boards(before, after):
        return ()
    names = [name for name in {**before.board, **after.board} if name not in before.board or name not in after.board]
    return (f"said by one side alone, and taken for equal: {', '.join(names)}",) if names else ()


def _labels(before: Side, after: Side, rules: Rules) -> list[str]:
    if not rules.methods:
        return list(before.methods)
    unknown = [label for label in rules.methods if label not in before.methods and label not in after.methods]
    if unknown:
        known = ", ".join(dict.fromkeys([*before.methods, *after.methods]))
        raise UserError(f"neither side has {', '.join(unknown)}", advice=f"They have: {known}.")
    return list(dict.fromkeys(rules.methods))


def _check(label: str, before: Side, after: Side, rules: Rules) -> Check:
    old, new = before.methods.get(label), after.methods.get(label)
    if old is None or new is None:
        lacking = before.name if old is None else after.name
        return Check(method=label, outcome="not comparable", reasons=(f"{lacking} does not have it",))
    quantity = _quantity(label, before, after, rules)
    gated = rules.quantity == "time" or label != old.baseline
    notes = [] if old.settings == new.settings else ["settings differ between the two sides"]
    rows: list[Row] = []
    if before.has_cells and after.has_cells:
        rows = _paired(_arms(label, before, after, quantity), rules.clock)
        speed, domains = _from_cells(rows, before, quantity, rules)
        wanted = {key for key in old.cells if key[0] in after.domains}
        if speed and (left := len(wanted) - len(rows)) > 0:
            notes.append(f"{left} of {len(wanted)} cells could not be paired")
    else:
        speed, domains = _from_figures(old, new, quantity, rules)
    failed = [f"{new.failed} of its cells failed"] if new.failed > old.failed else []
    if speed is None:
        why = (*failed, _why_not(label, before, after, quantity, rules))
        return Check(method=label, outcome="fail" if failed else "not comparable", reasons=why)
    if speed.interval is None:
        notes.append(_FEW)
    elif rows and speed.noise_floor is None:
        notes.append(ONE_ROUND)
    acceptance = _acceptance(old, new, before, rules)
    reasons = [
        *(_too_slow(speed, rules) if gated else ()),
        *_accepts_less(acceptance, rules),
        *_not_lossless(new, after, rules),
        *failed,
    ]
    if old.missing:
        notes.append(f"{old.missing} of its cells have not run in {before.name}")
    untold = gated and not reasons and speed.interval is None and speed.ratio < 1 - rules.max_slowdown
    if untold:
        # Passing it would let a real slowdown through, failing it would do so on noise alone.
        reasons = [f"{speed.figure} {_told(speed)}, and nothing says whether that is noise: it takes more samples"]
    elif new.missing and not reasons:
        # A run that was broken off may have been so by the very fault that the gate is there for.
        untold = True
        reasons = [f"{new.missing} of its cells have not run: finish {after.name} with draftboard run --resume"]
    return Check(
        method=label,
        outcome="not comparable" if untold else "fail" if reasons else "pass",
        gated=gated,
        speed=speed,
        domains=domains,
        acceptance=acceptance,
        output=(old.output, new.output),
        reasons=tuple(reasons),
        notes=tuple(notes),
    )


def _quantity(label: str, before: Side, after: Side, rules: Rules) -> Quantity:
    if rules.quantity is not None:
        return rules.quantity
    baselines = [side.methods[label].baseline for side in (before, after)]
    known = all(name in side.methods for name, side in zip(baselines, (before, after), strict=True))
    cells = before.has_cells and after.has_cells
    return "speedup" if label not in baselines and (known or not cells) else "time"


def _arms(label: str, before: Side, after: Side, quantity: Quantity) -> list[Measured]:
    """Return the arms whose cells a comparison is made of, in the order of its columns."""
    arms = [before.methods[label], after.methods[label]]
    if quantity == "speedup":
        names = [(side, side.methods[label].baseline) for side in (before, after)]
        lacking = [f"{side.name} has no {name}" for side, name in names if name not in side.methods]
        if lacking:
            raise UserError(
                "there is no speedup to compare: " + "; ".join(lacking), advice="Compare times with --figure time."
            )
        arms += [side.methods[name] for side, name in names]
    return arms


def _paired(arms: Sequence[Measured], clock: Clock) -> list[Row]:
    """Return the cells that all arms have, over the turns from the first on that had one prompt in all of them."""
    rows = []
    for key in sorted(set.intersection(*(set(arm.cells) for arm in arms))):
        turns = _shared([arm.cells[key] for arm in arms])
        times = [[turn.seconds(clock) for turn in arm] for arm in turns]
        if not turns[0] or any(not second for arm in times for second in arm):
            continue
        parts = [
            (sum(second or 0.0 for second in seconds), float(sum(turn.tokens for turn in arm)))
            for arm, seconds in zip(turns, times, strict=True)
        ]
        if all(seconds > 0 and tokens > 0 for seconds, tokens in parts):
            rows.append((*key, tuple(value for part in parts for value in part)))
    return rows


def _shared(cells: Sequence[Sequence[TimedTurn]]) -> list[list[TimedTurn]]:
    count = 0
    for turns in zip(*cells, strict=False):
        if len({turn.prompt for turn in turns}) > 1:
            break
        count += 1
    return [list(turns[:count]) for turns in cells]


def _from_cells(
    rows: list[Row], side: Side, quantity: Quantity, rules: Rules
) -> tuple[Change | None, dict[str, Change]]:
    if not rows:
        return None, {}
    # Rounds are drawn by number from 0 on, and one that no cell is left of may be missing among these.
    places = {number: place for place, number in enumerate(sorted({number for _, number, _ in rows}))}
    rows = [(sample, places[number], parts) for sample, number, parts in rows]
    sampling = Sampling(seed=rules.seed, rounds=len(places))
    figure = "speedup" if quantity == "speedup" else "tokens per second"
    names = list(dict.fromkeys(side.domains[sample] for sample, _, _ in rows))

    def change(some: list[Row]) -> Change:
        return cell_change(some, side.domains, figure=figure, tolerance=rules.max_slowdown, sampling=sampling)

    parts = {name: [row for row in rows if side.domains[row[0]] == name] for name in names}
    return change(rows), {name: change(some) for name, some in parts.items()} if len(names) > 1 else {}


def _from_figures(
    old: Measured, new: Measured, quantity: Quantity, rules: Rules
) -> tuple[Change | None, dict[str, Change]]:
    name = "speedup" if quantity == "speedup" else "tokens_per_s"
    found = {
        domain: stored_change(name, figures, new.domain_figures[domain], tolerance=rules.max_slowdown)
        for domain, figures in old.domain_figures.items()
        if domain in new.domain_figures
    }
    overall = stored_change(name, old.figures, new.figures, tolerance=rules.max_slowdown)
    return overall, {domain: value for domain, value in found.items() if value is not None}


def _acceptance(old: Measured, new: Measured, side: Side, rules: Rules) -> Change | None:
    rows: list[Row] = []
    for key in sorted(set(old.cells) & set(new.cells)):
        turns = _shared([old.cells[key], new.cells[key]])
        if not turns[0] or any(turn.steps is None for arm in turns for turn in arm):
            continue
        parts = [float(sum(getattr(t, name) or 0 for t in arm)) for arm in turns for name in ("kept", "steps")]
        if min(parts[1], parts[3]) > 0:
            rows.append((*key, tuple(parts)))
    tolerance = rules.min_acceptance_drop or 0.0
    if rows:
        return acceptance_change(rows, side.domains, tolerance=tolerance, sampling=Sampling(seed=rules.seed))
    return stored_change("acceptance_length", old.figures, new.figures, tolerance=tolerance)


def _too_slow(speed: Change, rules: Rules) -> list[str]:
    if speed.decision != "slower":
        return []
    return [f"{speed.figure} {_told(speed)}; at most {rules.max_slowdown:.2%} slower is allowed"]


def _accepts_less(acceptance: Change | None, rules: Rules) -> list[str]:
    if rules.min_acceptance_drop is None:
        return []
    if acceptance is None:
        return ["its acceptance length is not known on both sides"]
    if acceptance.decision != "slower":
        return []
    return [f"{acceptance.figure} {_told(acceptance)}; the gate fails from a drop of {rules.min_acceptance_drop:.2%}"]


def _told(change: Change) -> str:
    text = f"{change.before:.4g} → {change.after:.4g} ({change.ratio - 1:+.1%}"
    if change.interval is not None:
        low, high = change.interval.low - 1, change.interval.high - 1
        text += f", {change.interval.level:.0%} interval {low:+.1%} to {high:+.1%}"
    return text + (f", p = {change.p:.2g})" if change.p is not None else ")")


def _not_lossless(new: Measured, after: Side, rules: Rules) -> list[str]:
    """Say why the output does not pass; in half precision a tie is rounding, in full precision it is a fault."""
    if not rules.require_lossless or new.label == new.baseline:
        return []
    half = after.conditions.get("dtype") in _HALF
    if new.output == "identical" or (half and new.output == "tie-divergent"):
        return []
    if not new.output:
        return ["its output was not compared with the baseline's, so that nothing shows it to be lossless"]
    return [f"its output is {new.output}, and has to be identical{' but for ties' if half else ''}"]


def _why_not(label: str, before: Side, after: Side, quantity: Quantity, rules: Rules) -> str:
    if before.has_cells and after.has_cells:
        arms = zip((before, after, before, after), _arms(label, before, after, quantity), strict=False)
        empty = [f"{side.name} has no answer of {arm.label} that ended well" for side, arm in arms if not arm.cells]
        if empty:
            return "; ".join(empty)
    if rules.clock == "cpu" and before.has_cells and after.has_cells:
        return "no cell of both sides has process CPU time"
    if before.has_cells and after.has_cells:
        return "no cell of one side can be paired with one of the other"
    return "one side does not have its figure"
