import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.row_speeds import Arms, Row, pooled_speedup, sample_speedups


def row(sample, tokens, seconds, rate=None):
    return Row(
        method="m",
        sample=sample,
        part=("", ""),
        domain="qa",
        tokens=tokens,
        seconds=seconds,
        rate=rate,
        steps=None,
        acceptance=None,
        speedup=None,
        speedups={},
        about={},
    )


PLAIN = [row("1", 12.0, 0.8), row("2", 100.0, 5.0)]
FAST = [row("1", 12.0, 0.4), row("2", 110.0, 2.2)]


def values(mine, base):
    arms = Arms(baseline="plain", baseline_rows=base, absent="none", notes={})
    pool = pooled_speedup(mine, base, "none", arms)
    return {"speedup": pool.value, **{name: figure.value for name, figure in sample_speedups(mine, base).items()}}


def test_the_vector_of_the_design():
    wanted = {"speedup": 2.429945, "speedup_gm": 2.236068, "speedup_mor": 2.25, "speedup_rom": 2.285714}
    assert values(FAST, PLAIN) == pytest.approx(wanted, abs=1e-6)
    swapped = {name: 1 / value for name, value in wanted.items()} | {"speedup_mor": 0.45}
    assert values(PLAIN, FAST) == pytest.approx(swapped, abs=1e-6)


PACE = st.tuples(st.floats(1, 1000), st.floats(0.01, 100))


@given(st.lists(st.tuples(PACE, PACE), min_size=1, max_size=8))
def test_an_arm_against_itself_is_one_and_swapping_inverts(pairs):
    base = [row(str(index), *mine) for index, (mine, _) in enumerate(pairs)]
    other = [row(str(index), *theirs) for index, (_, theirs) in enumerate(pairs)]
    assert all(value == pytest.approx(1) for value in values(base, base).values())
    there, back = values(other, base), values(base, other)
    for name in ("speedup", "speedup_gm", "speedup_rom"):
        assert there[name] * back[name] == pytest.approx(1)
    assert there["speedup_mor"] >= there["speedup_gm"] * (1 - 1e-9)


def test_only_samples_that_both_have_and_that_took_time_count():
    more = [*FAST, row("3", 5.0, 1.0), row("4", 0.0, 1.0)]
    base = [*PLAIN, row("4", 7.0, 1.0)]
    found = sample_speedups(more, base)
    assert {figure.n for figure in found.values()} == {2}
    assert found["speedup_gm"].value == pytest.approx(math.sqrt(5))


def test_parts_of_a_sample_are_added_up():
    parts = [row("1", 6.0, 0.1), row("1", 6.0, 0.3), FAST[1]]
    assert values(parts, PLAIN) == pytest.approx(values(FAST, PLAIN))


def test_rows_without_samples_have_no_speedup_by_sample():
    assert sample_speedups([row(None, 12.0, 0.4)], PLAIN) == {}
    assert sample_speedups(FAST, []) == {}


def test_a_rate_alone_counts_as_one_token():
    found = sample_speedups([row("1", None, None, rate=30.0)], PLAIN)
    assert found["speedup_gm"].value == pytest.approx(2.0)
