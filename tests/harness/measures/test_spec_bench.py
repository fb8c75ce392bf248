"""The script's arithmetic against a plain rewriting of its rules, and the shared records it gets wrong."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.measures import SpeedRow, spec_bench_figures, spec_bench_speed
from draftboard.measures.spec_bench import OVERALL, TASKS

DATA = Path(__file__).parents[2] / "data"


def row(category="qa", tokens=(10,), seconds=(1.0,), text=(8,), accepted=(1,)):
    return SpeedRow(
        category=category, new_tokens=tokens, wall_time_s=seconds, text_tokens=text, accept_lengths=accepted
    )


def test_the_shared_records_give_the_known_wrong_figure():
    rows = [json.loads(line) for line in (DATA / "09-speed-records.jsonl").read_text(encoding="utf-8").splitlines()]
    arms = {
        method: [
            row(tokens=[r["new_tokens"]], seconds=[r["wall_time_s"]], text=[r.get("text_retokenised_length", 0)])
            for r in rows
            if r["method"] == method and r["phase"] == "measured"
        ]
        for method in ("autoregressive", "method-x")
    }
    found = spec_bench_speed(arms["method-x"], arms["autoregressive"])["qa"]
    assert found.speedup == pytest.approx(2.348796, abs=1e-6)
    assert found.tokens_per_s == pytest.approx(200 / 3)


def test_tasks_filter_by_the_whole_category():
    rows = [row("math"), row("reasoning", tokens=(30,)), row("math_reasoning", tokens=(50,)), row("else", tokens=(70,))]
    found = spec_bench_speed(rows, rows)
    assert list(found) == [*TASKS, OVERALL]
    assert found["mt_bench"].tokens_per_s == pytest.approx(20)
    assert found["math_reasoning"].tokens_per_s == pytest.approx(50)
    assert found[OVERALL].tokens_per_s == pytest.approx(40)
    assert all(math.isnan(getattr(found["rag"], name)) for name in SPECBENCH_NUMBERS)


SPECBENCH_NUMBERS = ("tokens_per_s", "baseline_tokens_per_s", "speedup", "mean_accepted")


def test_rows_are_not_matched():
    mine, theirs = [row(tokens=(20,))], [row(tokens=(10,), text=(11,)), row(tokens=(5,), text=(6,))]
    assert spec_bench_speed(mine, theirs)["qa"].speedup == pytest.approx(20 / 7.5)


def test_rows_without_time_or_text_count_give_nan():
    assert math.isnan(spec_bench_speed([row(seconds=(0.0,))], [row()])["qa"].tokens_per_s)
    assert math.isnan(spec_bench_speed([row()], [row(text=None)])["qa"].speedup)
    assert math.isnan(spec_bench_speed([row()], [row(text=(1,))])["qa"].speedup)


ROWS = st.lists(
    st.integers(1, 2).flatmap(
        lambda turns: st.builds(
            row,
            category=st.sampled_from(["writing", "qa", "rag"]),
            tokens=st.lists(st.integers(1, 99), min_size=turns, max_size=turns),
            seconds=st.lists(st.floats(0.1, 9), min_size=turns, max_size=turns),
            text=st.lists(st.integers(2, 99), min_size=turns, max_size=turns),
            accepted=st.lists(st.integers(1, 9), max_size=5),
        )
    ),
    max_size=6,
)


@given(ROWS, ROWS)
def test_it_is_the_arithmetic_of_the_rules(mine, theirs):
    import numpy as np

    found = spec_bench_speed(mine, theirs)
    for task, categories in (("mt_bench", {"writing"}), ("qa", {"qa"}), ("rag", {"rag"}), (OVERALL, None)):
        own = [r for r in mine if categories is None or r.category in categories]
        base = [r for r in theirs if categories is None or r.category in categories]
        speeds = [sum(r.new_tokens) / sum(r.wall_time_s) for r in own]
        speeds0 = [sum(n - 1 for n in r.text_tokens) / sum(r.wall_time_s) for r in base]
        accepted = [entry for r in own for entry in r.accept_lengths]
        wanted = [float(np.mean(v)) if v else math.nan for v in (speeds, speeds0, accepted)]
        numbers = [found[task].tokens_per_s, found[task].baseline_tokens_per_s, found[task].mean_accepted]
        assert numbers == pytest.approx(wanted, nan_ok=True)
        assert found[task].speedup == pytest.approx(wanted[0] / wanted[1], nan_ok=True)


def figures(own, base):
    return spec_bench_figures(own, base)


def test_figures_come_from_the_baselines_texts(turn, of):
    base = of(turn(10, 1.0, text_tokens=10), turn(20, 1.0, text_tokens=21))
    own = of(turn(10, 0.5), turn(20, 0.5))
    found = figures(own, base)
    assert found["tokens_per_s_specbench"].value == pytest.approx(30)
    assert found["speedup_specbench"].value == pytest.approx(30 / (29 / 2))
    assert found["speedup_specbench"].signature == ""
    # Against itself the baseline is above 1: the script counts its own tokens two ways.
    assert figures(base, base)["speedup_specbench"].value == pytest.approx(30 / 29)


def test_unmatched_rows_count_and_are_told(turn, of):
    base = of(turn(10, 1.0, text_tokens=11)) + of(turn(10, 3.0, text_tokens=7), sample="2")
    found = figures(of(turn(10, 0.5)), base)["speedup_specbench"]
    assert found.value == pytest.approx(20 / 6)
    assert found.signature == "rows are not matched: 1 against 2 of the baseline"


def test_rounds_are_averaged_as_three_runs_are(turn, of):
    base = of(turn(10, 1.0, text_tokens=11)) + of(turn(10, 2.0, text_tokens=11), repeat=1)
    own = of(turn(10, 0.5)) + of(turn(10, 0.4), repeat=1)
    assert figures(own, base)["speedup_specbench"].value == pytest.approx((2 + 5) / 2)


def test_without_text_counts_a_baseline_or_time_there_is_a_reason(turn, of):
    base, own = of(turn(10, 1.0)), of(turn(10, 0.5))
    found = figures(own, base)
    assert found["speedup_specbench"].reason == "the baseline's texts were not tokenised again"
    assert found["tokens_per_s_specbench"].value == pytest.approx(20)
    assert figures(own, [])["speedup_specbench"].reason == "no row of the baseline"
    counted = of(turn(10, 1.0, text_tokens=9))
    assert figures(of(turn(10, 0.0)), counted)["speedup_specbench"].reason.startswith("a row without time")
    assert figures(of(turn(10, 0.0)), counted)["tokens_per_s_specbench"].reason == "a row without time"
    assert figures(of(turn(10, 0.5), repeat=1), counted)["speedup_specbench"].value is None
    assert {figure.reason for figure in spec_bench_figures([], counted, "why").values()} == {"why"}
