"""From a folder to everything that goes out, in memory and the same whether it is uploaded, written or only listed."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from draftboard.errors import UserError
from draftboard.leaderboards.text import terminal_text
from draftboard.publishing.card import card
from draftboard.publishing.redaction import known_environment, refuse_secrets, without_paths
from draftboard.publishing.tables import generation_rows, generations_parquet
from draftboard.results import Group, Results, Verdict
from draftboard.store import StoredRun

__all__ = ["Publication", "collect", "files_below"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What goes out: files by their path in the repository, with `/`."""

    results: Results
    board: dict[str, bytes]
    data: dict[str, bytes]
    card: str
    runs: tuple[Path, ...] = ()
    """The runs that it was made from."""

    @property
    def repository(self) -> dict[str, bytes]:
        """The files of a dataset repository, the card first."""
        return {"README.md": self.card.encode("utf-8"), **self.board, **self.data}


@dataclass(slots=True)
class _Found:
    groups: list[Group] = field(default_factory=list)
    runs: dict[str, StoredRun] = field(default_factory=dict)
    invalid: list[str] = field(default_factory=list)


def collect(source: Path, *, title: str = "", even_invalid: bool = False) -> Publication:
    """Read a run, imported results, or a folder of several, and make every file of a publication from them.

    Raises UserError where there is nothing to publish, where a run is not valid for claims and `even_invalid` is not
    set, and where a file would hold a secret.
    """
    found = _Found()
    for name, path in _sources(source).items():
        _read(found, name, path)
    if found.invalid and not even_invalid:
        raise UserError(
            "is not valid for claims, so it is not published",
            where=str(source),
            problems=tuple(found.invalid),
            advice="Repeat it without these faults. With --even-invalid it is published and its card opens with them.",
        )
    results = Results(groups=tuple(found.groups))
    results = _published(replace(results, title=title) if title else results)
    rows = [row for name, run in found.runs.items() for row in generation_rows(name, run)]
    data = {"data/generations.parquet": generations_parquet(rows)} if rows else {}
    for name, run in found.runs.items():
        data |= _records(name, run)
    board = _board(results)
    made = Publication(
        results=results,
        board=board,
        data=data,
        card=card(results, without_paths(found.invalid), [*board, *data]),
        runs=tuple(run.path for run in found.runs.values()),
    )
    refuse_secrets(_texts(made, rows))
    return made


def _sources(source: Path) -> dict[str, Path]:
    """Return the runs and imported results that a folder is or holds, by name."""
    from draftboard.foreign.folders import results_in
    from draftboard.store import is_run

    def is_source(path: Path) -> bool:
        return is_run(path) or results_in(path) is not None

    if not source.exists():
        raise UserError("there is no such folder", where=str(source), advice="Name a run, or a folder that holds runs.")
    if source.is_file() or is_source(source):
        return {source.resolve().name: source}
    try:
        found = {path.name: path for path in sorted(source.iterdir()) if path.is_dir() and is_source(path)}
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", where=str(source)) from error
    if not found:
        raise UserError(
            "holds no run: neither it nor a folder in it has a plan.json",
            where=str(source),
            advice="Name the folder that draftboard run --out wrote, or one that holds such folders.",
        )
    return found


def _read(found: _Found, name: str, path: Path) -> None:
    from draftboard.analysis import analyse
    from draftboard.foreign.folders import results_in
    from draftboard.results_file import read_results
    from draftboard.store import read_run

    document = path if path.is_file() else results_in(path)
    if document is not None:
        groups: Sequence[Group] = read_results(document).groups
    else:
        run = read_run(path)
        found.runs[name] = run
        groups = [_judged(analyse(run), run)]
    for note in dict.fromkeys(note for group in groups for note in group.notes):
        print(f"draftboard: {terminal_text(note)}", file=sys.stderr)
    for group in groups:
        if group.verdict is not None and not group.verdict.valid:
            found.invalid.append(f"{name}: {'; '.join(group.verdict.reasons) or 'no reason was stored'}")
    found.groups += groups


def _judged(group: Group, run: StoredRun) -> Group:
    """Return the group as not valid where the run's folder says so, or says nothing: then the run is unfinished."""
    if run.verdict is None:
        reasons = group.verdict.reasons if group.verdict is not None else ()
        reasons = ("it has no verdict, so it is unfinished", *reasons)
    elif not run.verdict["valid"]:
        reasons = tuple(run.verdict["reasons"])
    else:
        return group
    return replace(group, verdict=Verdict(valid=False, reasons=reasons))


def _published(results: Results) -> Results:
    """Return the results without paths, and with what is known to be in a record of a machine."""
    from draftboard.results_file import document

    plain = without_paths(document(results))
    for group in plain["groups"]:
        group["environment"] = known_environment(group["environment"])
    return msgspec.convert(plain, Results)


def _records(name: str, run: StoredRun) -> dict[str, bytes]:
    """Return the run's own records: how it was meant to be, on what it ran, how it was judged."""
    records: dict[str, Any] = {
        "plan": without_paths(run.plan),
        "environment": known_environment(run.environment),
        "verdict": without_paths(run.verdict),
    }
    return {
        f"runs/{name}/{kind}.json": msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
        for kind, record in records.items()
        if record is not None
    }


def _board(results: Results) -> dict[str, bytes]:
    from draftboard.leaderboards import render

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        render(results, folder)
        return files_below(folder)


def files_below(folder: Path) -> dict[str, bytes]:
    """Return what a folder holds, by its path inside."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _texts(made: Publication, rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield what is readable of each file; of a Parquet file, which is packed, the texts that it was made from."""
    for name, content in made.repository.items():
        if not name.endswith(".parquet"):
            yield name, content.decode("utf-8", "replace")
    for row in rows:
        for value in row.values():
            if isinstance(value, str):
                yield "data/generations.parquet", value
