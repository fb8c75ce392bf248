"""One object of a question file, checked field by field.

Every fault is collected instead of raised, so that a file with many is corrected in one go.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from draftboard.suites.errors import suggestion
from draftboard.suites.rows import kind_of
from draftboard.suites.sample import Sample
from draftboard.suites.scorers import is_scorer, scorer_names

__all__ = ["Question", "check_question", "identifier"]

_FORMS = ("turns", "prompt", "messages")
_REFERENCES = ("references", "reference")
_KNOWN = {
    "question_id", "category", "group", "system", "scorer", "language", "options", "max_new_tokens", "stop",
    *_FORMS, *_REFERENCES,
}  # fmt: skip
_ROLES = ("system", "user", "assistant")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One valid line of a question file, before a suite decides its domain and scorer."""

    line: int
    question_id: str
    category: str | None
    turns: tuple[str, ...]
    system: str | None
    references: tuple[tuple[str, ...], ...]
    scorer: str | None
    language: str | None
    options: tuple[str, ...]
    group: str | None
    max_new_tokens: int | None
    stop: tuple[str, ...]
    answers_dropped: int
    """Assistant messages that were given but play no part: each method continues its own conversation."""
    meta: Mapping[str, object] = field(hash=False)

    @property
    def has_references(self) -> bool:
        """Whether some turn has a reference."""
        return any(self.references)

    def as_sample(
        self,
        *,
        suite: str,
        domain: str,
        category: str,
        scorer: str | None = None,
        language: str | None = None,
    ) -> Sample:
        """This question in `domain`; what the line itself says about scorer and language goes first."""
        return Sample(
            sample_id=self.question_id,
            suite=suite,
            domain=domain,
            category=category,
            system=self.system,
            turns=self.turns,
            references=self.references,
            scorer=self.scorer or scorer,
            language=self.language or language,
            options=self.options,
            group=self.group,
            max_new_tokens=self.max_new_tokens,
            stop=self.stop,
            meta=self.meta,
        )


def identifier(record: Mapping[str, object]) -> tuple[str | None, str]:
    """The id of a line as a string, or None and what is wrong with it."""
    key = "question_id" if "question_id" in record or "id" not in record else "id"
    if key not in record:
        return None, "no `question_id`"
    value = record[key]
    if isinstance(value, str) and value.strip():
        return value, ""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value), ""
    shown = "blank" if isinstance(value, str) else kind_of(value)
    return None, f"`{key}` is {shown}; it must be an integer or a string"


def check_question(record: Mapping[str, object], line: int) -> tuple[Question | None, list[str]]:
    """The question that `record` holds, and every problem with it; the question is None if there is any."""
    problems: list[str] = []
    question_id, problem = identifier(record)
    if problem:
        problems.append(problem)
    turns, message_system, dropped = _conversation(record, problems)
    system = _text(record, "system", problems)
    if system is not None and message_system is not None:
        problems.append("`system` is given twice, as a field and as the first of `messages`")
    category, group = (_name(record, key, problems) for key in ("category", "group"))
    scorer = _text(record, "scorer", problems)
    if scorer is not None and not is_scorer(scorer):
        problems.append(f"unknown scorer {scorer!r}; {suggestion(scorer, scorer_names())}")
    language = _text(record, "language", problems)
    if language is not None and not _LANGUAGE.fullmatch(language):
        problems.append(f"`language` is {language!r}; it must be an ISO code such as de, zh or pt-BR")
    options = _options(record, problems)
    budget, stop = _budget(record, problems), _stop(record, problems)
    references = _references(record, len(turns), problems)
    if scorer == "letter":
        _check_letters(references, options, problems)
    if problems or question_id is None:
        return None, problems
    used = _KNOWN if "question_id" in record else _KNOWN | {"id"}
    return Question(
        line=line,
        question_id=question_id,
        category=category,
        turns=turns,
        system=message_system or system or None,
        references=references,
        scorer=scorer,
        language=language,
        options=options,
        group=group,
        max_new_tokens=budget,
        stop=stop,
        answers_dropped=dropped,
        meta={key: value for key, value in record.items() if key not in used},
    ), []


def _text(record: Mapping[str, object], key: str, problems: list[str]) -> str | None:
    value = record.get(key)
    if value is None or isinstance(value, str):
        return value
    problems.append(f"`{key}` is {kind_of(value)}; it must be a string")
    return None


def _name(record: Mapping[str, object], key: str, problems: list[str]) -> str | None:
    value = _text(record, key, problems)
    if value is not None and not value.strip():
        problems.append(f"`{key}` is blank")
    return value


def _budget(record: Mapping[str, object], problems: list[str]) -> int | None:
    value = record.get("max_new_tokens")
    if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value.strip()):
        # Comma-separated values know no numbers.
        value = int(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31):
        return value
    problems.append(f"`max_new_tokens` is {kind_of(value)}; it must be an integer of at least 1")
    return None


def _stop(record: Mapping[str, object], problems: list[str]) -> tuple[str, ...]:
    value = record.get("stop")
    if value is None:
        return ()
    texts = _strings([value] if isinstance(value, str) else value)
    if texts is None or not all(texts):
        problems.append("`stop` must be a text or a list of texts, none of them empty")
        return ()
    return texts


