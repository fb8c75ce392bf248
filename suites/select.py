"""Choosing part of a suite: categories, listed ids, the calibration or test part, a number of samples a domain.

Every choice depends on nothing but ids, categories and a seed, and keeps the suite's content hash.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from draftboard.suites.errors import SuiteError, suggestion
from draftboard.suites.sample import Sample, Suite

__all__ = ["PARTS", "Part", "Split", "limited", "of_categories", "of_ids", "part_of", "read_ids", "split"]

Part = Literal["all", "calibration", "test"]
PARTS: tuple[Part, ...] = ("all", "calibration", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Ids of both parts of a suite, in the suite's order: what was looked at to choose, and what is reported."""

    fraction: float
    seed: int
    calibration: tuple[str, ...]
    test: tuple[str, ...]


def split(suite: Suite, *, seed: int = 0, fraction: float = 0.2) -> Split:
    """Split a suite by domain: `fraction` of each, rounded, is for calibration.

    Ids of each raw category are ordered by sha256 of `"{seed}:{sample_id}"` (hex) and the first of them taken, so
    that every category is in both parts in proportion (2 of 10 in each of mt_bench's). Where categories are too
    small for whole numbers the places left in a domain go to those with the largest remainder, then to the lowest
    hash. Source: suites-and-scoring 2.8, the 20/80 of the TSS paper. Raises `SuiteError` if `fraction` is not
    between 0 and 1.
    """
    if not 0 < fraction < 1:
        raise SuiteError(f"a calibration part of {fraction} leaves one part empty", advice="Use a number like 0.2.")
    domains: dict[str, dict[str, list[Sample]]] = {}
    for sample in sorted(suite.samples, key=lambda sample: _hash(seed, sample.sample_id)):
        domains.setdefault(sample.domain, {}).setdefault(sample.category, []).append(sample)
    chosen: set[str] = set()
    for categories in domains.values():
        for members, take in zip(categories.values(), _shares(list(categories.values()), fraction, seed), strict=True):
            chosen.update(sample.sample_id for sample in members[:take])
    ids = [sample.sample_id for sample in suite.samples]
    return Split(
        fraction=fraction,
        seed=seed,
        calibration=tuple(name for name in ids if name in chosen),
        test=tuple(name for name in ids if name not in chosen),
    )


def _shares(categories: Sequence[Sequence[Sample]], fraction: float, seed: int) -> list[int]:
    """How many of each category: whole parts first, then the largest remainders up to the domain's number."""
    exact = [len(members) * fraction for members in categories]
    # 0.2 of 15 is 3.0000000000000004 less a hair in floating point, and has to count as 3.
    takes = [int(share + 1e-9) for share in exact]
    left = int(sum(exact) + 0.5) - sum(takes)
    order = sorted(
        range(len(categories)),
        key=lambda at: (takes[at] - exact[at], _next_hash(categories[at], takes[at], seed)),
    )
    for at in order[:left]:
        takes[at] += 1
    return takes


def _next_hash(members: Sequence[Sample], taken: int, seed: int) -> str:
    return _hash(seed, members[taken].sample_id) if taken < len(members) else ""


def part_of(suite: Suite, part: Part, found: Split) -> Suite:
    """The samples of one part. Raises `SuiteError` if it has none."""
    if part == "all":
        return suite
    ids = set(found.calibration if part == "calibration" else found.test)
    return _only(suite, ids, f"the {part} part has no samples: the suite is too small to be split")


def of_categories(suite: Suite, names: Iterable[str]) -> Suite:
    """The samples whose raw category or domain is one of `names`. Raises `SuiteError` for a name that is neither."""
    wanted = list(names)
    known = dict.fromkeys(name for sample in suite.samples for name in (sample.domain, sample.category))
    unknown = [name for name in wanted if name not in known]
    if unknown:
        problems = tuple(f"{name!r}; {suggestion(name, known)}" for name in unknown)
        raise SuiteError(f"suite {suite.name} has no such category", problems=problems)
    ids = {sample.sample_id for sample in suite.samples if {sample.domain, sample.category} & {*wanted}}
    return _only(suite, ids, "no category is named")


def read_ids(path: str) -> tuple[str, ...]:
    """Ids of a file, one a line; blank lines are skipped. Raises `SuiteError` for a file that cannot be read."""
    try:
        text = Path(path).expanduser().read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SuiteError(f"{path}: cannot be read ({error.strerror or error})", advice="It holds one id a line.") from error
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path}: not UTF-8 (byte {error.start + 1})", advice="It holds one id a line.") from error
    ids = tuple(line.strip() for line in text.split("\n") if line.strip())
    twice = sorted({name for name in ids if ids.count(name) > 1}) if len(set(ids)) < len(ids) else []
    if twice:
        raise SuiteError(f"{path}: named more than once: {', '.join(twice[:5])}")
    if not ids:
        raise SuiteError(f"{path}: holds no ids", advice="It holds one id a line.")
    return ids


def of_ids(suite: Suite, ids: Sequence[str]) -> Suite:
    """The samples of these ids, in the order of `ids`. Raises `SuiteError` naming those that the suite lacks."""
    by_id = {sample.sample_id: sample for sample in suite.samples}
    lacking = [name for name in ids if name not in by_id]
    if lacking:
        shown = ", ".join(lacking[:5]) + (" …" if len(lacking) > 5 else "")
        raise SuiteError(f"suite {suite.name} has no sample {shown} ({len(lacking)} of {len(ids)} ids are unknown)")
    return replace(suite, samples=tuple(by_id[name] for name in ids))


def limited(suite: Suite, limit: int, seed: int) -> Suite:
    """The suite with at most `limit` samples per domain, in the suite's own order.

    Samples are ranked by sha256 of `"{seed}:{sample_id}"` (hex). Within a domain the raw categories take
    turns, each giving its next best ranked sample; the category that holds the best ranked sample begins. A
    smaller limit therefore always chooses a subset of a larger one, and the choice depends on nothing but
    ids, categories and seed. Raises `SuiteError` if `limit` is below 1.
    """
    if limit < 1:
        raise SuiteError(f"a limit of {limit} samples per domain leaves nothing to run", advice="Use 1 or more.")
    ranked = sorted(suite.samples, key=lambda sample: _hash(seed, sample.sample_id))
    domains: dict[str, dict[str, list[str]]] = {}
    for sample in ranked:
        domains.setdefault(sample.domain, {}).setdefault(sample.category, []).append(sample.sample_id)
    chosen: set[str] = set()
    for categories in domains.values():
        chosen.update(_round_robin(list(categories.values()))[:limit])
    return replace(suite, samples=tuple(sample for sample in suite.samples if sample.sample_id in chosen))


def _round_robin(queues: list[list[str]]) -> list[str]:
    longest = max(len(queue) for queue in queues)
    return [queue[place] for place in range(longest) for queue in queues if place < len(queue)]


def _only(suite: Suite, ids: Iterable[str], empty: str) -> Suite:
    wanted = set(ids)
    samples = tuple(sample for sample in suite.samples if sample.sample_id in wanted)
    if not samples:
        raise SuiteError(f"suite {suite.name}: {empty}")
    return replace(suite, samples=samples)


def _hash(seed: int, sample_id: str) -> str:
    return sha256(f"{seed}:{sample_id}".encode()).hexdigest()
