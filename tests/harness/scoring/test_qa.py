import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.scoring import Answer, qa_score, score

ALIASES = ("May 5 , 2017", "2017")


def answer(key: str, text: str | None, *references: str) -> Answer:
    return Answer(sample_id=key, turn=0, text=text, references=references)


@pytest.mark.parametrize(
    ("text", "em", "f1", "contains"),
    [
        ("May 5, 2017.", 1, 1, 1),
        ("It came out on May 5, 2017", 0, 0.6, 1),
        ("in 2018", 0, 0, 0),
        ("", 0, 0, 0),
    ],
)
def test_vectors(text, em, f1, contains):
    result = qa_score(text, ALIASES)
    assert (result.em, result.f1, result.contains) == (em, pytest.approx(f1), contains)


@pytest.mark.parametrize(
    ("text", "alias", "em", "contains"),
    [
        ("The Beatles!", "beatles", 1, 1),
        ("It was 914 mbar (hPa) then", "914 mbar ( hPa )", 0, 1),
        ("twenty", "twenty one", 0, 0),
        ("category", "cat", 0, 0),
        ("the band", "The The", 0, 0),
        ("I like The The.", "The The", 0, 1),
        ("", "The", 0, 0),
        ("C plus", "!!!", 0, 0),
        ("!!!", "!!!", 1, 1),
        ("答案是北京。", "北京", 0, 1),
        ("北京。", "北京", 1, 1),
        ("ﬁne ２０１７", "fine 2017", 1, 1),
    ],
)
def test_normalisation(text, alias, em, contains):
    result = qa_score(text, (alias,))
    assert (result.em, result.contains) == (em, contains)


def test_an_alias_of_articles_alone_does_not_spoil_another():
    result = qa_score("It was The The, in 1983.", ("The The", "1983"))
    assert (result.em, result.contains) == (0, 1)
    assert result.f1 == pytest.approx(2 * 2 / (6 + 2))


def test_containment_comes_first():
    scores = score([answer("a", "May 5, 2017", *ALIASES)], "qa")
    assert list(scores.values) == ["contains", "f1", "em"]


def test_score_scales_and_counts():
    answers = [
        answer("a", "It came out on May 5, 2017", *ALIASES),
        answer("b", "May 5, 2017", *ALIASES),
        answer("c", "", *ALIASES),
        answer("d", "anything"),
        answer("e", None, *ALIASES),
    ]
    scores = score(answers, "qa")
    assert scores.values["em"].value == pytest.approx(1 / 3)
    assert scores.values["f1"].value == pytest.approx((60 + 100 + 0) / 3)
    assert scores.values["contains"].value == pytest.approx(2 / 3)
    assert {value.n for value in scores.values.values()} == {3}
    assert scores.extras["mean_words"].value == pytest.approx((7 + 3 + 0) / 3)
    assert (scores.counts["no_reference"], scores.counts["failed"], scores.counts["empty"]) == (1, 1, 1)


@given(st.text(max_size=40), st.lists(st.text(min_size=1, max_size=20), max_size=3))
def test_exact_match_implies_the_others(text, aliases):
    result = qa_score(text, aliases)
    assert 0 <= result.f1 <= 1
    if result.em and any(alias.strip() for alias in aliases) and text.strip():
        assert result.f1 == 1
        assert result.contains == 1
