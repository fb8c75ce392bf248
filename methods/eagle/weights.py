"""A head's weight files: safetensors or torch's own, whole or in shards. Nothing in them is ever executed.

Names, shapes and kinds can be read without the values, so that a head is understood, or refused, before it takes
memory. Every way in which a file can be broken ends in one message that names it.
"""

from __future__ import annotations

import json
import pickle
import re
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zipfile import BadZipFile, is_zipfile

from draftboard.methods.errors import MethodError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["TensorInfo", "WeightFiles", "find_weights"]

_T = TypeVar("_T")
_NAMES = ("model.safetensors", "pytorch_model.bin")
_OF_TRAINING = ("training_args.bin", "optimizer.bin", "scheduler.bin", "vocabulary.safetensors")
_POINTER = b"version https://git-lfs"
_BROKEN = "; it is damaged or was not copied whole: fetch it again"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """A tensor without its values."""

    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFiles:
    """The files that hold a head's tensors."""

    files: tuple[Path, ...]

    @property
    def where(self) -> str:
        """How messages name them."""
        return str(self.files[0]) if len(self.files) == 1 else str(self.files[0].parent)

    def infos(self) -> dict[str, TensorInfo]:
        """Read names, shapes and dtypes. Raises MethodError for a broken file or a name that two files hold."""
        found: dict[str, TensorInfo] = {}
        for path in self.files:
            read = _safetensors_infos if path.suffix == ".safetensors" else _torch_infos
            for name, info in read(path).items():
                if name in found:
                    raise MethodError(f"{self.where}: {name} is in more than one file")
                found[name] = info
        return found

    def tensors(self, names: Collection[str]) -> dict[str, Tensor]:
        """Read those tensors that have one of these names, as they are stored, onto the CPU."""
        found: dict[str, Tensor] = {}
        for path in self.files:
            read = _safetensors_values if path.suffix == ".safetensors" else _torch_values
            found |= read(path, names)
        return found


def find_weights(folder: Path) -> WeightFiles:
    """Find the weight files of a folder: the usual names, an index of shards, or the only one there is.

    Raises MethodError where there is none, where it is not clear which, and where shards are missing.
    """
    for name in _NAMES:
        if (folder / name).is_file():
            return WeightFiles(files=(folder / name,))
        if (folder / f"{name}.index.json").is_file():
            return WeightFiles(files=_shards(folder / f"{name}.index.json"))
    for pattern in ("*.safetensors", "*.bin"):
        others = sorted(
            path for path in folder.glob(pattern) if path.name not in {"training_args.bin", "optimizer.bin"}
        )
        if len(others) == 1:
            return WeightFiles(files=tuple(others))
        if others:
            listed = ", ".join(path.name for path in others[:4])
            raise MethodError(f"{folder} holds several weight files and no index says which: {listed}")
    raise MethodError(f"{folder} holds no weights: a head needs model.safetensors or pytorch_model.bin")


def _shards(index: Path) -> tuple[Path, ...]:
    try:
        names = json.loads(index.read_text(encoding="utf-8-sig"))["weight_map"].values()
        found = {str(name) for name in names}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise MethodError(f"{index} is no index of weight files (weight_map: tensor to file)") from error
    outside = sorted(name for name in found if Path(name).name != name)
    if outside or not found:
        raise MethodError(f"{index} names files outside its folder, or none: {', '.join(outside[:3])}")
    missing = sorted(name for name in found if not (index.parent / name).is_file())
    if missing:
        raise MethodError(f"{index.parent} lacks {', '.join(missing[:4])}, which {index.name} names: fetch them too")
    return tuple(index.parent / name for name in sorted(found))


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what the readers raise for a broken file into one message."""
    from safetensors import SafetensorError

    # What torch raises for a damaged file depends on where the damage is.
    broken: tuple[type[Exception], ...] = (SafetensorError, OSError, RuntimeError, EOFError, ValueError, LookupError)
    broken += (AttributeError, TypeError, AssertionError, ArithmeticError, BadZipFile)
    try:
        yield
    except MemoryError as error:
        raise MethodError(f"{path} does not fit into memory") from error
    except pickle.UnpicklingError as error:
        # Torch's own text advises to read the file in the mode that runs what is in it.
        named = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = f" ({named[1]})" if named else ", or is damaged"
        raise MethodError(
            f"{path} holds something else than plain tensors{what}: reading that could run code, so it is not read. "
            "Take the head as safetensors"
        ) from error
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise MethodError(f"{path} cannot be read: {error.strerror}") from error
    except broken as error:
        raise MethodError(f"{path} cannot be read: {_first(error)}{_BROKEN}") from error


def _first(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]


def _refuse_pointer(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(len(_POINTER)) == _POINTER:
            raise MethodError(f"{path} is a pointer of git-lfs and not the file: run git lfs pull in its folder")


def _safetensors_infos(path: Path) -> dict[str, TensorInfo]:
    def info(file: Any, name: str) -> TensorInfo:
        part = file.get_slice(name)
        shape = tuple(int(size) for size in part.get_shape())
        # Only what is read has torch's dtype; nothing is read of the first axis.
        return TensorInfo(shape=shape, dtype=(part[:0] if shape else file.get_tensor(name)).dtype)

    return _with_safetensors(path, None, info)


def _safetensors_values(path: Path, names: Collection[str]) -> dict[str, Tensor]:
    return _with_safetensors(path, names, lambda file, name: file.get_tensor(name))


def _with_safetensors(path: Path, names: Collection[str] | None, read: Callable[[Any, str], _T]) -> dict[str, _T]:
    from safetensors import safe_open

    with _told(path):
        _refuse_pointer(path)
        with safe_open(path, framework="pt") as file:
            return {name: read(file, name) for name in file.keys() if names is None or name in names}  # noqa: SIM118


def _torch_infos(path: Path) -> dict[str, TensorInfo]:
    found = _load(path, "meta")
    return {name: TensorInfo(shape=tuple(value.shape), dtype=value.dtype) for name, value in found.items()}


def _torch_values(path: Path, names: Collection[str]) -> dict[str, Tensor]:
    return {name: value for name, value in _load(path, "cpu").items() if name in names}


def _load(path: Path, device: str) -> dict[str, Tensor]:
    """Read torch's own format, which is a pickle, in the mode that knows tensors and nothing else."""
    import torch

    with _told(path), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about the pickle's protocol, which decides nothing here
        _refuse_pointer(path)
        found = torch.load(path, map_location=device, weights_only=True, mmap=is_zipfile(path))
    if not isinstance(found, dict) or not found:
        raise MethodError(f"{path} holds {_kind(found)} where named tensors are expected")
    others = [name for name, value in found.items() if not (isinstance(name, str) and isinstance(value, torch.Tensor))]
    if others:
        what = f"{others[0]!r} is {_kind(found[others[0]])}"
        raise MethodError(f"{path} holds more than named tensors ({what}): a training's state, not a head's weights")
    # Parameters that were saved as such still ask for gradients.
    return {name: value.detach() for name, value in found.items()}


def _kind(value: object) -> str:
    return "nothing" if value is None or value == {} else f"a {type(value).__name__}"
