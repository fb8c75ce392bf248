"""`draftboard prepare eagle` and `eagle3`: from prompts to a trained head, in stages that go on where they were."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import torch
from torch import Tensor

from draftboard.methods.artifact import Workshop, check_free
from draftboard.methods.eagle.batches import Batches
from draftboard.methods.eagle.config import HeadConfig, default_taps
from draftboard.methods.eagle.continued import begun_head
from draftboard.methods.eagle.export import save_head
from draftboard.methods.eagle.heads import Head
from draftboard.methods.eagle.losses import Aims, Lesson
from draftboard.methods.eagle.train import CHAIN, Course, acceptance, fresh_head, split_texts, train_head
from draftboard.methods.eagle.vocabulary import most_frequent
from draftboard.methods.errors import MethodError
from draftboard.methods.training.answers import read_answers
from draftboard.methods.training.extract import extract
from draftboard.methods.training.loop import Trained
from draftboard.methods.training.shards import Features, ShardWriter, Text
from draftboard.methods.training.texts import texts_of
from draftboard.methods.training.workshop import Training

__all__ = ["COURSES", "head_config", "prepare_head", "vocabulary_for"]

Kind = Literal["eagle", "eagle3"]

COURSES: dict[Kind, Course] = {
    "eagle": Course(epochs=6, rate=1e-3, batch_tokens=1024, aims=Aims(regression=1.0, cross_entropy=0.5)),
    "eagle3": Course(
        epochs=5, rate=1e-3, batch_tokens=1024, aims=Aims(steps=3, decay=0.8, regression=0.0, cross_entropy=1.0)
    ),
}
"""What small heads on a few hundred thousand tokens are trained with; published recipes are in native-methods 1.7."""

_LONGEST = 640
"""Tokens of a text that are used."""
_COVERED = 0.97
"""Share of the target's own words that a head's vocabulary has to hold."""
_GRAIN = 256
_ANSWERING = 0.55
"""Share of a budget of time that goes into answers; what reading them leaves goes into training."""
_FEWEST_STEPS = 20
_GENTLER = 0.5
"""Learning rate of a head that has learned before, relative to a fresh one's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    """What the first sitting decided and later ones keep."""

    texts: int
    draft_vocab: int
    epochs: float


def prepare_head(workshop: Workshop, kind: Kind) -> dict[str, Any]:
    """Train a head for the workshop's target and write the artifact; return its record.

    Raises MethodError for a target that heads of this kind cannot be trained for, and as the stages do.
    """
    training = workshop.training
    if training is None:
        raise MethodError("a head is trained on answers of its target, and this workshop has no target to ask")
    check_free(workshop.out)
    began = monotonic()
    model = training.load_model()
    begun = begun_head(training, kind, model)
    sizes = begun.head.config if begun else head_config(kind, model.config, draft_vocab=int(model.config.vocab_size))
    effort = training.effort
    folder = training.answers(
        model,
        tokens=effort.tokens,
        seconds=None if effort.seconds is None else effort.seconds * _ANSWERING,
    )
    texts = _texts(folder, effort.tokens)
    features, taps = _features(training, model, sizes, texts)
    embedding, lm_head = model.get_input_embeddings().weight.detach(), model.get_output_embeddings().weight.detach()
    counts = features.counts(sizes.vocab)
    course = replace(COURSES[kind], precision="bf16" if embedding.is_cuda else "no")
    if begun:
        course = replace(course, rate=course.rate * _GENTLER)
    ids = begun.head.target_ids.cpu() if begun else vocabulary_for(counts, always=sorted(training.text.eos_ids))
    settled = _settle(training, features, taps, sizes, course, ids, (embedding, lm_head), left_s=_left(training, began))
    head = begun.head if begun else _head(training, sizes, counts, settled, embedding, lm_head)
    course = replace(course, epochs=settled.epochs)
    about = {"texts": settled.texts, **({"init": begun.sha256} if begun else {})}
    made = _train(training, head, lm_head, features, taps, course, about)
    # What is shipped is judged: bfloat16 halves the file, and its rounding is part of it.
    head.to(torch.bfloat16).to(torch.float32)
    found = acceptance(head, features, split_texts(len(features))[1], taps)
    training.say(
        f"held-out texts: {found['accepted_per_step']:.2f} accepted drafts a step in a chain of {CHAIN}, "
        f"first draft right {found['first_draft_right']:.0%}"
    )
    record = {
        **workshop.provenance,
        "target": training.target,
        "target_fingerprint": training.fingerprint,
        "training": {
            "texts": len(features),
            "answer_tokens": sum(features.generated),
            "answers": _read(folder / "meta.json"),
            "vocabulary_covers": round(_covered(counts, head.target_ids), 5),
            "course": asdict(course),
            "steps": made.steps,
            "loss": round(made.loss, 5),
            "evaluations": list(made.evaluations),
            "duration_s": round(made.duration_s, 1),
        },
        **({"init": begun.record} if begun else {}),
        "held_out": {name: round(value, 4) for name, value in found.items()} | {"chain": CHAIN},
    }
    save_head(head.to(torch.bfloat16), workshop.out, record=record, counts=counts)
    return record


