"""How a method's output is classed against the baseline's, and what the verdict makes of it."""

import pytest

from draftboard.analysis import analyse
from draftboard.outputs import tie_limit
from draftboard.records import Divergence
from draftboard.verdict import judge

from made_runs import cell, method_of, stored, turn


def difference(method, sample, place, below, **other):
    return Divergence(
        method=method,
        sample=f"s/{sample}",
        repeat=0,
        turn=0,
        place=place,
        baseline_token=1,
        method_token=2,
        gap=below,
        baseline_below_best=0.0,
        method_below_best=below,
        **other,
    )


@pytest.mark.parametrize(
    ("tokens", "below", "dtype", "output"),
    [
        ((1, 2, 3), None, "float32", "identical"),
        ((1, 2, 4), 1e-4, "float32", "tie-divergent"),
        ((1, 2, 4), 0.1, "float32", "different"),
        ((1, 2, 4), 0.1, "bfloat16", "tie-divergent"),
        ((1, 2, 4), None, "float32", "different"),
        ((1, 2), None, "float32", "different"),
    ],
)
def test_output_classes(tokens, below, dtype, output):
    cells = [cell("autoregressive", "1", turn((1, 2, 3))), cell("m", "1", turn(tokens))]
    told = [] if below is None else [difference("m", "1", 2, below)]
    run = stored(cells, divergences=told, dtype=dtype)
    assert method_of(run).output == output
    assert method_of(run, "autoregressive").output == ""
    reasons = judge(run, analyse(run))["reasons"]
    assert any("output differs" in reason for reason in reasons) == (output == "different")


def test_another_methods_divergence_excuses_nothing():
    cells = [cell("autoregressive", "1", turn((1, 2, 3))), cell("m", "1", turn((1, 2, 4)))]
    assert method_of(stored(cells, divergences=[difference("x", "1", 2, 0.0)])).output == "different"


def test_sampling_and_lossy_methods_have_no_class_to_check():
    cells = [cell("autoregressive", "1", turn((1, 2, 3))), cell("lossy", "1", turn((1, 2, 4)))]
    assert method_of(stored(cells, methods=("autoregressive", "lossy")), "lossy").output == "lossy"
    hot = [cell("autoregressive", "1", turn((1, 2, 3))), cell("m", "1", turn((1, 2, 4)))]
    assert method_of(stored(hot, temperature=0.5)).output == ""


def test_tie_limits_grow_with_rounding():
    limits = [tie_limit(name) for name in ("float64", "float32", "float16", "bfloat16")]
    assert limits == sorted(limits)
    assert tie_limit("whatever") == tie_limit("float32")
