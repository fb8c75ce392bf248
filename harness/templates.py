"""From the turns of a sample to the token ids that the target reads.

Acceptance and quality both hang on the prompt's exact form, so that the form is chosen by name, is part of a
run's record, and never changes silently: a fallback gives a notice. The beginning-of-sequence token stands in
a prompt exactly once: chat templates write it themselves, plain text leaves it to the tokenizer.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from draftboard.errors import UserError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["TEMPLATES", "VICUNA_SYSTEM", "Template", "encode", "prompt_hash", "render", "resolve_template"]

TEMPLATES = ("auto", "vicuna", "none")

VICUNA_SYSTEM = (
    "A chat between a curious user and an artificial intelligence assistant. "
    "The assistant gives helpful, detailed, and polite answers to the user's questions."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """How prompts are written, settled once per run."""

    name: str
    """`chat` (the tokenizer's own), `vicuna`, `none`, or the Jinja file as the user named it."""
    source: str | None = None
    """The text of a Jinja file; None for the built-in ones."""
    notice: str = ""
    """What the user should know, when `auto` had to fall back."""

    @property
    def sha256(self) -> str:
        """Hash of the Jinja file's text; empty for the built-in ones."""
        return hashlib.sha256(self.source.encode()).hexdigest() if self.source is not None else ""


def resolve_template(template: str, tokenizer: "PreTrainedTokenizerBase") -> Template:
    """Settle what `template` (auto, vicuna, none, or the path of a Jinja file) means for this tokenizer.

    `auto` is the tokenizer's own chat template. Without one it is `vicuna` for a Vicuna checkpoint and `none`
    for anything else, both with a notice. Raises UserError for a file that is not there or does not parse.
    """
    if template == "auto":
        if getattr(tokenizer, "chat_template", None):
            return Template(name="chat")
        if _looks_like_vicuna(tokenizer):
            return Template(
                name="vicuna", notice="The tokenizer has no chat template; prompts use the Vicuna template."
            )
        return Template(
            name="none",
            notice="The tokenizer has no chat template; prompts are the raw turns (template none).",
        )
    if template in TEMPLATES:
        return Template(name=template)
    try:
        source = Path(template).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, ValueError, RuntimeError) as error:  # the last for a home folder that nobody has
        raise UserError(
            f"template {template!r} cannot be read: {getattr(error, 'strerror', None) or error}",
            advice=f"Templates: {', '.join(TEMPLATES)}, or the path of a Jinja file.",
        ) from error
    _compile(template, source)
    return Template(name=template, source=source)


def render(
    template: Template,
    tokenizer: "PreTrainedTokenizerBase",
    system: str | None,
    turns: Sequence[str],
    answers: Sequence[str] = (),
) -> str:
    """Write the prompt whose last user message is `turns[-1]`.

    `answers` are the model's own answers to the turns before it, one each. A system message stands in the
    prompt only where the sample has one; what a chat template adds by itself is that template's business.
    Raises UserError where a template fails on this conversation.
    """
    if not turns or len(answers) != len(turns) - 1:
        raise ValueError(f"{len(turns)} turns need {len(turns) - 1} answers, got {len(answers)}")
    if template.source is not None:
        return _render_file(template.name, template.source, tokenizer, system, turns, answers)
    if template.name == "chat":
        return _render_chat(tokenizer, messages(system, turns, answers))
    if template.name == "vicuna":
        return _render_vicuna(system, turns, answers)
    return _render_plain(system, turns, answers)


def encode(tokenizer: "PreTrainedTokenizerBase", text: str) -> list[int]:
    """Token ids of a rendered prompt, the beginning-of-sequence token exactly once where the tokenizer has
    one.

    A text that starts with that token's text, blanks before it aside, has it already; otherwise it is the tokenizer's
    to add, or not.
    """
    bos = tokenizer.bos_token
    written = bool(bos) and text.lstrip().startswith(str(bos))
    encoded = tokenizer(text, add_special_tokens=not written, return_attention_mask=False, verbose=False)
    ids = [int(token) for token in encoded["input_ids"]]
    # Some tokenizers close every text with an end token, as encoders need it; a prompt has to stay open.
    closed = not written and ids[-1:] == [tokenizer.eos_token_id]
    if closed and not text.endswith(str(tokenizer.eos_token)):
        ids.pop()
    return ids


