"""The static automaton: the same automaton as the online one, exact counts, and a file that cannot hurt."""

import heapq
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from draftboard.methods.errors import MethodError
from draftboard.methods.samd.automaton import Match, SuffixAutomaton
from draftboard.methods.samd.static import StaticAutomaton

EOS = 4
VOCAB = 6
documents = st.lists(st.lists(st.integers(0, EOS), max_size=20), min_size=1, max_size=5).filter(any)
walks = st.lists(st.integers(0, VOCAB - 1), max_size=40)


def build(corpus: list[list[int]]) -> StaticAutomaton:
    return StaticAutomaton.build(corpus, eos=EOS, vocab_size=VOCAB)


def joined(corpus: list[list[int]]) -> list[int]:
    closed = (document if document[-1] == EOS else [*document, EOS] for document in corpus if document)
    return [token for document in closed for token in document]


def occurrences(text: list[int], part: list[int]) -> int:
    return sum(text[start : start + len(part)] == part for start in range(len(text) - len(part) + 1))


@given(documents, walks)
def test_it_walks_and_drafts_as_the_online_one(corpus: list[list[int]], walk: list[int]) -> None:
    text = joined(corpus)
    static, online = build(corpus), SuffixAutomaton(text)
    assert len(static) == len(text)
    assert static.text.tolist()[1:] == text
    assert static.states <= max(2, 2 * len(text) - 1)
    here, there = Match(0, 0), (0, 0)
    for token in walk:
        here, there = static.advance(here, [token]), online.transfer(*there, token)
        assert here.length == there[1]
        assert static.endpos[here.state] == online.end(there[0])
        draft = online.draft(there, 5, to_ancestor=False)
        assert static.draft(here, 5) == (draft[: draft.index(EOS) + 1] if EOS in draft else draft)
    assert static.advance(Match(0, 0), walk) == here


@given(documents)
def test_counts_are_occurrences(corpus: list[list[int]]) -> None:
    text, static = joined(corpus), build(corpus)
    for state in range(1, static.states):
        end, length = static.endpos[state], static.length[state]
        assert static.count[state] == occurrences(text, text[end - length : end])
    assert static.count[0] == len(text)


@given(documents)
def test_every_state_is_reached_and_every_text_is_found(corpus: list[list[int]]) -> None:
    text, static = joined(corpus), build(corpus)
    assert set(static.edge_target) == set(range(1, static.states))
    for start in range(len(text)):
        match = static.advance(Match(0, 0), text[start:])
        assert match.length == len(text) - start
        assert static.length[match.state] >= match.length > static.length[static.link[match.state]]


def tree_by_hand(text: list[int], matched: list[int], nodes: int, children: int, per_depth: int) -> Any:
    """Grow the same tree from occurrence counts alone."""
    tokens: list[int] = []
    parents: list[int] = []
    depths: dict[int, int] = {}
    found = 0
    heap: list[tuple[float, int, list[int], int, float]] = []

    def grow(path: list[int], share: float, parent: int) -> None:
        nonlocal found
        whole = occurrences(text, matched + path)
        counts = [(occurrences(text, [*matched, *path, token]), token) for token in range(VOCAB)]
        for count, token in sorted((c for c in counts if c[0]), key=lambda c: (-c[0], c[1]))[:children]:
            likely = share * count / whole
            heapq.heappush(heap, (-likely, found, [*path, token], parent, likely))
            found += 1

    grow([], 1.0, -1)
    while heap and len(tokens) < nodes:
        _, _, path, parent, share = heapq.heappop(heap)
        if depths.get(len(path), 0) >= per_depth:
            continue
        depths[len(path)] = depths.get(len(path), 0) + 1
        tokens.append(path[-1])
        parents.append(parent)
        if path[-1] != EOS:
            grow(path, share, len(tokens) - 1)
    return tokens, parents


