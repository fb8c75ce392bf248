"""Samples, suites and the choice of a part of them."""

from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftboard.suites import Sample, Suite, SuiteError, limited


def sample(number: int, domain: str = "d", category: str = "c") -> Sample:
    return Sample(sample_id=f"s{number}", suite="t", domain=domain, category=category, turns=("Why?",))


def suite(*samples: Sample) -> Suite:
    return Suite(name="t", samples=samples, content_hash="0", source="t.jsonl")


def ids(part: Suite) -> list[str]:
    return [sample.sample_id for sample in part.samples]


def rank(seed: int, sample_id: str) -> str:
    return sha256(f"{seed}:{sample_id}".encode()).hexdigest()


def test_domains_and_counts_follow_the_first_sample() -> None:
    made = suite(sample(1, "b"), sample(2, "a"), sample(3, "b"))
    assert made.domains == ("b", "a")
    assert made.counts == {"b": 2, "a": 1}


def test_unusable_samples_and_suites_are_refused() -> None:
    with pytest.raises(SuiteError, match="no turns"):
        Sample(sample_id="1", suite="t", domain="d", category="c", turns=())
    with pytest.raises(SuiteError, match="1 turns, but references for 2"):
        Sample(sample_id="1", suite="t", domain="d", category="c", turns=("a",), references=(("x",), ()))
    with pytest.raises(SuiteError, match="unknown scorer"):
        Sample(sample_id="1", suite="t", domain="d", category="c", turns=("a",), scorer="taste")
    with pytest.raises(SuiteError, match="no samples"):
        suite()
    with pytest.raises(SuiteError, match="two samples with the id s1"):
        suite(sample(1), sample(1))


def test_samples_can_be_keys_whatever_their_meta() -> None:
    one = Sample(sample_id="1", suite="t", domain="d", category="c", turns=("a",), meta={"x": [1]})
    assert {one: 1}[one] == 1
    assert one.references_of(0) == ()


def test_a_limit_takes_the_best_ranked_of_a_single_category() -> None:
    made = suite(*(sample(number) for number in range(20)))
    for seed in range(5):
        best = sorted(ids(made), key=lambda sample_id: rank(seed, sample_id))[:6]
        assert set(ids(limited(made, 6, seed))) == set(best)


def test_a_limit_of_one_can_meet_any_category() -> None:
    made = suite(*(sample(number, category=f"c{number % 4}") for number in range(40)))
    assert {limited(made, 1, seed).samples[0].category for seed in range(60)} == {"c0", "c1", "c2", "c3"}


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(SuiteError, match="limit of 0"):
        limited(suite(sample(1)), 0, 0)


cells = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), min_size=1, max_size=40)


@settings(deadline=None)
@given(cells, st.integers(1, 12), st.integers())
def test_properties_of_a_limit(made_of: list[tuple[str, str]], limit: int, seed: int) -> None:
    made = suite(*(sample(number, *cell) for number, cell in enumerate(made_of)))
    part = limited(made, limit, seed)
    assert part.counts == {domain: min(limit, n) for domain, n in made.counts.items()}
    assert ids(part) == [sample_id for sample_id in ids(made) if sample_id in set(ids(part))]
    assert set(ids(part)) <= set(ids(limited(made, limit + 1, seed)))
    assert part.content_hash == made.content_hash
    for domain in part.domains:
        taken: dict[str, int] = {}
        left: dict[str, int] = {}
        for one in made.samples:
            if one.domain == domain:
                counter = taken if one in part.samples else left
                counter[one.category] = counter.get(one.category, 0) + 1
        # Round robin: a category with samples to spare is never more than one behind any other.
        assert all(taken.get(spare, 0) >= max(taken.values()) - 1 for spare in left)
