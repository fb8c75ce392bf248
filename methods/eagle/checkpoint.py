"""Loading a head from a folder of any toolkit, or of ours: understood first, then read, and never guessed.

A head that is wrong in one place still runs and still gives the target's text; only its drafts are worse. So what does
not fit is refused, by name, before a run measures it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from draftboard.methods.artifact import read_artifact
from draftboard.methods.eagle.config import HeadConfig, TargetShape
from draftboard.methods.eagle.description import describe
from draftboard.methods.eagle.heads import Head, make_head
from draftboard.methods.eagle.naming import EMBEDDING, Naming, name_tensors, parameter_names
from draftboard.methods.eagle.vocabulary import check_maps, from_offsets
from draftboard.methods.eagle.weights import TensorInfo, WeightFiles, find_weights
from draftboard.methods.errors import MethodError

__all__ = ["KIND", "VOCABULARY", "load_counts", "load_head", "read_config"]

KIND = "eagle-head"
"""Of our artifacts."""
VOCABULARY = "vocabulary.safetensors"
"""Beside an artifact's weights: `token_counts` int64 [V]; `target_ids` int64 [Vd] where EAGLE-1 drafts only these."""

_FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
_SHOWN = 5
_SAMPLED_ROWS = 2_048
_SAME = 0.02
"""Relative distance of two embeddings that are one, but for the rounding of their dtypes."""

Say = Callable[[str], None]


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A head's files, understood; no value has been read."""

    config: HeadConfig
    naming: Naming
    weights: WeightFiles
    infos: dict[str, TensorInfo]
    """By official name."""


def read_config(folder: Path, *, target: TargetShape, say: Say = _tell) -> HeadConfig:
    """Tell what the folder's head is made of, from its configuration and the shapes of its tensors.

    Raises MethodError for everything that `load_head` refuses, save what only the values show.
    """
    return _read(folder, target, say).config


def load_head(
    folder: Path,
    *,
    target: TargetShape,
    dtype: torch.dtype | None,
    say: Say = _tell,
    embedding: Tensor | None = None,
) -> Head:
    """Load a head onto the CPU, in evaluation mode and without gradients; `bind` it to its target then.

    `dtype` is the target's, since both compute on the same states; None keeps the file's. `embedding` [V, Ht] is the
    target's, only to compare: a file's own embedding is not used where the target's has the head's width, and `say`
    is told where the two differ. Raises MethodError for files that are broken, no head, or a head for another target,
    for values that are no numbers, and for values beyond the dtype's range.
    """
    read = _read(folder, target, say)
    wanted = {read.naming.found[name]: name for name in _wanted(read, embedding)}
    values = {wanted[name]: value for name, value in read.weights.tensors(wanted).items()}
    where = str(folder)
    ids = _target_ids(read, values, folder)
    parameters = {name: values[name] for name in parameter_names(read.config)}
    _refuse_values(parameters, dtype, where)
    if EMBEDDING in values and EMBEDDING not in parameters and embedding is not None:
        _compare(values[EMBEDDING], embedding, where, say)
    # Made without memory: fresh weights of a large head would cost as much again, and time for the drawing.
    with torch.device("meta"):
        head = make_head(read.config, ids)
    head.rotary_emb = type(head.rotary_emb)(head.rotary_emb.config)
    kind = dtype or parameters["fc.weight"].dtype
    head.load_state_dict({name: value.to(kind) for name, value in parameters.items()}, strict=True, assign=True)
    return head.eval().requires_grad_(False)


def load_counts(folder: Path) -> Tensor | None:
    """Return how often each id of the target stood in the training text, int64 [V], where the artifact says it."""
    path = folder / VOCABULARY
    if not path.is_file():
        return None
    return WeightFiles(files=(path,)).tensors({"token_counts"}).get("token_counts")


def _read(folder: Path, target: TargetShape, say: Say) -> _Read:
    if not folder.is_dir():
        raise MethodError(f"{folder} is no folder; a head is a folder with config.json and weights")
    if (folder / "artifact.json").is_file():
        _check_artifact(folder, target)
    settings = _settings(folder)
    weights = find_weights(folder)
    found = weights.infos()
    try:
        naming = name_tensors(found)
    except MethodError as error:
        raise MethodError(f"{weights.where}: {error}") from error
    infos = {official: found[name] for official, name in naming.found.items()}
    shapes = {name: info.shape for name, info in infos.items()}
    if (folder / VOCABULARY).is_file() and naming.kind == "eagle":
        kept = WeightFiles(files=(folder / VOCABULARY,)).infos().get("target_ids")
        shapes |= {"token_map": kept.shape} if kept is not None else {}
    config = describe(settings, naming, shapes, target=target, where=str(folder), say=say)
    _refuse_shapes(config, infos, folder)
    return _Read(config=config, naming=naming, weights=weights, infos=infos)


def _check_artifact(folder: Path, target: TargetShape) -> None:
    record = read_artifact(folder, KIND)
    made_for = record.get("target_fingerprint")
    if made_for and target.fingerprint and made_for != target.fingerprint:
        raise MethodError(
            f"{folder} is a head for another target: it was trained for {record.get('target', 'another model')} "
            f"(weights {str(made_for)[:12]}), and the weights of {target.name} are {target.fingerprint[:12]}"
        )


