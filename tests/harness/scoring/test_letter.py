import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.scoring import Answer, LetterReading, read_letter, score

OPTIONS = ("ribosome", "mitochondria", "nucleus", "golgi apparatus")


def answer(key: str, text: str | None, *references: str, options: tuple[str, ...] = OPTIONS) -> Answer:
    return Answer(sample_id=key, turn=0, text=text, references=references, options=options)


@pytest.mark.parametrize(
    ("text", "letter", "rule"),
    [
        ("B", "B", "leading"),
        ("(C)", "C", "leading"),
        ("C. nucleus", "C", "leading"),
        ("The answer is (D).", "D", "stated"),
        ("**Answer: C**", "C", "stated"),
        ("answer: b", "B", "stated"),
        ("A car is needed here, so the correct answer is B.", "B", "stated"),
        ("The correct choice is option D because it is largest", "D", "stated"),
        ("Answer: A\n\nExplanation: option B would be too large.", "A", "stated"),
        ("Option A is wrong and option B is wrong; C is correct.", "C", "declared"),
        (r"So we get $\boxed{D}$.", "D", "boxed"),
        ("Let us think step by step. (A) is too small. (B) fits.\nB", "B", "lone-line"),
        ("A good way to see this is to expand the product. Hence option B.", "B", "only-mention"),
        ("I think it is the mitochondria.", "B", "option-text"),
        ("Not the nucleus and not the ribosome. It is the golgi apparatus.", "D", "option-text"),
        ("It could be A or B.", None, "none"),
        ("The answer is a matter of definition.", None, "none"),
        ("The correct answer is not A but C.", None, "none"),
        ("", None, "none"),
    ],
)
def test_vectors(text, letter, rule):
    reading = read_letter(text, OPTIONS)
    assert (reading.letter, reading.rule) == (letter, rule)


@pytest.mark.parametrize(
    ("text", "letter", "rule"),
    [
        (r"\boxed{A} no, \boxed{\text{(B)}}", "B", "boxed"),
        (r"\boxed{\mathbf{C}}", "C", "boxed"),
        (r"\boxed{\text{C. nucleus}}", "C", "boxed"),
        (r"\boxed{42}. The answer is B.", "B", "stated"),
        ("The answer is: **B**", "B", "stated"),
        ("Answer:\nB", "B", "stated"),
        ("Answer:\nA car needs fuel.", None, "none"),
        ("The answer is A. Or no: the answer is C.", "C", "stated"),
        ("The answer would be option: (b).", "B", "stated"),
        ("Answer: Ｂ", "B", "stated"),
        ("The answer is BC", None, "none"),
        ("B is the best. Wait, D is right.", "D", "declared"),
        ("A car is needed.", None, "none"),
        ("A-level biology says so.", None, "none"),
        ("A - ribosome", "A", "leading"),
        ("Some say option A, others option B.", None, "none"),
        ("Either option A or the nucleus.", "A", "only-mention"),
        ("The nucleus and the ribosome.", None, "none"),
        ("E", None, "none"),
        (r"\fbox{B}", "B", "boxed"),
        (r"\boxed{A, B}", None, "none"),
        (r"\boxed{A \text{ and } B}", None, "none"),
        (r"\boxed{b}", None, "none"),
        ("The correct option equals C", "C", "stated"),
        ("The answer must be (D), since", "D", "stated"),
        ("THE ANSWER IS b", "B", "stated"),
        ("The answer is b because", None, "none"),
        ("The answer is a.", "A", "stated"),
        ("The answer is B2.", None, "none"),
        ("The answer:\r\n\r\nB\r\n", "B", "stated"),
        ("`B`", "B", "leading"),
        ("$\\textbf{Answer}$: C", None, "none"),
        ("Neither. I would say C is the correct one.", "C", "declared"),
        ("ABC is correct", None, "none"),
        ("C\n\nBecause it is large.", "C", "leading"),
        ("My pick:\n (b) \nor\n[C].", "C", "lone-line"),
        ("Both (B) and option B.", "B", "only-mention"),
        ("(A), (B)", "A", "leading"),
        ("Not (A), rather (B)", None, "none"),
        ("NUCLEUS!", "C", "option-text"),
        ("The nucleus, or the ribosome? The nucleus. No: ribosome.", "A", "option-text"),
        ("Ribosomes", None, "none"),
    ],
)
def test_corners(text, letter, rule):
    reading = read_letter(text, OPTIONS)
    assert (reading.letter, reading.rule) == (letter, rule)


def test_an_option_inside_another_named_option_is_ignored():
    assert read_letter("It takes 10 meters.", ("10", "10 meters", "5", "5 meters")).letter == "B"


def test_options_that_cannot_be_told_apart_by_their_words_name_none():
    assert read_letter("It is 5.", ("5", "-5", "+", "")).letter is None
    assert read_letter("It is the nucleus.", ("nucleus", "nucleus", "x", "y")).letter is None


