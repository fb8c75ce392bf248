"""What a method had to make beforehand: a folder with `artifact.json` and plain tensors, and where it came from.

Never pickle. A folder is written under another name and renamed, so that a half-made one is not taken for whole.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from draftboard.methods.errors import MethodError

if TYPE_CHECKING:
    from draftboard.methods.training.workshop import Training

__all__ = ["SCHEMA", "Workshop", "check_free", "read_artifact", "write_artifact"]

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What `Method.prepare` works with. Plain data and callables: no model is needed to test a method's algorithm."""

    out: Path
    documents: Iterable[list[int]] = ()
    """Token ids of each document of the corpus, for methods that are made from one."""
    vocab_size: int
    vocabulary_sha256: str
    eos_id: int
    provenance: dict[str, Any] = field(default_factory=dict)
    """Goes into `artifact.json`: target, data with hashes, versions."""
    say: Callable[[str], None] = lambda text: None
    training: Training | None = None
    """What methods that are trained (`Method.training` is "trained") work with; None for the others."""


def check_free(out: Path) -> None:
    """Raise MethodError where something stands already: told before hours of work and not after them."""
    if out.exists():
        raise MethodError(f"{out} exists already; choose another --out")


def write_artifact(out: Path, record: dict[str, Any], fill: Callable[[Path], None]) -> None:
    """Make folder `out`: `fill` writes the tensors, then comes `artifact.json`. Raises MethodError if it cannot."""
    check_free(out)
    workplace = out.with_name(f".{out.name}.making")
    try:
        shutil.rmtree(workplace, ignore_errors=True)
        workplace.mkdir(parents=True)
        fill(workplace)
        text = json.dumps({"schema": SCHEMA, **record}, ensure_ascii=False, indent=1, allow_nan=False)
        (workplace / "artifact.json").write_text(text + "\n", encoding="utf-8")
        workplace.rename(out)
    except OSError as error:
        raise MethodError(f"{out} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


def read_artifact(folder: Path, kind: str) -> dict[str, Any]:
    """Read `artifact.json`. Raises MethodError for a missing, damaged, newer or different kind of artifact."""
    path = folder / "artifact.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        what = f"{folder} is no artifact (it has no artifact.json)"
        raise MethodError(f"{what}; make one with draftboard prepare") from error
    except (OSError, ValueError) as error:
        raise MethodError(f"{path} cannot be read: {error}; make it anew with draftboard prepare") from error
    schema = record.get("schema") if isinstance(record, dict) else None
    if not isinstance(schema, int) or record.get("kind") != kind:
        raise MethodError(f"{path} is not an artifact of kind {kind!r}; make one with draftboard prepare")
    if schema > SCHEMA:
        raise MethodError(f"{path} has schema {schema}, this draftboard reads up to {SCHEMA}: upgrade draftboard")
    return dict(record)
