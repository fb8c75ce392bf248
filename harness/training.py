"""`draftboard prepare` for methods that are trained: prompts, evaluations kept out of them, the target, progress."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from draftboard import __version__, models
from draftboard.errors import UserError
from draftboard.hub import find_folder
from draftboard.methods.artifact import Workshop, check_free
from draftboard.methods.training.answers import TextSide, Writing
from draftboard.methods.training.overlap import Evaluation
from draftboard.methods.training.prompts import SHARES
from draftboard.methods.training.sources import Given, Joined, Prompts, Stream
from draftboard.methods.training.workshop import Effort, Training
from draftboard.suites import SuiteError, SuiteSettings, load_suite
from draftboard.templates import Template, encode, render, resolve_template
from draftboard.training_prompts import Conversations, read_conversations, shuffled
from draftboard.wording import counted

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from transformers import PreTrainedTokenizerBase

    from draftboard.methods.method import Method

__all__ = ["GENERATED", "TrainingOptions", "evaluation_of", "read_effort", "text_side", "train"]

GENERATED = "generated"
"""What stands for our own prompts in --prompts."""

_ALWAYS_EXCLUDED = ("mini",)
"""Suites that come with the package."""
_LONGEST_PROMPT = 768
_SHOWN = 5
_MOST_EPOCHS = 1000
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions:
    """What `draftboard prepare` may be told for a method that is trained."""

    prompts: tuple[str, ...] = (GENERATED,)
    exclude: tuple[str, ...] = ()
    budget: str = "400k"
    epochs: float | None = None
    init: str | None = None
    """A folder, a hub id or a bundled name."""
    seed: int = 0
    max_new_tokens: int = 256
    template: str = "auto"
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    device: str = "auto"
    threads: int | None = None
    work: Path | None = None
    """Folder for answers, features and checkpoints; OUT.work where it is not named."""


def train(
    cls: type[Method],
    *,
    out: Path,
    model: str,
    revision: str | None,
    options: TrainingOptions,
    show: _Shown | None = None,
) -> None:
    """Let the method be trained for `model` into `out`. Raises UserError for bad input before weights are loaded."""
    check_free(out)
    effort = read_effort(options.budget, options.epochs)
    _check_numbers(options)
    init = None if options.init is None else find_folder(options.init)
    files = [read_conversations(source) for source in options.prompts if source != GENERATED]
    evaluation, excluded = evaluation_of((*_ALWAYS_EXCLUDED, *options.exclude))
    refuse_items(files, evaluation, excluded)
    ref = models.resolve(model, revision)
    tokenizer = models.load_tokenizer(ref)
    known = models.vocabulary(ref)
    template = resolve_template(options.template, tokenizer)
    side = text_side(tokenizer, template, known.eos_ids)
    window = int(getattr(models.load_config(ref), "max_position_embeddings", 0) or 1 << 30)
    shown = show or _Shown()
    if template.notice:
        shown.say(template.notice)
    writing = _writing(options, window)
    fingerprint = models.fingerprint(ref)
    dtype = _dtype(options)
    training = Training(
        target=_named(model),
        fingerprint=fingerprint,
        load_model=lambda: _load(ref, options),
        text=side,
        prompts=_prompts(options, files, evaluation, side),
        writing=writing,
        effort=effort,
        workplace=options.work or out.with_name(f"{out.name}.work"),
        init=init,
        provenance={
            "target": _named(model),
            "fingerprint": fingerprint,
            "dtype": dtype,
            "template": template.name if template.source is None else template.sha256,
            "excluded": excluded,
            "versions": _versions(),
        },
        banned=evaluation.holds,
        say=shown.say,
        advance=shown.advance,
    )
    workshop = Workshop(
        out=out,
        vocab_size=known.logit_width,
        vocabulary_sha256=known.sha256,
        eos_id=min(known.eos_ids, default=0),
        provenance={
            "target": _named(model),
            "draftboard": __version__,
            "command": _command(cls.name, model, revision, options),
            "data": [{"file": file.name, "sha256": file.sha256, "conversations": len(file.turns)} for file in files],
        },
        say=shown.say,
        training=training,
    )
    try:
        cls.prepare(workshop)
    finally:
        shown.end()


def _command(name: str, model: str, revision: str | None, options: TrainingOptions) -> str:
    """Return the command line that makes the same again, with files by their names alone."""
    words = ["draftboard", "prepare", name, "--model", _named(model)]
    if revision is not None:
        words += ["--revision", revision]
    if options.init is not None:
        words += ["--init", _named(options.init)]
    usual = TrainingOptions()
    for option in ("prompts", "exclude", "budget", "epochs", "seed", "max_new_tokens", "template", "dtype"):
        value = getattr(options, option)
        if option != "budget" and value == getattr(usual, option):
            continue
        for one in value if isinstance(value, tuple) else (value,):
            words += [f"--{option.replace('_', '-')}", _without_folders(str(one))]
    return shlex.join(words)


def _without_folders(text: str) -> str:
    suite, at, path = text.rpartition("@")
    return text if "://" in text else f"{suite}{at}{Path(path).name}"


def read_effort(budget: str, epochs: float | None = None) -> Effort:
    """Read `400k` (answer tokens, in thousands) or `90s`, `10m`, `2h` (time). Raises UserError for anything else.

    `epochs` are those asked for; a budget of time decides them itself.
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhk])", budget.strip())
    value = float(found[1]) if found else 0.0
    if found is None or not 0 < value < 1e6:
        raise UserError(
            f"--budget {budget!r} is no budget", advice="Use answer tokens in thousands (400k) or time (90s, 10m, 2h)."
        )
    if epochs is not None and not 0 < epochs <= _MOST_EPOCHS:
        raise UserError(f"--epochs {epochs:g} must lie above 0 and at most at {_MOST_EPOCHS:,}")
    if found[2] == "k":
        return Effort(tokens=max(1, round(value * 1000)), epochs=epochs)
    if epochs is not None:
        raise UserError(f"--epochs {epochs:g} and a budget of time", advice="Give --budget in answer tokens (400k).")
    return Effort(seconds=value * _UNITS[found[2]])


