"""Prompts for training from elsewhere: question files, chats as they are traded, and data sets of the hub.

Only what the user says is taken: the target answers by itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from draftboard.errors import UserError
from draftboard.suites import SuiteError
from draftboard.suites.hub import PREFIX, hub_place, hub_rows
from draftboard.suites.rows import Fields, RowFile, checked, kind_of, read_rows

__all__ = ["Conversations", "read_conversations", "shuffled"]

_USERS = ("user", "human")
_KNOWN = (*_USERS, "assistant", "gpt", "chatgpt", "bing", "bard", "model", "system", "tool", "function")
_FORMS = tuple((key,) for key in ("messages", "conversations", "turns", "data", "prompt", "question", "text"))
_ADVICE = (
    "A row holds a chat in `messages` (role, content) or `conversations` (from, value), the user's messages in "
    "`turns`, both sides by turns in `data`, or one message in `prompt`, `question` or `text`."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """The user's messages of each conversation of a file."""

    name: str
    """File name, or data set with its commit."""
    sha256: str
    turns: tuple[tuple[str, ...], ...]
    places: tuple[str, ...]
    """`file:line` of each conversation."""


def read_conversations(source: str) -> Conversations:
    """Read a file (JSON lines, JSON, CSV, Parquet) or `hf://OWNER/NAME[/CONFIGURATION][@REVISION]` (its train split).

    Conversations in which the user says nothing are left out. Raises UserError with every fault of the file.
    """
    try:
        if source.startswith(PREFIX):
            offline = "Without a network use --prompts with a file of your own."
            file = hub_rows(hub_place(source, split="train"), suite="of prompts", offline=offline)
        else:
            file = read_rows(source, what="file of prompts")
        found = checked(file, _turns, forms=_FORMS, advice=_ADVICE, plural="prompts")
    except SuiteError as error:
        raise UserError(str(error)) from error
    return _conversations(file, found)


def shuffled(files: Sequence[Conversations], seed: int) -> tuple[tuple[str, ...], ...]:
    """Return the conversations of all files in an order of their own, so that a small budget takes some of all."""
    turns = [turns for file in files for turns in file.turns]
    Random(seed).shuffle(turns)
    return tuple(turns)


def _conversations(file: RowFile, found: Sequence[tuple[str, ...]]) -> Conversations:
    kept = [(turns, file.place(row.line)) for turns, row in zip(found, file.rows, strict=True) if turns]
    if not kept:
        raise UserError("holds no prompt", where=file.shown, advice=_ADVICE)
    return Conversations(
        name=file.name,
        sha256=file.sha256,
        turns=tuple(turns for turns, _ in kept),
        places=tuple(place for _, place in kept),
    )


def _turns(row: Fields) -> tuple[str, ...]:
    """The user's messages of a row; none where only others speak."""
    for key in ("messages", "conversations", "conversation"):
        if row.has(key):
            return _chat(row, key)
    if row.has("turns"):
        return row.texts("turns", alone=True)
    if row.has("data"):
        return row.texts("data", alone=True)[::2]
    return (row.text("prompt", "question", "text"),)


def _chat(row: Fields, key: str) -> tuple[str, ...]:
    messages = row.fields[key]
    if not isinstance(messages, list | tuple):
        row.problem(f"`{key}` is {kind_of(messages)}; it must be a list of messages")
        return ()
    said = []
    for place, message in enumerate(messages, 1):
        if not isinstance(message, Mapping):
            row.problem(f"entry {place} of `{key}` is {kind_of(message)}; it must be an object")
            continue
        role = message.get("role", message.get("from"))
        content = message.get("content", message.get("value"))
        if role not in _KNOWN:
            row.problem(f"entry {place} of `{key}` is said by {role!r}; known: {', '.join(_KNOWN)}")
        elif role in _USERS and not isinstance(content, str):
            row.problem(f"entry {place} of `{key}` has {kind_of(content)} for a text")
        elif role in _USERS and content.strip():
            said.append(content)
    return tuple(said)
