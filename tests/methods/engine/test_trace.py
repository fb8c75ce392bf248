import math

from draftboard.methods.engine import Trace


def step(trace, **signals):
    trace.step(drafted=3, nodes=4, accepted=1, kept=2, draft_ns=5, verify_ns=6, other_ns=7, end_ns=8, signals=signals)


def test_signals_are_aligned_with_steps_and_nan_where_nothing_was_said():
    trace = Trace()
    step(trace, match=2)
    step(trace)
    step(trace, match=1, entropy=0.123456789)
    assert len(trace) == 3
    assert trace.signals["match"].tolist()[::2] == [2, 1]
    assert math.isnan(trace.signals["match"][1])
    assert [math.isnan(value) for value in trace.signals["entropy"]] == [True, True, False]
    assert trace.columns() == {
        "drafted": [3, 3, 3],
        "nodes": [4, 4, 4],
        "accepted": [1, 1, 1],
        "kept": [2, 2, 2],
        "draft_ns": [5, 5, 5],
        "verify_ns": [6, 6, 6],
        "other_ns": [7, 7, 7],
        "end_ns": [8, 8, 8],
        "signals": {"match": [2.0, None, 1.0], "entropy": [None, None, 0.12346]},
    }


def test_a_trace_without_signals_names_none():
    trace = Trace()
    step(trace)
    assert "signals" not in trace.columns()
