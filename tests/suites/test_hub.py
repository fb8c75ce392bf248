"""Data sets of the hub, asked from a small hub of our own: what is read, pinned, refused, and used without it."""

import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from draftboard.suites import SuiteError
from draftboard.suites import hub as module
from draftboard.suites.hub import HubPlace, hub_place, hub_rows

from local_server import serving

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CARD = """---
configs:
- config_name: main
  data_files:
  - {split: test, path: main/test.parquet}
  - {split: train, path: main/train.parquet}
- config_name: other
  data_files:
  - {split: train, path: main/train.parquet}
---
"""


def parquet(*rows: dict[str, object]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


REPOSITORIES: dict[str, dict[str, bytes]] = {
    "o/sums": {
        "README.md": CARD.encode(),
        "main/test.parquet": parquet({"question": "1+1?", "answer": "#### 2"}, {"question": "2+2?", "answer": "4"}),
        "main/train.parquet": parquet({"question": "3+3?", "answer": "6"}),
    },
    "o/copy": {"README.md": b"A copy.\n", "train.parquet": parquet({"question": "1+1?", "answer": "2"})},
    "o/program": {"README.md": b"A program.\n", "program.py": b"print()\n"},
}


class Hub(http.server.BaseHTTPRequestHandler):
    """The few answers of the hub's interface that reading a data set needs."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        kind, _, rest = path.removeprefix("/api").removeprefix("/datasets/").partition("/resolve/")
        if path.startswith("/api/datasets/o/gated"):
            self.answer(b"{}", 403, X_Error_Code="GatedRepo", X_Error_Message="gated")
        elif path.startswith("/api/datasets/"):
            self.describe("/".join(path.split("/")[3:5]), path)
        elif kind in REPOSITORIES:
            content = REPOSITORIES[kind].get(rest.partition("/")[2])
            if content is None:
                self.answer(b"", 404, X_Error_Code="EntryNotFound", X_Repo_Commit=COMMIT)
            else:
                self.answer(content, ETag=f'"{hashlib.sha1(content).hexdigest()}"', X_Repo_Commit=COMMIT)
        else:
            self.answer(b"", 404)

    do_HEAD = do_GET

    def describe(self, name: str, path: str) -> None:
        if name not in REPOSITORIES:
            self.answer(b"{}", 401, X_Error_Code="RepoNotFound")
        elif "/revision/absent" in path:
            self.answer(b"{}", 404, X_Error_Code="RevisionNotFound")
        elif "/tree/" in path:
            self.answer(json.dumps(self.tree(name, path.partition("/tree/")[2].partition("/")[2])).encode())
        else:
            self.answer(json.dumps({"id": name, "sha": COMMIT, "siblings": [], "private": False, "tags": []}).encode())

    def tree(self, name: str, folder: str) -> list[dict[str, Any]]:
        begin = f"{folder}/" if folder else ""
        entries: dict[str, dict[str, Any]] = {}
        for path, content in REPOSITORIES[name].items():
            first, slash, _ = path.removeprefix(begin).partition("/")
            if path.startswith(begin):
                entries[begin + first] = {
                    "type": "directory" if slash else "file",
                    "path": begin + first,
                    "size": 0 if slash else len(content),
                    "oid": hashlib.sha1(content).hexdigest(),
                }
        return list(entries.values())

    def answer(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with serving(Hub) as address:
        yield address


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hub")


PROGRAM = """
import json, sys
from draftboard.suites import SuiteError, load_suite
for spec in sys.argv[1:]:
    try:
        suite = load_suite(spec)
        found = {
            "source": suite.source, "notes": suite.notes, "hash": suite.content_hash,
            "ids": [sample.sample_id for sample in suite.samples],
            "references": [sample.references for sample in suite.samples],
        }
    except SuiteError as error:
        found = {"error": str(error)}
    print("RESULT", json.dumps(found))
print("RESULT", json.dumps("torch" in sys.modules))
"""


def ask(endpoint: str, home: Path, *specs: str, **environment: str) -> list[Any]:
    """What each suite gives in a process of its own, since the hub's library reads its settings at import."""
    env = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(home), "no_proxy": "127.0.0.1", **environment}
    for name in ("HF_TOKEN", "HF_DATASETS_CACHE", "HF_HUB_CACHE"):
        env.pop(name, None)
    command = [sys.executable, "-c", PROGRAM, *specs]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line[7:]) for line in done.stdout.splitlines() if line.startswith("RESULT ")]


UNREACHABLE = "http://127.0.0.1:9"


