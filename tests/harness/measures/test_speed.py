"""Rates and speedups: the worked pair of arms, the shared records, what swapping and comparing with oneself give."""

import json
import math
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.measures import gap_between, over_domains, pair_up, rates, sample_weighted, speedups
from draftboard.results import Figure

DATA = Path(__file__).parents[2] / "data"
INVERTED = ("speedup", "speedup_decode", "speedup_cpu", "speedup_time", "speedup_gm", "speedup_rom")
ALL = (*INVERTED, "speedup_mor")


@pytest.fixture(scope="session")
def arm(turn, of):
    """One turn a sample: (tokens, seconds), optionally the seconds to the first token and of CPU time."""

    def made(*rows):
        found = []
        for index, (tokens, seconds, *more) in enumerate(rows):
            first, cpu = (*more, 0.0, None)[:2] if len(more) < 2 else more
            found += of(turn(tokens, seconds, first=first, cpu=cpu), sample=str(index))
        return found

    return made


def compared(base, own):
    return {name: figure.value for name, figure in speedups(pair_up(base, own).pairs).items()}


AR, SD = ((12, 0.8), (100, 5.0)), ((12, 0.4), (110, 2.2))


def test_the_worked_pair_of_arms(arm):
    found = compared(arm(*AR), arm(*SD))
    assert found["speedup"] == pytest.approx(2.429945, abs=1e-6)
    assert found["speedup_time"] == pytest.approx(2.230769, abs=1e-6)
    assert found["speedup_gm"] == pytest.approx(2.236068, abs=1e-6)
    assert found["speedup_mor"] == pytest.approx(2.25, abs=1e-6)
    assert found["speedup_rom"] == pytest.approx(2.285714, abs=1e-6)


def test_swapped_arms_give_reciprocals_of_all_but_the_mean_of_ratios(arm):
    there, back = compared(arm(*AR), arm(*SD)), compared(arm(*SD), arm(*AR))
    for name in ("speedup", "speedup_time", "speedup_gm", "speedup_rom"):
        assert back[name] == pytest.approx(1 / there[name])
    assert back["speedup_mor"] == pytest.approx(0.45)


def test_the_shared_records_by_every_way_of_counting(arm):
    rows = [json.loads(line) for line in (DATA / "09-speed-records.jsonl").read_text(encoding="utf-8").splitlines()]
    arms = {
        method: arm(
            *((r["new_tokens"], r["wall_time_s"]) for r in rows if r["method"] == method and r["phase"] == "measured")
        )
        for method in ("autoregressive", "method-x")
    }
    found = compared(arms["autoregressive"], arms["method-x"])
    assert found["speedup"] == pytest.approx(2.2)
    assert found["speedup_rom"] == pytest.approx(2.222222, abs=1e-6)
    assert found["speedup_mor"] == pytest.approx(2.166667, abs=1e-6)
    assert found["speedup_gm"] == pytest.approx(2.154435, abs=1e-6)
    assert rates(arms["autoregressive"])["tokens_per_s"].value == pytest.approx(31.818182, abs=1e-6)
    assert rates(arms["method-x"])["tokens_per_s"].value == pytest.approx(70.0)
    assert rates(arms["method-x"])["tokens_per_s_mean_of_samples"].value == pytest.approx(200 / 3)


ROWS = st.lists(
    st.tuples(st.integers(2, 50), st.floats(0.1, 9), st.integers(2, 50), st.floats(0.1, 9)), min_size=1, max_size=6
)


@given(ROWS)
def test_swapping_arms_inverts_and_an_arm_against_itself_is_exactly_one(arm, rows):
    one, two = arm(*((n, t) for n, t, _, _ in rows)), arm(*((m, u) for _, _, m, u in rows))
    there, back = compared(one, two), compared(two, one)
    for name in INVERTED:
        assert there[name] * back[name] == pytest.approx(1), name
    assert there["speedup_mor"] >= there["speedup_gm"] * (1 - 1e-12)
    assert set(compared(one, one).values()) == {1.0}
    assert set(compared(one, arm(*((n, t) for n, t, _, _ in rows))).values()) == {1.0}


@given(ROWS)
def test_speedups_are_those_of_the_definitions(arm, rows):
    x, y = [t / n for n, t, _, _ in rows], [u / m for _, _, m, u in rows]
    found = compared(arm(*((n, t) for n, t, _, _ in rows)), arm(*((m, u) for _, _, m, u in rows)))
    base, own = sum(t for _, t, _, _ in rows), sum(u for _, _, _, u in rows)
    tokens, others = sum(n for n, _, _, _ in rows), sum(m for _, _, m, _ in rows)
    wanted = {
        "speedup": (base / tokens) / (own / others),
        "speedup_time": base / own,
        "speedup_gm": math.prod(a / b for a, b in zip(x, y, strict=True)) ** (1 / len(rows)),
        "speedup_mor": fmean(a / b for a, b in zip(x, y, strict=True)),
        "speedup_rom": fmean(1 / b for b in y) / fmean(1 / a for a in x),
    }
    # Stored times are whole nanoseconds.
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=1e-6)


