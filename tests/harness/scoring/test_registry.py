import subprocess
import sys
from dataclasses import replace
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
    runs_code,
    score,
    score_each,
)
from draftboard.suites.scorers import is_scorer

pytestmark = pytest.mark.usefixtures("own_registry")

BUILT_IN = ("bleu", "rouge", "last_number", "letter", "qa", "pass_at_1")
ANSWER = Answer(sample_id="s", turn=1, text="one two", references=("one",))


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
    assert set(BUILT_IN) <= set(SCORERS)
    assert all(SCORERS.values())


def test_metric_names_are_those_of_the_table():
    for name in BUILT_IN:
        scores = score([ANSWER], name)
        assert {metric: METRICS[metric].kind for metric in scores.values} == dict.fromkeys(scores.values, "quality")
        assert {METRICS[metric].kind for metric in scores.extras} == {"quality_detail"}


def test_every_figure_stands_per_answer_too_unless_it_has_none():
    """Of a corpus only lengths, of classes only means."""
    corpus_only = {"brevity_penalty", "length_ratio", "accuracy_macro"}
    for name in BUILT_IN:
        scores = score([replace(ANSWER, references=("A", "1"), text="Answer: A 1")], name)
        assert set(scores.per_sample) == {*scores.values, *scores.extras} - corpus_only
        for value in (*scores.values.values(), *scores.extras.values()):
            assert value.signature or value.value is None


def test_unknown_scorer_offers_the_nearest():
    with pytest.raises(UserError, match="did you mean 'rouge'"):
        score([ANSWER], "rogue")
    with pytest.raises(UserError, match="known scorers: bleu, last_number, letter, pass_at_1, qa, rouge"):
        score([ANSWER], "zzzzz")


def test_register_own_scorer():
    register_scorer("words")(words)
    assert SCORERS["words"] == "Mean number of blanks."
    scores = score([ANSWER], "words")
    assert scores.values["blanks"] == Value(value=1.0, n=1, signature="words:1")
    assert scores.per_sample == {"blanks": {"s#1": 1.0}, "mean_words": {"s#1": 2.0}}


def test_a_registered_scorer_may_be_named_by_samples():
    assert not is_scorer("words")
    register_scorer("words")(words)
    assert is_scorer("words")


@pytest.mark.parametrize("name", ["", "  ", None])
def test_a_scorer_needs_a_name(name):
    with pytest.raises(UserError, match="no name for a scorer"):
        register_scorer(name)


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


@pytest.mark.parametrize("error", [SyntaxError("bad line"), RuntimeError("no licence"), SystemExit(3)])
def test_an_entry_point_may_fail_in_any_way(monkeypatch, error):
    def fail(self):
        raise error

    points = [EntryPoint(name="broken", value="some_module:f", group="draftboard.metrics")]
    monkeypatch.setattr(EntryPoint, "load", fail)
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with pytest.raises(UserError, match=f"'broken' cannot be loaded: {type(error).__name__}"):
        score([ANSWER], "broken")


def test_a_broken_package_does_not_keep_another_from_scoring(monkeypatch):
    def load(self):
        if self.name == "broken":
            raise ImportError("no such module")
        return words

    points = [EntryPoint(name=name, value="module:f", group="draftboard.metrics") for name in ("broken", "words")]
    monkeypatch.setattr(EntryPoint, "load", load)
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    assert score([ANSWER], "words").values["blanks"].value == 1


def test_a_scorer_that_raises_is_named_with_the_line():
    @register_scorer("raises", about="fails")
    def raises(answers):
        return {}["no such key"]

    with pytest.raises(UserError, match=r"test_registry.py:\d+: the scorer 'raises' failed: KeyError: 'no such key'"):
        score([ANSWER], "raises")


def test_a_scorer_that_leaves_does_not_end_the_program():
    @register_scorer("leaves", about="exits")
    def leaves(answers):
        sys.exit(1)

    with pytest.raises(UserError, match="'leaves' failed: SystemExit"):
        score([ANSWER], "leaves")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"accuracy": 1.0}, "returned dict, not Scores"),
        (None, "returned NoneType, not Scores"),
        (Scores(scorer="odd", signature="", values={"x": 0.5}), "wrong types: .*`object`, got `float`.*values"),
        (Scores(scorer="odd", signature="", values={"x": Value(value="high", n=1)}), "wrong types: .*got `str`.*value"),
        (Scores(scorer="odd", signature="", values={"x": Value(value=0.5, n=1.5)}), "wrong types: .*got `float`.*n"),
        (Scores(scorer="odd", signature="", values={"x": Value(value=0.5, n=object())}), "wrong types: .*object"),
        (Scores(scorer="odd", signature="", values={}, per_sample={"x": [1.0]}), "wrong types: .*got `array`"),
    ],
)
def test_what_a_scorer_returns_is_checked(given, told):
    register_scorer("odd", about="odd")(lambda answers: given)
    with pytest.raises(UserError, match=f"the scorer 'odd' returned .*{told}" if "not" not in told else told):
        score([ANSWER], "odd")


def test_whole_numbers_will_do_for_values():
    register_scorer("whole", about="counts")(
        lambda answers: Scores(scorer="whole", signature="", values={"x": Value(value=1, n=1)})
    )
    value = score([ANSWER], "whole").values["x"].value
    assert (value, type(value)) == (1, float)


def test_only_scorers_that_run_code_hear_of_it():
    heard = []

    @register_scorer("runs", about="runs code", runs_code=True)
    def runs(answers, *, run_code):
        heard.append(run_code)
        return words(answers)

    register_scorer("words")(words)
    score([ANSWER], "words", run_code=True)
    score([ANSWER], "runs")
    score([ANSWER], "runs", run_code="unisolated")
    assert heard == [False, "unisolated"]
    assert (runs_code("runs"), runs_code("words"), runs_code("pass_at_1")) == (True, False, True)


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
        "heavy = 'torch transformers sacrebleu rouge_score nltk numpy scipy resource ctypes'.split();"
        "print(*[name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
