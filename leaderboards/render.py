"""Writing a board: its files beside each other, each of them whole or not there at all."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from draftboard.errors import UserError
from draftboard.leaderboards.export import csv_document, json_document, parquet_document
from draftboard.leaderboards.html import html
from draftboard.leaderboards.latex import latex
from draftboard.leaderboards.markdown import markdown, spec_bench_markdown
from draftboard.results import Results

__all__ = ["render"]


def render(results: Results, out: Path, *, generated: str = "", links: Sequence[tuple[str, str]] = ()) -> list[Path]:
    """Write `index.html` and `leaderboard.md`, `.tex`, `.json`, `.csv` and `.parquet` into `out`; return their paths.

    Where a group ran Spec-Bench's six tasks, `spec-bench.md` comes with them; one of an earlier rendering goes.

    `links`: title and address of pages beside `index.html`, which then leads to them.

    Equal results give equal bytes; only `generated`, a time stamp in words, changes them, and it is left out
    by default. Everything is written under other names before anything is renamed, so that an old board is
    not lost to a full disk. Raises UserError that names the path when something cannot be written.
    """
    contents = {
        "index.html": html(results, generated=generated, links=links).encode("utf-8", errors="replace"),
        "leaderboard.md": markdown(results, generated=generated).encode("utf-8", errors="replace"),
        "leaderboard.tex": latex(results, generated=generated).encode("utf-8", errors="replace"),
        "leaderboard.json": json_document(results),
        "leaderboard.csv": csv_document(results),
        "leaderboard.parquet": parquet_document(results),
    }
    if spec_bench := spec_bench_markdown(results):
        contents["spec-bench.md"] = spec_bench.encode("utf-8", errors="replace")
    path = out
    pending: list[tuple[Path, Path]] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            path = out / name
            draft = out / f".{name}.{os.getpid()}.tmp"
            pending.append((draft, path))
            _write(draft, content)
        for draft, path in pending:
            draft.replace(path)
        if not spec_bench:
            (out / "spec-bench.md").unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror or error}",
            where=str(path),
            advice="free the disk or choose another -o",
        ) from error
    finally:
        for draft, _ in pending:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
    return [out / name for name in contents]


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
