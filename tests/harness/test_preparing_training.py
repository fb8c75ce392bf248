"""`draftboard prepare` of a method that is trained: what it is given, and what is refused before a model is loaded."""

import json

import pytest

from draftboard.errors import UserError
from draftboard.methods import registry
from draftboard.methods.training.answers import read_answers
from draftboard.suites import load_suite
from draftboard.training import read_effort
from draftboard.training_prompts import read_conversations, shuffled

PLUGIN = '''
import dataclasses
from draftboard.methods import Method, register
from draftboard.methods.artifact import write_artifact


@register("learner")
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Learner(Method):
    """Writes answers and counts them."""

    training = "trained"

    def drafter(self, binding):
        raise NotImplementedError

    @classmethod
    def prepare(cls, workshop):
        training = workshop.training
        effort = training.effort
        folder = training.answers(training.load_model(), tokens=effort.tokens, seconds=effort.seconds)
        record = {"kind": "learned", "lines": len((folder / "answers.jsonl").read_text().splitlines())}
        write_artifact(workshop.out, {**record, **workshop.provenance}, lambda folder: None)
        return record
'''


@pytest.fixture
def prepare(cli, tmp_path, model, fresh_registry, monkeypatch):
    plugin = tmp_path / "learner.py"
    plugin.write_text(PLUGIN)
    known = dict(registry._registered)

    def run(*tokens, target=model, out="head"):
        # Each command is a process of its own, in which the plug-in is not known yet.
        monkeypatch.setattr(registry, "_registered", dict(known))
        place = ("--out", tmp_path / out) if out else ()
        # Few tokens a turn, because the toy's window is small.
        return cli("prepare", "learner", *tokens, *place, "--model", target, "--plugin", plugin)

    return run


SMALL = ("--max-new-tokens", 8, "--threads", 1)


@pytest.fixture
def chats(tmp_path):
    path = tmp_path / "chats.jsonl"
    rows = [
        {"messages": [{"role": "system", "content": "be"}, {"role": "user", "content": "the ferry leaves at nine"}]},
        {
            "conversations": [
                {"from": "human", "value": "when"},
                {"from": "gpt", "value": "no"},
                {"from": "human", "value": "how"},
            ]
        },
        {"data": ["the river is high", "yes", "the sea"]},
        {"turns": ["a boat", "a train"]},
        {"prompt": "who wrote the question"},
        {"conversations": [{"from": "gpt", "value": "nobody asked"}]},
    ]
    path.write_text("\ufeff" + "".join(json.dumps(row) + "\r\n" for row in rows), encoding="utf-8")
    return path


def test_answers_are_written_where_a_second_try_finds_them(prepare, chats, tmp_path):
    told = prepare("--prompts", chats, "--budget", "1k", *SMALL)
    assert told.code == 0, told.err
    assert told.out == f"{tmp_path / 'head'}\n"
    record = json.loads((tmp_path / "head" / "artifact.json").read_text())
    assert record["lines"] == 8
    assert [(entry["file"], entry["conversations"]) for entry in record["data"]] == [("chats.jsonl", 5)]
    assert record["command"].endswith("--prompts chats.jsonl --budget 1k --max-new-tokens 8")
    work = tmp_path / "head.work" / "answers"
    meta = json.loads((work / "meta.json").read_text())
    assert meta["prompts"]["files"][0]["file"] == "chats.jsonl"
    assert meta["excluded"][0].startswith("mini ")
    assert str(tmp_path) not in json.dumps([meta, record])
    assert {answer.user for answer in read_answers(work)} == {
        *("the ferry leaves at nine", "when", "how", "the river is high", "the sea", "a boat", "a train"),
        "who wrote the question",
    }
    assert prepare("--prompts", chats, *SMALL).code == 2
    (tmp_path / "head").rename(tmp_path / "elsewhere")
    before = (work / "answers.jsonl").read_bytes()
    assert prepare("--prompts", chats, "--budget", "1k", *SMALL).code == 0
    assert (work / "answers.jsonl").read_bytes() == before
    (tmp_path / "head").rename(tmp_path / "another")
    told = prepare("--prompts", chats, "--budget", "1k", "--seed", 3, *SMALL)
    assert told.code == 2
    assert "written otherwise" in told.err
    assert '"seed": 3' in told.err


def test_our_own_prompts_are_the_default_and_can_be_mixed_in(prepare, chats, tmp_path):
    assert prepare("--budget", "0.2k", *SMALL).code == 0
    kinds = {answer.kind for answer in read_answers(tmp_path / "head.work" / "answers")}
    assert len(kinds) >= 3
    told = prepare("--prompts", chats, "--prompts", "generated", "--budget", "0.3k", *SMALL, out="both")
    assert told.code == 0, told.err
    assert "given" in {answer.kind for answer in read_answers(tmp_path / "both.work" / "answers")}


