"""Online suffix automaton over token ids: which suffix of a text has occurred before, and what followed.

The automaton grows with every committed token, so its cost per token must not depend on how long the text
already is. A Python dictionary per state fails that: each access chases five or six objects over an ever
larger heap, and beyond the processor's caches every one of them is a miss. So a state here is a row of a flat
array of integers:

* The text is thought to start with a token that never recurs. Then every whole prefix occurs exactly once,
  and its state needs no row: prefix i is state i, its length and end are i, its only
  transition leads to the next.
* Every other state was split off an earlier one because its text recurred. Its row has eight integers:
  length, end of the first occurrence, the token that followed there and where it leads, suffix link, and room
  for a second transition. With a third transition that room turns into the address of a small open hash table
  in one common pool. Tables double when two thirds full and leave their old space to others; nothing is ever
  rehashed as a whole.
* The match pointer needs no work of its own: after a token has been added, the suffix link of the newest
  prefix is the longest suffix that also occurs earlier, which is what moving the pointer first and adding the
  token afterwards would have found.

Source: Blumer et al. 1985, *The smallest automaton recognizing the subwords of a text*; SAM-Decoding (Hu et
al. 2024), section 3.
"""

from array import array
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from draftboard.methods.errors import MethodError

__all__ = ["EdgeList", "Match", "StateTable", "SuffixAutomaton"]

# The columns of a row. While `_MASK` is 0, `_A` and `_B` hold a second transition (token, state), `_A` being
# -1 when there is none; otherwise they hold the table's address in the pool and the number of its entries.
_LEN, _END, _TOKEN, _NEXT, _LINK, _A, _B, _MASK = range(8)
_WIDTH = 8
_INLINE_ROW = Struct("8i").pack

_TOKEN_LIMIT = 1 << 24
"""Transitions of the initial state are indexed by token, so an absurd id must not claim the memory."""


class Match(NamedTuple):
    """A place in an automaton: the state of the matched text and how many tokens of it match."""

    state: int
    length: int


class EdgeList(NamedTuple):
    """All transitions of an automaton as int32 columns, in no particular order."""

    source: npt.NDArray[np.int32]
    token: npt.NDArray[np.int32]
    target: npt.NDArray[np.int32]


class StateTable(NamedTuple):
    """All states of an automaton as int32 columns: the initial one, the n prefixes in order, the rest."""

    length: npt.NDArray[np.int32]
    end: npt.NDArray[np.int32]
    link: npt.NDArray[np.int32]


