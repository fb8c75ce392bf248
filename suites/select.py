"""Choosing part of a suite: categories, listed ids, the calibration or test part, a number of samples a domain.

Every choice depends on nothing but ids, categories and a seed, and keeps the suite's content hash. Split a suite
before anything else is taken from it: the parts of a smaller suite are others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from math import floor
from pathlib import Path
from typing import Literal

from draftboard.suites.errors import SuiteError, suggestion
from draftboard.suites.sample import Sample, Suite

__all__ = ["PARTS", "Part", "Split", "limited", "of_categories", "of_ids", "part_of", "read_ids", "split"]

Part = Literal["all", "calibration", "test"]
PARTS: tuple[Part, ...] = ("all", "calibration", "test")

_ONE_A_LINE = "Such a file holds one id a line, in UTF-8."


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Ids of both parts of a suite, in the suite's order: what was looked at to choose, and what is reported."""

    fraction: float
    seed: int
    calibration: tuple[str, ...]
    test: tuple[str, ...]


def split(suite: Suite, *, seed: int = 0, fraction: float = 0.2) -> Split:
    """Split a suite by domain: `fraction` of each, rounded to the nearest number (halves up), is for calibration.

    Ids of each raw category are ordered by sha256 of `"{seed}:{sample_id}"` (hex) and the first of them taken, so
    that every category is in both parts in proportion (2 of 10 in each of mt_bench's). Where categories are too
    small for whole numbers the places left in a domain go to those with the largest remainder, then to the lowest
    hash. A domain of one or two samples has none for calibration at the usual fraction. Source: suites-and-scoring
    2.8, the 20/80 of the TSS paper. Raises `SuiteError` if `fraction` is not between 0 and 1.
    """
    if not 0 < fraction < 1:
        raise SuiteError(f"a calibration part of {fraction} leaves one part empty", advice="Use a number like 0.2.")
    # The decimal that was written: as a binary number 0.2 of 28 has another remainder than 0.2 of 13.
    exact = Fraction(repr(float(fraction)))
    chosen: set[str] = set()
    for categories in _ranked(suite, seed).values():
        for members, take in zip(categories, _shares(categories, exact, seed), strict=True):
            chosen.update(members[:take])
    ids = [sample.sample_id for sample in suite.samples]
    return Split(
        fraction=fraction,
        seed=seed,
        calibration=tuple(sample_id for sample_id in ids if sample_id in chosen),
        test=tuple(sample_id for sample_id in ids if sample_id not in chosen),
    )


def _shares(categories: Sequence[Sequence[str]], fraction: Fraction, seed: int) -> list[int]:
    """How many ids of each category: whole parts first, then the largest remainders up to the domain's number."""
    quotas = [len(ids) * fraction for ids in categories]
    takes = [floor(quota) for quota in quotas]
    left = floor(sum(quotas) + Fraction(1, 2)) - sum(takes)
    # A fraction below 1 leaves every category an id to be next.
    order = sorted(
        range(len(categories)),
        key=lambda at: (takes[at] - quotas[at], _hash(seed, categories[at][takes[at]])),
    )
    for at in order[:left]:
        takes[at] += 1
    return takes


def part_of(suite: Suite, part: Part, found: Split) -> Suite:
    """The samples of one part. Raises `SuiteError` if it has none."""
    if part == "all":
        return suite
    ids = set(found.calibration if part == "calibration" else found.test)
    return _only(suite, ids, f"the {part} part has no samples; the suite is too small for it")


def of_categories(suite: Suite, names: Iterable[str]) -> Suite:
    """The samples whose domain, group or raw category is one of `names`.

    Names are compared as a whole: `math` is no part of `math_reasoning`. Raises `SuiteError` for names that are none
    of the three, with the nearest ones.
    """
    wanted = dict.fromkeys(names)
    known = dict.fromkeys(name for sample in suite.samples for name in _classes(sample))
    unknown = [name for name in wanted if name not in known]
    if unknown:
        problems = tuple(f"{name!r}; {suggestion(name, known)}" for name in unknown)
        raise SuiteError(f"suite {suite.name} has no such category", problems=problems)
    ids = {sample.sample_id for sample in suite.samples if not wanted.keys().isdisjoint(_classes(sample))}
    return _only(suite, ids, "no category is named")


