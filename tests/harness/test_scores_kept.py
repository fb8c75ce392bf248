"""Scores that cannot be made anew are kept as long as they are of the answers that the run holds."""

import json
from dataclasses import replace

import msgspec
import pytest

from draftboard.analysis import analyse
from draftboard.commands import finish_run
from draftboard.evaluation import score_run
from draftboard.records import Cell, SampleRecord
from draftboard.scored import answer_groups, answers_hash, current_scores
from draftboard.scoring import registry
from draftboard.scoring.execution import NOT_RUN
from draftboard.store import CELLS, create_run, open_cells, read_run
from draftboard.suites import scorers as names

from made_runs import turn

PLUGIN = """
from draftboard.scoring import register_scorer, score_each

@register_scorer("brevity_of_ours", about="short answers")
def brevity(answers):
    return score_each(answers, scorer="brevity", signature="words:10", metrics=("brief",),
                      measure=lambda item: {"brief": float(len(item.text.split()) <= 10)})
"""


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    for module, name in ((registry, "_FUNCTIONS"), (registry, "_ABOUT"), (names, "_added")):
        monkeypatch.setattr(module, name, dict(getattr(module, name)))
    monkeypatch.setattr(registry, "_RUN_CODE", set(registry._RUN_CODE))


@pytest.fixture
def forget(monkeypatch):
    """Let the plug-in's scorer be unknown again."""

    def go():
        for table in (registry._FUNCTIONS, registry._ABOUT, names._added):
            table.pop("brevity_of_ours", None)

    return go


@pytest.fixture
def plugin(tmp_path):
    path = tmp_path / "brevity.py"
    path.write_text(PLUGIN)
    return path


def sample(key, domain, scorer, **fields):
    return SampleRecord(
        key=f"made/{key}",
        suite="made",
        sample_id=key,
        domain=domain,
        category=domain,
        turns=["?"],
        references=[["2017"]],
        scorer=scorer,
        **fields,
    )


SAMPLES = [
    sample("1", "open, short", "brevity_of_ours"),
    sample("2", "open, short", "brevity_of_ours"),
    sample("3", "qa", "qa"),
]


@pytest.fixture
def made(tmp_path):
    """A run of one method on disk; the second sample has failed."""

    def make(samples=SAMPLES, failed=("made/2",)):
        plan = {
            "model": "tiny",
            "suites": [{"name": "made", "samples": len(samples), "content_hash": "f" * 64}],
            "methods": [{"label": "autoregressive", "method": "autoregressive", "settings": {}}],
            "sampling": {"temperature": 0.0, "top_p": 1.0, "top_k": 0},
            "max_new_tokens": 8,
            "seed": 0,
            "repeats": 1,
            "dtype": "float32",
            "device": "cpu",
            "template": "auto",
            "warmup": "auto",
            "profile": False,
        }
        create_run(tmp_path / "run", plan, {"hardware": "here"}, samples)
        for record in samples:
            add(record.key, "failed" if record.key in failed else "ok")
        return tmp_path / "run"

    def add(key, status="ok", text="in 2017"):
        turns = [turn(3, text=text)] if status == "ok" else []
        with open_cells(tmp_path / "run") as cells:
            cells.append(msgspec.json.encode(Cell(method="autoregressive", sample=key, status=status, turns=turns)))

    make.add = add
    return make


def figures(folder, domain="open, short"):
    (method,) = analyse(read_run(folder)).methods
    return method.domains[domain].figures


def test_scores_of_a_plugin_that_is_not_here_are_kept_and_told(made, cli, plugin, forget, rows):
    folder = made()
    assert cli("score", folder, "--plugin", plugin).code == 0
    before = rows(folder / "scores.jsonl")
    shown = cli("show", folder, "--json").out
    forget()
    told = cli("score", folder)
    reason = "there is no scorer named 'brevity_of_ours'"
    assert told.err == (
        f'draftboard: "open, short" not scored anew, earlier scores of the same answers are kept: {reason}\n'
    )
    assert told.code == 1
    assert "autoregressive · open, short · round 0: brief 1.000 (n=1), kept from an earlier call\n" in told.out
    assert "qa · round 0: contains 1.000 (n=1)" in told.out
    after = rows(folder / "scores.jsonl")
    assert [{**row, "kept": ""} for row in after] == before
    assert [row["kept"] for row in after] == [reason, ""]
    assert cli("score", folder, "--json").json == after
    assert cli("show", folder, "--json").out == shown
    assert cli("score", folder, "--plugin", plugin).code == 0
    assert rows(folder / "scores.jsonl") == before


