"""Our own prompts for training text: what methods get asked in the field, made by rule from word lists.

A prompt may hold text that the target wrote before (a passage to summarise, passages to answer from), so that the
stream of prompts is a function of the seed and of the answers so far. Prompts come in rounds of a fixed number; a round
uses passages of those at least two rounds back, so that writing need not stop between rounds and a resumed stream goes
on as it would have gone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from draftboard.methods.errors import MethodError
from draftboard.methods.training import topics
from draftboard.methods.training.conversations import conversation, pick, with_article
from draftboard.methods.training.german import german_text
from draftboard.methods.training.sums import word_problem

__all__ = ["KINDS", "LAG", "ROUND", "SHARES", "Ask", "Passage", "make_ask"]

ROUND = 256
"""Prompts of a round."""
LAG = 2
"""A round uses passages of rounds that lie at least so many back."""

SHARES: Mapping[str, float] = {
    "conversation": 0.10,
    "translation": 0.14,
    "summarization": 0.13,
    "qa": 0.10,
    "math": 0.09,
    "rag": 0.13,
    "passage": 0.07,
    "own": 0.24,
}
"""How often each kind is asked. What the target asks itself is the most varied of all, and has the largest share."""

KINDS = tuple(SHARES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text that the target wrote to a prompt of kind `passage`."""

    subject: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One conversation to have with the target."""

    index: int
    """Counted from 0 over the whole stream."""
    kind: str
    turns: tuple[str, ...]
    """The user's messages; empty for kind `own`, whose message the target writes itself."""
    subject: str = ""
    """What a `passage` is about."""

    @property
    def sampled(self) -> bool:
        """Whether the answer is drawn at temperature 1: a passage that others are about has to be as varied as texts of
        people are, and the likeliest words are not."""
        return self.kind == "passage"

    @property
    def round(self) -> int:
        """Number of the round it belongs to."""
        return self.index // ROUND


def make_ask(
    index: int,
    *,
    seed: int,
    passages: Sequence[Passage] = (),
    shares: Mapping[str, float] = SHARES,
    attempt: int = 0,
) -> Ask:
    """Return prompt number `index`; another one for each `attempt`.

    `passages` are those of rounds at least `LAG` back; while there are none, kinds that need one are asked for
    passages instead. Raises MethodError for shares of unknown kinds or without weight.
    """
    unknown = sorted(set(shares) - set(KINDS))
    if unknown or not sum(shares.values()) > 0 or min(shares.values()) < 0:
        raise MethodError(f"shares of prompts: {', '.join(unknown) or 'no weight'}; kinds: {', '.join(KINDS)}")
    random = Random(f"{seed}/{index}/{attempt}")
    kind = random.choices(list(shares), list(shares.values()))[0]
    if kind in ("summarization", "rag") and len(passages) < _FEWEST:
        kind = "passage"
    if kind == "own":
        return Ask(index=index, kind=kind, turns=())
    if kind == "passage":
        subject = random.choice(
            random.choice((topics.NEWS, topics.NEWS, topics.STEM, topics.HUMANITIES, topics.ENTITIES))
        )
        return Ask(index=index, kind=kind, turns=(_passage_wanted(random, subject),), subject=subject)
    if kind == "summarization":
        return Ask(index=index, kind=kind, turns=(_summary(random, passages),))
    if kind == "rag":
        return Ask(index=index, kind=kind, turns=(_grounded(random, passages),))
    return Ask(index=index, kind=kind, turns=_PLAIN[kind](random))


_FEWEST = 4
"""So many passages are needed before one is used."""


def _passage_wanted(random: Random, subject: str) -> str:
    length = pick(random, "in about 150 words", "in two paragraphs", "in three short paragraphs", "in about 200 words")
    if subject in topics.NEWS:
        form = pick(
            random, "a news article", "a newspaper report", "a local news story", "a magazine article", "a radio report"
        )
    else:
        form = pick(
            random,
            "an encyclopedia article",
            "an informative text",
            "a textbook passage",
            "a short introduction",
            "a magazine article",
        )
    return pick(
        random,
        f"Write {form} about {subject} {length}.",
        f"{form[0].upper()}{form[1:]} about {subject}, {length}, please.",
    )


def _cut(text: str, words: int) -> str:
    """Return whole sentences of up to so many words, or the words where no sentence ends."""
    parts = text.split()
    if len(parts) <= words:
        return text.strip()
    head = " ".join(parts[:words])
    end = max(head.rfind(mark) for mark in (". ", "! ", "? "))
    return head[: end + 1] if end > 0 else head


