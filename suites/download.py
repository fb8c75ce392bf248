"""Published data files, fetched once at a pinned commit and kept in the user's cache.

Somebody without a network is told so after a few seconds, with the name of the file to bring and where to put it.
"""

import gzip
import threading
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException
from os import environ, getpid
from pathlib import Path

from draftboard.suites.errors import SuiteError

__all__ = ["Published", "default_cache", "download"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A file as its makers published it."""

    url: str
    """Of the raw file, at a commit and not at a branch. One that ends in `.gz` is kept unpacked."""
    file: str
    """Its name in the cache, and what a user who brings it names."""
    version: str
    """Name of the folder below the suite's in the cache: the first characters of the hash or the commit."""
    sha256: str | None = None
    """Of the file, unpacked if it is packed; None where the commit alone vouches for it."""

    def offline(self, suite: str) -> str:
        """How a suite of this file is used without a network."""
        brought = f"{self.file}.gz" if self.url.endswith(".gz") else self.file
        return f"Get {self.url} on another machine and use --suite {suite}@PATH/{brought}"


def default_cache() -> Path:
    """The folder for downloaded suites: `$DRAFTBOARD_CACHE/suites`, else below the user's cache folder."""
    own = environ.get("DRAFTBOARD_CACHE")
    if own:
        return Path(own) / "suites"
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "draftboard" / "suites"


def download(
    published: Published, *, suite: str, offline: str = "", cache_dir: Path | None = None, timeout_s: float = 10.0
) -> Path:
    """The file below `cache_dir`; fetched unless it is there, with the expected hash if there is one.

    Raises `SuiteError` after at most about `timeout_s` seconds when nothing answers; the message names the way
    without a network, `offline` where one file is not all of it.
    """
    cache = default_cache() if cache_dir is None else cache_dir
    target = cache / suite / published.version / published.file
    offline = offline or published.offline(suite)
    try:
        if target.is_file() and published.sha256 in (None, sha256(target.read_bytes()).hexdigest()):
            return target
    except OSError as error:
        raise SuiteError(f"{target}: cannot be read ({error.strerror})", advice=offline) from error
    data = _fetch(published.url, timeout_s, suite, offline)
    if data[:200].lstrip().lower().startswith((b"<!doctype html", b"<html")):
        # A proxy's page with status 200 would otherwise be kept for good where no hash is known.
        raise SuiteError(f"{suite}: {published.url} gave a web page instead of the file", advice=offline)
    found = sha256(data).hexdigest()
    if published.sha256 not in (None, found):
        raise SuiteError(
            f"{suite}: {published.url} gave other bytes than published (sha256 {found}, expected {published.sha256})",
            advice=offline,
        )
    partial = target.with_name(f"{published.file}.{getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(target)
    except OSError as error:
        raise SuiteError(f"{target}: cannot be written ({error.strerror})", advice=offline) from error
    return target


def _fetch(url: str, timeout_s: float, suite: str, offline: str) -> bytes:
    # The socket's own timeout covers neither name resolution nor a server that sends a byte now and then.
    outcome: list[bytes | str] = []
    answered = threading.Event()

    def get() -> None:
        try:
            with urllib.request.urlopen(url, timeout=timeout_s) as response:
                answered.set()
                data = response.read()
            outcome.append(gzip.decompress(data) if url.endswith(".gz") else data)
        except urllib.error.HTTPError as error:
            with error:
                outcome.append(f"HTTP status {error.code}")
        except (OSError, EOFError, zlib.error, HTTPException, ValueError) as error:
            outcome.append(str(getattr(error, "reason", error)) or type(error).__name__)
        answered.set()

    worker = threading.Thread(target=get, name="draftboard-download", daemon=True)
    worker.start()
    if answered.wait(timeout_s):
        worker.join(_PATIENCE * timeout_s)
        result = outcome[0] if outcome else f"not complete within {_PATIENCE * timeout_s:g} s"
    else:
        result = f"no answer within {timeout_s:g} s"
    if isinstance(result, str):
        raise SuiteError(f"{suite}: {url} is not reachable ({result})", advice=offline)
    return result


_PATIENCE = 12
"""How many times the wait for an answer the whole file may take."""
