"""Samples and suites."""

import pytest

from draftboard.suites import Sample, Suite, SuiteError


def sample(number: int, domain: str = "d", category: str = "c") -> Sample:
    return Sample(sample_id=f"s{number}", suite="t", domain=domain, category=category, turns=("Why?",))


def suite(*samples: Sample) -> Suite:
    return Suite(name="t", samples=samples, content_hash="0", source="t.jsonl")


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