def _summary(random: Random, passages: Sequence[Passage]) -> str:
    chosen = random.sample(passages, 1 if random.random() < 0.6 else 2)
    text = "\n".join(_cut(passage.text, 190) for passage in chosen)
    if random.random() < 0.4:
        return f"Summarize: {text}"
    before = pick(
        random,
        "Summarize the following text.\n\n",
        "Give a short summary of this article:\n\n",
        "TL;DR of this, please:\n\n",
        "What are the main points of the text below?\n\n",
        "Summarize this in two sentences:\n\n",
        "Write a headline and a one-sentence summary for this article.\n\n",
        "List the three most important facts in this text:\n\n",
    )
    return before + text if random.random() < 0.7 else f"{text}\n\n{before.strip()}"


def _grounded(random: Random, passages: Sequence[Passage]) -> str:
    chosen = random.sample(passages, random.choice((2, 2, 3, 4)))
    subject = chosen[0].subject
    random.shuffle(chosen)
    words = 330 // len(chosen)
    form = random.choice(("{text}", "[{number}] {text}", "Passage {number}: {text}", "Document {number}:\n{text}"))
    context = "\n\n".join(form.format(number=n, text=_cut(p.text, words)) for n, p in enumerate(chosen, 1))
    question = pick(
        random,
        f"what is said about {subject}",
        f"what is special about {subject}",
        f"why does {subject} matter",
        f"who is affected by {subject}",
        f"what happened in the story of {subject}" if subject in topics.NEWS else f"how can {subject} be described",
        f"when and where is {subject} set" if subject in topics.NEWS else f"what is one fact about {subject}",
    )
    question = f"{question[0].upper()}{question[1:]}?"
    ask = pick(
        random,
        f"{context}\n\nAnswer the question based on the passages above.\nQuestion: {question}",
        f"Use the following context to answer the question.\n\n{context}\n\nQuestion: {question}\nAnswer:",
        f"{context}\n\nQuestion: {question}",
        f"Question: {question}\n\nRelevant passages:\n\n{context}\n\nGive a short answer.",
        f"{context}\n\n{question}",
    )
    return ask


def _translation(random: Random) -> tuple[str, ...]:
    text = german_text(random)
    if random.random() < 0.5:
        return (f"Translate German to English: {text}",)
    return (
        pick(
            random,
            f"Translate this sentence into English: {text}",
            f'What does "{text}" mean in English?',
            f"Please translate from German:\n\n{text}",
            f"German: {text}\nEnglish:",
            f"How do you say this in English? {text}",
            f"I got this message from a German colleague. What does it say?\n\n{text}",
        ),
    )


def _question(random: Random) -> tuple[str, ...]:
    entity = random.choice(topics.ENTITIES)
    subject = random.choice(topics.STEM + topics.HUMANITIES)
    creature = random.choice(topics.CREATURES)
    curious = random.choice(topics.CURIOUS)
    return (
        pick(
            random,
            f"What is {entity} best known for?",
            f"Where is {entity} or where does the name come from?",
            f"When did {entity} become famous?",
            f"Who is most closely associated with {entity}?",
            f"Who discovered or founded {entity}?",
            f"Name three facts about {entity}.",
            f"Which century is {entity} associated with?",
            f"Is it true that {entity} was always popular?",
            f"What is the difference between {entity} and {random.choice(topics.ENTITIES)}?",
            f"Which came first, {entity} or {random.choice(topics.ENTITIES)}?",
            f"What is meant by {subject}?",
            f"Who first studied {subject}?",
            f"Give an example of {subject}.",
            f"Name one important person in the history of {subject}.",
            f"Where would you find {subject} in everyday life?",
            f"What do you call an expert on {subject}?",
            f"What does the {creature} eat?",
            f"How long does the {creature} live?",
            f"Where in the world does the {creature} live?",
            f"How big is {with_article(creature)}?",
            f"Is the {creature} a mammal?",
            f"Do you know {curious}?",
            f"Can you tell me {curious}?",
            f"{curious[0].upper()}{curious[1:]}?",
        ),
    )


def _problem(random: Random) -> tuple[str, ...]:
    text = word_problem(random)
    if random.random() < 0.7:
        return (text,)
    return (pick(random, f"{text} Think step by step.", f"Question: {text}\nAnswer:", f"Solve this problem: {text}"),)


_PLAIN: Mapping[str, Callable[[Random], tuple[str, ...]]] = {
    "conversation": conversation,
    "translation": _translation,
    "qa": _question,
    "math": _problem,
}
