"""Against the full table of rouge-score."""

from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import _lcs_table, lcs_ind

from draftboard.scoring.lcs import lcs_length, lcs_places, token_places

WORDS = st.lists(st.sampled_from("abcdefg"), max_size=90)


@settings(max_examples=300, deadline=None)
@given(WORDS, WORDS)
def test_length_and_path_of_the_full_table(rows, columns):
    places = token_places(columns)
    assert lcs_length(rows, places, len(columns)) == _lcs_table(rows, columns)[-1][-1]
    assert lcs_places(rows, places, len(columns))[::-1] == lcs_ind(rows, columns)


def test_places_of_a_token():
    assert token_places(["a", "b", "a"]) == {"a": 0b101, "b": 0b010}
