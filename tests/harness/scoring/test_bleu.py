import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftboard.scoring import (
    Answer,
    bleu_tokenizer,
    corpus_bleu,
    corpus_chrf,
    pooled_score,
    score,
    sentence_bleu,
)

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
    assert scores.extras["bleu_clean"].signature == f"text:clean|{scores.values['bleu'].signature}"
    assert scores.extras["chrf_clean"].signature == f"text:clean|{scores.values['chrf'].signature}"
    assert scores.extras["chrf_clean"].value == 100 > scores.values["chrf"].value
    assert scores.per_sample["bleu_clean"] == scores.per_sample["chrf_clean"] == {"a#0": 100}
    assert scores.per_sample["bleu"]["a#0"] == pytest.approx(scores.values["bleu"].value)


def test_cleaning_touches_only_chatty_answers():
    both = [
        answer("a", "The train leaves at eight.", "The train leaves at nine."),
        answer("b", "Translation: It rained all day.", "It rained all day."),
    ]
    scores = score(both, "bleu")
    assert scores.per_sample["bleu_clean"]["a#0"] == scores.per_sample["bleu"]["a#0"]
    assert scores.per_sample["bleu_clean"]["b#0"] == 100 > scores.per_sample["bleu"]["b#0"]
    by_hand = corpus_bleu(["The train leaves at eight.", "It rained all day."], [a.references for a in both])
    assert scores.extras["bleu_clean"].value == by_hand.score


def test_several_references_of_unequal_number():
    both = [
        answer("a", "The bus is late this morning.", "The coach is late today.", "The bus is late this morning."),
        answer("b", "It rained all day long.", "It rained all day long."),
    ]
    scores = score(both, "bleu")
    assert scores.values["bleu"].value == 100
    assert scores.signature.startswith("nrefs:var|")


MIXED = [
    ("The bus is late this morning, they say.", ("The coach is late today.", "The bus is late this morning.")),
    ("It rained.", ("It rained all day long, and the day after.", "It rained all night.", "Rain fell all day.")),
    ("She bought two green apples at the market.", ("She bought two apples at the market.",)),
]


def test_unequal_numbers_of_references_by_the_definition():
    """Clipped by the best reference, and each hypothesis against the length of its own closest one."""
    import math
    from collections import Counter

    matches, totals, length, closest = [0] * 4, [0] * 4, 0, 0
    for hypothesis, references in MIXED:
        words = hypothesis.replace(".", " .").replace(",", " ,").split()
        theirs = [text.replace(".", " .").replace(",", " ,").split() for text in references]
        length += len(words)
        closest += min((abs(len(r) - len(words)), len(r)) for r in theirs)[1]
        for n in range(4):
            ours = Counter(tuple(words[i : i + n + 1]) for i in range(len(words) - n))
            best = Counter()
            for r in theirs:
                best |= Counter(tuple(r[i : i + n + 1]) for i in range(len(r) - n))
            matches[n] += (ours & best).total()
            totals[n] += ours.total()
    assert all(matches)
    penalty = math.exp(1 - closest / length) if length < closest else 1.0
    expected = 100 * penalty * math.exp(sum(math.log(m / t) for m, t in zip(matches, totals, strict=True)) / 4)
    scores = score([answer(str(i), text, *references) for i, (text, references) in enumerate(MIXED)], "bleu")
    assert scores.values["bleu"].value == pytest.approx(expected)
    assert scores.extras["length_ratio"].value == pytest.approx(length / closest)
    assert scores.extras["brevity_penalty"].value == pytest.approx(penalty)


def test_a_blank_reference_is_no_reference():
    """sacrebleu takes "" for a reference of length 0, which is then the closest to a short answer."""
    from sacrebleu import corpus_bleu as theirs

    text, reference = "The bus", "The bus is late this morning, they say."
    assert theirs([text], [[reference], [""]]).bp > theirs([text], [[reference]]).bp
    assert corpus_bleu([text], [[reference, "", " \n"]]) == corpus_bleu([text], [[reference]])
    assert sentence_bleu(text, [reference, ""]) == sentence_bleu(text, [reference])
    scores = score([answer("a", text, reference, " ")], "bleu")
    assert scores.extras["brevity_penalty"].value == pytest.approx(theirs([text], [[reference]]).bp)
    assert scores.signature.startswith("nrefs:1|")


def test_identical_text_of_less_than_four_tokens():
    scores = score([answer("a", "Good day", "Good day"), answer("b", "Yes", "Yes")], "bleu")
    assert scores.values["bleu"].value == 0
    assert scores.values["chrf"].value == 100
    assert scores.per_sample["bleu"] == {"a#0": 100, "b#0": 100}


@pytest.mark.parametrize(("language", "text"), [("zh", "好"), ("zh", "。"), ("ja", "雨"), ("ko", "비"), ("th", "ก")])
def test_a_single_character(language, text):
    scores = score([answer("a", text, text, language=language), answer("b", "", text, language=language)], "bleu")
    assert scores.values["bleu"].value == 0
    assert scores.per_sample["bleu"] == {"a#0": 100, "b#0": 0}
    assert scores.extras["length_ratio"].value == 0.5


def test_nothing_but_empty_answers():
    scores = score([answer("a", "", "The bus is late."), answer("b", " \n", "It rained all day.")], "bleu")
    assert (scores.values["bleu"].value, scores.values["chrf"].value, scores.values["bleu"].n) == (0, 0, 2)
    assert (scores.extras["brevity_penalty"].value, scores.extras["length_ratio"].value) == (0, 0)
    assert scores.per_sample["bleu"] == {"a#0": 0, "b#0": 0}
    assert scores.counts["empty"] == 2