def head_config(kind: Kind, target: Any, *, draft_vocab: int) -> HeadConfig:
    """Return the sizes of a head for a target of this (transformers) configuration: a layer like one of its own.

    Heads trained here share the target's embedding and output layer.
    """
    text = target.get_text_config()
    layers = int(text.num_hidden_layers)
    heads = int(text.num_attention_heads)
    hidden = int(text.hidden_size)
    rope = getattr(text, "rope_parameters", None) or {}
    return HeadConfig(
        kind=kind,
        hidden=hidden,
        target_hidden=hidden,
        vocab=int(text.vocab_size),
        draft_vocab=draft_vocab,
        heads=heads,
        kv_heads=int(getattr(text, "num_key_value_heads", None) or heads),
        head_dim=int(getattr(text, "head_dim", None) or hidden // heads),
        intermediate=int(text.intermediate_size),
        taps=(layers,) if kind == "eagle" else default_taps(layers),
        own_lm_head=False,
        eps=float(getattr(text, "rms_norm_eps", 1e-6)),
        rope_theta=float(rope.get("rope_theta", 10000.0)),
        window=int(getattr(text, "max_position_embeddings", 2048)),
    )


def vocabulary_for(counts: Tensor, *, always: Sequence[int] = ()) -> Tensor:
    """Return the ids that a head is to draft: the most frequent ones, so many that they cover 97 % of `counts` [V]."""
    shares = counts.sort(descending=True).values.cumsum(0) / counts.sum().clamp(min=1)
    needed = int((shares < _COVERED).sum()) + 1
    size = min(len(counts), max(-(-needed // _GRAIN) * _GRAIN, len(always)))
    return most_frequent(counts, size, always)


def _covered(counts: Tensor, ids: Tensor) -> float:
    return float(counts[ids].sum() / counts.sum().clamp(min=1))


def _texts(folder: Path, tokens: int | None) -> list[Text]:
    """Return the texts of the answers, so many that the target wrote `tokens` of them."""
    found: list[Text] = []
    written = 0
    for text in texts_of(read_answers(folder), longest=_LONGEST):
        if tokens is not None and written >= tokens:
            break
        found.append(text)
        written += sum(text.loss)
    if not found:
        raise MethodError("the answers hold nothing to learn from: ask for more of them")
    return found


def _features(
    training: Training, model: Any, sizes: HeadConfig, texts: Sequence[Text]
) -> tuple[Features, tuple[int, ...]]:
    """Return the target's states on disk, and where the head's taps stand among them (the last layer is last)."""
    layers = int(model.config.get_text_config().num_hidden_layers)
    wanted = sizes.taps if layers in sizes.taps else (*sizes.taps, layers)
    folder, kept = _folder(training, sizes.kind, wanted)
    writer = ShardWriter(folder, {"fingerprint": training.fingerprint, "taps": list(kept), "longest": _LONGEST})
    total = sum(len(text.ids) for text in texts[writer.written :])
    done, began, told = 0, monotonic(), False

    def report(tokens: int) -> None:
        nonlocal done, told
        done += tokens
        rate = done / (monotonic() - began)
        if not told:
            told = True
            training.say(f"reading {total:,} tokens once for their hidden states: about {_minutes(total / rate)}")
        training.advance("features", done, total, f"{rate:.0f} tokens/s")

    extract(model, texts, kept, writer, report=report)
    return Features(folder, texts=len(texts)), tuple(kept.index(tap) for tap in sizes.taps)


def _folder(training: Training, kind: Kind, wanted: tuple[int, ...]) -> tuple[Path, tuple[int, ...]]:
    """Return where the states are or shall be, and which: those of another kind of head serve as well if they hold the
    wanted ones, the last of them last."""
    for other in sorted(training.workplace.glob("features-*/index.json")):
        found = tuple(_read(other).get("taps", ()))
        if set(wanted) <= set(found) and found[-1] == wanted[-1]:
            return other.parent, found
    return training.workplace / f"features-{kind}", wanted


def _left(training: Training, began: float) -> float | None:
    """Return the seconds that a budget of time leaves for training."""
    seconds = training.effort.seconds
    return None if seconds is None else max(0.0, seconds - (monotonic() - began))


def _settle(
    training: Training,
    features: Features,
    taps: Sequence[int],
    sizes: HeadConfig,
    course: Course,
    ids: Tensor,
    tables: tuple[Tensor, Tensor],
    *,
    left_s: float | None,
) -> _Settled:
    """Decide how long to train and over which vocabulary, or keep what an earlier sitting decided; say the cost."""
    path = training.workplace / f"settled-{sizes.kind}.json"
    if path.exists():
        try:
            found = _Settled(**_read(path))
        except TypeError as error:
            raise MethodError(f"{path} cannot be used ({error}): delete it, and it is decided anew") from error
        if found.texts == len(features) and training.effort.epochs in (None, found.epochs):
            return found
    head = fresh_head(replace(sizes, draft_vocab=len(ids)), ids.to(tables[0].device), *tables, seed=0)
    lesson = Lesson(head, tables[1], course.aims)
    learned, _ = split_texts(len(features))
    batches = Batches(features, learned, taps, tokens=course.batch_tokens)
    took = []
    for place in range(3):
        start = monotonic()
        lesson(batches(place)).backward()
        took.append(monotonic() - start)
    step_s = min(took)
    epochs = training.effort.epochs or course.epochs
    if left_s is not None:
        steps = min(round(epochs * batches.per_epoch), max(_FEWEST_STEPS, int(left_s / (1.1 * step_s))))
        epochs = steps / batches.per_epoch
    training.say(
        f"training on {len(learned):,} texts, {epochs:.1f} times, drafting {len(ids):,} of {sizes.vocab:,} ids: "
        f"about {_minutes(1.1 * step_s * epochs * batches.per_epoch)}"
    )
    settled = _Settled(texts=len(features), draft_vocab=len(ids), epochs=epochs)
    path.write_text(json.dumps(asdict(settled)) + "\n", encoding="utf-8")
    return settled


def _head(
    training: Training, sizes: HeadConfig, counts: Tensor, settled: _Settled, embedding: Tensor, lm_head: Tensor
) -> Head:
    ids = most_frequent(counts, settled.draft_vocab, sorted(training.text.eos_ids)).to(embedding.device)
    config = replace(sizes, draft_vocab=len(ids))
    return fresh_head(config, ids, embedding, lm_head, seed=training.writing.seed)


def _train(
    training: Training,
    head: Head,
    lm_head: Tensor,
    features: Features,
    taps: Sequence[int],
    course: Course,
    about: Mapping[str, Any],
) -> Trained:
    def report(step: int, total: int, loss: float, figures: dict[str, float]) -> None:
        note = f"loss {loss:.3f}"
        if figures:
            training.say(
                f"step {step:,} of {total:,}: {note}; held-out texts: "
                f"{figures['accepted_per_step']:.2f} accepted a step, "
                f"first draft right {figures['first_draft_right']:.0%}"
            )
        training.advance("training", step, total, note)

    return train_head(
        head,
        lm_head,
        features,
        taps,
        course,
        folder=training.workplace / f"training-{head.config.kind}",
        about={"head": asdict(head.config), "target_fingerprint": training.fingerprint, **about},
        report=report,
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MethodError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise MethodError(f"{path} cannot be used: it holds no object")
    return found


def _minutes(seconds: float) -> str:
    return f"{max(1, round(seconds / 60))} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
