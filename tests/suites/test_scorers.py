"""Names of scorers that a sample may have."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from draftboard.suites import SCORERS, Sample, SuiteError, add_scorer_name, scorer_names, scorers
from draftboard.suites.jsonl import parse_questions


@pytest.fixture(autouse=True)
def _own_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(scorers, "_added", {})
    scorers._installed.cache_clear()
    yield
    scorers._installed.cache_clear()


def load(scorer: str) -> str | None:
    data = f'{{"id": 1, "prompt": "Why?", "scorer": "{scorer}"}}'.encode()
    return parse_questions(data, "f").questions[0].scorer


def test_names_of_others_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(name="taste", value="no_such_module:taste", group=scorers.GROUP)]
    installed = {"draftboard.metrics": points}
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: installed.get(group, []))
    assert scorer_names() == (*SCORERS, "taste")
    add_scorer_name("smell")
    add_scorer_name("bleu")
    assert scorer_names() == (*SCORERS, "smell", "taste")
    assert [load(name) for name in ("bleu", "taste", "smell")] == ["bleu", "taste", "smell"]
    sample = Sample(sample_id="1", suite="t", domain="d", category="c", turns=("a",), scorer="taste")
    assert sample.scorer == "taste"


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(SuiteError, match=r"f:1: unknown scorer 'rogue'; did you mean rouge\?"):
        load("rogue")
    add_scorer_name("rogue")
    assert load("rogue") == "rogue"