def test_from_the_hub_and_then_without_it(endpoint: str, home: Path) -> None:
    specs = ("gsm8k@hf://o/sums", "gsm8k@hf://o/copy@main", "gsm8k@hf://o/sums/other", "jsonl@hf://o/sums/main")
    sums, copy, other, jsonl, torch = ask(endpoint, home, *specs)
    assert sums["source"] == f"o/sums@{COMMIT[:12]}"
    assert sums["ids"] == ["gsm8k-0", "gsm8k-1"]
    assert sums["notes"] == [
        f"rows of hf://o/sums at commit {COMMIT} (configuration main, split test)",
        "2 samples; the published file has 1,319",
    ]
    assert "configuration default, split train" in copy["notes"][0]
    assert other["references"] == [[["6"]]]
    assert "hf://o/sums" in jsonl["error"]
    assert "row 1: no `question_id`" in jsonl["error"]
    assert torch is False

    specs = ("gsm8k@hf://o/sums", f"gsm8k@hf://o/sums@{COMMIT[:9]}", "gsm8k@hf://o/sums@fedcba98", "gsm8k@hf://o/never")
    again, same, another, never, _ = ask(UNREACHABLE, home, *specs)
    assert (again["hash"], again["source"]) == (sums["hash"], sums["source"])
    assert any("the copy in the local cache was used" in note for note in again["notes"])
    assert same["ids"] == again["ids"]
    assert f"holds the commit {COMMIT}, not fedcba98" in another["error"]
    assert "o/never is not in the local cache and the hub cannot be reached" in never["error"]
    assert "/test.jsonl on another machine and use --suite gsm8k@PATH/test.jsonl" in never["error"]

    offline, _ = ask(endpoint, home, "gsm8k@hf://o/sums", HF_HUB_OFFLINE="1")
    assert any("offline mode" in note for note in offline["notes"])


def test_what_the_hub_does_not_have_is_named(endpoint: str, home: Path) -> None:
    names = ("o/absent", "o/gated", "o/sums@absent", "o/program", "o/sums/third", "o/sums")
    specs = [f"scitldr@hf://{name}" for name in names]
    absent, gated, revision, program, config, unsaid, _ = (found for found in ask(endpoint, home, *specs))
    assert "the hub has no data set o/absent" in absent["error"]
    assert "data set o/gated is gated" in gated["error"]
    assert "data set o/sums has no revision 'absent'" in revision["error"]
    assert "hf://o/program@refs/convert/parquet" in program["error"]
    assert "['main', 'other']" in config["error"]
    assert "hf://o/sums/CONFIGURATION" in unsaid["error"]


def test_another_schema_or_split_is_refused_by_name(endpoint: str, home: Path) -> None:
    schema, split, _ = ask(endpoint, home, "scitldr@hf://o/sums/main", "nq_open@hf://o/sums/main")
    assert "found: question, answer\n" in schema["error"]
    assert "expected: document, references or source, target" in schema["error"]
    assert "no split 'validation'; known: test, train" in split["error"]


def test_a_hub_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def silent(*args: object, **kwargs: object) -> None:
        released.wait(60)
        raise ConnectionError

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", silent)
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.1)
    begun = time.monotonic()
    with pytest.raises(SuiteError, match="the hub cannot be reached\n  no answer within") as caught:
        hub_rows(HubPlace(name="o/never-seen"), suite="toy", offline="Bring toy.jsonl")
    assert time.monotonic() - begun < 50
    assert "Bring toy.jsonl" in str(caught.value)
    released.set()


def test_an_answer_that_is_not_the_hubs(monkeypatch: pytest.MonkeyPatch) -> None:
    def page(*_: object, **__: object) -> None:
        raise json.JSONDecodeError("Expecting value", "<html>", 0)

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", page)
    with pytest.raises(SuiteError, match=r"cannot be reached\n  what answered there is not the hub\nBring it\."):
        hub_rows(hub_place("hf://owner/name"), suite="s", offline="Bring it.")


def test_a_folder_of_the_same_name_is_not_read_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "o" / "n").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SuiteError, match=r"use --suite toy@\./o/n"):
        hub_rows(HubPlace(name="o/n"), suite="toy", offline="")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("hf://o/n", HubPlace(name="o/n")),
        ("hf://datasets/o/n", HubPlace(name="o/n")),
        ("hf://squad", HubPlace(name="squad")),
        ("hf://o/n@refs/convert/parquet", HubPlace(name="o/n", revision="refs/convert/parquet")),
        ("hf://o/n.v-1_x/c@v1", HubPlace(name="o/n.v-1_x", config="c", revision="v1")),
    ],
)
def test_places(path: str, expected: HubPlace) -> None:
    assert hub_place(path) == expected


@pytest.mark.parametrize("path", ["hf://", "hf://o/", "hf://o/n/c/test.parquet", "hf://o/n@", "hf://@main", "hf://o n"])
def test_what_is_no_place(path: str) -> None:
    with pytest.raises(SuiteError, match="no data set of the hub"):
        hub_place(path)
