"""Turns written by hand, and traces of the shared cases replayed without a model."""

import json
from pathlib import Path

import pytest

from draftboard.measures import TurnFacts, facts
from draftboard.records import Cell, Turn

DATA = Path(__file__).parents[2] / "data"


def make_turn(
    tokens=12,
    seconds=1.0,
    *,
    steps=(),
    ends=(),
    first=0.0,
    prefill=None,
    finish="length",
    emits=1,
    prompt="p",
    text="x",
    text_tokens=None,
    cpu=None,
    times=(1.0, 2.0, 1.0),
    nodes=None,
):
    """`steps`: (drafted, accepted, kept) each; `ends`: their ends in seconds; `times`: draft, verify, other in ms."""
    drafted, accepted, kept = ([step[i] for step in steps] for i in range(3))
    draft_ns, verify_ns, other_ns = ([round(part * 1e6)] * len(kept) for part in times)
    return Turn(
        prompt_tokens=5,
        prompt_sha256=prompt,
        token_ids=list(range(tokens)),
        text=text,
        finish=finish,
        prefill_ns=round((first if prefill is None else prefill) * 1e9),
        first_ns=round(first * 1e9),
        end_ns=round(seconds * 1e9),
        cpu_ns=round((seconds if cpu is None else cpu) * 1e9),
        first_cpu_ns=0,
        steps={
            "drafted": drafted,
            "nodes": list(drafted if nodes is None else nodes),
            "accepted": accepted,
            "kept": kept,
            "draft_ns": draft_ns,
            "verify_ns": verify_ns,
            "other_ns": other_ns,
            "end_ns": [round(end * 1e9) for end in ends] or [0] * len(kept),
        },
        prefill_emits=emits,
        text_tokens=text_tokens,
    )


def make_imported(kept=None, tokens=None, seconds=1.0, *, emits=0, prompt="", text="x", drafted=None, accepted=None):
    """A turn as a foreign file tells it: `kept` per entry, or nothing of its steps."""
    steps = {}
    if kept is not None:
        steps = {"accepted": list(accepted or (max(0, k - 1) for k in kept)), "kept": list(kept)}
        if drafted is not None:
            steps["drafted"] = list(drafted)
    return Turn(
        prompt_tokens=0,
        prompt_sha256=prompt,
        token_ids=[],
        text=text,
        finish="",
        prefill_ns=None,
        first_ns=None,
        end_ns=round(seconds * 1e9),
        cpu_ns=None,
        first_cpu_ns=None,
        steps=steps,
        tokens=tokens if tokens is not None else emits + sum(kept or ()),
        prefill_emits=emits,
    )


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
    return make_turn(len(output), steps=steps, finish=finish or "window")


@pytest.fixture(scope="session")
def turn():
    return make_turn


@pytest.fixture(scope="session")
def imported():
    return make_imported


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
    return make_turn(
        12,
        0.40,
        steps=((4, 4, 5), (4, 0, 1), (4, 2, 3), (3, 3, 2)),
        ends=(0.25, 0.30, 0.35, 0.40),
        first=0.20,
        finish="eos",
    )