def test_items_of_an_evaluation_are_refused_with_their_count(prepare, questions, tmp_path):
    item = load_suite("mini").samples[0].turns[0]
    path = tmp_path / "mine.jsonl"
    rows = [{"prompt": "a harmless one"}, {"prompt": item}, *({"prompt": "when is the tide low"} for _ in range(9))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = prepare("--prompts", path, "--exclude", f"jsonl@{questions}", *SMALL)
    assert told.code == 2
    assert "10 of 11 conversations for training hold an item of an evaluation (mini, jsonl)" in told.err
    assert f"{path}:2: the same words: " in told.err
    assert "and 5 more" in told.err
    assert not list(tmp_path.glob("head*"))
    told = prepare("--exclude", "spec_bnch", "--exclude", f"jsonl@{tmp_path / 'none'}", *SMALL)
    assert told.code == 2
    assert "2 suites of --exclude cannot be loaded" in told.err
    assert "did you mean spec_bench" in told.err


def test_what_is_told_wrongly_is_refused_before_anything_is_loaded(prepare, chats, tmp_path, new_model):
    broken = new_model(tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"garbage")
    (tmp_path / "taken").mkdir()
    for tokens, what in (
        (("--budget", "10"), "is no budget"),
        (("--budget", "0m"), "is no budget"),
        (("--budget", "nan"), "is no budget"),
        (("--seed", -1), "seed is -1"),
        (("--max-new-tokens", 0), "max_new_tokens is 0"),
        (("--max-new-tokens", 96), "window has 96 tokens"),
        (("--prompts", tmp_path / "nowhere.jsonl"), "no such file"),
        ((chats,), "takes no CORPUS"),
    ):
        told = prepare(*tokens, target=str(broken))
        assert told.code == 2, what
        assert what in told.err
        assert "Traceback" not in told.err
    assert "exists already" in prepare(out="taken").err
    assert not list(tmp_path.glob("head*"))


def test_options_of_a_training_are_not_for_a_corpus(cli, chats, tmp_path, model):
    told = cli("prepare", "samd", chats, "--budget", "10m", "--out", tmp_path / "x", "--model", model)
    assert told.code == 2
    assert "samd is not trained" in told.err


def test_budgets():
    assert read_effort("400k").tokens == 400_000
    assert read_effort("0.5k").tokens == 500
    assert (read_effort("90s").seconds, read_effort(" 10m ").seconds, read_effort("1.5h").seconds) == (90, 600, 5400)
    for wrong in ("", "k", "-1k", "1e3k", "10M", "1d", "inf", "1 0m", "99999999h"):
        with pytest.raises(UserError, match="is no budget"):
            read_effort(wrong)
    assert read_effort("400k", 2.5).epochs == 2.5
    for wrong in (0.0, -1.0, float("nan"), float("inf"), 1001.0):
        with pytest.raises(UserError, match=r"--epochs .* must lie above 0"):
            read_effort("400k", wrong)
    with pytest.raises(UserError, match="--epochs 2 and a budget of time"):
        read_effort("10m", 2.0)


def test_what_a_training_begins_with_is_looked_for_first(prepare, tmp_path):
    told = prepare("--init", tmp_path / "nowhere", *SMALL)
    assert told.code == 2
    assert "nowhere" in told.err
    (tmp_path / "earlier").mkdir()
    assert prepare("--init", tmp_path / "earlier", "--budget", "0.1k", "--epochs", 2, *SMALL).code == 0
    record = json.loads((tmp_path / "head" / "artifact.json").read_text())
    assert "--init earlier --budget 0.1k --epochs 2.0" in record["command"]


def test_chats_as_they_are_traded(chats, tmp_path):
    found = read_conversations(str(chats))
    assert found.turns == (
        ("the ferry leaves at nine",),
        ("when", "how"),
        ("the river is high", "the sea"),
        ("a boat", "a train"),
        ("who wrote the question",),
    )
    assert found.places[2] == f"{chats}:3"
    assert sorted(shuffled([found, found], 1)) == sorted(found.turns * 2)
    assert shuffled([found], 1) == shuffled([found], 1) != shuffled([found], 2)
    wrong = tmp_path / "wrong.jsonl"
    rows = [
        '{"messages": "hi"}',
        '{"messages": [1]}',
        '{"messages": [{"role": "ghost", "content": "x"}]}',
        '{"messages": [{"role": "user", "content": null}]}',
        '{"prompt": 3}',
        "{",
        '{"text": "fine"}',
        '{"other": "x"}',
    ]
    wrong.write_text("\n".join(rows))
    with pytest.raises(UserError) as error:
        read_conversations(str(wrong))
    told = str(error.value)
    for line in (1, 2, 3, 4, 5, 6, 8):
        assert f"{wrong}:{line}: " in told
    assert f"{wrong}:7: " not in told
    assert "said by 'ghost'" in told
    silent = tmp_path / "silent.jsonl"
    silent.write_text('{"messages": [{"role": "assistant", "content": "x"}]}\n')
    with pytest.raises(UserError, match="holds no prompt"):
        read_conversations(str(silent))
    with pytest.raises(UserError, match="no data set of the hub"):
        read_conversations("hf://a/b/c/d")
