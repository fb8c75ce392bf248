import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftboard.scoring import Answer, rouge_pair, rouge_tokenizer, score, score_rouge

CASE = json.loads((Path(__file__).parents[2] / "data" / "18-rouge.json").read_text(encoding="utf-8"))
METRICS = ("rouge1", "rouge2", "rougeL", "rougeLsum")


def answer(key: str, text: str, *references: str) -> Answer:
    return Answer(sample_id=key, turn=0, text=text, references=references)


@pytest.mark.parametrize("stemmer", [True, False])
@pytest.mark.parametrize("pair", CASE["pairs"], ids=lambda pair: pair["id"])
def test_case_18(pair, stemmer):
    values = rouge_pair(pair["hypothesis"], pair["reference"], stemmer=stemmer, tokenizer="rouge-score")
    assert values == pytest.approx(pair["f_stemmer" if stemmer else "f_no_stemmer"], abs=1e-6)


@pytest.mark.parametrize("pair", [p for p in CASE["pairs"] if p["reference"]], ids=lambda pair: pair["id"])
def test_case_18_through_score(pair):
    for stemmer, key in ((True, "f_stemmer"), (False, "f_no_stemmer")):
        scores = score_rouge([answer("a", pair["hypothesis"], pair["reference"])], stemmer=stemmer, split=False)
        if pair["id"] == "identical-chinese":
            assert {value.value for value in scores.values.values()} == {100.0}
            assert "|stem:no|split:lf|tok:unicode|" in scores.signature
        else:
            for name in METRICS:
                assert scores.values[name].value == pytest.approx(100 * pair[key][name], abs=1e-4)
            assert f"|stem:{'yes' if stemmer else 'no'}|split:lf|tok:rouge-score|" in scores.signature


def test_splitting_moves_only_lsum():
    pair = next(p for p in CASE["pairs"] if p["id"] == "sentences-on-one-line")
    whole = rouge_pair(pair["hypothesis"], pair["reference"])
    split = rouge_pair(pair["hypothesis"], pair["reference"], split=True)
    assert (whole["rougeLsum"], split["rougeLsum"]) == (0.625, 1.0)
    assert all(whole[name] == split[name] for name in ("rouge1", "rouge2", "rougeL"))
    headline = score([answer("a", pair["hypothesis"], pair["reference"])], "rouge")
    assert headline.values["rougeLsum"].value == 100
    assert headline.signature.startswith(
        "rouge1,2,L,Lsum|stem:yes|split:punct|tok:rouge-score|agg:mean|multi:max|rouge-score:"
    )


def test_best_reference_per_measure():
    scores = score([answer("a", "ships waited outside", "storm", "ships waited outside")], "rouge")
    assert {value.value for value in scores.values.values()} == {100.0}


def test_mean_over_samples_and_per_sample():
    scores = score([answer("a", "ships waited", "ships waited"), answer("b", "", "ships waited")], "rouge")
    assert scores.values["rougeL"].value == 50
    assert scores.per_sample["rougeL"] == scores.per_sample["rougeL_clean"] == {"a#0": 100, "b#0": 0}
    assert scores.per_sample["mean_words"] == {"a#0": 2, "b#0": 0}
    assert scores.counts["empty"] == 1
    assert scores.extras["mean_words"].value == 1


def test_clean_variant_is_secondary():
    chatty = "Here is the summary:\n\n“Ships waited outside.”\n\nAnything else?"
    scores = score([answer("a", chatty, "ships waited outside", "a storm")], "rouge")
    for name in METRICS:
        assert scores.extras[f"{name}_clean"].value == 100 > scores.values[name].value
        assert scores.extras[f"{name}_clean"].signature == f"text:clean|{scores.signature}"
        assert scores.per_sample[f"{name}_clean"] == {"a#0": 100}
        assert scores.per_sample[name]["a#0"] == scores.values[name].value


def test_the_signature_says_everything_that_moves_a_value():
    from importlib.metadata import version

    scores = score([answer("a", "x", "ships waited")], "rouge")
    parts = scores.signature.split("|")
    assert parts[0] == "rouge1,2,L,Lsum"
    assert dict(part.split(":") for part in parts[1:]) == {
        "stem": "yes",
        "split": "punct",
        "tok": "rouge-score",
        "agg": "mean",
        "multi": "max",
        "rouge-score": version("rouge-score"),
    }


def test_the_best_reference_may_be_another_one_for_each_measure():
    """The first reference has the words, the second the order."""
    text, words, order = "one two three four", "four three two one", "one two three"
    alone = [rouge_pair(text, reference) for reference in (words, order)]
    assert alone[0]["rouge1"] > alone[1]["rouge1"]
    assert alone[0]["rougeL"] < alone[1]["rougeL"]
    scores = score([answer("a", text, words, order)], "rouge")
    for name in METRICS:
        assert scores.values[name].value == 100 * max(pair[name] for pair in alone)


def test_references_of_two_scripts_each_get_their_tokenizer():
    scores = score([answer("a", "Добрый день", "good day", "Добрый день")], "rouge")
    assert {value.value for value in scores.values.values()} == {100.0}
    assert "|stem:yes|split:punct|tok:rouge-score+unicode|" in scores.signature


WORDS = ("Running", "runs", "ran.", "quickly!", "cats", "cat?", "Cats'", "e.g.", "\n", "42", "é", "今天", "the")
PROSE = st.lists(st.sampled_from(WORDS), max_size=25)


@settings(max_examples=150, deadline=None)
@given(PROSE, PROSE, st.booleans())
def test_values_are_those_of_rouge_score_to_the_last_digit(hypothesis, reference, stemmer):
    from rouge_score.rouge_scorer import RougeScorer

    hypothesis, reference = " ".join(hypothesis), " ".join(reference)
    theirs = RougeScorer(list(METRICS), use_stemmer=stemmer).score(reference, hypothesis)
    ours = rouge_pair(hypothesis, reference, stemmer=stemmer, tokenizer="rouge-score")
    assert ours == {name: theirs[name].fmeasure for name in METRICS}


def test_tokenizers_are_named_when_both_are_used():
    scores = score([answer("a", "good day", "good day"), answer("b", "Добрый день", "Добрый день")], "rouge")
    assert "|tok:rouge-score+unicode|" in scores.signature
    assert scores.values["rouge1"].value == 100


@pytest.mark.parametrize(
    ("text", "tokenizer"),
    [("Le café était fermé", "rouge-score"), ("42", "rouge-score"), ("今天", "unicode"),
     ("สวัสดี", "unicode"), ("今天看 iPhone 发布会", "unicode"),
     ("A note on 漢字 in English prose", "rouge-score"), ("!?", "unicode")],
)  # fmt: skip
def test_tokenizer_of_reference(text, tokenizer):
    assert rouge_tokenizer(text) == tokenizer


def test_unknown_tokenizer_is_refused():
    with pytest.raises(ValueError, match="unknown ROUGE tokenizer 'words'"):
        rouge_pair("a", "a", tokenizer="words")


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30).filter(lambda text: text.replace("\0", " ").strip()))
def test_identical_text_is_never_zero(text):
    assert rouge_pair(text, text)["rouge1"] in (pytest.approx(1.0),)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30))
def test_values_stay_in_range(hypothesis, reference):
    values = rouge_pair(hypothesis, reference, split=True)
    assert set(values) == set(METRICS)
    assert all(0 <= value <= 1 for value in values.values())