def _conversation(record: Mapping[str, object], problems: list[str]) -> tuple[tuple[str, ...], str | None, int]:
    """Turns (none if there is a problem with them), leading system message, number of assistant messages."""
    given = [key for key in _FORMS if record.get(key) is not None]
    if len(given) > 1:
        problems.append(f"{' and '.join(f'`{key}`' for key in given)} are given; only one of them may be")
        return (), None, 0
    if not given:
        null = [key for key in _FORMS if key in record]
        problems.append(f"`{null[0]}` is null" if null else "no `turns` (nor `prompt` nor `messages`)")
        return (), None, 0
    value = record[given[0]]
    if given == ["prompt"]:
        return _turns([value], "`prompt`", problems), None, 0
    if not isinstance(value, list):
        what = "strings" if given == ["turns"] else "objects with `role` and `content`"
        problems.append(f"`{given[0]}` is {kind_of(value)}; it must be a list of {what}")
        return (), None, 0
    if not value:
        problems.append(f"`{given[0]}` is empty")
        return (), None, 0
    return (_turns(value, "turn", problems), None, 0) if given == ["turns"] else _messages(value, problems)


def _turns(values: list[object], name: str, problems: list[str]) -> tuple[str, ...]:
    turns: list[str] = []
    for place, value in enumerate(values, 1):
        shown = f"turn {place}" if name == "turn" else name
        if not isinstance(value, str):
            problems.append(f"{shown} is {kind_of(value)}; it must be a string")
        elif not value.strip():
            problems.append(f"{shown} is blank")
        else:
            turns.append(value)
    return tuple(turns) if len(turns) == len(values) else ()


def _messages(values: list[object], problems: list[str]) -> tuple[tuple[str, ...], str | None, int]:
    before = len(problems)
    system: str | None = None
    turns: list[str] = []
    for place, message in enumerate(values, 1):
        if not isinstance(message, dict):
            problems.append(f"message {place} is {kind_of(message)}; it must be an object with `role` and `content`")
            continue
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, str) or role not in _ROLES:
            near = f"; {suggestion(role, _ROLES)}" if isinstance(role, str) else ""
            problems.append(f"message {place} has the role {role!r}{near}")
        elif not isinstance(content, str):
            problems.append(f"`content` of message {place} is {kind_of(content)}; it must be a string")
        elif role == "system" and place > 1:
            problems.append(f"message {place} is a system message; only the first may be one")
        elif role == "system":
            system = content
        elif role == "user" and not content.strip():
            problems.append(f"message {place} (user) is blank")
        elif role == "user":
            turns.append(content)
    if len(problems) > before:
        return (), None, 0
    if not turns:
        problems.append("`messages` has no user message")
    return tuple(turns), system, len(values) - len(turns) - (system is not None)


def _strings(value: object) -> tuple[str, ...] | None:
    """The strings of a list; None if it is no list of strings."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    return tuple(value)


def _options(record: Mapping[str, object], problems: list[str]) -> tuple[str, ...]:
    value = record.get("options")
    if value is None:
        return ()
    options = _strings(value)
    if options is None or not 2 <= len(options) <= 26 or not all(option.strip() for option in options):
        problems.append("`options` must be a list of 2 to 26 texts")
        return ()
    return options


def _references(record: Mapping[str, object], turns: int, problems: list[str]) -> tuple[tuple[str, ...], ...]:
    """Alternatives per turn. With `turns` 0 the turns are themselves in doubt and no count is checked."""
    given = [key for key in _REFERENCES if record.get(key) is not None]
    if not given:
        return ((),) * turns
    if len(given) > 1:
        problems.append("`reference` and `references` are given; only one of them may be")
        return ()
    key = given[0]
    value = record[key]
    if value == []:
        return ((),) * turns
    per_turn = [value] if isinstance(value, str) else value
    if not isinstance(per_turn, list):
        problems.append(f"`{key}` is {kind_of(value)}; it must be a string, or a list with one entry per turn")
        return ()
    references: list[tuple[str, ...]] = []
    for place, entry in enumerate(per_turn, 1):
        # An empty string or null stands for "this turn has none" in published files.
        aliases = _strings([] if entry is None else [entry] if isinstance(entry, str) else entry)
        if aliases is None:
            problems.append(f"`{key}` of turn {place} must be a string or a list of strings")
        else:
            references.append(tuple(alias for alias in aliases if alias.strip()))
    if len(references) < len(per_turn):
        return ()
    if turns and len(references) != turns:
        problems.append(f"`{key}` has {_count(len(references), 'entry', 'entries')}, but there {_turn_count(turns)}")
        return ()
    return tuple(references)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _turn_count(turns: int) -> str:
    return "is 1 turn" if turns == 1 else f"are {turns} turns"


def _check_letters(references: tuple[tuple[str, ...], ...], options: tuple[str, ...], problems: list[str]) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(options) or 26]
    for reference in (alias for aliases in references for alias in aliases):
        if len(reference) != 1 or reference not in letters:
            problems.append(f"the reference {reference!r} is no letter from A to {letters[-1]} (scorer letter)")
