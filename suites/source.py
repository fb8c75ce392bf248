"""Where a suite's rows come from: the user's file or folder, a data set of the hub, or the published file.

The loaders of the smaller suites say what is published and what one row means; everything else is here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from draftboard.suites.download import Published, download
from draftboard.suites.hub import PREFIX, hub_place, hub_rows
from draftboard.suites.kinds import refuse_other
from draftboard.suites.request import Request
from draftboard.suites.rows import Fields, RowFile, checked, read_rows
from draftboard.suites.sample import Sample, Suite
from draftboard.suites.wordings import WORDING_VERSION

__all__ = ["Source", "load_source", "rows_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is known of a suite's data before any of it is read."""

    what: str
    """What a file of it is called in messages."""
    files: tuple[str, ...]
    """Names that a folder is searched for, in this order."""
    published: Published
    rows: int
    """Of the published file."""
    forms: tuple[tuple[str, ...], ...]
    """Columns that a file may have: those of the published file, and of common copies of it."""
    licence: str
    split: str = "test"
    """Of a copy on the hub; its usual configuration is `config`."""
    config: str | None = None


def rows_of(request: Request, source: Source) -> RowFile:
    """The rows that the request names; the published file where it names none. Raises `SuiteError`."""
    if request.path is None:
        return read_rows(download(source.published, suite=request.name), what=source.what)
    if request.path.startswith(PREFIX):
        place = hub_place(request.path, split=source.split, usual_config=source.config)
        return hub_rows(place, suite=request.name, offline=source.published.offline(request.name))
    return read_rows(request.path, what=source.what, files=source.files)


def load_source(request: Request, source: Source, sample: Callable[[Fields], Sample]) -> Suite:
    """The suite that `sample` makes of every row. Raises `SuiteError` with every fault of the file."""
    file = rows_of(request, source)
    refuse_other(file, request.name)
    samples = checked(file, sample, forms=source.forms)
    return suite_of(request, source, file, samples)


def suite_of(request: Request, source: Source, file: RowFile, samples: Sequence[Sample]) -> Suite:
    """The suite of these samples, with a note if they are not as many as published."""
    many = "1 sample" if len(samples) == 1 else f"{len(samples):,} samples"
    part = [] if len(samples) == source.rows else [f"{many}; the published file has {source.rows:,}"]
    return Suite(
        name=request.name,
        samples=tuple(samples),
        content_hash=file.sha256,
        source=file.name,
        licence=source.licence,
        wording_version=WORDING_VERSION,
        notes=(*file.notes, *part),
    )