def test_references_that_the_tokenizer_empties_have_no_length_ratio():
    scores = score([answer("a", "The bus is late.", "<skipped>")], "bleu")
    assert scores.values["bleu"].value == 0
    assert scores.extras["length_ratio"].value is None
    assert "references hold nothing" in scores.extras["length_ratio"].reason


def test_tokenised_texts_are_taken_as_they_are_and_without_a_warning(caplog):
    """Spec-Bench's sentences stand with blanks before the punctuation; 13a splits punctuation anyway."""
    pairs = [
        (f"Es regnet am Tag {i} , und es ist kalt .", f"Es regnet am Tag {i}, und es ist kalt.") for i in range(120)
    ]
    spaced = score([answer(str(i), text, text) for i, (text, _) in enumerate(pairs)], "bleu")
    mixed = score([answer(str(i), text, reference) for i, (text, reference) in enumerate(pairs)], "bleu")
    assert spaced.values["bleu"].value == mixed.values["bleu"].value == 100
    assert "|tok:13a|" in spaced.signature
    assert not caplog.records


def test_counts_pool_to_the_corpus_scores():
    answers = [answer(str(i), text, *references) for i, (text, references) in enumerate(MIXED)]
    scores = score(answers, "bleu")
    assert set(scores.statistics) == {"bleu", "chrf", "bleu_clean", "chrf_clean"}
    for name, value in {**scores.values, **scores.extras}.items():
        if name in scores.statistics:
            assert pooled_score(name, scores.statistics[name].values()) == value.value
    drawn = [0, 0, 2]
    again = corpus_bleu([MIXED[i][0] for i in drawn], [MIXED[i][1] for i in drawn])
    assert pooled_score("bleu", [scores.statistics["bleu"][f"{i}#0"] for i in drawn]) == again.score
    characters = corpus_chrf([MIXED[i][0] for i in drawn], [MIXED[i][1] for i in drawn])
    assert pooled_score("chrf", [scores.statistics["chrf"][f"{i}#0"] for i in drawn]) == characters.score


def test_counts_cannot_be_pooled_under_another_name_or_without_answers():
    with pytest.raises(ValueError, match="'rougeL' is no corpus metric"):
        pooled_score("rougeL", [[1]])
    with pytest.raises(ValueError, match="at least one answer"):
        pooled_score("bleu", [])


def test_counts_of_several_tokenizers_are_not_offered_for_pooling():
    both = [
        answer("a", "今天天气很好", "今天天气很好", language="zh"),
        answer("b", "It rained all day.", "It rained all day.", language="en"),
    ]
    assert set(score(both, "bleu").statistics) == {"chrf", "chrf_clean"}


TEXTS = st.text(alphabet="ab dé.,&\n", max_size=20)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3)), min_size=1, max_size=4))
def test_values_are_those_of_sacrebleu(rows):
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    answers = [answer(str(i), text, *references, language="en") for i, (text, references) in enumerate(rows)]
    scores = score(answers, "bleu")
    texts = [text.strip() for text, _ in rows]
    width = max(len(references) for _, references in rows)
    streams = [[refs[i].strip() if i < len(refs) else None for _, refs in rows] for i in range(width)]
    for name, metric in (("bleu", BLEU(force=True)), ("chrf", CHRF())):
        assert scores.values[name].value == min(metric.corpus_score(texts, streams).score, 100)
        assert scores.values[name].signature == str(metric.get_signature())
    sentence = BLEU(effective_order=True)
    for i, (text, references) in enumerate(rows):
        expected = sentence.sentence_score(text.strip(), [reference.strip() for reference in references]).score
        assert scores.per_sample["bleu"][f"{i}#0"] == min(expected, 100)


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
    with pytest.raises(ValueError, match="hypothesis 1 are one string"):
        corpus_chrf(["a", "b"], [["a"], "bc"])
    with pytest.raises(ValueError, match="no reference"):
        sentence_bleu("a", [])
    with pytest.raises(ValueError, match="one string, not a tuple of alternatives: a#0"):
        score([Answer(sample_id="a", turn=0, text="x", references="xyz")], "bleu")


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


@pytest.mark.parametrize("language", ["en-zh", "hak", "xx", "", None])
def test_a_wrong_or_rare_tag_does_not_spoil_chinese(language):
    text = "今天天气很好,我们去公园散步。"
    scores = score([answer("a", text, text, language=language), answer("b", text, text, language="zh")], "bleu")
    assert scores.values["bleu"].value == 100
    assert "|tok:zh|" in scores.signature
    assert not any("/" in name for name in scores.extras)


def test_answers_do_not_choose_their_tokenizer():
    """The references do, those of failed answers included."""
    chinese, english = "今天天气很好,我们去公园散步。", "It rained."
    tagged = [answer("a", chinese, english, language="en"), answer("b", None, chinese, language="en")]
    assert "|tok:zh|" in score(tagged, "bleu").signature
    assert "|tok:13a|" in score(tagged[:1], "bleu").signature


def test_one_answer_given_twice_is_refused():
    with pytest.raises(ValueError, match="a#0"):
        score([answer("a", "x", "x"), answer("a", "y", "x")], "bleu")
