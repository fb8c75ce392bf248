"""A folder for GitHub Pages or any other server of files: the board, its traces, and how to put it there."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from draftboard.errors import UserError
from draftboard.files import write_atomic
from draftboard.leaderboards.traces import INDEX, TracedRun, render_traces
from draftboard.plugins import TRACE_PAGES
from draftboard.publishing.collect import Publication, files_below
from draftboard.publishing.redaction import refuse_secrets, without_paths

__all__ = ["static_files", "write_static"]

_README = """# A leaderboard of draftboard

`index.html` is the page. It needs no network and links only to files beside it, so any server of files shows it.

## GitHub Pages

1. Copy this folder into a repository as `docs` and push it.
2. On GitHub: Settings → Pages → Build and deployment → Source: *Deploy from a branch*.
3. Choose the branch and the folder `/docs`, and save. The page stands at `https://OWNER.github.io/REPOSITORY/`.

The empty file `.nojekyll` belongs to it: it keeps GitHub from passing the files through Jekyll, which would interpret
what they quote.

From a workflow: upload this folder with `actions/upload-pages-artifact` and publish it with `actions/deploy-pages`.
"""


def static_files(publication: Publication) -> dict[str, bytes]:
    """Return the files of the site by their path; runs with traces have pages of their answers, step by step.

    Raises UserError for broken traces and where a page would hold a secret.
    """
    from draftboard.leaderboards import render
    from draftboard.traced_pages import traced_run
    from draftboard.traces import TRACES

    traced = [_published(traced_run(path)) for path in publication.runs if (path / TRACES).is_file()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = render_traces(traced, folder, limit=TRACE_PAGES).paths if traced else ()
        render(publication.results, folder, links=[("Traces", INDEX)] if pages else ())
        files = files_below(folder)
    texts = [(name, content.decode("utf-8", "replace")) for name, content in files.items()]
    refuse_secrets((name, text) for name, text in texts if not name.endswith(".parquet"))
    return {".nojekyll": b"", "README.md": _README.encode("utf-8"), **files}


def _published(run: TracedRun) -> TracedRun:
    """Return the run with no path in any name; texts of prompts and answers stay as they are."""
    samples = [
        replace(
            sample,
            key=without_paths(sample.key),
            suite=without_paths(sample.suite),
            sample_id=without_paths(sample.sample_id),
            domain=without_paths(sample.domain),
            category=without_paths(sample.category),
        )
        for sample in run.samples
    ]
    cells = [
        replace(
            cell,
            method=without_paths(cell.method),
            sample=without_paths(cell.sample),
            reason=without_paths(cell.reason),
        )
        for cell in run.cells
    ]
    traces = [
        replace(trace, method=without_paths(trace.method), sample=without_paths(trace.sample)) for trace in run.traces
    ]
    methods, title = without_paths(run.methods), without_paths(run.title)
    return replace(run, title=title, methods=methods, samples=samples, cells=cells, traces=traces)


def write_static(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the site; other files of the folder stay as they are.

    Raises UserError for a folder that is a run, whose files would mix with the site's, or that cannot be written.
    """
    if (folder / "plan.json").exists():
        raise UserError("is a run, not a place for a site", where=str(folder), advice="Choose another folder.")
    for name, content in files.items():
        write_atomic(folder / name, content)
