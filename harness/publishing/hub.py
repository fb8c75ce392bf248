"""Uploading to a dataset repository of the Hugging Face hub, in one commit.

What can go wrong is asked for first, in short questions, so that it ends in one message and not in the middle of an
upload: whether the token is accepted, whether the repository is there and of the right kind.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from draftboard.errors import UserError
from draftboard.hub import transport_errors

if TYPE_CHECKING:
    from huggingface_hub import HfApi

__all__ = ["Upload", "check_repository", "upload"]

_TIMEOUT_S = 10.0
_TOKEN = "Log in with: hf auth login, or set HF_TOKEN to a token that may write."
_OTHER_KINDS = ("model", "space")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """Where it went. `pull_request` is empty for a commit to the main branch."""

    repository: str
    created: bool
    private: bool
    commit: str
    pull_request: str


def check_repository(name: str) -> str:
    """Return a repository's name as the hub takes it, without the prefix that its addresses have.

    Raises UserError for what cannot be one. Needs no network.
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    plain = name.removeprefix("datasets/")
    try:
        validate_repo_id(plain)
    except HFValidationError as error:
        told = " ".join(str(error).split())
        raise UserError(
            f"{name!r} cannot be a repository on the hub: {told}", advice="Name it as OWNER/NAME, or NAME for your own."
        ) from error
    return plain


def upload(
    files: Mapping[str, bytes],
    name: str,
    *,
    message: str,
    pull_request: bool = False,
    public: bool = False,
    endpoint: str | None = None,
    token: str | None = None,
) -> Upload:
    """Put the files into a dataset repository in one commit; what else is there stays as it is.

    A repository that is missing is made, private unless `public`; one that is there keeps its visibility. `endpoint`
    and `token` default to those of the environment and the hub's login. Raises UserError for all that the hub or the
    network refuses.
    """
    from huggingface_hub import CommitOperationAdd, HfApi, get_token

    name = check_repository(name)
    api = HfApi(endpoint=endpoint, token=token or get_token() or False, library_name="draftboard")
    if api.token is False:
        raise UserError("there is no Hugging Face token", advice=_TOKEN)
    with _told(name):
        user = _user(api)
        name = name if "/" in name else f"{user}/{name}"
        private = _is_private(api, name)
        created = private is None
        if created:
            _refuse_other_kinds(api, name)
            if pull_request:
                raise UserError(
                    f"there is no dataset repository {name} that a pull request could be opened in",
                    advice="Check the spelling, or leave --pr out: the repository is then made.",
                )
            api.create_repo(name, repo_type="dataset", private=not public, exist_ok=True)
        commit = api.create_commit(
            name,
            [CommitOperationAdd(path_in_repo=path, path_or_fileobj=content) for path, content in files.items()],
            commit_message=message,
            repo_type="dataset",
            create_pr=pull_request,
        )
    return Upload(
        repository=f"{api.endpoint}/datasets/{name}",
        created=created,
        private=not public if private is None else private,
        commit=commit.commit_url,
        pull_request=commit.pr_url or "",
    )


def _user(api: "HfApi") -> str:
    from huggingface_hub.errors import HfHubHTTPError

    try:
        return str(api.whoami()["name"])
    except HfHubHTTPError as error:
        if _status(error) == 401:
            raise UserError("the hub does not accept the Hugging Face token", advice=_TOKEN) from error
        raise


def _is_private(api: "HfApi", name: str) -> bool | None:
    """Return whether the dataset repository is private; None where there is none."""
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        return bool(api.repo_info(name, repo_type="dataset", timeout=_TIMEOUT_S).private)
    except GatedRepoError:
        return False
    except RepositoryNotFoundError:
        return None


def _refuse_other_kinds(api: "HfApi", name: str) -> None:
    for kind in _OTHER_KINDS:
        if api.repo_exists(name, repo_type=kind):
            raise UserError(
                f"{name} is a {kind} repository; a board goes into a dataset repository",
                advice="Choose another name; for your own model, for example NAME-speed.",
            )


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Turn what the hub or the network refuses into one message."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    unreachable: tuple[type[Exception], ...] = (OfflineModeIsEnabled, OSError, *transport_errors(HfHubHTTPError))
    try:
        yield
    except HfHubHTTPError as error:
        raise _refusal(name, error) from error
    except unreachable as error:
        raise UserError(
            "the hub cannot be reached, so nothing was published",
            problems=(str(error).partition("\n")[0] or type(error).__name__,),
            advice="Check the network, HF_ENDPOINT and HF_HUB_OFFLINE. --dry-run and --static DIR need no network.",
        ) from error


def _refusal(name: str, error: Exception) -> UserError:
    status = _status(error)
    said = str(getattr(error, "server_message", "") or "").strip() or str(error).strip().partition("\n")[0]
    whats = {
        401: (f"the hub does not let this token write to {name}", _TOKEN),
        403: (
            f"the token may not write to {name}",
            "Use a token with write access to it, or open a pull request with --pr.",
        ),
        404: (f"the hub has no dataset repository {name}, or it is hidden from this token", "Check the spelling."),
        429: ("the hub asks for fewer requests", "Wait a few minutes and publish again."),
    }
    what, advice = whats.get(status, (f"the hub refused the upload to {name} (HTTP {status})", "Try again later."))
    return UserError(what, problems=(said,) if said else (), advice=advice)


def _status(error: Exception) -> int:
    return int(getattr(getattr(error, "response", None), "status_code", 0) or 0)
