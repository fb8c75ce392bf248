"""The whole way from prompts to an artifact that drafts, with a toy target; broken off and gone on with."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from draftboard.methods import Binding, MethodError, build
from draftboard.methods.artifact import Workshop
from draftboard.methods.eagle import prepare as module
from draftboard.methods.eagle.prepare import head_config, prepare_head, vocabulary_for
from draftboard.methods.engine import Limits, decode
from draftboard.methods.training.answers import TextSide, Writing
from draftboard.methods.training.sources import Given
from draftboard.methods.training.workshop import Effort, Training
from draftboard.testing import tiny_model

VOCAB, EOS = 24, 5
TOKENS = Effort(tokens=900)
SHORT = Writing(max_new_tokens=14, max_prompt_tokens=40, places=8)


@pytest.fixture(scope="module")
def target():
    return tiny_model(vocab_size=VOCAB, layers=8, window=128, dtype="float32")


def encode(turns, answers):
    return [3, *[6 + len(word) % 18 for word in " ".join(turns).split()]]


def workshop(
    folder, target, *, effort=TOKENS, say=lambda text: None, advance=lambda *_: None, training=True, init=None
):
    side = TextSide(encode=encode, decode=lambda ids: " ".join(map(str, ids)), eos_ids={EOS})
    words = ["a" * (1 + place * 7 % 19) for place in range(300)]
    prompts = Given([[" ".join(words[place : place + 3 + place % 4])] for place in range(260)], {"files": []})
    return Workshop(
        out=folder / "head",
        vocab_size=VOCAB,
        vocabulary_sha256="v",
        eos_id=EOS,
        provenance={"draftboard": "0"},
        training=Training(
            target="toy",
            fingerprint="weights",
            load_model=lambda: target.model,
            text=side,
            prompts=prompts,
            writing=SHORT,
            effort=effort,
            workplace=folder / "head.work",
            init=init,
            provenance={"target": "toy"},
            say=say,
            advance=advance,
        )
        if training
        else None,
    )


@pytest.mark.parametrize(("kind", "method"), [("eagle", "eagle2"), ("eagle3", "eagle3")])
def test_a_head_is_made_that_drafts_for_its_target(tmp_path, target, kind, method):
    said = []
    record = prepare_head(workshop(tmp_path, target, say=said.append), kind)
    stored = json.loads((tmp_path / "head" / "artifact.json").read_text())
    assert stored["target_fingerprint"] == "weights"
    assert stored["held_out"] == record["held_out"]
    assert stored["training"]["answer_tokens"] >= 900
    assert stored["training"]["answers"]["target"] == "toy"
    assert any("training on" in line and "min" in line for line in said)
    assert any("held-out texts" in line and "accepted" in line for line in said)
    binding = Binding(target=target, vocab_size=VOCAB, logit_width=VOCAB, fingerprint="weights")
    drafter = build({"method": method, "head": str(tmp_path / "head")}).with_budget("paper").drafter(binding)
    prompt = encode(["aa bbbb c"], [])
    made = decode(target, drafter, prompt, limits=Limits(max_new_tokens=24))
    plain = target.model.generate(torch.tensor([prompt]), max_new_tokens=24, do_sample=False)[0, len(prompt) :]
    assert made.token_ids == plain.tolist()


def test_a_training_that_was_broken_off_goes_on_to_the_same_head(tmp_path, target, monkeypatch):
    whole = prepare_head(workshop(tmp_path / "whole", target), "eagle")

    def broken(*_, **__):
        raise KeyboardInterrupt

    for stage in ("extract", "_settle", "train_head", "acceptance"):
        with monkeypatch.context() as patch:
            patch.setattr(module, stage, broken)
            with pytest.raises(KeyboardInterrupt):
                prepare_head(workshop(tmp_path / "torn", target), "eagle")
    torn = prepare_head(workshop(tmp_path / "torn", target), "eagle")
    assert torn["held_out"] == whole["held_out"]
    assert torn["training"]["loss"] == whole["training"]["loss"]
    files = [(tmp_path / name / "head" / "model.safetensors").read_bytes() for name in ("whole", "torn")]
    assert files[0] == files[1]


def test_heads_that_share_a_folder_share_answers_and_states(tmp_path, target, monkeypatch):
    alone = prepare_head(workshop(tmp_path / "alone", target), "eagle")
    first = workshop(tmp_path / "first", target)
    prepare_head(first, "eagle3")

    def nothing_to_do(model, texts, taps, writer, *, report):
        assert writer.written == len(texts)

    second = workshop(tmp_path / "second", target)
    second = replace(second, training=replace(second.training, workplace=first.training.workplace))
    monkeypatch.setattr(module, "extract", nothing_to_do)
    shared = prepare_head(second, "eagle")
    assert shared["held_out"] == alone["held_out"]
    assert not (first.training.workplace / "features-eagle").exists()


def test_a_budget_of_time_ends_answers_and_training(tmp_path, target, monkeypatch):
    monkeypatch.setattr(module, "_FEWEST_STEPS", 3)
    shown = []
    told = workshop(tmp_path, target, effort=Effort(seconds=8.0), advance=lambda *row: shown.append(row))
    record = prepare_head(told, "eagle")
    answering = [(done, total) for stage, done, total, _ in shown if stage == "answers"]
    assert answering
    assert all(done >= 0 and total < 8 for done, total in answering)
    whole = module.COURSES["eagle"].epochs
    assert record["training"]["steps"] >= 3
    assert record["training"]["course"]["epochs"] <= whole


@pytest.mark.parametrize("kind", ["eagle", "eagle3"])
def test_a_head_is_trained_on_from_where_an_earlier_training_left_it(tmp_path, target, kind):
    earlier = prepare_head(workshop(tmp_path / "first", target), kind)
    first = tmp_path / "first" / "head"
    # A single step in the warm-up moves weights by little: they are the earlier ones and not fresh ones.
    barely = workshop(tmp_path / "second", target, effort=replace(TOKENS, epochs=0.01), init=first)
    record = prepare_head(barely, kind)
    assert record["training"]["steps"] == 1
    assert record["training"]["course"]["rate"] == module.COURSES[kind].rate / 2
    before, after = (load_file(folder / "model.safetensors") for folder in (first, tmp_path / "second" / "head"))
    assert before.keys() == after.keys()
    moved = max(float((before[name].float() - after[name].float()).abs().max()) for name in before)
    assert 0 < moved < 2e-3
    kept = record["init"]
    assert kept["training"] == json.loads(json.dumps(earlier["training"]))
    assert kept["held_out"] == earlier["held_out"]
    # A head has to be read whole before it is another one's beginning, so that the next says where both come from.
    third = workshop(tmp_path / "third", target, effort=replace(TOKENS, epochs=2), init=tmp_path / "second" / "head")
    record = prepare_head(third, kind)
    assert record["init"]["init"]["weights_sha256"] == kept["weights_sha256"] != record["init"]["weights_sha256"]
    assert record["training"]["course"]["epochs"] == 2


def test_a_training_from_another_beginning_does_not_go_on_in_the_same_folder(tmp_path, target):
    prepare_head(workshop(tmp_path / "first", target), "eagle")
    prepare_head(workshop(tmp_path / "second", target), "eagle")
    (tmp_path / "second" / "head").rename(tmp_path / "second" / "elsewhere")
    with pytest.raises(MethodError, match="a training with another init, rate"):
        prepare_head(workshop(tmp_path / "second", target, init=tmp_path / "first" / "head"), "eagle")
    with pytest.raises(MethodError, match="of kind eagle, and one of kind eagle3"):
        prepare_head(workshop(tmp_path / "third", target, init=tmp_path / "first" / "head"), "eagle3")


def test_what_cannot_be_prepared_is_told(tmp_path, target):
    with pytest.raises(MethodError, match="no target to ask"):
        prepare_head(workshop(tmp_path, target, training=False), "eagle")
    with pytest.raises(MethodError, match="2 layers has no default states"):
        prepare_head(workshop(tmp_path, tiny_model(vocab_size=VOCAB, dtype="float32")), "eagle3")
    (tmp_path / "head").mkdir()
    with pytest.raises(MethodError, match="exists already"):
        prepare_head(workshop(tmp_path, target), "eagle")


@pytest.mark.parametrize("damage", ["{", "[1]", '{"texts": 1}'])
def test_a_damaged_note_in_the_work_folder_is_named(tmp_path, target, damage):
    shop = workshop(tmp_path, target)
    shop.training.workplace.mkdir()
    (shop.training.workplace / "settled-eagle.json").write_text(damage)
    with pytest.raises(MethodError, match=r"settled-eagle.json cannot be"):
        prepare_head(shop, "eagle")


def test_a_head_has_the_shape_of_its_target_s_layers(target):
    found = head_config("eagle3", target.model.config, draft_vocab=10)
    assert (found.hidden, found.heads, found.kv_heads, found.head_dim, found.intermediate) == (32, 4, 2, 8, 48)
    assert found.taps == (2, 4, 5)
    assert head_config("eagle", target.model.config, draft_vocab=10).taps == (8,)


def test_a_vocabulary_covers_nearly_all_of_the_words():
    counts = torch.zeros(2000, dtype=torch.int64)
    counts[100:400] = 10
    counts[1999] = 1
    ids = vocabulary_for(counts, always=[7])
    assert len(ids) == 512
    assert 7 in ids.tolist()
    assert counts[ids].sum() >= 0.97 * counts.sum()
    assert vocabulary_for(counts[:30]).tolist() == list(range(30))
