"""The user's side of conversations of two turns: writing, roles, puzzles, code, extraction, sciences, advice."""

from collections.abc import Callable
from random import Random

from draftboard.methods.training import topics

__all__ = ["conversation", "pick", "with_article"]


def conversation(random: Random) -> tuple[str, str]:
    """Return two messages of a user; the second one follows whatever is answered to the first."""
    return random.choice(_CONVERSATIONS)(random)


def pick(random: Random, *options: str) -> str:
    """Return one of the options."""
    return random.choice(options)


def with_article(word: str) -> str:
    """Return `a` or `an` and the word."""
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _writing(random: Random) -> tuple[str, str]:
    form, scene, event = random.choice(topics.FORMS), random.choice(topics.SCENES), random.choice(topics.EVENTS)
    about = random.choice((scene, scene, event, random.choice(topics.NEWS), random.choice(topics.CURIOUS)))
    first = pick(
        random,
        f"Write {form} about {about}.",
        f"Write {form} about {about} in a {random.choice(topics.MOODS)} tone.",
        f"I am planning {event}. Write {random.choice(topics.PAPERS)} for it.",
        f"Start {form} with the sentence: It began with {scene}.",
        f"Help me find a title and an outline for {form} about {about}.",
    )
    then = pick(
        random,
        "Make it shorter.",
        f"Rewrite it in a more {random.choice(topics.MOODS)} style.",
        f"Turn it into {random.choice(topics.FORMS)}.",
        "Now write what happens next.",
        "Replace every proper name by another one and write it again.",
        "Which part would you change, and why?",
        "Give it three possible titles.",
        "Retell it from the point of view of someone else.",
    )
    return first, then


def _roleplay(random: Random) -> tuple[str, str]:
    role = random.choice(topics.ROLES)
    event = random.choice(topics.EVENTS)
    first = pick(
        random,
        f"Pretend to be {role}. Introduce yourself.",
        f"You are {role}. What do you think of {random.choice(topics.ENTITIES)}?",
        f"Act as {role} and explain {random.choice(topics.STEM)} to me.",
        f"Speak like {role}. How was your day?",
        f"I want you to be {role} at {event}. What do you say?",
        f"Imagine a conversation between {role} and {random.choice(topics.ROLES)} "
        f"about {random.choice(topics.HUMANITIES)}.",
    )
    then = pick(
        random,
        "What are you most afraid of?",
        "Tell me about your greatest success.",
        f"And what would you say to {random.choice(topics.ROLES)}?",
        "What advice do you have for a young person?",
        f"Do you like {event}?",
        "Stay in your role and say goodbye.",
        "What did you eat for breakfast?",
    )
    return first, then


def _reasoning(random: Random) -> tuple[str, str]:
    a, b, c, d = random.sample(("Alma", "Bela", "Cora", "Dan", "Esra", "Finn", "Gita", "Hugo", "Ines", "Jan"), 4)
    order = pick(random, "taller than", "older than", "faster than", "sitting to the left of", "richer than")
    thing = random.choice(topics.CREATURES)
    first = pick(
        random,
        f"{a} is {order} {b}. {c} is {order} {a}. {d} is not {order} {b}. Who comes first and who comes last?",
        f"All {thing}s in the story can sing. Toto cannot sing. Can Toto be {with_article(thing)}? Explain.",
        f"Which word does not belong with the others: {', '.join(random.sample(topics.CREATURES, 3))}, "
        f"{random.choice(topics.ENTITIES)}?",
        f"{a} leaves the house with an umbrella, {b} with sunglasses and {c} with skis. "
        "What do they expect, and who may be wrong?",
        f"{with_article(thing).capitalize()} climbs {random.randint(2, 5)} meters up a wall each day "
        f"and slides down {random.randint(1, 2)} at night. "
        f"The wall is {random.randint(8, 20)} meters high. On which day does it reach the top?",
        f"What would happen if {random.choice(topics.WHAT_IF)}?",
        f"{a} says that {b} is lying. {b} says that {c} is lying. {c} says that both are lying. Who tells the truth?",
        f"What are the pros and cons of {random.choice(topics.DEBATES)}?",
    )
    then = pick(
        random,
        "Explain your reasoning step by step.",
        "How sure are you?",
        "Now give a similar puzzle with its solution.",
        f"What changes if {d} is left out?",
        "Is there another possible answer?",
        "Say it in one sentence.",
    )
    return first, then


