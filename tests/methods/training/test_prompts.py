"""Our own prompts: a function of seed, index and passages; varied; in the shares that were asked for."""

import re
from collections import Counter
from random import Random

import pytest

from draftboard.methods import MethodError
from draftboard.methods.training.german import german_text
from draftboard.methods.training.prompts import KINDS, SHARES, Passage, make_ask
from draftboard.methods.training.sums import word_problem

PASSAGES = [
    Passage(subject=f"subject {i}", text=" ".join(f"This is sentence {n} of passage {i}." for n in range(80)))
    for i in range(9)
]


def asks(count, **more):
    return [make_ask(i, **{"seed": 0, "passages": PASSAGES, **more}) for i in range(count)]


def test_the_stream_is_a_function_of_its_seed():
    assert asks(300) == asks(300)
    first, other = asks(300), asks(300, seed=1)
    assert sum(a.turns == b.turns for a, b in zip(first, other, strict=True)) < 60
    again = asks(300, attempt=1)
    assert sum(a.turns == b.turns for a, b in zip(first, again, strict=True)) < 60
    assert [ask.index for ask in first] == list(range(300))
    assert first[299].round == 1


def test_kinds_come_in_their_shares():
    counts = Counter(ask.kind for ask in asks(4000))
    assert set(counts) == set(KINDS)
    for kind, share in SHARES.items():
        assert abs(counts[kind] / 4000 - share) < 0.03
    assert sum(SHARES.values()) == pytest.approx(1)
    assert {ask.kind for ask in asks(50, shares={"math": 2.0, "qa": 0.0})} == {"math"}


def test_prompts_hardly_repeat_and_hold_no_unfilled_place():
    found = [ask for ask in asks(3000) if ask.kind != "own"]
    assert len({ask.turns for ask in found}) > 0.9 * len(found)
    for ask in found:
        assert len(ask.turns) == (2 if ask.kind == "conversation" else 1)
        for turn in ask.turns:
            assert turn.strip() == turn != ""
            assert not any(mark in turn for mark in "{}")
            assert len(turn.split()) < 460


def test_without_passages_they_are_asked_for():
    counts = Counter(ask.kind for ask in asks(2000, passages=PASSAGES[:3]))
    assert counts["summarization"] == counts["rag"] == 0
    assert counts["passage"] > 500


def test_passages_are_cut_at_sentences_and_stand_in_what_is_asked():
    for ask in asks(600):
        if ask.kind in ("summarization", "rag"):
            assert "This is sentence 0 of passage" in ask.turns[0]
        if ask.kind == "passage":
            assert ask.subject
            assert ask.subject in ask.turns[0]
    text = " ".join(["word"] * 500)
    whole = make_ask(3, seed=2, passages=[Passage(subject="x", text=text)] * 4, shares={"summarization": 1})
    assert 150 < whole.turns[0].count("word") < 400


def test_shares_of_nothing_are_refused():
    for shares in ({"poetry": 1.0}, {"math": 0.0}, {"math": -1.0, "qa": 2.0}):
        with pytest.raises(MethodError, match="kinds: conversation"):
            make_ask(0, seed=0, shares=shares)
    with pytest.raises(MethodError, match="poetry"):
        make_ask(0, seed=0, shares={"poetry": 1.0})


def test_german_sentences_are_varied_and_whole():
    texts = [german_text(Random(seed)) for seed in range(1500)]
    assert len(set(texts)) > 1100
    for text in texts:
        assert text[0].isupper()
        assert text[-1] in ".?"
        assert not any(mark in text for mark in ("{", "}", "  ", " ,", " ."))


def test_articles_and_endings_agree():
    """Of `Vertrag` (m), `Karte` (f) and `Fahrrad` (n), every article and adjective before them fits the gender."""
    text = " ".join(german_text(Random(seed)) for seed in range(4000))
    before = {noun: set(re.findall(rf"(\w+) (?:\w+ )?{noun}\b", text)) for noun in ("Vertrag", "Karte", "Fahrrad")}
    adjectives = {noun: set(re.findall(rf"\b(?:ein\w*) (\w+) {noun}\b", text)) for noun in before}
    assert {"den", "einen"} <= before["Vertrag"]
    assert {"die", "eine"} <= before["Karte"]
    assert {"das", "ein"} <= before["Fahrrad"]
    assert not {"die", "das", "eine"} & before["Vertrag"]
    assert not {"den", "das", "ein", "einen"} & before["Karte"]
    assert not {"den", "die", "eine", "einen"} & before["Fahrrad"]
    for noun, ending in (("Vertrag", "en"), ("Karte", "e"), ("Fahrrad", "es")):
        assert adjectives[noun]
        assert all(word.endswith(ending) for word in adjectives[noun])


def test_problems_have_numbers_and_differ():
    problems = [word_problem(Random(seed)) for seed in range(800)]
    assert len(set(problems)) > 760
    for problem in problems:
        assert any(character.isdigit() for character in problem)
        assert not any(mark in problem for mark in "{}")


def test_only_passages_are_drawn():
    made = asks(200)
    assert {ask.kind for ask in made if ask.sampled} == {"passage"}
