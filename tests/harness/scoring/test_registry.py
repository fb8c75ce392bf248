import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from draftboard.errors import UserError
from draftboard.metrics import METRICS
from draftboard.scoring import (
    SCORERS,
    Answer,
    Scores,
    Value,
    load_plugins,
    register_scorer,
    registry,
    score,
    score_each,
)

ANSWER = Answer(sample_id="s", turn=1, text="one two", references=("one",))


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    about = dict(SCORERS)
    monkeypatch.setattr(registry, "_FUNCTIONS", dict(registry._FUNCTIONS))
    yield
    registry._ABOUT.clear()
    registry._ABOUT.update(about)


def words(answers):
    """Mean number of blanks."""
    return score_each(
        answers,
        scorer="words",
        signature="words:1",
        metrics=("blanks",),
        measure=lambda item: {"blanks": item.text.count(" ")},
    )


def test_built_in_scorers_are_described():
    assert {"bleu", "rouge", "last_number", "letter", "qa"} <= set(SCORERS)
    assert all(SCORERS.values())


def test_metric_names_are_those_of_the_table():
    for name in ("bleu", "rouge", "last_number", "letter", "qa"):
        assert set(score([ANSWER], name).values) <= set(METRICS)


def test_unknown_scorer_offers_the_nearest():
    with pytest.raises(UserError, match="did you mean 'rouge'"):
        score([ANSWER], "rogue")
    with pytest.raises(UserError, match="known scorers: bleu, last_number, letter, qa, rouge"):
        score([ANSWER], "zzzzz")


def test_register_own_scorer():
    register_scorer("words")(words)
    assert SCORERS["words"] == "Mean number of blanks."
    scores = score([ANSWER], "words")
    assert scores.values["blanks"] == Value(value=1.0, n=1, signature="words:1")
    assert scores.per_sample == {"blanks": {"s#1": 1.0}}


def test_a_taken_name_is_refused():
    with pytest.raises(UserError, match="'bleu' exists already"):
        register_scorer("bleu")(words)


def test_entry_points_are_found_on_demand(monkeypatch):
    points = [EntryPoint(name="words", value=f"{__name__}:words", group="draftboard.metrics")]
    monkeypatch.setattr(EntryPoint, "load", lambda self: words)
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "draftboard.metrics" else [])
    assert score([ANSWER], "words").values["blanks"].value == 1
    assert "words" in SCORERS


def test_a_broken_entry_point_is_named(monkeypatch):
    points = [EntryPoint(name="broken", value="no_such_module_at_all:f", group="draftboard.metrics")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with pytest.raises(UserError, match="'broken' cannot be loaded"):
        load_plugins()


def test_values_that_json_cannot_hold_become_reasons():
    def broken(answers):
        nan = Value(value=float("nan"), n=1)
        return Scores(
            scorer="b",
            signature="",
            values={"x": nan},
            extras={"y": nan},
            per_sample={"x": {"s#1": float("inf")}},
        )

    register_scorer("broken", about="gives NaN")(broken)
    scores = score([ANSWER], "broken")
    assert scores.values["x"].value is scores.extras["y"].value is None
    assert "not a finite number" in scores.values["x"].reason
    assert scores.per_sample == {"x": {}}


def test_import_is_light():
    code = (
        "import sys, draftboard.scoring, draftboard.lossless;"
        "heavy = 'torch transformers sacrebleu rouge_score nltk numpy scipy'.split();"
        "print(*[name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