@given(documents, walks, st.integers(0, 12), st.integers(1, 3), st.integers(1, 3))
def test_the_tree_takes_the_likeliest_nodes_first(
    corpus: list[list[int]], walk: list[int], nodes: int, children: int, per_depth: int
) -> None:
    static = build(corpus)
    match = static.advance(Match(0, 0), walk)
    tree = static.best_first_tree(match, nodes, max_children=children, max_per_depth=per_depth)
    if not match.state:
        assert tree == ([], [])
        return
    matched = walk[len(walk) - match.length :]
    assert tree == tree_by_hand(joined(corpus), matched, nodes, children, per_depth)
    assert all(parent < node for node, parent in enumerate(tree[1]))


def test_a_tree_by_eye() -> None:
    static = build([[0, 1, 2], [0, 1, 3], [0, 1, 2], [0, 2]])
    match = static.advance(Match(0, 0), [0])
    # After 0: 1 (3/4), 2 (1/4). After 0 1: 2 (2/3, so 1/2), 3 (1/3, so 1/4).
    assert static.best_first_tree(match, 4) == ([1, 2, 4, 2], [-1, 0, 1, -1])
    assert static.best_first_tree(match, 4, max_children=1) == ([1, 2, 4], [-1, 0, 1])


def test_a_token_that_never_occurs_leads_to_the_initial_state() -> None:
    static = build([[0, 1, 2]])
    assert static.transfer(*static.advance(Match(0, 0), [0, 1]), 5) == (0, 0)
    assert static.draft(Match(0, 0), 5) == []


def test_a_draft_ends_with_its_document() -> None:
    static = build([[0, 1], [2, 3]])
    assert static.draft(static.advance(Match(0, 0), [0]), 10) == [1, EOS]
    assert static.draft(static.advance(Match(0, 0), [0]), 1) == [1]
    assert static.documents == 2


@pytest.mark.parametrize(
    ("corpus", "eos", "message"),
    [
        ([[0], [0, VOCAB]], EOS, "document 2 .* token 6 is not in a vocabulary of 6"),
        ([[-1]], EOS, "document 1 .* token -1"),
        ([[], []], EOS, "holds no token"),
        ([[0]], VOCAB, "end-of-sequence token 6"),
    ],
)
def test_a_wrong_corpus_is_refused(corpus: list[list[int]], eos: int, message: str) -> None:
    with pytest.raises(MethodError, match=message):
        StaticAutomaton.build(corpus, eos=eos, vocab_size=VOCAB)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.safetensors"
    corpus = [[0, 1, 2, 0, 1, 3], [0, 1, 2, 2, 1, 0]]
    StaticAutomaton.build(corpus, eos=EOS, vocab_size=VOCAB, provenance={"target": "toy"}).save(path)
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(documents)
def test_a_saved_automaton_comes_back(tmp_path: Path, corpus: list[list[int]]) -> None:
    path = tmp_path / "any.safetensors"
    before = build(corpus)
    before.save(path)
    after = StaticAutomaton.load(path)
    for name in StaticAutomaton.__slots__:
        assert getattr(after, name) == getattr(before, name), name
    assert [file.name for file in tmp_path.iterdir()] == ["any.safetensors"]


def test_the_provenance_comes_back(stored: Path) -> None:
    assert StaticAutomaton.load(stored).provenance == {"target": "toy"}


def rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, str]], None]) -> None:
    with safe_open(path, framework="numpy") as file:
        metadata = dict(file.metadata())
    arrays = load_file(path)
    change(arrays, metadata)
    save_file(arrays, path, metadata=metadata)


def put(name: str, index: int, value: int) -> Callable[[dict[str, Any], dict[str, str]], None]:
    def change(arrays: dict[str, Any], metadata: dict[str, str]) -> None:
        arrays[name][index] = value

    return change


