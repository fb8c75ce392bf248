"""The command `draftboard publish`: a run, or several, to a dataset repository of the hub or into a folder to serve."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from draftboard.errors import UserError

__all__ = ["publish"]


def publish(
    source: Path,
    /,
    *,
    hub: str = "",
    static: Path | None = None,
    pr: Annotated[bool, Parameter(negative=())] = False,
    public: Annotated[bool, Parameter(negative=())] = False,
    even_invalid: Annotated[bool, Parameter(negative=())] = False,
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    title: str = "",
) -> int:
    """Publish a run, or several, with their board: to a dataset repository of the Hugging Face hub or as a site.

    Parameters
    ----------
    source
        Folder of a run or of imported results, or a folder that holds several.
    hub
        Dataset repository, OWNER/NAME; made if it is missing, private unless --public.
    static
        Folder for a site of files, ready for GitHub Pages.
    pr
        Open a pull request instead of committing to the main branch.
    public
        Make a missing repository public. One that is there keeps its visibility.
    even_invalid
        Publish also what is not valid for claims; its card then opens with the reasons.
    dry_run
        List every file with its size, print the card, and write and upload nothing.
    title
        Headline of the board.
    """
    from draftboard.publishing import collect, static_files, upload
    from draftboard.publishing.hub import check_repository
    from draftboard.publishing.static import write_static

    _check_options(hub, static, pr=pr, public=public)
    if hub:
        check_repository(hub)
    made = collect(source, title=title, even_invalid=even_invalid)
    if dry_run:
        if static is not None:
            _list_files(str(static), static_files(made))
        if hub:
            _list_files(hub, made.repository)
            print(f"\n{made.card}", end="")
        return 0
    if static is not None:
        write_static(static_files(made), static)
        print(static / "index.html")
    if hub:
        done = upload(made.repository, hub, message=f"draftboard: {made.results.title}", pull_request=pr, public=public)
        said = "made" if done.created else "updated"
        print(f"{said} {done.repository} ({'private' if done.private else 'public'})", file=sys.stderr)
        print(done.pull_request or done.commit)
    return 0


def _check_options(hub: str, static: Path | None, *, pr: bool, public: bool) -> None:
    if not hub and static is None:
        raise UserError("nothing says where to publish", advice="Add --hub OWNER/NAME, --static FOLDER, or both.")
    if not hub and (pr or public):
        option = "--pr" if pr else "--public"
        raise UserError(f"{option} is about a repository, and none is named", advice="Add --hub OWNER/NAME.")
    if pr and public:
        raise UserError(
            "--pr and --public exclude each other: a pull request needs a repository that is there",
            advice="Leave one of them out.",
        )


def _list_files(where: str, files: Mapping[str, bytes]) -> None:
    width = max(len(f"{len(content):,}") for content in files.values())
    print(f"{where}: {len(files)} files, {sum(map(len, files.values())):,} bytes")
    for name, content in files.items():
        print(f"  {len(content):>{width},}  {name}")
