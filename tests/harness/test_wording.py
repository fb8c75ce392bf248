import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.wording import counted, named


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 methods"), (1, "1 method"), (2, "2 methods"), (1319, "1,319 methods")]
)
def test_one_is_no_plural(number, told):
    assert counted(number, "method") == told
    assert counted(number, "entry", "entries").endswith("entry" if number == 1 else "entries")


def test_plain_names_stay_and_others_stand_in_quotation_marks():
    assert named(["pld", "samd[x,y]", "a b", 'say "a", "b"', ""]) == 'pld, "samd[x,y]", a b, "say \\"a\\", \\"b\\"", ""'


@given(st.lists(st.text(st.sampled_from("ab,;\" '\\"), max_size=5), max_size=4, unique=True), st.data())
def test_no_two_lists_read_alike(names, data):
    other = data.draw(st.permutations(names))
    assert (named(names) == named(other)) == (names == other)
    assert named([", ".join(names)]) != named(names) or len(names) == 1