def lead_back(arrays: dict[str, Any], metadata: dict[str, str]) -> None:
    state = int(np.flatnonzero(np.diff(arrays["edge_offset"]))[1])
    arrays["edge_target"][arrays["edge_offset"][state]] = state


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays, meta: meta.update(version="2"), "version 2.* update draftboard"),
        (lambda arrays, meta: meta.update(version="0"), "header is damaged"),
        (lambda arrays, meta: meta.update(version="one"), "header is damaged"),
        (lambda arrays, meta: meta.update(format="other"), "not a static automaton but other"),
        (lambda arrays, meta: meta.clear(), "not a static automaton"),
        (lambda arrays, meta: meta.pop("eos"), "header is damaged"),
        (lambda arrays, meta: meta.update(eos="1.5"), "header is damaged: eos"),
        (lambda arrays, meta: meta.update(eos="3"), "checksum"),
        (lambda arrays, meta: meta.update(vocab_size="3"), "outside its vocabulary"),
        (lambda arrays, meta: meta.update(provenance=json.dumps([1])), "header is damaged: provenance"),
        (lambda arrays, meta: arrays.pop("link"), "lacks link"),
        (lambda arrays, meta: arrays.update(link=arrays["link"][:-1].copy()), "differ in length"),
        (lambda arrays, meta: arrays.update(edge_token=arrays["edge_token"][:-1].copy()), "differ in length"),
        (lambda arrays, meta: arrays.update(text=arrays["text"].astype(np.int64)), "not int32"),
        (lambda arrays, meta: arrays.update(text=arrays["text"].reshape(1, -1)), "not a list of int32"),
        (put("text", 3, 99), "outside its vocabulary"),
        (put("text", 3, 3), "checksum"),
        (put("link", 2, 10**6), "points outside itself"),
        (put("link", 2, -1), "points outside itself"),
        (put("link", 2, 2), "suffix links are out of order"),
        (put("endpos", 2, 10**6), "points outside itself"),
        (put("count", 2, 0), "out of order"),
        (put("edge_target", 0, 0), "points outside itself"),
        (lead_back, "transitions are out of order"),
        (put("edge_offset", 1, 10**9), "do not belong"),
        (put("edge_token", 0, 5), "not sorted"),
    ],
)
def test_a_damaged_file_is_refused(
    stored: Path, change: Callable[[dict[str, Any], dict[str, str]], None], message: str
) -> None:
    rewrite(stored, change)
    with pytest.raises(MethodError, match=message) as error:
        StaticAutomaton.load(stored)
    assert str(stored) in str(error.value)
    assert "draftboard prepare" in str(error.value)


def test_a_file_cut_anywhere_is_refused(stored: Path) -> None:
    whole = stored.read_bytes()
    for size in [*range(0, len(whole), 37), len(whole) - 1]:
        stored.write_bytes(whole[:size])
        with pytest.raises(MethodError):
            StaticAutomaton.load(stored)


def test_a_flipped_byte_is_refused_or_harmless(stored: Path) -> None:
    whole = stored.read_bytes()
    good = StaticAutomaton.load(stored)
    for position in range(0, len(whole), 3):
        stored.write_bytes(whole[:position] + bytes([whole[position] ^ 0x11]) + whole[position + 1 :])
        try:
            loaded = StaticAutomaton.load(stored)
        except MethodError:
            continue
        assert loaded.text == good.text
        assert loaded.edge_target == good.edge_target


def test_files_that_are_not_there_or_not_ours(tmp_path: Path) -> None:
    with pytest.raises(MethodError, match="there is no static automaton"):
        StaticAutomaton.load(tmp_path / "none.safetensors")
    with pytest.raises(MethodError, match=r"cannot be read|not a static automaton"):
        StaticAutomaton.load(tmp_path)
    text = tmp_path / "text.safetensors"
    text.write_text("not a tensor file")
    with pytest.raises(MethodError, match="not a static automaton"):
        StaticAutomaton.load(text)
    with pytest.raises(MethodError, match="cannot be written"):
        build([[0]]).save(tmp_path / "missing" / "a.safetensors")
