"""Answers of a toy target: what is on disk, going on after a break, budgets, and what is refused."""

import json
from types import SimpleNamespace

import pytest

from draftboard.methods import MethodError
from draftboard.methods.training import answers as module
from draftboard.methods.training.answers import TextSide, Writing, read_answers, write_answers
from draftboard.methods.training.sources import Given, Joined, Stream
from draftboard.testing import tiny_model

VOCAB = 40
EOS = 5
USER, ASSISTANT = 1, 2
PROVENANCE = {"target": "toy", "fingerprint": "f", "dtype": "float64"}
SHORT = Writing(max_new_tokens=12, max_prompt_tokens=150, places=8)


def encode(turns, answers):
    """A message is the lengths of its words; an answer is the numbers that its text holds."""
    ids = [3]
    for number, turn in enumerate(turns):
        ids += [USER, *[6 + len(word) % 30 for word in turn.split()][:60], EOS, ASSISTANT]
        if number < len(answers):
            ids += [*(int(word) for word in answers[number].split()), EOS]
    return ids


SIDE = TextSide(
    encode=encode,
    decode=lambda ids: " ".join(str(token) for token in ids if token != EOS),
    eos_ids={EOS},
    user_prefix=lambda: [3, USER],
)


@pytest.fixture(scope="module")
def model():
    return tiny_model(vocab_size=VOCAB, dtype="float64", window=512).model


@pytest.fixture
def write(model, tmp_path):
    def run(folder="a", prompts=None, *, tokens=400, writing=SHORT, provenance=PROVENANCE, side=SIDE, **more):
        prompts = prompts or Stream(seed=1)
        return write_answers(
            tmp_path / folder, model, side, prompts, writing=writing, tokens=tokens, provenance=provenance, **more
        )

    return run


@pytest.fixture
def small_rounds(monkeypatch):
    from draftboard.methods.training import prompts

    monkeypatch.setattr(prompts, "ROUND", 16)
    monkeypatch.setattr(module, "ROUND", 16)
    monkeypatch.setattr(module, "_SHORTEST_PASSAGE", 3)


def lines(folder):
    return [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]


def by_place(folder):
    return {(answer.index, answer.turn): answer for answer in read_answers(folder)}


def test_answers_are_the_target_s_own_with_what_it_read(write, model, tmp_path):
    end = write(tokens=900)
    stored = list(read_answers(tmp_path / "a"))
    assert end.tokens == sum(len(answer.answer_ids) for answer in stored) >= 900
    assert end.answers == len(stored)
    assert len({(answer.index, answer.turn) for answer in stored}) == len(stored)
    for answer in stored:
        assert (answer.finish == "end") == (answer.answer_ids[-1] == EOS)
        assert answer.finish == "end" or len(answer.answer_ids) == 12
        if answer.turn == 0:
            assert answer.prompt_ids == encode([answer.user], [])
    later = [answer for answer in stored if answer.turn == 1]
    assert later
    for answer in later:
        first = by_place(tmp_path / "a")[answer.index, 0]
        earlier = SIDE.decode(first.answer_ids)
        assert answer.prompt_ids == encode([first.user, answer.user], [earlier])


def test_a_break_changes_nothing(write, tmp_path, small_rounds):
    """Torn last line, lost rows, other batch size: the same answers to the same prompts."""
    write("whole", tokens=2500)
    for tokens, places in ((300, 8), (900, 3), (2500, 8)):
        write("parts", tokens=tokens, writing=Writing(max_new_tokens=12, max_prompt_tokens=150, places=places))
        path = tmp_path / "parts" / "answers.jsonl"
        if tokens < 2500:
            path.write_bytes(path.read_bytes()[:-7])
    whole, parts = by_place(tmp_path / "whole"), by_place(tmp_path / "parts")
    assert len(set(whole) & set(parts)) > 0.8 * len(whole)
    kinds = {whole[place].kind for place in set(whole) & set(parts)}
    assert {"rag", "summarization", "passage", "own", "conversation"} <= kinds
    for place in set(whole) & set(parts):
        assert whole[place] == parts[place]
    assert [row["index"] for row in lines(tmp_path / "parts")].count(0) == len(
        {turn for index, turn in parts if index == 0}
    )


def test_what_is_there_is_enough(write, tmp_path):
    write(tokens=200)
    before = (tmp_path / "a" / "answers.jsonl").read_bytes()
    seen = []
    assert write(tokens=200, progress=seen.append).tokens >= 200
    assert (tmp_path / "a" / "answers.jsonl").read_bytes() == before
    assert seen == []
    counts = json.loads((tmp_path / "a" / "meta.json").read_text())["counts"]
    assert counts["tokens"] >= 200
    assert counts["answers"] == len(list(read_answers(tmp_path / "a")))
    assert counts["left_out_as_evaluation"] == 0


