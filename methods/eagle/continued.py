"""A head that is trained further: on more text, or on text of another kind, from where an earlier training left it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from draftboard.methods.artifact import read_artifact
from draftboard.methods.eagle.checkpoint import KIND, load_head
from draftboard.methods.eagle.config import TargetShape
from draftboard.methods.eagle.heads import Head
from draftboard.methods.errors import MethodError
from draftboard.methods.training.workshop import Training

__all__ = ["Begun", "begun_head"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A head to be trained on, float32, bound to its target's tables."""

    head: Head
    sha256: str
    """Of its weights in float32, names and order included."""
    record: Mapping[str, Any]
    """Where it comes from: its artifact's own record, where it has one, and `weights_sha256`."""


def begun_head(training: Training, kind: Literal["eagle", "eagle3"], model: Any) -> Begun | None:
    """Load the head that the training begins with, or return None where it begins with none.

    The head keeps its shape, its states and its vocabulary. Raises MethodError as `load_head` does, and for a head of
    the other kind.
    """
    folder = training.init
    if folder is None:
        return None
    embedding, lm_head = model.get_input_embeddings().weight.detach(), model.get_output_embeddings().weight.detach()
    text = model.config.get_text_config()
    shape = TargetShape(
        name=training.target,
        hidden=int(text.hidden_size),
        vocab=len(lm_head),
        layers=int(text.num_hidden_layers),
        fingerprint=training.fingerprint,
    )
    head = load_head(folder, target=shape, dtype=torch.float32, say=training.say, embedding=embedding)
    if head.config.kind != kind:
        raise MethodError(f"{folder} is a head of kind {head.config.kind}, and one of kind {kind} is to be trained")
    # The file's tensors are mapped into memory and are not to be written to.
    for parameter in head.parameters():
        parameter.data = parameter.data.clone()
    head.requires_grad_(True).to(embedding.device).bind(embedding, lm_head)
    digest = hashlib.sha256()
    for name, value in sorted(head.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().numpy().tobytes())
    earlier = read_artifact(folder, KIND) if (folder / "artifact.json").is_file() else {}
    record = {**earlier, "weights_sha256": digest.hexdigest()}
    return Begun(head=head, sha256=digest.hexdigest(), record=record)
