"""From answers to texts: each conversation once, with the tokens that the target wrote marked in it."""

from collections.abc import Iterable, Iterator

from draftboard.methods.training.answers import Answer
from draftboard.methods.training.shards import Text

__all__ = ["texts_of"]


def texts_of(answers: Iterable[Answer], *, longest: int) -> Iterator[Text]:
    """Yield a text for every conversation, cut to `longest` tokens, in the order of their first answers.

    A later turn's prompt holds the earlier turns; where a template writes them otherwise than they were generated, the
    turn stands for itself. Answers of one token teach nothing and are left out, as is what is cut away.
    """
    turns: dict[int, list[Answer]] = {}
    for answer in answers:
        turns.setdefault(answer.index, []).append(answer)
    for conversation in turns.values():
        # A text grows as long as the next turn's prompt continues it.
        ids: list[int] = []
        loss: list[bool] = []
        for answer in sorted(conversation, key=lambda answer: answer.turn):
            if ids and answer.prompt_ids[: len(ids)] == ids:
                loss += [False] * (len(answer.prompt_ids) - len(ids))
            else:
                yield from _text(ids, loss, longest)
                loss = [False] * len(answer.prompt_ids)
            ids = [*answer.prompt_ids, *answer.answer_ids]
            loss += [True] * len(answer.answer_ids)
        yield from _text(ids, loss, longest)


def _text(ids: list[int], loss: list[bool], longest: int) -> Iterator[Text]:
    ids, loss = ids[:longest], loss[:longest]
    if sum(loss) > 1:
        yield Text(ids, loss)