def _classes(sample: Sample) -> tuple[str, ...]:
    names = (sample.domain, sample.group, sample.category)
    return tuple(name for name in names if name is not None)


def read_ids(path: str) -> tuple[str, ...]:
    """Ids of a file, one a line, in its order; blank lines, a byte-order mark and CR LF do not matter.

    Raises `SuiteError` for a file that cannot be read, holds no ids, or names some twice (all of them listed).
    """
    try:
        file = Path(path).expanduser() if path.startswith("~/") else Path(path)
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path}: not UTF-8 (byte {error.start + 1})", advice=_ONE_A_LINE) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SuiteError(f"{path}: cannot be read ({reason})", advice=_ONE_A_LINE) from error
    first_use: dict[str, int] = {}
    problems = []
    for number, line in enumerate(text.split("\n"), 1):
        sample_id = line.strip(" \t\r")
        if sample_id and first_use.setdefault(sample_id, number) != number:
            problems.append(f"{path}:{number}: {_short(sample_id)} is already named on line {first_use[sample_id]}")
    if problems:
        raise SuiteError(f"{path}: ids are named more than once", problems=tuple(problems))
    if not first_use:
        raise SuiteError(f"{path}: holds no ids", advice=_ONE_A_LINE)
    return tuple(first_use)


def of_ids(suite: Suite, ids: Sequence[str]) -> Suite:
    """The samples of these ids, in the order of `ids`. Raises `SuiteError` naming those that the suite lacks."""
    by_id = {sample.sample_id: sample for sample in suite.samples}
    lacking = [sample_id for sample_id in ids if sample_id not in by_id]
    if lacking:
        shown = ", ".join(_short(sample_id) for sample_id in lacking[:5]) + (", …" if len(lacking) > 5 else "")
        raise SuiteError(
            f"suite {suite.name} has no sample {shown} ({len(lacking)} of {len(ids)} ids are unknown)",
            advice=f"Its ids are of the form {_short(suite.samples[0].sample_id)}",
        )
    return replace(suite, samples=tuple(by_id[sample_id] for sample_id in ids))


def limited(suite: Suite, limit: int, seed: int) -> Suite:
    """The suite with at most `limit` samples per domain, in the suite's own order.

    Samples are ranked by sha256 of `"{seed}:{sample_id}"` (hex). Within a domain the raw categories take
    turns, each giving its next best ranked sample; the category that holds the best ranked sample begins. A
    smaller limit therefore always chooses a subset of a larger one, and the choice depends on nothing but
    ids, categories and seed. Raises `SuiteError` if `limit` is below 1.
    """
    if limit < 1:
        raise SuiteError(f"a limit of {limit} samples per domain leaves nothing to run", advice="Use 1 or more.")
    chosen: set[str] = set()
    for categories in _ranked(suite, seed).values():
        chosen.update(_round_robin(categories)[:limit])
    return replace(suite, samples=tuple(sample for sample in suite.samples if sample.sample_id in chosen))


def _round_robin(queues: Sequence[Sequence[str]]) -> list[str]:
    longest = max(len(queue) for queue in queues)
    return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]


def _ranked(suite: Suite, seed: int) -> dict[str, list[list[str]]]:
    """Per domain the ids of each raw category by rank; the category of the best ranked id first."""
    domains: dict[str, dict[str, list[str]]] = {}
    for sample in sorted(suite.samples, key=lambda sample: _hash(seed, sample.sample_id)):
        domains.setdefault(sample.domain, {}).setdefault(sample.category, []).append(sample.sample_id)
    return {domain: list(categories.values()) for domain, categories in domains.items()}


def _only(suite: Suite, ids: set[str], empty: str) -> Suite:
    samples = tuple(sample for sample in suite.samples if sample.sample_id in ids)
    if not samples:
        raise SuiteError(f"suite {suite.name}: {empty}")
    return replace(suite, samples=samples)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


def _hash(seed: int, sample_id: str) -> str:
    return sha256(f"{seed}:{sample_id}".encode()).hexdigest()
