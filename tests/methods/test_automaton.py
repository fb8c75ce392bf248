"""The online automaton against brute force: longest match, first occurrence, drafts, size."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from draftboard.methods.errors import MethodError
from draftboard.methods.samd.automaton import Match, SuffixAutomaton

small = st.integers(2, 5).flatmap(lambda size: st.lists(st.integers(0, size - 1), min_size=1, max_size=60))
wide = st.lists(st.integers(0, 400), min_size=1, max_size=120)
"""Many letters, so that states outgrow their two inline transitions and their tables double."""
texts = st.one_of(small, wide)


def first_end(text: Sequence[int], part: Sequence[int]) -> int:
    """Return where the first occurrence of `part` ends, counting from 1; 0 when there is none."""
    size = len(part)
    return next((end for end in range(size, len(text) + 1) if text[end - size : end] == part), 0)


def longest_match(text: Sequence[int], suffix_of: Sequence[int]) -> tuple[int, int]:
    """Return (length, first end) of the longest suffix of `suffix_of` that occurs in `text`."""
    for length in range(len(suffix_of), 0, -1):
        if end := first_end(text, suffix_of[-length:]):
            return length, end
    return 0, 0


def ancestors_rule(text: list[int], matched: list[int], count: int) -> int:
    """Apply the to-ancestor rule by brute force over suffixes; return the end that is drafted from."""
    end = first_end(text, matched)
    while len(text) - end < count + 1:
        # The link leads to the longest suffix whose occurrences are not the same ones.
        here = [e for e in range(1, len(text) + 1) if text[max(0, e - len(matched)) : e] == matched]
        suffixes = (matched[start:] for start in range(1, len(matched)))
        parent = next(
            (s for s in suffixes if [e for e in range(1, len(text) + 1) if text[max(0, e - len(s)) : e] == s] != here),
            None,
        )
        if parent is None:
            break
        matched, end = parent, first_end(text, parent)
    return end


@given(texts)
@example([0, 0, 0, 0])
@example([0, 1, 0, 1, 0, 1])
def test_the_match_is_the_longest_suffix_seen_before_and_its_first_occurrence(text: list[int]) -> None:
    automaton = SuffixAutomaton()
    pointer = Match(0, 0)
    for position, token in enumerate(text, start=1):
        pointer = Match(*automaton.transfer(*pointer, token))
        moved = pointer.length, automaton.end(pointer.state)
        automaton.extend(token)
        # An occurrence that ends earlier is one within the text without its last token.
        expected = longest_match(text[: position - 1], text[1:position])
        match = automaton.match
        assert (match.length, automaton.end(match.state)) == expected == moved
        assert automaton.length(match.state) == match.length
        pointer = match
        assert automaton.states <= 2 * position
    assert len(automaton) == len(text)


@given(texts, st.integers(0, 5))
def test_a_lookup_equals_adding_the_root_and_stores_nothing(text: list[int], root: int) -> None:
    automaton = SuffixAutomaton(text)
    before = automaton.match, automaton.states, len(automaton)
    found = automaton.lookup(root)
    assert (found.length, automaton.end(found.state)) == longest_match(text, [*text, root])
    assert (automaton.match, automaton.states, len(automaton)) == before
    assert automaton.lookup(root) == found


@given(texts, texts)
def test_transfer_follows_any_other_text(text: list[int], walk: list[int]) -> None:
    automaton = SuffixAutomaton(text)
    state = length = 0
    for position, token in enumerate(walk, start=1):
        state, length = automaton.transfer(state, length, token)
        assert (length, automaton.end(state)) == longest_match(text, walk[:position])
        assert automaton.length(automaton.link(state)) < length or not length


@given(texts)
def test_adding_one_by_one_equals_adding_at_once(text: list[int]) -> None:
    one, all_at_once = SuffixAutomaton(), SuffixAutomaton(text)
    for token in text:
        one.extend(token)
    assert one.match == all_at_once.match
    for left, right in zip(one.state_table(), all_at_once.state_table(), strict=True):
        assert left.tolist() == right.tolist()
    assert set(zip(*one.edge_list(), strict=True)) == set(zip(*all_at_once.edge_list(), strict=True))


@given(small, st.integers(0, 4), st.integers(1, 12))
def test_a_draft_continues_the_first_occurrence(text: list[int], root: int, count: int) -> None:
    automaton = SuffixAutomaton(text)
    match = automaton.lookup(root)
    if not match.state:
        assert automaton.draft(match, count) == []
        return
    matched = [*text, root][-match.length :]
    end = first_end(text, matched)
    assert automaton.draft(match, count, to_ancestor=False) == text[end : end + count]
    end = ancestors_rule(text, matched, count)
    assert automaton.draft(match, count) == text[end : end + count]


@given(small, st.integers(1, 12))
def test_the_ancestor_is_never_the_initial_state(text: list[int], count: int) -> None:
    automaton = SuffixAutomaton(text)
    for state in {automaton.transfer(0, 0, token)[0] for token in text} | {automaton.match.state} - {0}:
        drafted = automaton.draft(Match(state, automaton.length(state)), count)
        last = text[automaton.end(state) - 1]
        starts = [end for end in range(1, len(text) + 1) if text[end - 1] == last]
        assert drafted in [text[end : end + count] for end in starts]


def test_an_ancestor_with_a_longer_continuation_is_preferred() -> None:
    text = [7, 1, 2, 3, 4, 5, 9, 7, 7, 1, 8, 7, 1]
    automaton = SuffixAutomaton(text)
    match = automaton.lookup(8)
    assert match.length == 3
    assert automaton.draft(match, 5, to_ancestor=False) == [7, 1]
    assert automaton.draft(match, 2) == [7, 1]
    assert automaton.draft(match, 5) == [7, 1]  # 8 itself occurred nowhere else
    repeated = SuffixAutomaton([1, 2, 3, 4, 5, 6, 9, 1, 2, 9, 1])
    match = repeated.lookup(2)
    assert match.length == 3
    assert repeated.draft(match, 5, to_ancestor=False) == [9, 1]
    assert repeated.draft(match, 5) == [3, 4, 5, 6, 9]


def test_a_draft_has_no_padding_and_no_length_below_one() -> None:
    automaton = SuffixAutomaton([1, 2, 3])
    match = automaton.lookup(2)
    assert automaton.draft(match, 40) == [3]
    assert automaton.draft(match, 0) == []
    assert automaton.draft(automaton.lookup(3), 40) == []


def test_an_empty_automaton_answers() -> None:
    automaton = SuffixAutomaton()
    assert (len(automaton), automaton.states, automaton.match) == (0, 1, Match(0, 0))
    assert automaton.lookup(3) == Match(0, 0)
    assert automaton.transfer(0, 0, -1) == (0, 0)
    automaton.extend_all([])
    assert len(automaton) == 0


@pytest.mark.parametrize("wrong", [-1, 1 << 24])
def test_a_number_that_is_no_token_changes_nothing(wrong: int) -> None:
    automaton = SuffixAutomaton([4, 5, 4])
    with pytest.raises(MethodError, match=f"{wrong} is not a token id"):
        automaton.extend_all([4, wrong])
    assert (len(automaton), automaton.match.length) == (3, 1)


def test_states_with_many_transitions_keep_them_all() -> None:
    text = [token for successor in range(1, 300) for token in (0, successor)]
    text += [token for successor in range(1, 300) for token in (300, 0, successor)]
    automaton = SuffixAutomaton(text)
    for successor in range(1, 300):
        state, length = automaton.transfer(*automaton.transfer(0, 0, 0), successor)
        assert (length, automaton.end(state)) == (2, 2 * successor)
        state, length = automaton.transfer(*automaton.transfer(*automaton.transfer(0, 0, 300), 0), successor)
        assert (length, automaton.end(state)) == (3, 598 + 3 * successor)
