"""Which turns of two arms may be held against each other (suites-and-scoring 8.1): those with one prompt in both.

A turn that follows differing answers has another prompt; it and what comes after it leave paired figures.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from draftboard.measures.turns import TurnFacts

__all__ = ["Match", "Pair", "Pairing", "Side", "matches", "pair_up", "wall"]

Side = tuple[float, float]
"""Seconds and tokens of one arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One sample's shared turns of all rounds; turn i of both sides had the same prompt."""

    sample: str
    baseline: tuple[TurnFacts, ...]
    method: tuple[TurnFacts, ...]
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What one pair of turns adds: over its sample's rounds, the means of both arms."""

    sample: str
    repeat: int
    parts: tuple[float, ...]
    """The baseline's seconds and tokens, then the method's, each divided by the number of rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The samples that can be paired, and what cannot."""

    pairs: tuple[Pair, ...]
    turns: int
    """Turns that both arms have."""
    diverged: dict[str, int]
    """By sample, how many of them had different prompts."""
    alone: tuple[str, ...]
    """Samples that only the method has answers to."""

    def only(self, samples: Iterable[str]) -> "tuple[Pair, ...]":
        """Return the pairs of these samples."""
        wanted = set(samples)
        return tuple(pair for pair in self.pairs if pair.sample in wanted)


def pair_up(baseline: Sequence[TurnFacts], method: Sequence[TurnFacts]) -> Pairing:
    """Pair the arms by sample and round, over the turns from the first on that were asked with the same prompt."""
    theirs, mine = _cells(baseline), _cells(method)
    found: dict[str, list[tuple[list[TurnFacts], list[TurnFacts]]]] = {}
    diverged: dict[str, int] = {}
    both = 0
    for key, own in mine.items():
        base = theirs.get(key)
        if base is None:
            continue
        common, shared = min(len(base), len(own)), _shared(base, own)
        both += common
        if common > shared:
            diverged[key[0]] = diverged.get(key[0], 0) + common - shared
        if shared:
            found.setdefault(key[0], []).append((base[:shared], own[:shared]))
    pairs = tuple(
        Pair(
            sample=sample,
            baseline=tuple(turn for base, _ in rounds for turn in base),
            method=tuple(turn for _, own in rounds for turn in own),
            rounds=len(rounds),
        )
        for sample, rounds in found.items()
    )
    known = {sample for sample, _ in theirs}
    return Pairing(
        pairs=pairs,
        turns=both,
        diverged=diverged,
        alone=tuple(dict.fromkeys(sample for sample, _ in mine if sample not in known)),
    )


def wall(turn: TurnFacts) -> Side | None:
    """Return end-to-end seconds and tokens of a turn; None where no time was measured."""
    return (turn.seconds, turn.tokens) if turn.seconds else None


def matches(pairs: Iterable[Pair], read: Callable[[TurnFacts], Side | None]) -> list[Match]:
    """Return what every pair of turns adds to the sums of both arms; a turn that `read` returns None for in either
    arm leaves both."""
    return [
        Match(sample=pair.sample, repeat=turn.repeat, parts=tuple(part / pair.rounds for part in (*base, *own)))
        for pair in pairs
        for turn, other in zip(pair.baseline, pair.method, strict=True)
        if (base := read(turn)) is not None and (own := read(other)) is not None
    ]


def _cells(turns: Iterable[TurnFacts]) -> dict[tuple[str, int], list[TurnFacts]]:
    cells: dict[tuple[str, int], list[TurnFacts]] = {}
    for turn in turns:
        cells.setdefault((turn.sample, turn.repeat), []).append(turn)
    return cells


def _shared(first: Sequence[TurnFacts], second: Sequence[TurnFacts]) -> int:
    """Return how many turns, from the first on, were asked with the same prompt in both cells."""
    texts_agree = True
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        known = a.turn.prompt_sha256 and b.turn.prompt_sha256
        # An imported turn's prompt is not known, but it holds the answers before it.
        if (a.turn.prompt_sha256 != b.turn.prompt_sha256) if known else not texts_agree:
            return index
        texts_agree = texts_agree and a.turn.text == b.turn.text
    return min(len(first), len(second))