def _settings(folder: Path) -> Mapping[str, Any]:
    path = folder / "config.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise MethodError(f"{folder} has no config.json, which says how many attention heads a head has") from error
    except (OSError, ValueError, RecursionError) as error:
        raise MethodError(f"{path} is not readable JSON: {str(error).splitlines()[0]}") from error
    if not isinstance(found, dict):
        raise MethodError(f"{path} holds a {type(found).__name__} where an object is expected")
    return found


def _refuse_shapes(config: HeadConfig, infos: Mapping[str, TensorInfo], folder: Path) -> None:
    """Compare every tensor with the module it goes to, all differences at once."""
    try:
        with torch.device("meta"):
            head = make_head(config, torch.arange(config.draft_vocab))
    except MethodError as error:
        raise MethodError(f"{folder}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise MethodError(
            f"{folder}/config.json: transformers does not know such a RoPE scaling: {config.rope_scaling} ({error})"
        ) from error
    problems = []
    for name, parameter in head.state_dict().items():
        info = infos[name]
        if info.shape != tuple(parameter.shape):
            problems.append(f"{name} is {list(info.shape)} and must be {list(parameter.shape)}")
        elif info.dtype not in _FLOATS:
            kind = str(info.dtype).removeprefix("torch.")
            problems.append(f"{name} is {kind}: a quantised head; take the unquantised one")
    if problems:
        more = f" and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise MethodError(f"{folder}: tensors do not fit together: {'; '.join(problems[:_SHOWN])}{more}")


def _wanted(read: _Read, embedding: Tensor | None) -> list[str]:
    extra = ["d2t", "t2d", "token_map", *([EMBEDDING] if embedding is not None else [])]
    return [*parameter_names(read.config), *(name for name in extra if read.naming.has(name))]


def _target_ids(read: _Read, values: Mapping[str, Tensor], folder: Path) -> Tensor:
    """Return int64 [Vd], ascending, on the CPU: of d2t, of t2d, of a table of ids, or every id."""
    config = read.config
    marks = values.get("t2d")
    if marks is not None and not marks.dtype.is_floating_point and bool(((marks == 0) | (marks == 1)).all()):
        marks = marks.bool()
    try:
        if "d2t" in values:
            check_maps(values["d2t"], marks, config.vocab, config.draft_vocab)
            return from_offsets(values["d2t"].long())
        if marks is not None:
            ids = marks.nonzero()[:, 0]
            check_maps(ids - torch.arange(len(ids)), marks, config.vocab, config.draft_vocab)
            return ids
        table = _id_table(values, folder)
        if table is None:
            return torch.arange(config.draft_vocab)
        check_maps(table - torch.arange(len(table)), None, config.vocab, config.draft_vocab)
    except MethodError as error:
        raise MethodError(f"{folder}: {error}") from error
    return table


def _id_table(values: Mapping[str, Tensor], folder: Path) -> Tensor | None:
    """Return the ids of an EAGLE-1 head's reduced vocabulary, of vLLM's table or of our artifact's."""
    ids = values.get("token_map")
    if ids is None and (folder / VOCABULARY).is_file():
        ids = WeightFiles(files=(folder / VOCABULARY,)).tensors({"target_ids"}).get("target_ids")
    if ids is None:
        return None
    if ids.dtype.is_floating_point or ids.dim() != 1:
        raise MethodError(
            f"the table of ids is {ids.dtype} of shape {list(ids.shape)}; whole numbers in a row are needed"
        )
    return ids.long().sort().values


def _refuse_values(parameters: Mapping[str, Tensor], dtype: torch.dtype | None, where: str) -> None:
    """Refuse what is no number, and what would become infinite in `dtype`.

    Another dtype than the target's is no way out: both compute on the same states and share embedding and output.
    """
    broken, over = [], []
    for name, value in parameters.items():
        bad = int((~value.isfinite()).sum())
        if bad:
            broken.append(f"{name} ({bad} of {value.numel()})")
        elif dtype is not None and value.numel() and float(value.abs().max()) > torch.finfo(dtype).max:
            over.append(f"{name} (up to {float(value.abs().max()):.3g})")
    if broken:
        raise MethodError(
            f"{where} holds values that are no finite numbers: {', '.join(broken[:_SHOWN])}; "
            "its training or its export failed"
        )
    if over:
        kind = str(dtype).removeprefix("torch.")
        raise MethodError(
            f"{where} holds values beyond the range of {kind} ({torch.finfo(dtype or torch.float16).max:.3g}): "
            f"{', '.join(over[:_SHOWN])}; run with --dtype bfloat16 or float32, which target and head then share"
        )


def _compare(own: Tensor, theirs: Tensor, where: str, say: Say) -> None:
    """Tell where a file's embedding is not the target's: exporters have written random numbers there."""
    if own.shape != theirs.shape:
        say(f"{where}: its {EMBEDDING} has shape {list(own.shape)}; the target's {list(theirs.shape)} is used")
        return
    rows = torch.linspace(0, len(own) - 1, min(len(own), _SAMPLED_ROWS)).long()
    mine, other = own[rows].float(), theirs[rows.to(theirs.device)].float().cpu()
    distance = float((mine - other).norm() / other.norm().clamp(min=1e-30))
    if not distance <= _SAME:
        say(
            f"{where}: its {EMBEDDING} is not the target's (relative distance {distance:.2g}); the target's is used. "
            "Either its exporter wrote other numbers there, or it is a head for another target"
        )
