"""The choice of a part of a suite."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from math import floor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftboard.suites import (
    Sample,
    Suite,
    SuiteError,
    limited,
    load_suite,
    of_categories,
    of_ids,
    part_of,
    read_ids,
    split,
)


def sample(number: int, domain: str = "d", category: str = "c", group: str | None = None) -> Sample:
    return Sample(sample_id=f"s{number}", suite="t", domain=domain, category=category, group=group, turns=("Why?",))


def suite(*samples: Sample) -> Suite:
    return Suite(name="t", samples=samples, content_hash="0", source="t.jsonl")


def suite_of(cells: list[tuple[str, str]]) -> Suite:
    return suite(*(sample(number, *cell) for number, cell in enumerate(cells)))


def ids(part: Suite) -> list[str]:
    return [sample.sample_id for sample in part.samples]


def rank(seed: int, sample_id: str) -> str:
    return sha256(f"{seed}:{sample_id}".encode()).hexdigest()


def ranked(made: Suite, category: str, seed: int) -> list[str]:
    return sorted((one.sample_id for one in made.samples if one.category == category), key=lambda x: rank(seed, x))


cells = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), min_size=1, max_size=40)
fractions = st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.5, 0.7, 0.95])


@settings(deadline=None)
@given(cells, fractions, st.integers(-3, 3))
def test_properties_of_a_split(made_of: list[tuple[str, str]], fraction: float, seed: int) -> None:
    made = suite_of(made_of)
    found = split(made, seed=seed, fraction=fraction)
    assert (found.fraction, found.seed) == (fraction, seed)
    # Disjoint and complete, both in the suite's order.
    assert [name for name in ids(made) if name in {*found.calibration}] == list(found.calibration)
    assert [name for name in ids(made) if name not in {*found.calibration}] == list(found.test)
    exact = Fraction(str(fraction))
    for domain, number in made.counts.items():
        in_domain = [one for one in made.samples if one.domain == domain]
        chosen = [one for one in in_domain if one.sample_id in found.calibration]
        assert len(chosen) == floor(number * exact + Fraction(1, 2))
        extra: list[tuple[Fraction, str]] = []
        none: list[tuple[Fraction, str]] = []
        for category in {one.category for one in in_domain}:
            order = ranked(suite(*in_domain), category, seed)
            take = sum(one.category == category for one in chosen)
            assert set(order[:take]) == {one.sample_id for one in chosen if one.category == category}
            quota = len(order) * exact
            assert take in (floor(quota), floor(quota) + 1)
            place = (floor(quota) - quota, rank(seed, order[floor(quota)]))
            (extra if take > floor(quota) else none).append(place)
        # A place that rounding left goes to the largest remainder, among equals to the lowest hash.
        assert not extra or not none or max(extra) < min(none)


@settings(deadline=None)
@given(cells, fractions, st.integers(0, 3), st.randoms(use_true_random=False))
def test_a_split_does_not_depend_on_order(
    made_of: list[tuple[str, str]], fraction: float, seed: int, shuffle: random.Random
) -> None:
    made = suite_of(made_of)
    mixed = list(made.samples)
    shuffle.shuffle(mixed)
    other = split(replace(made, samples=tuple(mixed)), seed=seed, fraction=fraction)
    assert set(other.calibration) == set(split(made, seed=seed, fraction=fraction).calibration)


def test_a_domain_is_split_whatever_else_is_in_the_suite() -> None:
    made = suite_of([("a", "x")] * 30 + [("b", "y")] * 17)
    alone = of_categories(made, ["b"])
    assert split(alone, seed=3).calibration == tuple(x for x in split(made, seed=3).calibration if x in ids(alone))


def test_equal_remainders_are_equal_whatever_the_size() -> None:
    # Quotas 5.6, 2.6 and 0.2, eight in all: one place is left for the lower hash of two equal remainders. In binary
    # floating point 0.2 of 28 would leave more than 0.2 of 13.
    made = suite_of([("a", "x")] * 28 + [("a", "y")] * 13 + [("a", "z")])
    seen = set()
    for seed in range(12):
        taken = Counter(one.category for one in part_of(made, "calibration", split(made, seed=seed)).samples)
        next_x, next_y = ranked(made, "x", seed)[5], ranked(made, "y", seed)[2]
        first = "x" if rank(seed, next_x) < rank(seed, next_y) else "y"
        assert taken == ({"x": 6, "y": 2} if first == "x" else {"x": 5, "y": 3})
        seen.add(first)
    assert seen == {"x", "y"}


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_spec_bench_is_split_16_to_64_in_every_domain(spec_bench_folder: Path, seed: int) -> None:
    made = load_suite(f"spec_bench@{spec_bench_folder}")
    found = split(made, seed=seed)
    calibration = part_of(made, "calibration", found)
    assert set(calibration.counts.values()) == {16}
    assert set(part_of(made, "test", found).counts.values()) == {64}
    assert len(calibration.counts) == 6
    of_mt_bench = Counter(one.category for one in calibration.samples if one.domain == "mt_bench")
    assert list(of_mt_bench.values()) == [2] * 8
    writing = sorted((str(number) for number in range(81, 91)), key=lambda x: rank(seed, x))
    assert set(writing[:2]) == {one.sample_id for one in calibration.samples if one.category == "writing"}


@pytest.mark.parametrize("fraction", [0, 1, -0.2, 1.5, float("nan"), float("inf")])
def test_a_fraction_that_leaves_a_part_empty_is_refused(fraction: float) -> None:
    with pytest.raises(SuiteError, match="leaves one part empty"):
        split(suite(sample(1)), fraction=fraction)


def test_parts_keep_hash_and_order_and_must_not_be_empty() -> None:
    made = suite_of([("a", "x")] * 10)
    found = split(made)
    assert part_of(made, "all", found) is made
    calibration, test = part_of(made, "calibration", found), part_of(made, "test", found)
    assert sorted(ids(calibration) + ids(test)) == sorted(ids(made))
    assert calibration.content_hash == test.content_hash == made.content_hash
    small = suite(sample(1), sample(2))
    with pytest.raises(SuiteError, match="the calibration part has no samples"):
        part_of(small, "calibration", split(small))
    assert ids(part_of(small, "test", split(small))) == ["s1", "s2"]


def test_categories_are_domains_groups_or_raw_categories() -> None:
    made = suite(
        sample(1, "mt_bench", "math"),
        sample(2, "math_reasoning", "math_reasoning"),
        sample(3, "mt_bench", "writing"),
        sample(4, "mmlu", "anatomy", "stem"),
    )
    assert ids(of_categories(made, ["math"])) == ["s1"]
    assert ids(of_categories(made, ["math_reasoning", "writing", "writing"])) == ["s2", "s3"]
    assert ids(of_categories(made, iter(["mt_bench"]))) == ["s1", "s3"]
    assert ids(of_categories(made, ["stem"])) == ids(of_categories(made, ["anatomy"])) == ["s4"]
    with pytest.raises(SuiteError, match="no category is named"):
        of_categories(made, [])


def test_unknown_categories_are_all_told_with_the_nearest_name() -> None:
    with pytest.raises(SuiteError, match="no such category") as caught:
        of_categories(suite(sample(1, "mt_bench", "writing")), ["writting", "Mt_Bench", "mt_bench"])
    assert caught.value.problems == (
        "'writting'; did you mean writing? (known: mt_bench, writing)",
        "'Mt_Bench'; did you mean mt_bench? (known: mt_bench, writing)",
    )


def test_ids_of_a_file_keep_their_order(write: Callable[..., Path]) -> None:
    path = write(b"\xef\xbb\xbfs3\r", "", " s1\t ", b"\xe5\x95\x8f\xe9\xa1\x8c 1\r", "s2", "", name="ids.txt")
    assert read_ids(str(path)) == ("s3", "s1", "問題 1", "s2")
    made = suite(sample(1), sample(2), sample(3))
    assert ids(of_ids(made, ("s3", "s1"))) == ["s3", "s1"]


def test_bad_id_files_are_refused(write: Callable[..., Path], tmp_path: Path) -> None:
    twice = write("a", "b", "a", "b", "a", name="twice.txt")
    with pytest.raises(SuiteError, match="more than once") as caught:
        read_ids(str(twice))
    assert caught.value.problems == (
        f"{twice}:3: a is already named on line 1",
        f"{twice}:4: b is already named on line 2",
        f"{twice}:5: a is already named on line 1",
    )
    with pytest.raises(SuiteError, match="holds no ids"):
        read_ids(str(write("", "  \r", name="blank.txt")))
    with pytest.raises(SuiteError, match=r"not UTF-8 \(byte 3\)"):
        read_ids(str(write("a", b"\xff", name="latin.txt")))
    for path in (str(tmp_path), str(tmp_path / "none.txt"), "a\0b"):
        with pytest.raises(SuiteError, match="cannot be read"):
            read_ids(path)


def test_ids_that_a_suite_lacks_are_counted_and_named() -> None:
    with pytest.raises(SuiteError, match=r"no sample x0, x1, x2, x3, x4, … \(6 of 7 ids are unknown\)") as caught:
        of_ids(suite(sample(1)), [*(f"x{number}" for number in range(6)), "s1"])
    assert "Its ids are of the form s1" in str(caught.value)
    with pytest.raises(SuiteError, match=f"no sample {'y' * 60}… "):
        of_ids(suite(sample(1)), ["y" * 5000])


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