def evaluation_of(specs: Iterable[str]) -> tuple[Evaluation, list[str]]:
    """Return the items of these suites, and each suite's name with the start of its content hash.

    Raises UserError with every suite that cannot be loaded.
    """
    items: list[str] = []
    named: list[str] = []
    problems: list[str] = []
    for spec in dict.fromkeys(specs):
        try:
            suite = load_suite(spec, SuiteSettings())
        except SuiteError as error:
            problems.append(str(error))
            continue
        items += [turn for sample in suite.samples for turn in sample.turns]
        named.append(f"{suite.name} {suite.content_hash[:12]}")
    if problems:
        raise UserError(f"{counted(len(problems), 'suite')} of --exclude cannot be loaded", problems=tuple(problems))
    return Evaluation(items), named


def refuse_items(files: Sequence[Conversations], evaluation: Evaluation, excluded: Sequence[str]) -> None:
    """Raise UserError if any prompt of these files holds an evaluation's item, with the count and the first few."""
    found: list[str] = []
    conversations = 0
    for file in files:
        conversations += len(file.turns)
        for turns, place in zip(file.turns, file.places, strict=True):
            offences = evaluation.offenders(turns)
            if offences:
                found.append(f"{place}: {offences[0].rule}: {_short(offences[0].item)}")
    if found:
        more = [f"and {len(found) - _SHOWN:,} more"] if len(found) > _SHOWN else []
        raise UserError(
            f"{len(found):,} of {counted(conversations, 'conversation')} for training hold an item of an evaluation "
            f"({', '.join(name.split()[0] for name in excluded)})",
            problems=(*found[:_SHOWN], *more),
            advice="Figures on what was trained on mean nothing: take these out of the prompts.",
        )


def text_side(tokenizer: PreTrainedTokenizerBase, template: Template, eos_ids: frozenset[int]) -> TextSide:
    """Return what training needs of tokenizer and template."""

    def decode(ids: Sequence[int]) -> str:
        kept = list(ids[:-1] if ids and ids[-1] in eos_ids else ids)
        return str(tokenizer.decode(kept, skip_special_tokens=True)).strip()

    @cache
    def prefix() -> tuple[int, ...] | None:
        return _user_prefix(tokenizer, template, eos_ids)

    def user_prefix() -> list[int] | None:
        found = prefix()
        return None if found is None else list(found)

    return TextSide(
        encode=lambda turns, answers: encode(tokenizer, render(template, tokenizer, None, turns, answers)),
        decode=decode,
        eos_ids=eos_ids,
        user_prefix=user_prefix,
    )


