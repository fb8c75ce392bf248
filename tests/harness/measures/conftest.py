"""Turns written by hand, and traces of the shared cases replayed without a model."""

import json
from pathlib import Path

import pytest

from draftboard.measures import TurnFacts, facts
from draftboard.records import Cell, Turn

from made_runs import imported_turn
from made_runs import turn as turn_of

DATA = Path(__file__).parents[2] / "data"


def make_facts(*turns: Turn, sample="1", repeat=0) -> list[TurnFacts]:
    return facts([Cell(method="m", sample=sample, repeat=repeat, turns=list(turns))])


def replayed(name: str) -> Turn:
    """A case's trace, judged by the cases' own words: accepted while equal, then the target's own id, then the cut."""
    case = json.loads((DATA / name).read_text(encoding="utf-8"))
    output, steps = [case["prefill_token"]], []
    finish = ""
    for step in case["steps"]:
        pairs = zip(step["draft"], step["target"], strict=False)
        accepted = next((i for i, (a, b) in enumerate(pairs) if a != b), len(step["draft"]))
        kept = 0
        for token in step["target"][: accepted + 1]:
            output.append(token)
            kept += 1
            finish = (
                "eos" if token in case["eos_token_ids"] else "length" if len(output) == case["max_new_tokens"] else ""
            )
            if finish:
                break
        steps.append((len(step["draft"]), accepted, kept))
        if finish:
            break
    return turn_of(len(output), steps=steps, finish=finish or "window")


@pytest.fixture(scope="session")
def turn():
    return turn_of


@pytest.fixture(scope="session")
def imported():
    return imported_turn


@pytest.fixture(scope="session")
def of():
    """Facts of turns of one cell."""
    return make_facts


@pytest.fixture(scope="session")
def replay():
    return replayed


@pytest.fixture(scope="session")
def vector():
    """The worked trace of the definitions: prefill 0.20 s, four steps of 0.05 s, the last cut by end of sequence."""
    return turn_of(
        12,
        0.40,
        steps=((4, 4, 5), (4, 0, 1), (4, 2, 3), (3, 3, 2)),
        ends=(0.25, 0.30, 0.35, 0.40),
        first=0.20,
        finish="eos",
    )