def test_answers_that_came_since_leave_no_old_scores(made, cli, plugin, forget):
    folder = made()
    assert cli("score", folder, "--plugin", plugin).code == 0
    assert figures(folder)["brief"].value == 1
    made.add("made/2", text="ten words and more are no brief answer at all " * 2)
    # As after a resumed run that was stopped before it was scored.
    assert "brief" not in figures(folder)
    assert figures(folder, "qa")["contains"].value == 1
    notes = analyse(read_run(folder)).notes
    assert [note for note in notes if note.startswith('the answers have changed since "open, short" was scored')]
    forget()
    told = cli("score", folder)
    assert told.err == "draftboard: \"open, short\" not scored: there is no scorer named 'brevity_of_ours'\n"
    assert figures(folder)["brevity_of_ours"].value is None
    assert cli("score", folder, "--plugin", plugin).code == 0
    assert figures(folder)["brief"].value == 0.5


def test_finishing_a_resumed_run_scores_it_anew_and_says_nothing_of_old_scores(made, cli, plugin):
    folder = made()
    assert cli("score", folder, "--plugin", plugin).code == 0
    made.add("made/2")
    group = finish_run(folder)
    assert not any("answers have changed" in note for note in group.notes)
    (method,) = group.methods
    assert method.domains["open, short"].figures["brief"].n == 2


@pytest.mark.parametrize(
    "change",
    [
        {"references": [["2018"]]},
        {"options": ["a"]},
        {"language": "de"},
        {"category": "other"},
        {"group": "g"},
        {"context": "c"},
        {"scorer": "f1"},
        {"scorer": None},
    ],
)
def test_scores_of_the_same_texts_held_against_something_else_are_old(made, cli, change):
    folder = made([SAMPLES[2]], failed=())
    score_run(read_run(folder))
    run = read_run(folder)
    assert (len(run.scores), run.stale_scores) == (1, "")
    kept, told = current_scores(run.scores, [replace(run.samples[0], **change)], run.cells)
    assert (kept, bool(told)) == ([], True)


def test_the_hash_knows_answers_in_any_order_and_nothing_else_of_a_cell(made):
    run = read_run(made())
    first = ("autoregressive", "open, short", 0, "brevity_of_ours")
    forward, backward = (answer_groups(run.samples, cells)[first] for cells in (run.cells, run.cells[::-1]))
    assert forward != backward
    assert answers_hash("x", forward) == answers_hash("x", backward) != answers_hash("y", forward)
    slower = [replace(cell, turns=[replace(one, end_ns=9) for one in cell.turns]) for cell in run.cells]
    assert answers_hash("x", answer_groups(run.samples, slower)[first]) == answers_hash("x", forward)
    odd = [replace(answer, text="\ud800") for answer in forward]
    assert answers_hash("x", odd) != answers_hash("x", forward)


def test_scores_without_a_hash_are_shown_but_not_vouched_for(made, cli, plugin, forget, rows):
    folder = made()
    assert cli("score", folder, "--plugin", plugin).code == 0
    old = [{k: v for k, v in row.items() if k != "answers_sha256"} for row in rows(folder / "scores.jsonl")]
    (folder / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in old))
    assert figures(folder)["brief"].value == 1
    forget()
    assert cli("score", folder).code == 1
    assert figures(folder)["brevity_of_ours"].value is None


def test_code_that_was_run_once_keeps_its_scores(made, cli, monkeypatch):
    monkeypatch.setattr("draftboard.scoring.execution.require_sandbox", lambda run_code: None)
    monkeypatch.setattr("draftboard.evaluation.require_sandbox", lambda run_code: None)
    monkeypatch.setattr("draftboard.scoring.execution.run_program", lambda *_, **__: "passed")
    program = sample("1", "code", "pass_at_1", context="def one():\n")
    folder = made([replace(program, references=[["assert one() == 1"]])], failed=())
    told = cli("score", folder)
    assert (told.code, told.err) == (0, "")
    assert "pass_at_1 n/a" in told.out
    assert cli("score", folder, "--run-code").code == 0
    told = cli("score", folder)
    assert told.code == 0
    assert told.err == f"draftboard: code not scored anew, earlier scores of the same answers are kept: {NOT_RUN}\n"
    assert "pass_at_1 1.000 (n=1), kept from an earlier call" in told.out
    assert [record.kept for record in read_run(folder).scores] == [NOT_RUN]
    lines = (folder / CELLS).read_text()
    (folder / CELLS).write_text(lines.replace("in 2017", "in 2018"))
    told = cli("score", folder)
    assert told.err == ""
    assert "pass_at_1 n/a" in told.out
