import math

import pytest

from draftboard.audit.margins import look, measure_limit
from draftboard.methods.engine import Scores
from draftboard.testing import TableTarget, tiny_model

LOGITS = [0.0, 3.0, 2.5, 3.0, -math.inf]


class Target(TableTarget):
    """Scores that do not depend on the text; cached steps are off by `error` at the best token."""

    def __init__(self, row=LOGITS, error=0.0, **options):
        super().__init__(lambda context: row, **options)
        self._error = error

    def forward(self, tree, **options):
        scores = super().forward(tree, **options)
        logits = scores.logits.clone()
        logits[:, 1] += self._error
        return Scores(logits)


def test_what_the_target_thinks():
    found = look(Target(), [0, 1], 1, 2)
    assert (found.gap, found.baseline_below, found.method_below) == (0.0, 0.0, 0.5)
    # Ids 1 and 3 share the first rank.
    assert (found.baseline_rank, found.method_rank) == (1, 3)
    assert found.margin == 0.5
    assert found.sides_with(1, 2) == "baseline"
    assert found.sides_with(2, 1) == "method"
    assert found.sides_with(2, 0) == "neither"


def test_infinite_and_unknown_tokens_are_no_numbers():
    found = look(Target(), [0], 4, 99)
    assert (found.baseline_below, found.method_below, found.margin) == (None, None, None)
    assert (found.baseline_rank, found.method_rank) == (5, None)


@pytest.mark.parametrize(("row", "ids"), [([0.0, math.nan], [0]), (LOGITS, []), (LOGITS, [7]), (LOGITS, [-1])])
def test_what_cannot_be_asked(row, ids):
    assert look(Target(row), ids, 0, 1) is None


def test_the_limit_is_twice_what_cached_reading_is_off():
    rows = [0.0, 3.0, 2.5, 2.0, 1.0]
    limit = measure_limit(Target(rows, error=0.25), [[0, 1, 2, 3]] * 3, floor=0.001, positions=9)
    assert (limit.value, limit.percentile, limit.positions, limit.source) == (0.5, 0.25, 9, "measured")
    assert measure_limit(Target(rows, error=0.25), [[0, 1, 2, 3]], floor=0.7, positions=3).value == 0.7


def test_short_texts_go_on_until_there_are_enough_positions():
    target = tiny_model(vocab_size=12, window=24)
    limit = measure_limit(target, [[1, 2, 3], [4]], floor=1e-3, positions=100)
    # Two texts of at most 23 positions each, then one of them without its first token, and so on.
    assert limit.positions == 23 + 23 + 23 + 23
    assert 0 < limit.percentile < 1e-4
    assert limit.value == 1e-3


def test_half_precision_is_off_by_more():
    target = tiny_model(vocab_size=32, window=64, dtype="bfloat16")
    limit = measure_limit(target, [[1, 2, 3, 4, 5, 6]], floor=1e-6, positions=40)
    assert limit.positions == 40
    assert limit.percentile > 1e-3


def test_a_limit_needs_a_text():
    with pytest.raises(ValueError, match="text"):
        measure_limit(Target(), [[]], floor=0)


def test_the_cached_reading_is_that_of_the_full_forward():
    target = tiny_model(vocab_size=12, window=64, dtype="float64")
    limit = measure_limit(target, [list(range(12)) * 3], floor=0, positions=30)
    assert limit.percentile < 1e-9
