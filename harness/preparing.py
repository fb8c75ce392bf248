"""`draftboard prepare`: lets a method make its artifact, from a corpus in the target's tokens or by training."""

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from draftboard import __version__, models
from draftboard.errors import UserError
from draftboard.methods import Method, method_class
from draftboard.methods.artifact import Workshop, check_free
from draftboard.training import TrainingOptions, train

__all__ = ["TrainingOptions", "prepare_command", "read_documents"]


def prepare_command(
    name: str,
    corpus: Sequence[Path],
    *,
    out: Path | None,
    model: str,
    revision: str | None,
    training: TrainingOptions | None = None,
) -> int:
    """Make an artifact and print where it is.

    `training` is what was said for a method that is trained, None if nothing was.
    """
    cls = method_class(name)
    out = out or _usual_place(name, model)
    if cls.training == "trained":
        if corpus:
            raise UserError(f"{name} is trained on answers of its target and takes no CORPUS", advice="Use --prompts.")
        train(cls, out=out, model=model, revision=revision, options=training or TrainingOptions())
    else:
        if training is not None:
            raise UserError(f"{name} is not trained: it takes a CORPUS, and no options of a training")
        _from_corpus(cls, corpus, out=out, model=model, revision=revision)
    print(out)
    return 0


def _usual_place(name: str, model: str) -> Path:
    target = re.sub(r"[^\w.-]+", "-", model.rstrip("/").rpartition("/")[2]) or "model"
    return Path("artifacts") / f"{target}-{name}"


def _from_corpus(cls: type[Method], corpus: Sequence[Path], *, out: Path, model: str, revision: str | None) -> None:
    check_free(out)
    if not corpus:
        raise UserError(f"{cls.name} is made from texts, and there is no CORPUS", advice="Name text or JSONL files.")
    texts = _texts(corpus)
    if not texts:
        raise UserError("the corpus holds no text", where=", ".join(map(str, corpus)))
    ref = models.resolve(model, revision)
    tokenizer = models.load_tokenizer(ref)
    known = models.vocabulary(ref)
    eos = tokenizer.eos_token_id if tokenizer.eos_token_id is not None else min(known.eos_ids, default=0)
    workshop = Workshop(
        out=out,
        documents=[tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts],
        vocab_size=known.logit_width,
        vocabulary_sha256=known.sha256,
        eos_id=int(eos),
        provenance={"target": model, "draftboard": __version__, "data": [_provenance(path) for path in corpus]},
        say=lambda text: print(text, file=sys.stderr),
    )
    cls.prepare(workshop)


def _texts(corpus: Sequence[Path]) -> list[str]:
    texts: list[str] = []
    problems: list[str] = []
    for path in corpus:
        try:
            texts += read_documents(path)
        except UserError as error:
            problems.append(str(error))
    if problems:
        raise UserError(f"{len(problems)} file(s) of the corpus cannot be used", problems=tuple(problems))
    return texts


def _provenance(path: Path) -> dict[str, Any]:
    return {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def read_documents(path: Path) -> Iterator[str]:
    """Yield the documents of a text file (one) or a JSONL file (`text`, `prompt` or `turns` of every line).

    All broken lines are reported at once.
    """
    try:
        data = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UserError(f"is not UTF-8 (byte {error.start})", where=str(path)) from error
    if path.suffix != ".jsonl":
        if data.strip():
            yield data
        return
    problems: list[str] = []
    documents: list[str] = []
    for number, line in enumerate(data.split("\n"), 1):
        if not line.strip():
            continue
        try:
            documents.append(_document(json.loads(line)))
        except ValueError as error:
            problems.append(f"{path}:{number}: {error}")
    if problems:
        raise UserError(
            f"{len(problems)} broken line(s)",
            where=str(path),
            problems=tuple(problems),
            advice="Each line is an object with a text in `text` or `prompt`, or texts in `turns`.",
        )
    yield from documents


def _document(row: object) -> str:
    if isinstance(row, str):
        return row
    if not isinstance(row, dict):
        raise ValueError("not an object")
    for key in ("text", "prompt"):
        if isinstance(row.get(key), str):
            return str(row[key])
    turns = row.get("turns")
    if isinstance(turns, list) and all(isinstance(turn, str) for turn in turns):
        return "\n".join(turns)
    raise ValueError("has no text, prompt or turns")
