"""Where imports and exports end up: in a folder that is new or empty. Whole or not at all."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from draftboard.errors import UserError
from draftboard.files import cannot_write, write_atomic
from draftboard.results import Results
from draftboard.results_file import document, encode

__all__ = [
    "RESULTS",
    "file_names",
    "refuse_existing",
    "refuse_results",
    "results_in",
    "whole_folder",
    "write_files",
    "write_results",
]

RESULTS = "results.json"
"""What stands in a folder of imported results instead of plan.json."""

_RESERVED = frozenset({"con", "prn", "aux", "nul", *(f"{p}{n}" for p in ("com", "lpt") for n in range(1, 10))})
_LONGEST = 150
"""Bytes of a file's name, well below the 255 that file systems allow."""


def results_in(path: Path) -> Path | None:
    """Return the results document of a folder that holds one instead of a run."""
    file = path / RESULTS
    return file if file.is_file() and not (path / "plan.json").is_file() else None


def refuse_results(path: Path, verb: str) -> None:
    """Raise UserError if the folder holds imported results, where a run is needed to be `verb`."""
    if results_in(path) is not None:
        raise UserError(
            f"holds imported results, which are figures without the answers behind them, so it cannot be {verb}",
            where=str(path),
            advice="draftboard show and render read it.",
        )


def refuse_existing(path: Path) -> None:
    """Raise UserError if something is there already: neither an import nor an export overwrites."""
    advice = "Choose another --out, or delete it."
    if (path / "plan.json").is_file():
        raise UserError("holds a run already", where=str(path), advice=advice)
    if (path / RESULTS).is_file():
        raise UserError("holds imported results already", where=str(path), advice=advice)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        what = "is not empty" if path.is_dir() else "is a file, not a folder"
        raise UserError(what, where=str(path), advice=advice)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Give a folder to write into that becomes `path` when the block ends well, and leaves nothing when it does not.

    Raises UserError if something is at `path` already, or if it cannot be written.
    """
    refuse_existing(path)
    beside = path if path.is_dir() else path.parent
    try:
        beside.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=beside, prefix=f".{path.name}.", suffix=".tmp"))
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        inner = draft / "run"
        inner.mkdir()
        yield inner
        try:
            _settle(inner, path)
        except OSError as error:
            raise cannot_write(path, error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _settle(made: Path, path: Path) -> None:
    if not path.is_dir():
        made.replace(path)
        return
    # An empty folder may be a mount or the one that the command stands in, and cannot be replaced. A run's plan is
    # what makes it a run, so it comes last.
    moved: list[Path] = []
    try:
        for part in sorted(made.iterdir(), key=lambda part: part.name == "plan.json"):
            moved.append(part.replace(path / part.name))
    except OSError:
        for part in moved:
            shutil.rmtree(part, ignore_errors=True) if part.is_dir() else part.unlink(missing_ok=True)
        raise


def write_files(path: Path, contents: Mapping[str, bytes]) -> None:
    """Make `path` a folder with these files, by their paths inside it. Raises UserError if something is there."""
    with whole_folder(path) as folder:
        for name, data in contents.items():
            write_atomic(folder / name, data)


def write_results(path: Path, results: Results) -> None:
    """Make `path` a folder with this results document. Raises UserError if something is there already."""
    write_files(path, {RESULTS: encode(document(results))})


def file_names(labels: Iterable[str]) -> dict[str, str]:
    """Return a file name without suffix for each label: readable, safe on every system, and no two alike."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for label in labels:
        safe = "".join(c if c.isalnum() or c in "._-+=[]() " else "_" for c in label)
        safe = safe.encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore").strip(" .") or "method"
        if safe.partition(".")[0].lower() in _RESERVED:
            safe = f"_{safe}"
        name, number = safe, 1
        while name.casefold() in taken:
            number += 1
            name = f"{safe}-{number}"
        taken.add(name.casefold())
        names[label] = name
    return names
