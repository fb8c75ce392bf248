import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.scoring import Answer, read_letter, score

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
    ],
)
def test_corners(text, letter, rule):
    reading = read_letter(text, OPTIONS)
    assert (reading.letter, reading.rule) == (letter, rule)


def test_an_option_inside_another_named_option_is_ignored():
    assert read_letter("It takes 10 meters.", ("10", "10 meters", "5", "5 meters")).letter == "B"


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
    assert scores.counts == {
        "answers": 7, "scored": 4, "failed": 1, "no_reference": 1, "bad_reference": 1, "empty": 0,
        "unparsed": 1, "rule:stated": 1, "rule:leading": 2, "rule:none": 1,
    }  # fmt: skip


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
