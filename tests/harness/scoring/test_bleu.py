import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from draftboard.scoring import Answer, bleu_tokenizer, corpus_bleu, corpus_chrf, score, sentence_bleu

CASE = json.loads((Path(__file__).parents[2] / "data" / "17-bleu.json").read_text(encoding="utf-8"))


def answer(key: str, text: str | None, *references: str, language: str | None = None) -> Answer:
    return Answer(sample_id=key, turn=0, text=text, references=references, language=language)


@pytest.mark.parametrize("pair", CASE["pairs"], ids=lambda pair: pair["id"])
def test_case_17(pair):
    references = [(text,) for text in pair["references"]]
    corpus = corpus_bleu(pair["hypotheses"], references, tokenizer=pair["tokenizer"])
    assert corpus.score == pytest.approx(pair["corpus_bleu"], abs=1e-6)
    assert corpus.score <= 100
    stated, expected = corpus.signature.split("|version:"), pair["signature"].split("|version:")
    assert stated[0] == expected[0]
    sentences = [
        sentence_bleu(hypothesis, reference, tokenizer=pair["tokenizer"])
        for hypothesis, reference in zip(pair["hypotheses"], references, strict=True)
    ]
    assert sentences == pytest.approx(pair["sentence_bleu_effective_order"], abs=1e-6)


@pytest.mark.parametrize(
    "pair", [p for p in CASE["pairs"] if p["id"] != "chinese-default-tokenizer"], ids=lambda pair: pair["id"]
)
def test_case_17_through_score(pair):
    language = "zh" if pair["tokenizer"] == "zh" else "en"
    texts = zip(pair["hypotheses"], pair["references"], strict=True)
    answers = [answer(str(i), h, r, language=language) for i, (h, r) in enumerate(texts)]
    scores = score(answers, "bleu")
    assert scores.values["bleu"].value == pytest.approx(pair["corpus_bleu"], abs=1e-6)
    assert scores.values["bleu"].n == len(answers)
    assert f"|tok:{pair['tokenizer']}|" in scores.signature
    assert scores.signature == scores.values["bleu"].signature
    for i, expected in enumerate(pair["sentence_bleu_effective_order"]):
        assert scores.per_sample["bleu"][f"{i}#0"] == pytest.approx(expected, abs=1e-6)


def test_empty_hypothesis_stays_and_failed_one_does_not():
    references = [
        "The train leaves at nine o'clock.",
        "She bought two green apples at the market.",
        "It rained.",
    ]
    texts = ["The train leaves at nine.", "She bought two red apples at the market.", ""]
    kept = score([answer(str(i), t, r) for i, (t, r) in enumerate(zip(texts, references, strict=True))], "bleu")
    texts[2] = None
    failed = score([answer(str(i), t, r) for i, (t, r) in enumerate(zip(texts, references, strict=True))], "bleu")
    assert (kept.values["bleu"].n, kept.counts["empty"], kept.counts["failed"]) == (3, 1, 0)
    assert (failed.values["bleu"].n, failed.counts["empty"], failed.counts["failed"]) == (2, 0, 1)
    assert kept.values["bleu"].value < failed.values["bleu"].value == pytest.approx(62.798765, abs=1e-6)
    assert kept.extras["brevity_penalty"].value < failed.extras["brevity_penalty"].value


def test_chrf_signature_and_secondary_values():
    scores = score([answer("a", "The train to the coast leaves at nine.", "The train leaves at nine.")], "bleu")
    assert scores.values["chrf"].signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")
    assert (
        scores.values["chrf"].value
        == corpus_chrf(["The train to the coast leaves at nine."], [["The train leaves at nine."]]).score
    )
    assert scores.extras["brevity_penalty"].value == 1
    assert scores.extras["length_ratio"].value == pytest.approx(9 / 6)
    assert scores.extras["mean_words"].value == 8


def test_clean_variant_is_secondary():
    chatty = 'Sure, here is the translation:\n\n"The train to the coast leaves at nine."'
    scores = score([answer("a", chatty, "The train to the coast leaves at nine.")], "bleu")
    assert scores.extras["bleu_clean"].value == 100
    assert scores.values["bleu"].value < 100
    assert scores.extras["bleu_clean"].signature.startswith("text:clean|")


def test_several_references_of_unequal_number():
    both = [
        answer("a", "The bus is late this morning.", "The coach is late today.", "The bus is late this morning."),
        answer("b", "It rained all day long.", "It rained all day long."),
    ]
    scores = score(both, "bleu")
    assert scores.values["bleu"].value == 100
    assert scores.signature.startswith("nrefs:var|")


