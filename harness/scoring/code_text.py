"""From an answer in prose to the programs it may mean: code blocks, bare code, or the rest of a function.

No text is compiled here: what a model wrote is read as characters only. The child process takes the first of the
programs that compiles.
"""

import re
from dataclasses import dataclass

__all__ = ["Block", "code_blocks", "entry_point", "programs", "with_call"]

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^`\n]*$")
_DEF = re.compile(r"^(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\(", re.MULTILINE)
_CHECKS = re.compile(r"^def[ \t]+check[ \t]*\(", re.MULTILINE)
_CALL = re.compile(r"^check\([ \t]*(\w+)?", re.MULTILINE)
_STARTS = re.compile(r"from[ \t]+\S+[ \t]+import\b|import[ \t]+\w|(?:async[ \t]+)?def[ \t]+\w|class[ \t]+\w|@\w")
_GOES_ON = re.compile(
    r"[#)\]}]|(?:if|elif|else|for|while|try|except|finally|with|assert|return)\b.*:?$|\w+(?:[.\[(]|[ \t]*=)"
)
_PYTHON = ("", "python", "python3", "py", "python2", "pycon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of Markdown: its language tag in lower case and its lines as they stand, without the fences'
    own indentation.
    """

    language: str
    code: str


def code_blocks(text: str) -> list[Block]:
    """Return the fenced blocks in order; one that is never closed reaches to the end."""
    blocks: list[Block] = []
    fence, language, indent, lines = "", "", "", list[str]()
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _FENCE.match(line)
        if not fence and match:
            fence, language, indent, lines = match["fence"], match["language"].lower(), match["indent"], []
        elif fence and match and not match["language"] and match["fence"].startswith(fence):
            blocks.append(Block(language=language, code="\n".join(lines) + "\n"))
            fence = ""
        elif fence:
            lines.append(line.removeprefix(indent))
    if fence and lines:
        blocks.append(Block(language=language, code="\n".join(lines) + "\n"))
    return blocks


def entry_point(context: str, tests: str) -> str | None:
    """Return the function that is tested: what `tests` hands to `check`, else the last that `context` begins."""
    called = [name for name in _CALL.findall(tests) if name]
    defined = _DEF.findall(context)
    return called[-1] if called else defined[-1] if defined else None


def with_call(tests: str, entry: str | None) -> str:
    """Return the test program with `check(entry)` at its end where it defines `check` and never calls it."""
    if entry is None or not _CHECKS.search(tests) or _CALL.search(tests):
        return tests
    return f"{tests.rstrip()}\n\ncheck({entry})\n"


def programs(text: str, context: str, entry: str | None) -> list[list[str]]:
    """Return the programs that an answer may mean, likeliest first; each is a list of units to be run in turn.

    The last block that defines `entry`, else the first block, else the text itself. Code that defines the function
    follows what stands before it in `context` (imports, helpers); other code continues `context`.
    """
    text = text.replace("\r\n", "\n")
    blocks = code_blocks(text)
    defining = [block.code for block in blocks if _defines(block.code, entry)]
    if defining:
        return [[_before(context, entry), defining[-1]]]
    if blocks:
        python = [block.code for block in blocks if block.language in _PYTHON]
        # A model that goes on inside the prompt's own block closes it: what stands before its first fence is the code.
        ahead = re.split(r"^[ \t]*(?:```|~~~)", text, maxsplit=1, flags=re.MULTILINE)[0]
        return [*_continued((python or [block.code for block in blocks])[0], context), *_continued(ahead, context)]
    if _defines(text, entry) or not context.strip():
        return [[_before(context, entry), code] for code in (text, _without_prose(text))]
    return _continued(text, context)


def _defines(code: str, entry: str | None) -> bool:
    if entry is None:
        return bool(_DEF.search(code))
    name = re.escape(entry)
    return bool(re.search(rf"^(?:(?:async[ \t]+)?def[ \t]+{name}[ \t]*\(|{name}[ \t]*=[^=])", code, re.MULTILINE))


def _before(context: str, entry: str | None) -> str:
    """Return what stands before the function in the context: imports and helpers."""
    start = next((match.start() for match in _DEF.finditer(context) if match[1] == entry), len(context))
    return context[:start] if entry is not None else context


def _continued(code: str, context: str) -> list[list[str]]:
    """Return the ways in which code may go on with the function that `context` begins.

    Texts are stored stripped, so that a first line may have lost its indentation; and a model that continues text
    goes on behind the function's end.
    """
    code = code.strip("\n").rstrip()
    if not code.strip():
        return []
    if not context.strip():
        return [[f"{code}\n"]]
    last = next((line for line in reversed(context.split("\n")) if line.strip()), "")
    margin = last[: len(last) - len(last.lstrip())] or "    "
    lines = code.split("\n")
    whole = "\n".join(margin + line if line.strip() else line for line in lines)
    first = code if lines[0][0] in " \t" else margin + code
    bodies = [first, whole, _indented_part(first), code]
    head = context if context.endswith("\n") or not context else f"{context}\n"
    return [[f"{head}{body}\n"] for body in dict.fromkeys(bodies)]


def _indented_part(code: str) -> str:
    """Return the lines up to the first one that begins at the margin."""
    kept: list[str] = []
    for line in code.split("\n"):
        if kept and line.strip() and line[0] not in " \t":
            break
        kept.append(line)
    return "\n".join(kept)


def _without_prose(text: str) -> str:
    """Return the lines from the first that begins code to the last before prose."""
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if _STARTS.match(line)), 0)
    kept: list[str] = []
    for line in lines[start:]:
        if line.strip() and line[0] not in " \t" and not _STARTS.match(line) and not _GOES_ON.match(line):
            break
        kept.append(line)
    return "\n".join(kept)
