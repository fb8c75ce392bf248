"""Rows of a data set on the Hugging Face hub, or of the copy that an earlier run left in the local cache.

One short question comes first: left to themselves, the library's downloads would each try an unreachable hub again
for a long while. The answer also pins the revision to a commit, so that a run can name what it read.
"""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from draftboard.suites.errors import SuiteError, suggestion
from draftboard.suites.parsing import Row
from draftboard.suites.rows import RowFile

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["PREFIX", "HubPlace", "hub_place", "hub_rows"]

PREFIX = "hf://"
# With the import of the libraries a user is told within ten seconds that there is no hub.
_TIMEOUT_S = 4.0
_COMMIT = re.compile("[0-9a-f]{7,40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPlace:
    """Where in the hub a suite's rows are."""

    name: str
    """`OWNER/NAME` of the data set."""
    split: str = "test"
    """Taken if the data set has it; where it has one split only, that one is taken."""
    config: str | None = None
    """None is the data set's default."""
    usual_config: str | None = None
    """Taken where `config` says nothing and the data set has it: the name in the suite's own data set."""
    revision: str | None = None
    """Branch, tag or commit; None is the main branch."""


def hub_place(path: str, *, split: str = "test", usual_config: str | None = None) -> HubPlace:
    """What `hf://OWNER/NAME[/CONFIGURATION][@REVISION]` names. Raises `SuiteError` for anything else."""
    name, at, revision = path.removeprefix(PREFIX).removeprefix("datasets/").partition("@")
    found = re.fullmatch(r"([\w.-]+(?:/[\w.-]+)?)(?:/([\w.-]+))?", name)
    if found is None or (at and not revision):
        raise SuiteError(
            f"{path}: no data set of the hub", advice="Use hf://OWNER/NAME or hf://OWNER/NAME/CONFIGURATION@REVISION"
        )
    return HubPlace(name=found[1], split=split, config=found[2], usual_config=usual_config, revision=revision or None)


def hub_rows(place: HubPlace, *, suite: str, offline: str) -> RowFile:
    """All rows of the split, as plain values, with the commit in name and notes.

    `offline` tells how the suite is used without a hub. Without one the local cache serves. Raises `SuiteError`,
    after about four seconds where the hub does not answer, for a data set or revision that is not there or not
    allowed, and for a configuration or split that it does not have.
    """
    if Path(place.name).exists():
        raise SuiteError(
            f"{PREFIX}{place.name}: the library would read {place.name} in this directory instead of the hub",
            advice=f"Run elsewhere, or use --suite {suite}@./{place.name}",
        )
    commit, reason = _find_commit(place, suite, offline)
    splits = _load(place, commit, reason, suite, offline)
    dataset = _split(splits, place)
    if commit is None:
        commit = _cached_commit(dataset, place, offline)
    config = str(dataset.info.config_name)
    records: list[dict[str, object]] = dataset.with_format("arrow")[:].replace_schema_metadata(None).to_pylist()
    if not records:
        raise SuiteError(f"{PREFIX}{place.name}@{commit}: the split {dataset.split} has no rows")
    encoded = b"\n".join(msgspec.json.encode(record, order="deterministic") for record in records)
    notes = [f"rows of hf://{place.name} at commit {commit} (configuration {config}, split {dataset.split})"]
    if reason:
        notes.append(f"the hub could not be reached ({reason}); the copy in the local cache was used")
    return RowFile(
        name=f"{place.name}@{commit[:12]}",
        shown=f"{PREFIX}{place.name}@{commit[:12]}",
        rows=tuple(Row(line=number, fields=record) for number, record in enumerate(records, 1)),
        numbered="row ",
        sha256=sha256(encoded).hexdigest(),
        notes=tuple(notes),
    )


def _find_commit(place: HubPlace, suite: str, offline: str) -> tuple[str | None, str]:
    """The commit that the revision stands for; or None and why the hub cannot be asked."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    def ask() -> str | None:
        try:
            return HfApi().dataset_info(place.name, revision=place.revision, timeout=_TIMEOUT_S).sha
        except HFValidationError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # As from the login page of a hotel's network, which answers every address.
            raise ConnectionError("what answered there is not the hub") from error

    unreachable: tuple[type[Exception], ...] = (OSError, *_transport_errors(HfHubHTTPError))
    try:
        return _in_time(ask, (HFValidationError, *unreachable)), ""
    except OfflineModeIsEnabled:
        return None, "its library is set to offline mode"
    except HFValidationError as error:
        raise SuiteError(f"{place.name!r} cannot be a data set of the hub", problems=(str(error),)) from error
    except GatedRepoError as error:
        raise SuiteError(
            f"suite {suite}: data set {place.name} is gated",
            advice=f"Accept its terms on the hub, then run: hf auth login\n{offline}",
        ) from error
    except RepositoryNotFoundError as error:
        raise SuiteError(
            f"suite {suite}: the hub has no data set {place.name}, or it is private",
            advice=f"Check the spelling, or: hf auth login\n{offline}",
        ) from error
    except RevisionNotFoundError as error:
        raise SuiteError(f"suite {suite}: data set {place.name} has no revision {place.revision!r}") from error
    except unreachable as error:
        return None, _first_line(error)


def _in_time(ask: Callable[[], str | None], expected: tuple[type[Exception], ...]) -> str | None:
    # The library's timeout covers neither name resolution nor a server that sends a byte now and then.
    outcome: list[str | Exception | None] = []

    def get() -> None:
        try:
            outcome.append(ask())
        except expected as error:
            outcome.append(error)

    worker = threading.Thread(target=get, name="draftboard-hub", daemon=True)
    worker.start()
    worker.join(_TIMEOUT_S + 0.5)
    if not outcome:
        raise TimeoutError(f"no answer within {_TIMEOUT_S:g} s")
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def _transport_errors(hub_error: type[Exception]) -> tuple[type[Exception], ...]:
    """What a failed connection raises: the base error of the HTTP library, which the hub's own error extends.

    The library itself is not named, because huggingface_hub has changed it between versions.
    """
    return tuple(base for base in hub_error.__mro__ if base.__name__ == "HTTPError")


def _load(place: HubPlace, commit: str | None, reason: str, suite: str, offline: str) -> "dict[str, Dataset]":
    """All splits by name; from the local cache alone if the hub cannot be reached (`commit` is None)."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetsError
    from huggingface_hub.errors import HfHubHTTPError

    failures = (DatasetsError, OSError, ValueError, *_transport_errors(HfHubHTTPError))
    with _offline(commit is None):
        try:
            if place.config is not None or place.usual_config is None:
                return _splits(load_dataset(place.name, place.config, revision=commit))
            try:
                return _splits(load_dataset(place.name, place.usual_config, revision=commit))
            except ValueError:
                return _splits(load_dataset(place.name, None, revision=commit))
        except failures as error:
            if commit is None and not isinstance(error, ValueError):
                raise SuiteError(
                    f"suite {suite}: data set {place.name} is not in the local cache and the hub cannot be reached",
                    problems=(reason,),
                    advice=offline,
                ) from error
            raise SuiteError(
                f"suite {suite}: data set {place.name} cannot be loaded",
                problems=tuple(str(error).strip().split("\n")[:2]),
                advice=f"A configuration is named like this: hf://{place.name}/CONFIGURATION\n{offline}",
            ) from error
        except RuntimeError as error:
            if "scripts" not in str(error):
                raise
            raise SuiteError(
                f"suite {suite}: data set {place.name} is a program that would have to be run, and is not",
                advice=f"The hub's own conversion may serve: hf://{place.name}@refs/convert/parquet\n{offline}",
            ) from error


def _splits(loaded: Any) -> "dict[str, Dataset]":
    return dict(loaded)


@contextmanager
def _offline(wanted: bool) -> Iterator[None]:
    """Keep the library from asking the hub again, each time until its own timeout."""
    from datasets import config

    before = config.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = before or wanted
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE = before


def _split(splits: "dict[str, Dataset]", place: HubPlace) -> "Dataset":
    if place.split in splits:
        return splits[place.split]
    if len(splits) == 1:
        return next(iter(splits.values()))
    raise SuiteError(f"data set {place.name} has no split {place.split!r}; {suggestion(place.split, map(str, splits))}")


def _cached_commit(dataset: "Dataset", place: HubPlace, offline: str) -> str:
    """The commit that the library filed the cached rows under. Raises `SuiteError` if another one was asked for."""
    files = dataset.cache_files
    commit = Path(files[0]["filename"]).parent.name if files else "unknown"
    asked = place.revision
    if asked is not None and _COMMIT.fullmatch(asked) and not commit.startswith(asked):
        raise SuiteError(
            f"data set {place.name}: the hub cannot be reached, and the local cache holds the commit {commit}, "
            f"not {asked}",
            advice=offline,
        )
    return commit


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