def _user_prefix(
    tokenizer: PreTrainedTokenizerBase, template: Template, eos_ids: frozenset[int]
) -> tuple[int, ...] | None:
    """Return the ids before the user's first message, where the template ends that message with an end token.

    None for other templates: a model would not know where to stop.
    """
    if template.name in ("none", "vicuna"):
        return None
    parts = []
    for mark in ("Zebrafish", "Quartermaster"):
        text = render(template, tokenizer, None, [mark])
        before, found, behind = text.partition(mark)
        if not found or mark in behind:
            return None
        parts.append((before, behind))
    before, behind = parts[0]
    ids = encode(tokenizer, before)
    end = tokenizer(behind.lstrip(), add_special_tokens=False, verbose=False)["input_ids"]
    if parts[0] != parts[1] or not ids or not end or end[0] not in eos_ids:
        return None
    return tuple(ids)


def _prompts(
    options: TrainingOptions, files: Sequence[Conversations], evaluation: Evaluation, side: TextSide
) -> Prompts:
    shares = {kind: share for kind, share in SHARES.items() if kind != "own" or side.user_prefix() is not None}
    own = Stream(seed=options.seed, shares=shares, banned=evaluation.holds)
    if not files:
        return own
    described = [{"file": file.name, "sha256": file.sha256} for file in files]
    given = Given(shuffled(files, options.seed), {"files": described, "seed": options.seed})
    return Joined(given, own) if GENERATED in options.prompts else given


def _check_numbers(options: TrainingOptions) -> None:
    problems = []
    if not options.prompts:
        problems.append("--prompts names nothing")
    for name in ("max_new_tokens", "threads"):
        value = getattr(options, name)
        if value is not None and not 1 <= value <= 1 << 20:
            problems.append(f"{name} is {value}, and must be at least 1 (and at most {1 << 20:,})")
    if options.seed < 0:
        problems.append(f"seed is {options.seed}, and must not be negative")
    if problems:
        raise UserError(f"{counted(len(problems), 'problem')} in what is asked", problems=tuple(problems))


def _writing(options: TrainingOptions, window: int) -> Writing:
    room = window - options.max_new_tokens
    if room < 1:
        raise UserError(
            f"max_new_tokens is {options.max_new_tokens}, and the target's window has {window} tokens "
            "for prompt and answer"
        )
    return Writing(
        seed=options.seed,
        max_new_tokens=options.max_new_tokens,
        max_prompt_tokens=min(_LONGEST_PROMPT, room),
    )


def _dtype(options: TrainingOptions) -> str:
    """Return the target's dtype: on a CPU float32 unless another is asked for.

    Many rows at a time are bound by arithmetic, which bfloat16 speeds up on few CPUs and slows down on most.
    """
    device = models.resolve_device(options.device)
    if options.dtype == "auto" and device.type == "cpu":
        return "float32"
    return str(models.resolve_dtype(options.dtype, device)).removeprefix("torch.")


def _load(ref: models.ModelRef, options: TrainingOptions) -> Any:
    import torch

    if options.threads is not None:
        torch.set_num_threads(options.threads)
    return models.load_model(ref, dtype=_dtype(options), device=options.device)


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("torch", "transformers")}


def _named(model: str) -> str:
    """Return the model's name without folders of this machine."""
    return Path(model).name if Path(model).exists() else model


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:100]}…"


class _Shown:
    """A bar on a terminal's stderr, a line now and then elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._told = monotonic()

    def say(self, text: str) -> None:
        """Print a line."""
        from rich.markup import escape

        self._console.print(escape(text), highlight=False, soft_wrap=True)

    def advance(self, stage: str, done: float, total: float, note: str) -> None:
        """Show how much of a stage is done."""
        if self._console.is_terminal:
            self._show(stage, done, total, note)
        elif monotonic() - self._told > _QUIET_S:
            self._told = monotonic()
            self.say(f"{stage}: {min(1.0, done / total) if total else 1.0:.0%}, {note}")

    def end(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _show(self, stage: str, done: float, total: float, note: str) -> None:
        from rich.markup import escape
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        if self._bar is None:
            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, TextColumn("{task.fields[note]}"), console=self._console, transient=True)
            self._bar.start()
        if stage not in self._tasks:
            self._tasks[stage] = self._bar.add_task(escape(stage), total=total, note="")
        self._bar.update(self._tasks[stage], completed=min(done, total), total=total, note=escape(note))


_QUIET_S = 30.0
"""Without a terminal, a line at most this often."""
