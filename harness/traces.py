"""`traces.jsonl`: how every answer of a run came about, token by token, with its texts.

Texts are made while the run goes on, between cells, because only then is the target's tokenizer at hand: what reads a
trace needs neither torch nor transformers. A cell's trace is on disk before the cell itself, so that a run which was
interrupted between the two decodes the cell again and the later trace counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from draftboard.files import JsonLines
from draftboard.records import Cell, TracedStep, TracedTurn, TraceRecord
from draftboard.store import read_records

if TYPE_CHECKING:
    from draftboard.methods.engine import Generation
    from draftboard.session import Reader

__all__ = ["TRACES", "Asked", "Spelling", "Traces", "pieces", "read_traces", "traced_turn"]

TRACES = "traces.jsonl"

Decode = Callable[[tuple[int, ...]], str]
"""Text of ids, special tokens left out."""

_PART = "\N{REPLACEMENT CHARACTER}"
"""What decoders write for the bytes of an unfinished character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """What a tokenizer makes of ids."""

    decode: Decode
    special: dict[int, str]
    """Names of the ids that have no text."""
    eos_ids: frozenset[int] = frozenset()

    @classmethod
    def of(cls, reader: Reader) -> Spelling:
        """Return the target's spelling; what was decoded lately is remembered, since drafts repeat themselves."""
        tokenizer = reader.tokenizer

        @lru_cache(maxsize=1 << 16)
        def decode(ids: tuple[int, ...]) -> str:
            return str(tokenizer.decode(list(ids), skip_special_tokens=True))

        special = {number: str(token) for number, token in tokenizer.added_tokens_decoder.items() if token.special}
        ends = {number: str(tokenizer.convert_ids_to_tokens(number)) for number in reader.eos_ids}
        return cls(decode=decode, special={**ends, **special}, eos_ids=reader.eos_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A turn as it was run: its rendered prompt, and what came of it; None where nothing was generated."""

    prompt: str
    made: Generation | None


class Traces:
    """The run's traces, opened for appending; a torn last line is cut off first."""

    def __init__(self, out: Path, reader: Reader) -> None:
        self._file = JsonLines(out / TRACES)
        self._spelling = Spelling.of(reader)

    def add(self, cell: Cell, asked: Iterable[Asked]) -> None:
        """Write the trace of a cell that ended well."""
        turns = [traced_turn(turn.prompt, turn.made, self._spelling) for turn in asked]
        record = TraceRecord(method=cell.method, sample=cell.sample, turns=turns)
        self._file.append(msgspec.json.encode(record))

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_traces(run: Path, warnings: list[str]) -> list[TraceRecord]:
    """Read a run's traces, of each cell the last one; none where there is no such file.

    A torn last line is told in `warnings`. Raises UserError for broken lines, all at once, and for a newer schema.
    """
    found = read_records(run / TRACES, TraceRecord, warnings)
    return list({(trace.method, trace.sample): trace for trace in found}.values())


def traced_turn(prompt: str, made: Generation | None, spelling: Spelling) -> TracedTurn:
    """Return what is stored of one turn. `made` was decoded with `keep_drafts`."""
    if made is None:
        return TracedTurn(prompt=prompt, pieces=[], prefill_emits=0)
    ids = [int(token) for token in made.token_ids]
    # As in the stored answer: the end that closes it is not part of its text, special or not.
    ended = bool(ids) and ids[-1] in spelling.eos_ids
    written = ids[:-1] if ended else ids
    texts, places = _spelled(spelling.decode, written)
    columns = made.trace
    done = 1
    steps: list[TracedStep] = []
    for index, (tokens, parents, path) in enumerate(columns.judged):
        nodes = [int(token) for token in tokens]
        # The root is never the end that closes the answer: behind that there is no step.
        drafted = _branches(spelling.decode, nodes, parents, places[done - 1])
        steps.append(
            TracedStep(
                tokens=nodes,
                parents=[int(parent) for parent in parents],
                texts=[texts[done - 1], *drafted],
                path=[int(node) for node in path],
                kept=columns.kept[index],
                draft_ns=columns.draft_ns[index],
                verify_ns=columns.verify_ns[index],
                other_ns=columns.other_ns[index],
                special={
                    node: spelling.special[token] for node, token in enumerate(nodes) if token in spelling.special
                },
            )
        )
        done += columns.kept[index]
    return TracedTurn(
        prompt=prompt,
        pieces=[*texts, ""] if ended else texts,
        special={place: spelling.special[token] for place, token in enumerate(ids) if token in spelling.special},
        steps=steps,
    )


def pieces(decode: Decode, ids: Sequence[int]) -> list[str]:
    """Return a text for every id such that all of them joined are `decode(ids)`.

    A token that only begins a character gets an empty text, and the one that completes it the character.
    """
    return _spelled(decode, ids)[0]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a text stands: ids whose text is told, and those behind them that have made none yet.

    Few ids are decoded at a time, and never the first of a text alone: tokenizers treat a beginning specially.
    """

    told: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()

    def then(self, decode: Decode, token: int) -> tuple[str, _Place]:
        """Return what one more token adds, and the place behind it."""
        waiting = (*self.waiting, token)
        before, after = decode(self.told) if self.told else "", decode(self.told + waiting)
        added = after[_shared(before, after) :]
        if not added or added.endswith(_PART):
            return "", _Place(self.told, waiting)
        return added, _Place(waiting)


def _spelled(decode: Decode, ids: Sequence[int]) -> tuple[list[str], list[_Place]]:
    """Return the pieces of a text, and the place behind each of them."""
    place, texts, places = _Place(), [], []
    for token in ids:
        text, place = place.then(decode, token)
        texts.append(text)
        places.append(place)
    whole = decode(tuple(ids))
    told = "".join(texts)
    if told != whole:
        # An unfinished end has been told to nobody; other differences are of tokenizers that tidy up across tokens.
        if ids and whole.startswith(told):
            texts[-1] += whole[len(told) :]
        else:
            texts = _by_prefixes(decode, ids, whole)
    return texts, places


def _by_prefixes(decode: Decode, ids: Sequence[int], whole: str) -> list[str]:
    """Cut a text where the texts of longer and longer beginnings leave it: right for any tokenizer, and slow."""
    cuts = [0]
    for end in range(1, len(ids) + 1):
        beginning = decode(tuple(ids[:end]))
        cuts.append(max(cuts[-1], _shared(beginning, whole)))
    return [whole[start:end] for start, end in pairwise(cuts)]


def _shared(one: str, other: str) -> int:
    """Return the length of the beginning that two texts have in common."""
    if other.startswith(one):
        return len(one)
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _branches(decode: Decode, tokens: Sequence[int], parents: Sequence[int], root: _Place) -> list[str]:
    """Return the text of every drafted node behind its parents."""
    places, texts = [root], []
    for token, parent in zip(tokens[1:], parents[1:], strict=True):
        text, place = places[parent].then(decode, token)
        texts.append(text)
        places.append(place)
    return texts