def _coding(random: Random) -> tuple[str, str]:
    task, language = random.choice(topics.CODE_TASKS), random.choice(topics.LANGUAGES)
    verb = {"SQL": "query"}.get(language, random.choice(("function", "program", "script")))
    first = pick(
        random,
        f"Write a {language} {verb} that {task}.",
        f"Write a {language} {verb} that {task}, with comments.",
        f"How would you write a {verb} in {language} that {task}?",
        f"I need {language} code that {task}. Keep it simple.",
        f"Explain how a {verb} works that {task}.",
    )
    then = pick(
        random,
        "Add error handling.",
        "What is its time complexity?",
        "Write two tests for it.",
        f"Translate it to {random.choice(topics.LANGUAGES)}.",
        f"Extend it so that it also {random.choice(topics.CODE_TASKS)}.",
        "Explain the code line by line.",
        "Can it be done without a loop?",
    )
    return first, then


def _extraction(random: Random) -> tuple[str, str]:
    people = random.sample(
        ("Okafor", "Lindqvist", "Moreau", "Tanaka", "Silva", "Novak", "Haddad", "O'Brien", "Kaya", "Petrov"), 3
    )
    things = [random.choice(topics.EVENTS).split(" ", 1)[1] for _ in range(3)]
    lines = [
        f"{pick(random, 'Ms.', 'Mr.', 'Dr.')} {name} booked the {thing} "
        f"on {pick(random, 'March', 'May', 'July', 'October')} {random.randint(1, 28)} "
        f"for {random.randint(2, 80)} people and paid ${random.randint(2, 90) * 10}."
        for name, thing in zip(people, things, strict=True)
    ]
    text = " ".join(lines)
    first = pick(
        random,
        f"Extract the names, dates and amounts from this text as JSON: {text}",
        f"Make a table of the bookings in this text.\n\n{text}",
        f"Who paid the most? {text}",
        f"List all dates and numbers in the following text.\n{text}",
        f"Read the notes and return a CSV with the columns name, event, date, people, price.\n\n{text}",
    )
    then = pick(
        random,
        "Sort them by date.",
        "What is the total amount?",
        "Convert it to XML.",
        "Leave out the names.",
        "Which booking is the largest?",
    )
    return first, then


def _stem(random: Random) -> tuple[str, str]:
    subject, other = random.sample(topics.STEM, 2)
    first = pick(
        random,
        f"Explain {subject} to a ten-year-old.",
        f"How does {subject} work?",
        f"Describe an experiment that shows {subject}.",
        f"What are the main open questions about {subject}?",
        f"Compare {subject} and {other}.",
        f"How is {subject} related to {other}?",
        f"List five key terms about {subject} with definitions.",
        f"What are common misconceptions about {subject}?",
        f"Explain {random.choice(topics.CURIOUS)}.",
    )
    then = pick(
        random,
        "Give a numerical example.",
        "What would an expert add to this?",
        f"How does this matter for {other}?",
        "Write three quiz questions about it, with answers.",
        "Which of your points is the most important one?",
        "Can you explain it with an analogy?",
    )
    return first, then


def _humanities(random: Random) -> tuple[str, str]:
    subject, other = random.sample(topics.HUMANITIES, 2)
    first = pick(
        random,
        f"What were the causes and effects of {subject}?",
        f"Give an overview of {subject}.",
        f"Discuss the importance of {subject} today.",
        f"Compare {subject} with {other}.",
        f"Write a short essay on {subject}.",
        f"Which books or works should I know about {subject}?",
        f"How would you teach {subject} in school?",
        f"What did {random.choice(topics.ENTITIES)} have to do with {subject}?",
        f"Name arguments for and against this statement: {subject} changed the world more than {other}.",
    )
    then = pick(
        random,
        "What would a critic say?",
        "Summarize your answer in three bullet points.",
        f"How does it relate to {other}?",
        "Give a timeline.",
        "Which examples from other countries are there?",
        "Make it understandable for a child.",
    )
    return first, then


def _advice(random: Random) -> tuple[str, str]:
    event = random.choice(topics.EVENTS)
    first = pick(
        random,
        f"I have to prepare {event}. What should I think of?",
        f"What can go wrong at {event}?",
        f"Suggest a budget for {event}.",
        f"How can I learn more about {random.choice(topics.STEM + topics.HUMANITIES)} in one month?",
        f"Recommend a recipe with {random.choice(topics.FOODS)} and {random.choice(topics.SPICES)}.",
        f"How do I {random.choice(topics.SKILLS)}?",
        f"Hi! Can you help me with {event}?",
        "What is a good gift for someone who likes "
        f"{random.choice(topics.STEM + topics.HUMANITIES + topics.ENTITIES)}?",
    )
    then = pick(
        random,
        "I have very little time. What is most important?",
        "And what if it rains?",
        "Thanks! Anything else?",
        "Put that in a table.",
        "Why?",
        "How much will it cost?",
        "Give me a plan for the week.",
    )
    return first, then


_CONVERSATIONS: tuple[Callable[[Random], tuple[str, str]], ...] = (
    _writing,
    _roleplay,
    _reasoning,
    _coding,
    _extraction,
    _stem,
    _humanities,
    _advice,
)
