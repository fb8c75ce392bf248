"""Every byte draftboard keeps goes through here, so that one rule holds everywhere: whole or not at all.

Small documents are written under a temporary name and renamed. Stores are append-only JSON lines; a line
counts once its line feed is on disk. A crash can therefore only leave a torn last line, which readers drop
with a warning; anything else that is broken is an error that names file and line.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from draftboard.errors import UserError

__all__ = ["JsonLines", "Lines", "append_line", "cache_dir", "read_lines", "write_atomic"]

_BOM = b"\xef\xbb\xbf"


def cache_dir() -> Path:
    """The folder for what can be made again: `DRAFTBOARD_CACHE`, else `~/.cache/draftboard`. Not created
    here.
    """
    chosen = os.environ.get("DRAFTBOARD_CACHE", "").strip()
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    try:
        return (Path(base) if base else Path.home() / ".cache") / "draftboard"
    except RuntimeError as error:  # no HOME and no passwd entry, as in some containers
        raise UserError("no home folder to keep a cache in", advice="Set DRAFTBOARD_CACHE to a folder.") from error


def write_atomic(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that readers see the old file or the new one, never a part.

    Missing parent folders are made. Raises UserError, naming `path`, when it cannot be written; the old file
    then stands as it was. A device or a pipe, such as /dev/stdout, is written to and never replaced.
    """
    temporary: Path | None = None
    try:
        if _is_stream(path):
            with path.open("ab") as file:
                file.write(data)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes private files; a run folder is for sharing, as far as the user's umask allows.
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
        temporary = None
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()


def _is_stream(path: Path) -> bool:
    """Whether it is a device, a pipe, or a name for one of this process's open files, such as /dev/stdout."""
    if path.is_symlink() and path.parent.resolve().parts[1:2] in (("dev",), ("proc",)):
        return True
    return path.exists() and not (path.is_file() or path.is_dir())


def append_line(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Append one record to a store and close it again; for more than a few, keep a `JsonLines` open."""
    with JsonLines(path, sync=sync) as lines:
        lines.append(data)


class JsonLines:
    """An append-only store of JSON lines, opened for writing.

    A torn last line that a crash left behind is cut off on opening, so that what follows starts on a line of
    its own. Raises UserError while somebody else writes there. `sync` forces each line to the disk, so that it
    survives a power cut and not only the end of the process.
    """

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self._path, self._sync = path, sync
        self._handle = -1
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
            _claim(self._handle, path)
            self._whole = _whole_length(path)
            os.ftruncate(self._handle, self._whole)
        except UserError:
            self.close()
            raise
        except OSError as error:
            self.close()
            raise cannot_write(path, error) from error

    def append(self, data: bytes) -> None:
        """Write one record, given without its line feed.

        Raises UserError when the disk refuses; what was written of the line is then taken back.
        """
        if b"\n" in data or not data.strip():
            raise ValueError("a record is one non-empty line")
        view = memoryview(data + b"\n")
        length = len(view)
        try:
            while view:
                view = view[os.write(self._handle, view) :]
            if self._sync:
                os.fsync(self._handle)
        except OSError as error:
            # If even this fails, the part has no line feed and readers drop it.
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self._whole)
            raise cannot_write(self._path, error) from error
        self._whole += length

    def close(self) -> None:
        """Close the file; closing twice does no harm."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The whole lines of a store."""

    lines: tuple[tuple[int, bytes], ...]
    """(line number from 1, JSON text) of each line that is not blank."""
    warnings: tuple[str, ...] = ()
    """What was left out, and why; ready to be shown."""

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)


def read_lines(path: Path, check: Callable[[int, bytes], object] | None = None) -> Lines:
    """Read a store that `JsonLines` wrote.

    What follows the last line feed is a line torn by a crash: it is dropped and told in `warnings`. So is a
    tail of NUL bytes, which some file systems leave after a power cut. Raises UserError naming file and line
    for every other line that is not JSON, and when the file cannot be read.

    `check`: is given number and text of each line and raises msgspec.DecodeError or UnicodeDecodeError for one that is
    not JSON. Whoever decodes the lines does it there, once.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    warnings: list[str] = []
    stripped = data.rstrip(b"\0")
    if len(stripped) < len(data):
        warnings.append(f"{path}: dropped {len(data) - len(stripped)} NUL bytes at the end, left by a crash")
        data = stripped
    body, _, torn = data.rpartition(b"\n")
    rows = body.split(b"\n") if body else []
    if torn.strip():
        warnings.append(f"{path}:{data.count(10) + 1}: dropped an unfinished last line of {len(torn)} bytes")
    lines: list[tuple[int, bytes]] = []
    problems: list[str] = []
    for number, row in enumerate(rows, start=1):
        text = row.removeprefix(_BOM).strip() if number == 1 else row.strip()
        if not text:
            continue
        try:
            if check is None:
                msgspec.json.decode(text)
            else:
                check(number, text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problems.append(f"{path}:{number}: not valid JSON ({error})")
        else:
            lines.append((number, text))
    if problems:
        raise UserError(
            f"{len(problems)} broken line(s)",
            where=str(path),
            problems=tuple(problems),
            advice="Restore the file from a copy, or delete these lines; what they held is then done again.",
        )
    return Lines(lines=tuple(lines), warnings=tuple(warnings))


def cannot_write(path: Path, error: OSError) -> UserError:
    """The one message for a disk that is full, a folder that is read-only, and their kin."""
    return UserError(
        f"cannot be written: {error.strerror or error}",
        where=str(path),
        advice="Nothing half-written is left there. Free some space, or choose another folder.",
    )


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to the disk, where the platform can: a rename is not durable before that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        # Network and FUSE file systems refuse to sync a folder; the data itself is already safe.
        with contextlib.suppress(OSError):
            os.fsync(handle)
    finally:
        os.close(handle)


def _claim(handle: int, path: Path) -> None:
    """Keep other writers away until the file is closed, by whatever ends the process."""
    if os.name != "posix":
        return
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UserError(
            "another process is writing there", where=str(path), advice="Wait for it, or choose another folder."
        ) from error
    except OSError:
        pass  # some network file systems know no locks


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _whole_length(path: Path) -> int:
    """Bytes up to and including the last line feed, not counting a NUL tail."""
    size = path.stat().st_size
    with path.open("rb") as file:
        end = size
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0
