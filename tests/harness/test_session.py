"""The text that a reader sees of generated ids."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from draftboard.hub import find_folder
from draftboard.methods import Preflight, Vocabulary
from draftboard.models import ModelRef
from draftboard.options import RunOptions
from draftboard.plan import make_plan
from draftboard.session import Reader, Session, open_reader, preflight
from draftboard.templates import Template
from draftboard.testing import replay

CASE = Path(__file__).parents[1] / "data" / "05-trace-eos-in-block.json"
WORDS = ["<unk>", "<s>", "</s>", "the", "ferry", "leaves", "at", "nine", "ten", "tide", ".", "low", "high", "boat"]


@pytest.fixture
def reader():
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
    return Reader(
        ref=ModelRef(name="made", kind="local"),
        tokenizer=tokenizer,
        template=Template(name="none"),
        eos_ids=frozenset({2}),
        window=64,
        vocabulary=Vocabulary(tokens=tokenizer.get_vocab(), logit_width=len(WORDS)),
        max_new_tokens=64,
    )


def test_case_5_the_end_id_is_no_part_of_the_visible_text(reader):
    ids = replay(json.loads(CASE.read_text(encoding="utf-8"))).token_ids
    assert ids == [5, 6, 7, 8, 9, 10, 2]
    assert reader.text(ids) == "leaves at nine ten tide ."


def test_an_end_id_that_is_no_special_token_is_not_visible_either(reader):
    ending = replace(reader, eos_ids=frozenset({2, 10}))
    assert ending.text([5, 10, 6, 10]) == "leaves . at"
    assert reader.text([5, 10, 6, 10]) == "leaves . at ."


def test_text_is_cut_before_the_first_stop_text(reader):
    assert reader.text([3, 4, 5, 6, 7], ["nine", "leaves"]) == "the ferry"


def test_methods_are_told_the_targets_size_and_find_heads(model, cache):
    """Before the weights are loaded, and when they are."""
    known: list[Preflight] = []

    class Spy:
        def preflight(self, given):
            known.append(given)

    plan = make_plan(RunOptions(model=model, suite=("mini",), dtype="float32", device="cpu"))
    entry = replace(plan.entries[0], method=Spy())
    opened = open_reader(plan)
    preflight(replace(plan, entries=(entry,)), opened)
    assert (known[0].hidden, known[0].layers) == (32, 2)
    assert known[0].find_folder is find_folder
    session = Session.load(plan, opened)
    session.measure({"rows": [1], "cost": [1.0], "one_row_s": 1.0})
    assert session.binding().find_folder is find_folder
