"""A suffix automaton that was built once, over a corpus, and is only read while decoding.

It is kept as flat integer arrays with each state's transitions sorted by token, found by binary search: a few
dozen bytes per corpus token in memory, and the same arrays in a `.safetensors` file. Each state also knows
how often its texts occur, from which drafting without an auxiliary method grows a tree of the likeliest
continuations.

A corpus helps only the target whose answers it holds; `provenance` is the place to say which one that was.
"""

import hashlib
import heapq
import json
import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from draftboard.methods.errors import MethodError
from draftboard.methods.samd.automaton import Match, StateTable, SuffixAutomaton

__all__ = ["FORMAT", "VERSION", "StaticAutomaton"]

FORMAT = "draftboard.suffix-automaton"
VERSION = 1

_STATE_ARRAYS = ("length", "link", "endpos", "count")
_EDGE_ARRAYS = ("edge_token", "edge_target")
_HEADER = ("vocab_size", "eos", "documents", "provenance")
_NAMES = (*_STATE_ARRAYS, "edge_offset", *_EDGE_ARRAYS, "text")
_REBUILD = "build it again with `draftboard prepare samd`"

_Column = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StaticAutomaton:
    """Suffix automaton of a fixed text: S states, E transitions, n tokens, every column an array of int32.

    State 0 is the initial one and its own link. Positions count from 1, with `text[0]` a dummy.
    """

    vocab_size: int
    eos: int
    documents: int
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Free text about the corpus, such as the target that generated it; stored with the automaton."""
    length: "array[int]"
    """[S] length of the longest text of a state."""
    link: "array[int]"
    """[S] state of the longest suffix that occurs in more places."""
    endpos: "array[int]"
    """[S] where the first occurrence ends."""
    count: "array[int]"
    """[S] number of occurrences."""
    edge_offset: "array[int]"
    """[S + 1] state s has the transitions from `edge_offset[s]` to `edge_offset[s + 1]`, sorted by token."""
    edge_token: "array[int]"
    """[E]"""
    edge_target: "array[int]"
    """[E]"""
    text: "array[int]"
    """[n + 1]"""

    @classmethod
    def build(
        cls,
        documents: Iterable[Sequence[int]],
        *,
        eos: int,
        vocab_size: int,
        provenance: Mapping[str, str] | None = None,
    ) -> Self:
        """Build the automaton of all documents in order, each closed by `eos`; empty ones are left out.

        Raises MethodError for a token outside the vocabulary and for a corpus without a token.
        """
        if not 0 <= eos < vocab_size:
            raise MethodError(f"the end-of-sequence token {eos} is not in a vocabulary of {vocab_size}")
        automaton = SuffixAutomaton()
        used = 0
        for number, document in enumerate(documents, start=1):
            if not len(document):
                continue
            for token in (min(document), max(document)):
                if not 0 <= token < vocab_size:
                    raise MethodError(
                        f"document {number} of the corpus: token {token} is not in a vocabulary of "
                        f"{vocab_size}; encode the corpus with the target's own tokenizer"
                    )
            automaton.extend_all(document)
            if document[-1] != eos:
                automaton.extend(eos)
            used += 1
        if not used:
            raise MethodError("the corpus holds no token: a static automaton needs at least one document")
        return cls(
            vocab_size=vocab_size,
            eos=eos,
            documents=used,
            provenance=dict(provenance or {}),
            **{name: _as_array(column) for name, column in _freeze(automaton).items()},
        )

    def __len__(self) -> int:
        """Return the number of tokens of the corpus, end-of-sequence tokens included."""
        return len(self.text) - 1

    @property
    def states(self) -> int:
        """Number of states, the initial one included."""
        return len(self.length)

    def transfer(self, state: int, length: int, token: int) -> tuple[int, int]:
        """Follow `token` from a match of `length` tokens at `state`, shortening the match as needed.

        A token that the corpus lacks leads to the initial state.
        """
        offset, tokens = self.edge_offset, self.edge_token
        while True:
            stop = offset[state + 1]
            edge = bisect_left(tokens, token, offset[state], stop)
            if edge < stop and tokens[edge] == token:
                return self.edge_target[edge], length + 1
            if not state:
                return 0, 0
            state = self.link[state]
            length = self.length[state]

    def advance(self, match: tuple[int, int], tokens: Iterable[int]) -> Match:
        """Return the match after further tokens."""
        state, length = match
        for token in tokens:
            state, length = self.transfer(state, length, token)
        return Match(state, length)

    def draft(self, match: tuple[int, int], count: int) -> list[int]:
        """Return up to `count` tokens that followed the first occurrence of a match, without the root.

        An empty match drafts nothing. The draft ends with the document: what follows an
        end-of-sequence token belongs to another one.
        """
        state = match[0]
        if not state or count < 1:
            return []
        start = self.endpos[state] + 1
        tokens = self.text[start : start + count].tolist()
        return tokens[: tokens.index(self.eos) + 1] if self.eos in tokens else tokens

    def best_first_tree(
        self, match: tuple[int, int], nodes: int, *, max_children: int = 8, max_per_depth: int = 8
    ) -> tuple[list[int], list[int]]:
        """Return the up to `nodes` likeliest continuations of a match as a tree: tokens and parents.

        The root is not among them: parents are positions in the returned lists, and -1 stands for the root. A
        child's probability is the share of its parent's occurrences that it continues; at most `max_children`
        children of a node and `max_per_depth` nodes of a depth are considered. Ties go to the node found
        first, among siblings to the lower token. (The published number of nodes counts the root: it is
        `nodes` + 1.)
        """
        tokens: list[int] = []
        parents: list[int] = []
        per_depth: dict[int, int] = {}
        # (negated probability, order of discovery, token, state, parent, depth)
        heap: list[tuple[float, int, int, int, int, int]] = []
        found = 0

        def discover(state: int, probability: float, parent: int, depth: int) -> None:
            nonlocal found
            for token, target in self._likeliest(state, max_children):
                share = probability * self.count[target] / self.count[state]
                heapq.heappush(heap, (-share, found, token, target, parent, depth))
                found += 1

        if match[0]:
            discover(match[0], 1.0, -1, 1)
        while heap and len(tokens) < nodes:
            share, _, token, state, parent, depth = heapq.heappop(heap)
            if per_depth.get(depth, 0) >= max_per_depth:
                continue
            per_depth[depth] = per_depth.get(depth, 0) + 1
            tokens.append(token)
            parents.append(parent)
            if token != self.eos:
                discover(state, -share, len(tokens) - 1, depth + 1)
        return tokens, parents

    def save(self, path: Path | str) -> None:
        """Write the automaton as one `.safetensors` file; an existing one gives way only to a whole one."""
        from safetensors.numpy import save

        path = Path(path)
        columns = {name: np.array(getattr(self, name), dtype=np.int32) for name in _NAMES}
        header = {name: getattr(self, name) for name in _HEADER}
        metadata = {
            "format": FORMAT,
            "version": str(VERSION),
            **{name: json.dumps(value, sort_keys=True) for name, value in header.items()},
            "digest": _digest(columns, header),
        }
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            part.write_bytes(save(columns, metadata=metadata))
            part.replace(path)
        except OSError as error:
            raise MethodError(f"{path}: the static automaton cannot be written: {error.strerror}") from error
        finally:
            part.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a file that `save` wrote.

        Raises MethodError for a file that is missing, cut short, damaged, of another kind or of a newer
        version.
        """
        from safetensors import SafetensorError, safe_open

        path = Path(path)
        try:
            with safe_open(path, framework="numpy") as file:
                header = _check_header(path, file.metadata() or {})
                missing = sorted(set(_NAMES) - set(file.keys()))
                if missing:
                    raise MethodError(f"{path}: the static automaton lacks {', '.join(missing)}; {_REBUILD}")
                if any(file.get_slice(name).get_dtype() != "I32" for name in _NAMES):
                    raise MethodError(f"{path}: the static automaton's arrays are not int32; {_REBUILD}")
                columns = {name: file.get_tensor(name) for name in _NAMES}
        except FileNotFoundError:
            raise MethodError(f"{path}: there is no static automaton; {_REBUILD}") from None
        except SafetensorError as error:
            raise MethodError(f"{path}: not a static automaton, or cut short ({error}); {_REBUILD}") from error
        except OSError as error:
            raise MethodError(f"{path}: the static automaton cannot be read: {error}") from error
        problem = _find_problem(columns, header["vocab_size"], header["eos"])
        digest = header.pop("digest")
        if problem is None and digest != _digest(columns, header):
            problem = "its content differs from its checksum"
        if problem is not None:
            raise MethodError(f"{path}: the static automaton is damaged: {problem}; {_REBUILD}")
        arrays: dict[str, Any] = {name: _as_array(column) for name, column in columns.items()}
        return cls(**header, **arrays)

    def _likeliest(self, state: int, limit: int) -> list[tuple[int, int]]:
        """Return the most frequent transitions of a state as (token, target), most frequent first."""
        start, stop = self.edge_offset[state], self.edge_offset[state + 1]
        edges = zip(self.edge_token[start:stop], self.edge_target[start:stop], strict=True)
        return heapq.nsmallest(limit, edges, key=lambda edge: (-self.count[edge[1]], edge[0]))


