"""Runs on disk without a model, and a hub of our own that takes them."""

import base64
import http.server
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from draftboard.records import Cell
from draftboard.store import create_run, open_cells, write_json

from local_server import serving
from made_runs import PAIRS, cell, stored, turn

TOKEN = "hf_" + "x" * 34
ENVIRONMENT = {
    "hardware": "one GPU",
    "cpu": {"model": "a CPU", "serial": "do not tell"},
    "packages": {"torch": "2.6"},
    "user": "me",
    "HF_TOKEN": "do not tell",
}
MANY = [
    cell(label, str(i), turn(range(12), pace))
    for i in range(20)
    for label, pace in (("autoregressive", 0.8), ("m", 0.4))
]


@pytest.fixture
def write_run() -> Callable[..., Path]:
    """Write a run of two methods, on enough samples for a claim unless `valid` says otherwise."""

    def write(path: Path, *, valid: bool | None = True, cells: list[Cell] | None = None, **changes: Any) -> Path:
        import msgspec

        cells = cells or (MANY if valid else PAIRS)
        run = stored(cells)
        plan = {**run.plan, **changes}
        create_run(path, plan, ENVIRONMENT, run.samples)
        with open_cells(path) as lines:
            for record in cells:
                lines.append(msgspec.json.encode(record))
        if valid is not None:
            reasons = [] if valid else ["only 2 samples; claims need at least 20"]
            write_json(path / "verdict.json", {"schema": 1, "valid": valid, "reasons": reasons})
        return path

    return write


@pytest.fixture
def failed_cell() -> Cell:
    failed = cell("m", "2", turn(3))
    return replace(failed, status="failed", reason="no file /home/someone/models/x.bin", turns=[])


@dataclass
class Hub:
    """What the hub holds and was told."""

    datasets: dict[str, bool] = field(default_factory=dict)
    """Private or not, by name."""
    models: set[str] = field(default_factory=set)
    commits: list[dict[str, Any]] = field(default_factory=list)
    created: list[dict[str, Any]] = field(default_factory=list)
    forbidden: int = 0
    """Status that a commit is refused with; 0 takes it."""
    endpoint: str = ""
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def hub() -> Iterator[Hub]:
    """The few answers of the hub's interface that an upload needs."""
    held = Hub()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status: int, body: Any) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(content)))):
                self.send_header(name, value)
            if status == 404:
                self.send_header("X-Error-Code", "RepoNotFound")
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            held.requests.append(f"GET {self.path}")
            kind, _, name = self.path.partition("?")[0].removeprefix("/api/").partition("/")
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self.answer(401, {"error": "Invalid credentials in Authorization header"})
            elif kind == "whoami-v2":
                self.answer(200, {"name": "me", "type": "user"})
            elif (kind == "datasets" and name in held.datasets) or (kind == "models" and name in held.models):
                self.answer(200, {"id": name, "private": held.datasets.get(name, False), "sha": "0" * 40})
            else:
                self.answer(404, {"error": "Repository not found"})

        def do_POST(self) -> None:
            held.requests.append(f"POST {self.path}")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or self.chunks()
            if self.path == "/api/repos/create":
                told = json.loads(body)
                held.created.append(told)
                self.answer(200, {"url": f"{held.endpoint}/datasets/{told['organization']}/{told['name']}"})
            elif self.path == "/api/validate-yaml":
                self.answer(200, {"errors": [], "warnings": []})
            elif "/preupload/" in self.path:
                files = [file["path"] for file in json.loads(body)["files"]]
                modes = [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in files]
                self.answer(200, {"files": modes})
            elif held.forbidden:
                self.answer(held.forbidden, {"error": "You may not do that"})
            else:
                self.commit([json.loads(line) for line in body.splitlines()])

        def chunks(self) -> bytes:
            found = b""
            while size := int(self.rfile.readline(), 16):
                found += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return found

        def commit(self, lines: list[dict[str, Any]]) -> None:
            values = [line["value"] for line in lines if line["key"] == "file"]
            files = {value["path"]: base64.b64decode(value["content"]) for value in values}
            held.commits.append({"path": self.path, "header": lines[0]["value"], "files": files})
            url = f"{held.endpoint}/datasets/me/board"
            told = {"commitUrl": f"{url}/commit/{'1' * 40}", "commitOid": "1" * 40}
            self.answer(200, told | ({"pullRequestUrl": f"{url}/discussions/1"} if "create_pr" in self.path else {}))

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as endpoint:
        held.endpoint = endpoint
        yield held