def prompt_hash(prompts: Iterable[str]) -> str:
    """sha256 over rendered prompts in order; each is preceded by its length, so that no two lists collide."""
    digest = hashlib.sha256()
    for prompt in prompts:
        data = prompt.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def messages(system: str | None, turns: Sequence[str], answers: Sequence[str]) -> list[dict[str, str]]:
    """The conversation as role and content, the form that chat templates take."""
    listed = [{"role": "system", "content": system}] if system is not None else []
    for index, turn in enumerate(turns):
        listed.append({"role": "user", "content": turn})
        if index < len(answers):
            listed.append({"role": "assistant", "content": answers[index]})
    return listed


def _render_chat(tokenizer: "PreTrainedTokenizerBase", conversation: list[dict[str, str]]) -> str:
    from jinja2 import TemplateError

    try:
        text = tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
    except (TemplateError, TypeError, ValueError) as error:
        roles = ", ".join(message["role"] for message in conversation)
        raise UserError(
            f"the tokenizer's chat template fails on a conversation of {roles}: {error}",
            advice="Many take no system message. Choose another template: vicuna, none or a Jinja file.",
        ) from error
    return str(text)


def _render_vicuna(system: str | None, turns: Sequence[str], answers: Sequence[str]) -> str:
    """FastChat's conversation for Vicuna v1.1, byte for byte: what Spec-Bench prompts every model with."""
    text = (VICUNA_SYSTEM if system is None else system) + " "
    for turn, answer in zip(turns, answers, strict=False):
        text += f"USER: {turn} ASSISTANT: {answer}</s>"
    return f"{text}USER: {turns[-1]} ASSISTANT:"


def _render_plain(system: str | None, turns: Sequence[str], answers: Sequence[str]) -> str:
    """The raw turn; what came before it stands above, each part after a blank line."""
    parts = [system] if system is not None else []
    for turn, answer in zip(turns, answers, strict=False):
        parts += [turn, answer]
    return "\n\n".join([*parts, turns[-1]])


def _compile(name: str, source: str) -> Any:
    from jinja2 import StrictUndefined, TemplateSyntaxError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # A template decides over every byte of a prompt, its last line feed included.
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
    try:
        code = environment.compile(source, filename=name)
    except TemplateSyntaxError as error:
        raise UserError(f"not a Jinja template: {error.message}", where=f"{name}:{error.lineno}") from error
    except (RecursionError, ValueError, OverflowError, MemoryError) as error:
        raise UserError(f"the template cannot be compiled: {error or type(error).__name__}", where=name) from error
    return environment.template_class.from_code(environment, code, environment.make_globals(None))


def _render_file(
    name: str,
    source: str,
    tokenizer: "PreTrainedTokenizerBase",
    system: str | None,
    turns: Sequence[str],
    answers: Sequence[str],
) -> str:
    from jinja2 import TemplateError

    compiled = _compile(name, source)
    try:
        text = str(
            compiled.render(
                messages=messages(system, turns, answers),
                system=system,
                turns=list(turns),
                answers=list(answers),
                bos_token=tokenizer.bos_token or "",
                eos_token=tokenizer.eos_token or "",
            )
        )
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError) as error:
        raise UserError(
            f"the template fails: {str(error) or type(error).__name__}",
            where=f"{name}:{_line_of(error, name)}",
            advice="A template is given messages, system, turns, answers, bos_token and eos_token.",
        ) from error
    if not text:
        raise UserError("the template gives an empty prompt", where=name)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError("the template gives half a surrogate pair, which is no character", where=name)
    return text


def _line_of(error: BaseException, name: str) -> int:
    """The template's line; jinja rewrites tracebacks so that frames carry the template's name and lines."""
    line, trace = 1, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _looks_like_vicuna(tokenizer: "PreTrainedTokenizerBase") -> bool:
    """A checkpoint whose name says so, with the LLaMA tokens that the template writes."""
    named = "vicuna" in str(getattr(tokenizer, "name_or_path", "")).lower()
    return named and tokenizer.eos_token == "</s>"