def _freeze(automaton: SuffixAutomaton) -> dict[str, _Column]:
    """Turn a grown automaton into sorted columns."""
    table = automaton.state_table()
    count = _count_occurrences(table, len(automaton))
    # A prefix that recurs shares its text with a split-off state and cannot be reached itself.
    reachable = table.length > table.length[table.link]
    reachable[0] = True
    number = np.cumsum(reachable, dtype=np.int32) - 1
    source, token, target = automaton.edge_list()
    kept = reachable[source]
    source, token, target = number[source[kept]], token[kept], number[target[kept]]
    order = np.lexsort((token, source))
    offset = np.zeros(int(number[-1]) + 2, dtype=np.int32)
    np.cumsum(np.bincount(source, minlength=len(offset) - 1), out=offset[1:])
    return {
        "length": table.length[reachable],
        "link": number[table.link[reachable]].astype(np.int32),
        "endpos": table.end[reachable],
        "count": count[reachable],
        "edge_offset": offset,
        "edge_token": token[order],
        "edge_target": target[order].astype(np.int32),
        "text": np.concatenate((np.zeros(1, dtype=np.int32), automaton.tokens())),
    }


def _count_occurrences(table: StateTable, size: int) -> _Column:
    """Return how often each state's texts occur: its own prefixes, and what its longer relatives count."""
    link = table.link.tolist()
    count = np.bincount(table.link[1 : size + 1], minlength=len(link)).tolist()
    count[1 : size + 1] = [1] * size
    count[0] = 0
    inner = np.argsort(-table.length[size + 1 :], kind="stable") + size + 1
    for state in inner.tolist():
        count[link[state]] += count[state]
    count[0] = size
    return np.array(count, dtype=np.int32)


