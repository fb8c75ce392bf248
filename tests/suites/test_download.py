"""Published files that come packed, or without a hash, or slowly."""

import gzip
import http.server
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from draftboard.suites import SuiteError
from draftboard.suites import download as module
from draftboard.suites.download import Published, download

from local_server import serving

TEXT = b'{"question": "Why?"}\n'
PAGES = {
    "/a.jsonl": TEXT,
    "/a.jsonl.gz": gzip.compress(TEXT),
    "/broken.gz": b"\x1f\x8b\x08\x00",
    "/page": b"\n<!DOCTYPE html><title>Blocked</title>",
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = PAGES.get(self.path, b"")
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) or 100))
        self.end_headers()
        self.wfile.write(body)
        if self.path == "/stuck":
            self.server.released.wait(30)  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(Handler) as address:
        yield address


def published(url: str, digest: str | None = None) -> Published:
    return Published(url=url, file="a.jsonl", version="abc", sha256=digest)


def test_a_packed_file_is_kept_unpacked(server: str, tmp_path: Path) -> None:
    wanted = published(f"{server}/a.jsonl.gz", sha256(TEXT).hexdigest())
    path = download(wanted, suite="toy", cache_dir=tmp_path)
    assert path == tmp_path / "toy" / "abc" / "a.jsonl"
    assert path.read_bytes() == TEXT


def test_without_a_hash_the_commit_vouches(server: str, tmp_path: Path) -> None:
    path = download(published(f"{server}/a.jsonl"), suite="toy", cache_dir=tmp_path)
    assert path.read_bytes() == TEXT
    assert download(published("http://127.0.0.1:9/gone"), suite="toy", cache_dir=tmp_path) == path


@pytest.mark.parametrize("page", ["cut-short", "broken.gz"])
def test_half_a_file_is_not_kept(server: str, tmp_path: Path, page: str) -> None:
    with pytest.raises(SuiteError, match=r"toy: .* is not reachable \(.+\)") as caught:
        download(published(f"{server}/{page}"), suite="toy", cache_dir=tmp_path)
    assert f"Get {server}/{page} on another machine and use --suite toy@PATH/a.jsonl" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_answers_and_then_sends_nothing(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.1)
    with pytest.raises(SuiteError, match="not complete within"):
        download(published(f"{server}/stuck"), suite="toy", cache_dir=tmp_path, timeout_s=5)


def test_a_proxys_page_is_not_kept_as_the_file(server: str, tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="gave a web page instead of the file") as caught:
        download(published(f"{server}/page"), suite="toy", cache_dir=tmp_path)
    assert "on another machine" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
