"""What a page says of a group beside its tables and charts: titles, the verdict, how it was measured, the environment.

Sentences are chosen by what the group itself records, so that nothing is said of numbers that were not measured so.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from draftboard.leaderboards.ranking import headline
from draftboard.leaderboards.remarks import interval_line, tie_lines
from draftboard.leaderboards.table import group_title
from draftboard.results import Group, Results

__all__ = ["Banner", "banner", "environment", "flat", "how_measured", "section_titles"]

_DEPTH = 4
"""Levels of nested records that are told apart by name; deeper ones are shown as JSON."""
_OUTPUTS = {
    "identical": "identical: the same tokens as the baseline",
    "text-equal": "text-equal: the same text as the baseline; tokens are not known",
    "tie-divergent": "tie-divergent: differs only where the target's logits are equal up to rounding",
    "text-different": "text-different: another text than the baseline; why is not known",
    "different": "different: differs from the baseline by more than rounding",
    "lossy": "lossy: the method does not claim the target's output",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Banner:
    """Whether a group can be rested on."""

    valid: bool
    reasons: tuple[str, ...]


def banner(group: Group) -> Banner | None:
    """Return the verdict as it is shown; None where nobody judged."""
    if group.verdict is None:
        return None
    return Banner(valid=group.verdict.valid, reasons=group.verdict.reasons)


def section_titles(results: Results) -> tuple[str, ...]:
    """Return a heading for each group; groups that share model, suite and hardware are told apart.

    First by the conditions in which they differ, short ones only; what is then still equal is numbered.
    """
    groups = results.groups
    titles = [group_title(group) for group in groups]
    for title in dict.fromkeys(titles):
        alike = [index for index, other in enumerate(titles) if other == title]
        if len(alike) == 1:
            continue
        told = _differing([groups[index] for index in alike])
        for index, words in zip(alike, told, strict=True):
            titles[index] = f"{title} · {words}" if words else title
    for title in dict.fromkeys(titles):
        alike = [index for index, other in enumerate(titles) if other == title]
        for number, index in enumerate(alike, start=1):
            if len(alike) > 1:
                titles[index] = f"{title} · run {number} of {len(alike)}"
    return tuple(titles)


def _differing(groups: list[Group]) -> list[str]:
    names = [
        name
        for name in dict.fromkeys(name for group in groups for name in group.conditions)
        if len({group.conditions.get(name) for group in groups}) > 1
        and all(len(group.conditions.get(name, "")) <= 40 for group in groups)
    ][:3]
    return [
        ", ".join(f"{name} {group.conditions[name]}" for name in names if group.conditions.get(name))
        for group in groups
    ]


def how_measured(group: Group) -> tuple[tuple[str, str], ...]:
    """Return what holds for this group's numbers, each under the word that it is about."""
    return tuple((word, text) for word, text in _measured(group) if text)


def _measured(group: Group) -> Iterator[tuple[str, str]]:
    conditions = group.conditions
    ours = "device" in conditions and "imported" not in conditions
    if "imported" in conditions:
        yield "Timing", f"Taken from files of another tool ({conditions['imported']}), as that tool timed them."
    elif ours:
        text = (
            "One request at a time. Methods ran sample by sample, in an order that rotates, so that a slow spell of "
            "the machine meets all alike; prefill and decoding are timed apart."
        )
        if conditions.get("history") == "reference":
            text += f" {group.baseline} came first on samples of several turns, whose answers all later prompts hold."
        if conditions.get("rounds", "1") != "1":
            text += f" Every sample was asked in {conditions['rounds']} rounds."
        yield "Timing", text
    else:
        yield "Timing", "Not on record: the numbers come from a results file."
    if _has(group, "speedup"):
        yield "Pairing", _pairing(group, ours=ours or "imported" in conditions)
        yield "Overall", "The geometric mean of the domains' speedups." if len(group.domains) > 1 and ours else ""
    yield "Intervals", _intervals(group)
    ties = tie_lines(group)
    by = "the overall speedup" if headline(group) == "speedup" else "the acceptance length τ"
    text = f"By {by}, from unrounded values; equal values share a rank."
    if ties:
        text += f" {'; '.join(ties)}: the difference of their speedups is not larger than its uncertainty."
    yield "Ranks", text
    found = [_OUTPUTS[name] for name in _OUTPUTS if any(method.output == name for method in group.methods)]
    yield "Output", ("; ".join(found) + ".") if found else "Not compared with the baseline's."


def _pairing(group: Group, *, ours: bool) -> str:
    if not ours:
        return f"Speedups over {group.baseline} are as stated in the file or computed from its rows."
    text = f"Speedups compare with {group.baseline} on the same samples, under the same prompts; n counts them."
    left = sum(method.diverged_turns for method in group.methods)
    if left:
        text += f" {left} turns had another prompt than the baseline's and are in no speedup."
    return text


def _intervals(group: Group) -> str:
    line = interval_line(group)
    return line or "None were computed: small differences may be noise."


def _has(group: Group, name: str) -> bool:
    return any(name in method.overall for method in group.methods)


def environment(group: Group) -> tuple[tuple[str, str], ...]:
    """Return the record of hardware and software, flat; empty where there is none."""
    return flat(group.environment)


def flat(record: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Return a nested record as names (`cpu.model`) and values in words; what is not known says so."""
    return tuple(_flat(record, "", _DEPTH))


def _flat(record: Mapping[str, object], before: str, depth: int) -> Iterator[tuple[str, str]]:
    for key, value in record.items():
        name = f"{before}{key}"
        if isinstance(value, dict) and value and depth > 1:
            yield from _flat(value, f"{name}.", depth - 1)
        else:
            yield name, _words(name, value)


def _words(name: str, value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name.endswith("_bytes") and 0 <= value < 2**63:
        return f"{value / 2**30:.2f} GiB" if value >= 2**30 else f"{value / 2**20:.1f} MiB"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(part, str | int | float) for part in value):
        return ", ".join(map(str, value)) or "none"
    return json.dumps(value, ensure_ascii=False, default=str)