def _as_array(column: _Column) -> "array[int]":
    """Copy a column into an array of plain integers, which reads several times faster than numpy's."""
    return array("i", column.tobytes())


def _digest(columns: Mapping[str, _Column], header: Mapping[str, Any]) -> str:
    """Return a checksum of all columns and header fields."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([header[name] for name in _HEADER], sort_keys=True).encode())
    for name in _NAMES:
        digest.update(f"{name}:{len(columns[name])};".encode())
        digest.update(np.ascontiguousarray(columns[name]).tobytes())
    return digest.hexdigest()


def _check_header(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return the header's fields as `StaticAutomaton` takes them, and the digest."""
    if metadata.get("format") != FORMAT:
        kind = metadata.get("format", "a file of another kind")
        raise MethodError(f"{path}: not a static automaton but {kind}; {_REBUILD}")
    try:
        version = int(metadata["version"])
        if version > VERSION:
            raise MethodError(
                f"{path}: the static automaton has format version {version}, this draftboard reads "
                f"{VERSION}; update draftboard or {_REBUILD}"
            )
        if version < 1:
            raise ValueError(version)
        header = {name: json.loads(metadata[name]) for name in _HEADER}
        digest = metadata["digest"]
    except (KeyError, ValueError) as error:
        raise MethodError(f"{path}: the static automaton's header is damaged: {error}; {_REBUILD}") from error
    for name in ("vocab_size", "eos", "documents"):
        if type(header[name]) is not int:
            raise MethodError(f"{path}: the static automaton's header is damaged: {name}; {_REBUILD}")
    provenance = header["provenance"]
    if not isinstance(provenance, dict) or not all(isinstance(text, str) for text in provenance.values()):
        raise MethodError(f"{path}: the static automaton's header is damaged: provenance; {_REBUILD}")
    return {**header, "digest": digest}


def _find_problem(columns: Mapping[str, npt.NDArray[Any]], vocab_size: int, eos: int) -> str | None:
    """Return why these columns could lead a walk out of bounds or in circles, or None when they cannot."""
    for name, column in columns.items():
        if column.ndim != 1 or column.dtype != np.int32:
            return f"{name} is not a list of int32"
    length, link, endpos, count = (columns[name] for name in _STATE_ARRAYS)
    offset, text = columns["edge_offset"], columns["text"]
    token, target = (columns[name] for name in _EDGE_ARRAYS)
    states, size = len(length), len(text) - 1
    if states < 2 or size < 1 or {len(link), len(endpos), len(count), len(offset) - 1} != {states}:
        return "its lists of states differ in length"
    if len(token) != len(target) or offset[0] != 0 or offset[-1] != len(token):
        return "its lists of transitions differ in length"
    if (offset[1:] < offset[:-1]).any():
        return "its transitions do not belong to its states"
    if not 0 <= eos < vocab_size or not _within(text[1:], 0, vocab_size) or not _within(token, 0, vocab_size):
        return "it holds tokens outside its vocabulary"
    if not _within(link, 0, states) or not _within(target, 1, states) or not _within(endpos[1:], 1, size + 1):
        return "it points outside itself"
    if length[0] or link[0] or endpos[0] or (length[1:] <= length[link[1:]]).any() or (count < 1).any():
        return "its suffix links are out of order"
    source = np.repeat(np.arange(states), np.diff(offset))
    if (length[target] <= length[source]).any():
        return "its transitions are out of order"
    if ((np.diff(token) <= 0) & (np.diff(source) == 0)).any():
        return "its transitions are not sorted"
    return None


def _within(column: npt.NDArray[Any], low: int, high: int) -> bool:
    """Tell whether every item lies from `low` up to, and not including, `high`."""
    return not len(column) or bool(column.min() >= low and column.max() < high)