def test_decode_speedup_leaves_a_turn_without_decode_time_out_of_both_arms(arm):
    base, own = arm((1, 1.0, 1.0), (11, 3.0, 1.0)), arm((1, 9.0, 9.0), (11, 2.0, 1.0))
    figures = speedups(pair_up(base, own).pairs)
    assert (figures["speedup_decode"].value, figures["speedup_decode"].n) == (pytest.approx(2.0), 1)
    assert figures["speedup"].n == 2
    only = speedups(pair_up(base[:1], own[:1]).pairs)["speedup_decode"]
    assert (only.value, only.reason) == (None, "every answer ended with its first emission")


def test_a_sample_without_tokens_counts_in_totals_only(arm, imported, of):
    base = of(imported([1] * 4, seconds=2.0)) + of(imported([1] * 4, seconds=2.0), sample="2")
    own = of(imported([2, 2], seconds=1.0)) + of(imported([], tokens=0, seconds=1.0), sample="2")
    figures = speedups(pair_up(base, own).pairs)
    assert figures["speedup"].value == pytest.approx((4.0 / 8) / (2.0 / 4))
    assert (figures["speedup_gm"].value, figures["speedup_gm"].n) == (pytest.approx(2.0), 1)


def test_what_was_not_recorded_has_no_speedup(imported, of):
    base, own = of(imported([1] * 4, seconds=2.0)), of(imported([2, 2], seconds=1.0))
    figures = speedups(pair_up(base, own).pairs)
    assert figures["speedup"].value == pytest.approx(2.0)
    for name in ("speedup_decode", "speedup_cpu"):
        assert (figures[name].value, figures[name].reason) == (None, "not recorded in the imported file")
    figures = rates(own)
    assert figures["tokens_per_s"].value == pytest.approx(4.0)
    for name in ("decode_tokens_per_s", "prefill_tokens_per_s"):
        assert figures[name].reason == "not recorded in the imported file"


def test_no_time_divides_nothing(arm):
    figures = speedups(pair_up(arm((5, 0.0)), arm((5, 1.0))).pairs)
    assert {figures[name].reason for name in ALL if name != "speedup_decode"} == {"no time or no tokens to divide by"}
    assert rates(arm((5, 0.0)))["tokens_per_s"].reason == "no time or no tokens to divide by"


def test_missing_and_unpaired_arms_have_their_reasons(arm):
    pairs = pair_up(arm(*AR), arm(*SD)).pairs
    assert {figure.reason for figure in speedups(pairs, missing="1 of 2 cells failed").values()} == {
        "1 of 2 cells failed"
    }
    none = pair_up([], []).pairs
    assert {figure.reason for figure in speedups(none, nothing="no plain run").values()} == {"no plain run"}
    assert set(speedups(none)) == set(ALL) == set(speedups(pairs))


def test_prefill_rate_is_prompt_tokens_over_prefill_time(turn, of):
    turns = of(turn(2, first=0.5), turn(2, first=1.5, prefill=1.0))
    assert rates(turns)["prefill_tokens_per_s"].value == pytest.approx(10 / 1.5)


def test_means_over_domains():
    figures = [Figure(value=1.0, n=1), Figure(value=4.0, n=3)]
    assert over_domains(figures).value == pytest.approx(2.0)
    assert over_domains(figures, fmean).value == pytest.approx(2.5)
    assert sample_weighted(figures).value == pytest.approx(3.25)
    assert sample_weighted(figures).n == 4
    broken = [*figures, Figure(value=None, n=2, reason="1 of 2 cells failed")]
    for mean in (over_domains, sample_weighted):
        assert mean(broken) == Figure(value=None, n=6, reason="2 of 3 domains: 1 of 2 cells failed")
    assert over_domains([]).reason == "0 of 0 domains: no domains"


@pytest.mark.parametrize(
    ("pool", "samples", "apart"),
    [(1.05, 1.0, False), (1.051, 1.0, True), (1.0, 1.051, True), (1.0, 1.0, False), (None, 1.0, False)],
)
def test_a_gap_is_more_than_five_percent_either_way(pool, samples, apart):
    assert gap_between(Figure(value=pool), Figure(value=samples)) is apart