def test_a_pronoun_is_no_letter():
    nine = tuple(f"thing {i}" for i in range(9))
    assert read_letter("As an answer I would give (B).", nine).letter == "B"
    assert read_letter("Hence option I.", nine) == LetterReading(letter="I", rule="only-mention")


@pytest.mark.parametrize("piece", ["answer is ", "answer ", "A ", "(A", "\\boxed{A", "\n", " ", "A. ", "option\n"])
def test_long_texts(piece):
    """A text of a model that repeats itself, in time that grows with the length alone."""
    assert read_letter(piece * 50_000, OPTIONS).letter in (None, "A")


def test_options_in_a_script_without_blanks():
    assert read_letter("我认为是线粒体。", ("核糖体", "线粒体", "细胞核", "高尔基体")).letter == "B"


def test_number_of_options_sets_the_letters():
    ten = tuple(f"thing {i}" for i in range(10))
    assert read_letter("The answer is J.", ten).letter == "J"
    assert read_letter("The answer is J.", ten[:4]).letter is None
    assert read_letter("The answer is C.", ten[:2]).letter is None
    assert read_letter("The answer is D.").letter == "D"
    with pytest.raises(ValueError, match="27 options"):
        read_letter("A", ("x",) * 27)


def test_score_counts_rules_and_unparsed():
    answers = [
        answer("a", "The answer is (D).", "D"),
        answer("b", "B", "(b)"),
        answer("c", "It could be A or B.", "A"),
        answer("d", "C", "A"),
        answer("e", None, "A"),
        answer("f", "A"),
        answer("g", "A", "E"),
    ]
    scores = score(answers, "letter")
    assert (scores.values["accuracy"].value, scores.values["accuracy"].n) == (0.5, 4)
    assert scores.per_sample["accuracy"] == {"a#0": 1, "b#0": 1, "c#0": 0, "d#0": 0}
    assert scores.extras["unparsed_rate"].value == 0.25
    assert scores.per_sample["unparsed_rate"] == {"a#0": 0, "b#0": 0, "c#0": 1, "d#0": 0}
    assert scores.counts == {
        "answers": 7, "scored": 4, "failed": 1, "no_reference": 1, "bad_reference": 1, "empty": 0,
        "unparsed": 1, "rule:stated": 1, "rule:leading": 2, "rule:none": 1,
    }  # fmt: skip


def test_accuracies_of_classes():
    """Law has four questions with one right, art two with both right; one question has no class."""
    rows = [
        ("law", "humanities", "A"),
        ("law", "humanities", "B"),
        ("law", "humanities", "C"),
        ("law", "humanities", None),
        ("art", "arts: fine", "A"),
        ("art", "arts: fine", "A"),
        ("", None, "A"),
    ]
    answers = [
        Answer(sample_id=str(i), turn=0, text=text, references=("A",), options=OPTIONS, category=category, group=group)
        for i, (category, group, text) in enumerate(rows)
    ]
    scores = score(answers, "letter")
    assert (scores.values["accuracy"].value, scores.values["accuracy"].n) == (4 / 6, 6)
    macro = scores.extras["accuracy_macro"]
    assert (macro.value, macro.n) == (pytest.approx((1 / 3 + 1) / 2), 5)
    assert macro.signature.endswith("|macro:2 categories")
    law, art = scores.extras["accuracy/humanities"], scores.extras["accuracy/arts: fine"]
    assert (law.value, law.n, art.value, art.n) == (pytest.approx(1 / 3), 3, 1, 2)
    assert {name for name in scores.extras if "/" in name} == {"accuracy/humanities", "accuracy/arts: fine"}


def test_without_categories_there_is_no_mean_over_them():
    scores = score([answer("a", "A", "A")], "letter")
    assert scores.extras["accuracy_macro"].value is None
    assert scores.extras["accuracy_macro"].reason == "the answers have no category"
    assert not any("/" in name for name in scores.extras)


def test_more_options_than_letters_cannot_be_scored():
    scores = score([answer("a", "A", "A", options=("x",) * 27), answer("b", "Z", "Z", options=("x",) * 26)], "letter")
    assert (scores.values["accuracy"].value, scores.counts["bad_reference"]) == (1, 1)


def test_nothing_scored_has_no_rate():
    scores = score([answer("a", "A", "E")], "letter")
    assert scores.values["accuracy"].value is None
    assert scores.extras["unparsed_rate"].value is None
    assert scores.extras["unparsed_rate"].reason == "nothing to score: 1 with an unreadable reference"


@given(st.text(max_size=60))
def test_any_text_is_read_without_error(text):
    assert read_letter(text, OPTIONS).letter in (None, "A", "B", "C", "D")


@given(st.sampled_from(["A", "a"]), st.sampled_from(["car", "matter of taste", "good way to see this"]))
def test_an_article_never_counts(article, noun):
    for text in (
        f"{article} {noun} is needed",
        f"The answer is {article.lower()} {noun}",
        f"It is {article} {noun}",
    ):
        assert read_letter(text, OPTIONS).letter is None