def test_time_ends_the_writing(write, tmp_path, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    write(tokens=10**9, seconds=30.0, prompts=Stream(shares={"math": 1}))
    assert next(clock) < 60
    assert 0 < sum(len(answer.answer_ids) for answer in read_answers(tmp_path / "a")) < 2000


def test_given_prompts_end_and_ours_follow_where_asked(write, tmp_path):
    given = [("one two", "three"), ("four",)]
    end = write(prompts=Given(given, {"files": ["x"]}), tokens=10**6)
    assert end.answers == 3
    assert {(a.index, a.turn): a.user for a in read_answers(tmp_path / "a")} == {
        (0, 0): "one two",
        (0, 1): "three",
        (1, 0): "four",
    }
    write("b", prompts=Joined(Given(given, {}), Stream()), tokens=300)
    kinds = {answer.kind for answer in read_answers(tmp_path / "b")}
    assert "given" in kinds
    assert len(kinds) > 1
    assert {answer.index for answer in read_answers(tmp_path / "b") if answer.kind == "given"} == {0, 1}


def test_long_and_unusable_messages_are_left_out(write, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_OWN_LIMIT", 20)
    long = " ".join(["word"] * 60)
    prompts = Given([(long, "never asked"), ("fine",)], {})
    write(prompts=prompts, tokens=10**6, writing=Writing(max_new_tokens=4, max_prompt_tokens=40, places=2))
    assert [row["finish"] == "skipped" for row in lines(tmp_path / "a") if row["index"] == 0] == [True]
    assert [answer.user for answer in read_answers(tmp_path / "a")] == ["fine"]
    own = {"own": 1.0}
    banned = []
    write("b", Stream(shares=own), tokens=60, banned=lambda text: banned.append(text) or len(banned) % 2 == 0)
    rows = lines(tmp_path / "b")
    assert any(row["finish"] == "skipped" and row["user"] in banned for row in rows)
    assert all(answer.user in banned for answer in read_answers(tmp_path / "b"))
    assert next(read_answers(tmp_path / "b")).prompt_ids[:2] == [3, USER]


def test_an_item_of_an_evaluation_is_asked_otherwise():
    plain = Stream(seed=4)
    asked = plain.ask(1, ())
    stream = Stream(seed=4, banned=lambda text: text in asked.turns)
    assert stream.ask(1, ()).turns != asked.turns
    assert stream.skipped == 1
    with pytest.raises(MethodError, match="exclude less"):
        Stream(banned=lambda text: True, shares={"math": 1}).ask(0, ())


def test_nothing_is_asked_twice():
    shares = {"qa": 1.0}
    stream = Stream(shares=shares)
    asked = [stream.ask(index, ()).turns for index in range(1500)]
    assert len(set(asked)) == 1500
    assert stream.skipped == 0
    again = Stream(shares=shares)
    assert [again.ask(index, ()).turns for index in range(1500)] == asked


def test_a_folder_of_other_settings_is_refused_with_the_difference(write, tmp_path):
    write(tokens=50)
    for change, shown in (
        ({"provenance": {**PROVENANCE, "fingerprint": "g"}}, 'fingerprint: "f" there, "g" wanted'),
        ({"writing": Writing(max_new_tokens=13, max_prompt_tokens=150)}, '"max_new_tokens": 13'),
        ({"prompts": Stream(seed=2)}, "prompts: "),
        ({"prompts": Given([("a",)], {})}, '"given"'),
    ):
        with pytest.raises(MethodError, match="written otherwise") as error:
            write(**change)
        assert shown in str(error.value)
    (tmp_path / "a" / "meta.json").write_text("{")
    with pytest.raises(MethodError, match=r"meta\.json cannot be read"):
        write()
    (tmp_path / "a" / "meta.json").write_text("[]")
    with pytest.raises(MethodError, match="is not the record"):
        write()


def test_a_broken_inner_line_is_told(write, tmp_path):
    write(tokens=50)
    path = tmp_path / "a" / "answers.jsonl"
    path.write_bytes(b'{"index": 1}\n' + path.read_bytes() + b"x\n")
    with pytest.raises(MethodError, match=r"2 broken line\(s\): line 1: .*missing required field"):
        write()
    with pytest.raises(MethodError, match="broken"):
        list(read_answers(tmp_path / "a"))


def test_a_folder_that_cannot_be_is_told(write, tmp_path):
    (tmp_path / "a").write_text("a file")
    with pytest.raises(MethodError, match="cannot be used: File exists"):
        write()
    assert list(read_answers(tmp_path / "nowhere")) == []


@pytest.mark.parametrize(
    "wrong", [{"max_new_tokens": 0}, {"places": 0}, {"temperature": -1.0}, {"temperature": float("nan")}]
)
def test_settings_without_sense_are_refused(wrong):
    with pytest.raises(MethodError, match="answers need"):
        Writing(**wrong)