def test_answers_without_reference_are_left_out_and_counted():
    scores = score(
        [answer("a", "The bus is late.", "The bus is late."), answer("b", "?"), answer("c", "?", " ")], "bleu"
    )
    assert scores.values["bleu"].value == 100
    assert (scores.values["bleu"].n, scores.counts["no_reference"], scores.counts["answers"]) == (1, 2, 3)


def test_nothing_to_score_says_why():
    scores = score([answer("a", None, "x"), answer("b", "x")], "bleu")
    for value in (*scores.values.values(), *scores.extras.values()):
        assert value.value is None
        assert value.reason == "nothing to score: 1 failed, 1 without reference"


def test_count_mismatch_is_an_error():
    with pytest.raises(ValueError, match="2 hypotheses but references for 1"):
        corpus_bleu(["a", "b"], [["a"]])
    with pytest.raises(ValueError, match="hypothesis 1 has no reference"):
        corpus_bleu(["a", "b"], [["a"], []])
    with pytest.raises(ValueError, match="at least one"):
        corpus_bleu([], [])


def test_languages_with_different_tokenizers_are_not_pooled():
    answers = [
        answer("a", "今天天气很好,我们去公园散步。", "今天天气很好,我们去公园跑步。", language="zh-Hans"),
        answer("b", "The train leaves at nine.", "The train leaves at nine.", language="en"),
    ]
    scores = score(answers, "bleu")
    assert scores.values["bleu"].value is None
    assert "13a, zh" in scores.values["bleu"].reason
    assert scores.extras["bleu/zh"].value == pytest.approx(82.423675, abs=1e-6)
    assert scores.extras["bleu/en"].value == 100
    assert (scores.extras["bleu/zh"].n, scores.extras["bleu/en"].n) == (1, 1)
    assert "zh=nrefs:1|case:mixed|eff:no|tok:zh" in scores.signature
    assert scores.values["chrf"].value is not None


def test_languages_with_one_tokenizer_make_one_corpus():
    answers = [
        answer("a", "Le train part à neuf heures.", "Le train part à huit heures.", language="fr"),
        answer("b", "Der Zug fährt um neun Uhr.", "Der Zug fährt um neun Uhr.", language="de"),
    ]
    scores = score(answers, "bleu")
    together = corpus_bleu([a.text for a in answers], [a.references for a in answers])
    assert scores.values["bleu"].value == together.score
    assert scores.extras["bleu/de"].value == 100
    assert scores.extras["bleu/fr"].value < 100


@pytest.mark.parametrize(
    ("tag", "tokenizer"),
    [
        (None, "13a"),
        ("de", "13a"),
        ("zh", "zh"),
        ("zh_TW", "zh"),
        ("Chinese", "zh"),
        ("cmn-Hans", "zh"),
        ("th", "char"),
    ],
)
def test_tokenizer_of_language(tag, tokenizer):
    assert bleu_tokenizer(tag) == tokenizer


@pytest.mark.parametrize(("tag", "module"), [("ja", "MeCab"), ("ko", "mecab_ko")])
def test_analysers_fall_back_to_characters(tag, module, monkeypatch):
    monkeypatch.setattr("draftboard.scoring.bleu.find_spec", lambda name: None if name == module else object())
    assert bleu_tokenizer(tag) == "char"
    scores = score([answer("a", "日本語の文です。", "日本語の文です。", language=tag)], "bleu")
    assert "|tok:char|" in scores.signature
    monkeypatch.setattr("draftboard.scoring.bleu.find_spec", lambda name: object())
    assert bleu_tokenizer(tag) == f"{tag}-mecab"


@pytest.mark.parametrize(
    ("tag", "module", "text"),
    [("ja", "MeCab", "今日はとても天気がいいです。"), ("ko", "mecab_ko", "오늘은 날씨가 아주 좋습니다.")],
)
def test_analysers(tag, module, text):
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    scores = score([answer("a", text, text, language=tag), answer("b", "\ud800\0", text, language=tag)], "bleu")
    assert f"|tok:{tag}-mecab-" in scores.signature
    assert scores.per_sample["bleu"]["a#0"] == 100


def test_unlabelled_chinese_gets_its_tokenizer():
    scores = score([answer("a", "今天天气很好,我们去公园散步。", "今天天气很好,我们去公园跑步。")], "bleu")
    assert scores.values["bleu"].value == pytest.approx(82.423675, abs=1e-6)
    assert "|tok:zh|" in scores.signature


def test_one_answer_given_twice_is_refused():
    with pytest.raises(ValueError, match="a#0"):
        score([answer("a", "x", "x"), answer("a", "y", "x")], "bleu")
