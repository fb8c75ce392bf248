from draftboard.methods.training.answers import Answer
from draftboard.methods.training.texts import texts_of


def answer(index, turn, prompt, ids):
    return Answer(index=index, turn=turn, kind="qa", user="", prompt_ids=prompt, answer_ids=ids, finish="end")


def test_a_conversation_is_one_text_with_every_answer_marked():
    first = answer(0, 0, [1, 2], [3, 4])
    second = answer(0, 1, [1, 2, 3, 4, 9, 9], [5, 6, 7])
    (found,) = texts_of([first, second], longest=50)
    assert found.ids == [1, 2, 3, 4, 9, 9, 5, 6, 7]
    assert found.loss == [False, False, True, True, False, False, True, True, True]


def test_a_template_that_rewrites_earlier_turns_gives_a_text_a_turn():
    first = answer(0, 0, [1, 2], [3, 4])
    second = answer(0, 1, [1, 2, 4, 9, 9], [5, 6, 7])
    found = list(texts_of([first, second], longest=50))
    assert [text.ids for text in found] == [[1, 2, 3, 4], [1, 2, 4, 9, 9, 5, 6, 7]]
    assert [sum(text.loss) for text in found] == [2, 3]


def test_conversations_that_were_written_side_by_side_stay_apart():
    lines = [answer(0, 0, [1], [3, 4]), answer(1, 0, [2], [5, 6]), answer(0, 1, [1, 3, 4, 8], [7, 7])]
    assert [text.ids for text in texts_of(lines, longest=50)] == [[1, 3, 4, 8, 7, 7], [2, 5, 6]]


def test_long_texts_are_cut_and_what_teaches_nothing_is_left_out():
    lines = [answer(0, 0, [1, 2, 3], [4, 5, 6, 7]), answer(1, 0, [1, 2, 3, 4], [5, 6]), answer(2, 0, [1], [5])]
    (found,) = texts_of(lines, longest=5)
    assert found.ids == [1, 2, 3, 4, 5]