class SuffixAutomaton:
    """Suffix automaton of a growing text, with the longest match of its own end kept up to date.

    States are opaque integers; 0 is the initial one. Positions are counted from 1, so that `end` is also the
    number of tokens up to and including the last one of an occurrence.
    """

    def __init__(self, tokens: Sequence[int] = ()) -> None:
        self._text = array("i", [-1])
        self._prefix_link = array("i", [0])
        self._initial = array("i")  # token -> state, 0 where the token has not occurred
        # A split-off state is the negated address of its row; the initial state lies at address 0.
        self._rows = array("i", bytes(4 * _WIDTH))
        self._pool = array("i", [0, 0])
        self._free: dict[int, list[int]] = {}
        self._blank: dict[int, array[int]] = {}
        self.extend_all(tokens)

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self._text) - 1

    @property
    def states(self) -> int:
        """Number of states, the initial one included; at most twice the number of tokens."""
        return len(self._rows) // _WIDTH + len(self)

    @property
    def match(self) -> Match:
        """The longest suffix of the text that also ends at an earlier position."""
        state = self._prefix_link[-1]
        return Match(state, self._rows[-state])

    def length(self, state: int) -> int:
        """Return the length of the longest text that leads to `state`."""
        return state if state > 0 else self._rows[_LEN - state]

    def end(self, state: int) -> int:
        """Return where the first occurrence of `state`'s texts ends; 0 for the initial state."""
        return state if state > 0 else self._rows[_END - state]

    def link(self, state: int) -> int:
        """Return the state of the longest suffix that occurs in more places; the initial state is its own."""
        return self._prefix_link[state] if state > 0 else self._rows[_LINK - state]

    def extend(self, token: int) -> None:
        """Append one token."""
        self.extend_all((token,))

    def extend_all(self, tokens: Sequence[int]) -> None:
        """Append tokens in order, at amortised constant cost each.

        Raises MethodError, before anything is changed, when one of them is no token id.
        """
        if not len(tokens):
            return
        self._make_room(min(tokens), max(tokens))
        text, prefix_link, rows, pool, initial = (
            self._text,
            self._prefix_link,
            self._rows,
            self._pool,
            self._initial,
        )
        position = len(text) - 1
        state = prefix_link[-1]
        # The loop runs once per generated token: columns are written as numbers and lookups are inlined on
        # purpose.
        for token in tokens:
            text.append(token)
            position += 1
            target = slot = 0
            while state:
                if rows[2 - state] == token:
                    target, slot = rows[3 - state], 0
                    break
                mask = rows[7 - state]
                if mask:
                    base = rows[5 - state]
                    probe = token + token
                    slot = base + (probe & mask)
                    found = pool[slot]
                    while found != token and found >= 0:
                        probe += 2
                        slot = base + (probe & mask)
                        found = pool[slot]
                    slot += 1
                    if found == token:
                        target = pool[slot]
                        break
                    pool[slot - 1] = token
                    pool[slot] = position
                    count = rows[6 - state] = rows[6 - state] + 1
                    if 3 * count > mask:
                        self._double_table(-state)
                else:
                    found = rows[5 - state]
                    if found == token:
                        target, slot = rows[6 - state], -1
                        break
                    if found >= 0:
                        self._make_table(-state)
                        continue
                    rows[5 - state] = token
                    rows[6 - state] = position
                state = rows[4 - state]
            if not state:
                target = initial[token]
                if not target:
                    initial[token] = position
                    prefix_link.append(0)
                    continue
            if target > 0 or rows[-target] != rows[-state] + 1:
                target = self._split(state, token, target, slot)
            prefix_link.append(target)
            state = target

    def transfer(self, state: int, length: int, token: int) -> tuple[int, int]:
        """Follow `token` from a match of `length` tokens at `state`, shortening the match as needed."""
        while state:
            if state > 0:
                if state < len(self) and self._text[state + 1] == token:
                    return state + 1, length + 1
                state = self._prefix_link[state]
            else:
                slot = self._slot(state, token)
                if slot is not None:
                    return slot[0][slot[1]], length + 1
                state = self._rows[_LINK - state]
            length = self._rows[-state]
        target = self._initial[token] if 0 <= token < len(self._initial) else 0
        return (target, 1) if target else (0, 0)

    def lookup(self, root: int) -> Match:
        """Return the match that `root` would give as the next token, itself counted; nothing is stored."""
        match = self.match
        return Match(*self.transfer(match.state, match.length, root))

    def draft(self, match: tuple[int, int], count: int, *, to_ancestor: bool = True) -> list[int]:
        """Return up to `count` tokens that followed the first occurrence of a match, without the root.

        With `to_ancestor`, a first occurrence nearer to the end of the text than `count` + 1 tokens gives way
        to shorter suffixes, which may have occurred earlier, but never to the empty one. (The published draft
        size counts the root: it is `count` + 1.) An empty match drafts nothing.
        """
        state = match[0]
        if not state or count < 1:
            return []
        end = self.end(state)
        if to_ancestor:
            earliest = len(self) - count
            while end >= earliest and (parent := self.link(state)):
                state = parent
                end = self.end(state)
        return self._text[end + 1 : end + 1 + count].tolist()

    def state_table(self) -> StateTable:
        """Return all states in the numbering of `StateTable`; the initial state is its own link."""
        size = len(self)
        rows = np.array(self._rows, dtype=np.int32).reshape(-1, _WIDTH)
        prefixes = np.arange(size + 1, dtype=np.int32)
        link = np.concatenate((np.array(self._prefix_link, dtype=np.int32), rows[1:, _LINK]))
        return StateTable(
            np.concatenate((prefixes, rows[1:, _LEN])),
            np.concatenate((prefixes, rows[1:, _END])),
            self._renumber(link),
        )

    def edge_list(self) -> EdgeList:
        """Return all transitions in the numbering of `StateTable`."""
        size = len(self)
        text = np.array(self._text, dtype=np.int32)
        initial = np.array(self._initial, dtype=np.int32)
        rows = np.array(self._rows, dtype=np.int32).reshape(-1, _WIDTH)
        pool = np.array(self._pool, dtype=np.int32).reshape(-1, 2)
        inner = -_WIDTH * np.arange(1, len(rows), dtype=np.int32)
        rows = rows[1:]
        first = np.flatnonzero(initial).astype(np.int32)
        prefixes = np.arange(1, size, dtype=np.int32)
        second = (rows[:, _MASK] == 0) & (rows[:, _A] >= 0)
        tabled = rows[:, _MASK] > 0
        slots = rows[tabled, _MASK] // 2 + 1
        starts = np.repeat(rows[tabled, _A] // 2 - (np.cumsum(slots) - slots), slots)
        entries = pool[starts + np.arange(len(starts))]
        used = entries[:, 0] >= 0
        return EdgeList(
            self._renumber(
                np.concatenate(
                    (
                        np.zeros_like(first),
                        prefixes,
                        inner,
                        inner[second],
                        np.repeat(inner[tabled], slots)[used],
                    )
                )
            ),
            np.concatenate((first, text[2:], rows[:, _TOKEN], rows[second, _A], entries[used, 0])),
            self._renumber(
                np.concatenate((initial[first], prefixes + 1, rows[:, _NEXT], rows[second, _B], entries[used, 1]))
            ),
        )

    def tokens(self) -> npt.NDArray[np.int32]:
        """Return a copy of the text, [n] int32."""
        return np.array(self._text, dtype=np.int32)[1:]

    def _renumber(self, states: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Number split-off states after the prefixes."""
        return np.where(states < 0, len(self) - states // _WIDTH, states).astype(np.int32)

    def _make_room(self, lowest: int, highest: int) -> None:
        """Check token ids and let the initial state's transitions reach the highest."""
        if lowest < 0 or highest >= _TOKEN_LIMIT:
            wrong = lowest if lowest < 0 else highest
            raise MethodError(f"{wrong} is not a token id: expected 0 to {_TOKEN_LIMIT - 1}")
        missing = highest + 1 - len(self._initial)
        if missing > 0:
            spare = min(len(self._initial) // 2, _TOKEN_LIMIT - 1 - highest)
            self._initial.frombytes(bytes(4 * (missing + spare)))

    def _slot(self, state: int, token: int) -> "tuple[array[int], int] | None":
        """Return the array and index where a split-off state's transition is stored, or None without one."""
        rows, pool = self._rows, self._pool
        if rows[_TOKEN - state] == token:
            return rows, _NEXT - state
        mask = rows[_MASK - state]
        if not mask:
            return (rows, _B - state) if rows[_A - state] == token else None
        base, probe = rows[_A - state], token + token
        while (found := pool[base + (probe & mask)]) >= 0:
            if found == token:
                return pool, base + (probe & mask) + 1
            probe += 2
        return None

    def _split(self, state: int, token: int, target: int, slot: int) -> int:
        """Split off `target` the texts no longer than `state`'s and `token`, and lead all of them there.

        `slot` says where the transition is stored: 0 and -1 for the row's first and second, else its place in
        the pool.
        """
        rows, pool = self._rows, self._pool
        clone = -len(rows)
        length = rows[-state] + 1
        if target > 0:
            link = self._prefix_link[target]
            self._prefix_link[target] = clone
            rows.frombytes(_INLINE_ROW(length, target, self._text[target + 1], target + 1, link, -1, 0, 0))
        else:
            row = rows[-target : _WIDTH - target]
            link = row[_LINK]
            rows[_LINK - target] = clone
            row[_LEN] = length
            if row[_MASK]:
                source, size = row[_A], row[_MASK] + 2
                row[_A] = self._claim(size)
                pool[row[_A] : row[_A] + size] = pool[source : source + size]
            rows.extend(row)
        # Of the shorter suffixes, exactly those at least as long as the link led to `target` too; comparing
        # lengths spares a failing search in a state that nothing else is about to touch.
        floor = rows[-link]
        if state:
            if not slot:
                rows[3 - state] = clone
            elif slot < 0:
                rows[6 - state] = clone
            else:
                pool[slot] = clone
            state = rows[4 - state]
            while state and rows[-state] >= floor:
                place = self._slot(state, token)
                assert place is not None
                place[0][place[1]] = clone
                state = rows[4 - state]
        if not state and not floor:
            self._initial[token] = clone
        return clone

    def _claim(self, size: int) -> int:
        """Return the address of `size` blank integers in the pool: given back earlier, or new."""
        spare = self._free.get(size)
        if spare:
            return spare.pop()
        address = len(self._pool)
        if size not in self._blank:
            self._blank[size] = array("i", [-1, 0] * (size // 2))
        self._pool.extend(self._blank[size])
        return address

    def _make_table(self, row: int) -> None:
        """Move a row's second transition into a table of four places."""
        rows, pool = self._rows, self._pool
        base = self._claim(8)
        token = rows[row + _A]
        place = base + (2 * token & 6)
        pool[place], pool[place + 1] = token, rows[row + _B]
        rows[row + _A], rows[row + _B], rows[row + _MASK] = base, 1, 6

    def _double_table(self, row: int) -> None:
        """Move a row's table into one of twice the size."""
        rows, pool = self._rows, self._pool
        old, size = rows[row + _A], rows[row + _MASK] + 2
        base, mask = self._claim(2 * size), 2 * size - 2
        entries = iter(pool[old : old + size])
        for token, target in zip(entries, entries, strict=True):
            if token >= 0:
                probe = token + token
                while pool[base + (probe & mask)] >= 0:
                    probe += 2
                place = base + (probe & mask)
                pool[place], pool[place + 1] = token, target
        pool[old : old + size] = self._blank[size]
        self._free.setdefault(size, []).append(old)
        rows[row + _A], rows[row + _MASK] = base, mask
