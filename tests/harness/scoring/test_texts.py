import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draftboard.scoring import SCORERS, Answer, clean, score
from draftboard.scoring.texts import main_language, split_spaceless, tidy, unicode_tokens


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The bus is late.", "The bus is late."),
        ("  The bus is late.\n\nLet me know if you need more.", "The bus is late."),
        ("Sure, here it is:\n\nThe bus is late.\n\nAnything else?", "The bus is late."),
        ("The English translation is: The bus is late.", "The bus is late."),
        ('Here is the translation:\n"The bus is late."', "The bus is late."),
        ("Translation: He said: the bus is late.", "He said: the bus is late."),
        ("He said: the translation is late.", "He said: the translation is late."),
        ("Here is the translation:", "Here is the translation:"),
        ("„Der Bus ist spät.“", "„Der Bus ist spät.“"[1:-1]),
        ("“The bus is late.”", "The bus is late."),
        ('"Yes," he said, "the bus is late."', '"Yes," he said, "the bus is late."'),
        ("“Yes,” he said, “it is.”", "“Yes,” he said, “it is.”"),
        ('"', '"'),
        ("", ""),
        ('Sure!:\r\n\r\n"The bus is late."\r\n', "The bus is late."),
        ("First.\u2029Second.", "First."),
        ("Here you go：\n \t\nThe bus is late.", "The bus is late."),
        ("One:\n\nTwo:\n\nThree", "Two:"),
        ("**Translation:**\n\nThe bus is late.", "The bus is late."),
        ("**Translation:** The bus is late.", "The bus is late."),
        ("**Translation**: The bus is late.", "The bus is late."),
        ("Translation:The bus is late.", "The bus is late."),
        ("Translation: 5 buses are late.", "5 buses are late."),
        ("TRANSLATION（英文）：The bus is late.", "The bus is late."),
        ("Translation:", "Translation:"),
        ("Translation: *", "Translation: *"),
        ("The translations: both are late.", "The translations: both are late."),
        ("The translation was done at 10:30 today.", "The translation was done at 10:30 today."),
        ("At 10:30 the translation: the bus is late.", "the bus is late."),
        ("“He said “yes” to me.”", "He said “yes” to me."),
        ("'It's late.'", "It's late."),
        ("‘It’s late.’", "It’s late."),
        ("”Bussen”", "Bussen"),
        ("»Der Bus«", "Der Bus"),
        ("«Le bus»", "Le bus"),
        ("「バス」", "バス"),
        ("„Pan” powiedział „nie”", "„Pan” powiedział „nie”"),
        ('"The bus is late".', '"The bus is late".'),
        ("'twas the boys'", "twas the boys"),
        ('""', '""'),
    ],
)
def test_clean(text, kept):
    assert clean(text) == kept


@pytest.mark.parametrize(
    "piece", ["translation ", "translation: ", ": ", "\n \n", '"', "'a'", "*", " \n", "10:30 translation "]
)
def test_clean_takes_long_texts(piece):
    """A text of a model that repeats itself: 100,000 pieces, in time that grows with the length alone."""
    assert clean(piece * 100_000) in piece * 100_000


@given(st.text(alphabet=" \n\":“”'a*", max_size=40))
def test_clean_returns_a_piece_of_the_text_and_leaves_something(text):
    assert clean(text) in text
    assert bool(clean(text)) == bool(text.strip())


@given(st.text(st.characters(codec="ascii"), max_size=40))
def test_plain_text_takes_a_short_cut_to_the_same_words(text):
    beyond = "é"
    assert [*unicode_tokens(text), beyond] == unicode_tokens(f"{text} {beyond}")
    assert split_spaceless(f"{text} {beyond}") == f"{split_spaceless(text)} {beyond}"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("May 5, 2017.", ["may", "5", "2017"]),
        ("今天 iPhone 16", ["今", "天", "iphone", "16"]),
        ("day今天day", ["day", "今", "天", "day"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("안녕 하세요", ["안녕", "하세요"]),
        ("cafe\u0301", ["café"]),
        ("!?", []),
    ],
)
def test_unicode_tokens(text, tokens):
    assert unicode_tokens(text) == tokens


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["今天天气很好"], "zh"),
        (["今日は良い天気です", "東京都"], "ja"),
        (["오늘은 날씨가 좋습니다"], "ko"),
        (["วันนี้อากาศดี"], "th"),
        (["The word 漢字"], None),
        (["Добрый день"], None),
        ([], None),
        (["42"], None),
    ],
)
def test_main_language(texts, language):
    assert main_language(texts) == language


def test_tidy():
    assert tidy("a\ud800b\0c😀") == "a\ufffdb c😀"


_WILD = st.one_of(st.none(), st.text(st.characters(codec=None), max_size=20))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(_WILD, st.lists(st.text(st.characters(codec=None), max_size=12), max_size=2)), max_size=4))
def test_no_text_breaks_a_scorer(rows):
    answers = [
        Answer(sample_id=str(i), turn=0, text=text, references=tuple(references), options=tuple(references))
        for i, (text, references) in enumerate(rows)
    ]
    for name in ("bleu", "rouge", "last_number", "letter", "qa", "pass_at_1"):
        assert name in SCORERS
        scores = score(answers, name)
        counts = scores.counts
        left_out = counts["failed"] + counts["no_reference"] + counts["bad_reference"]
        # Code is not run here, so that none of it is scored.
        scored = len(scores.per_sample["mean_words"])
        assert counts["scored"] == (0 if name == "pass_at_1" else scored)
        assert scored + left_out == counts["answers"] == len(rows)
        for value in scores.values.values():
            assert (value.value is None) == bool(value.reason)
        json.dumps([v.value for v in (*scores.values.values(), *scores.extras.values())], allow_nan=False)


@pytest.mark.parametrize("name", ["bleu", "rouge", "last_number", "letter", "qa"])
@pytest.mark.parametrize("language", ["de", "zh", "ja", "ko", "th", None])
def test_surrogates_and_nul(name, language):
    wild = "A 今\ud83d 7\0 \udc00"
    answers = [
        Answer(
            sample_id="a",
            turn=0,
            text=wild,
            references=(wild, "7", "A"),
            options=(wild,) * 2,
            language=language,
        )
    ]
    assert score(answers, name).counts["scored"] == 1
