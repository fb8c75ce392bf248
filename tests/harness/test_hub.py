"""What the model hub is asked, and what happens without it."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from draftboard import hub
from draftboard.errors import UserError
from draftboard.models import ModelRef, fingerprint

ALIAS = "smollm2-135m"
pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def silent_server() -> Iterator[int]:
    """An address that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(8)
        yield server.getsockname()[1]


def test_an_unreachable_hub_is_told_with_the_ways_around_it(
    tmp_path: Path, silent_server: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import draftboard.hub as hub; hub._TIMEOUT_S = 0.5\n"
        "from draftboard.errors import UserError\n"
        "try: hub.find_commit('owner/absent', None)\n"
        "except UserError as error: print(error)\n"
    )
    for endpoint in ("http://127.0.0.1:9", f"http://127.0.0.1:{silent_server}"):
        environment = os.environ | {
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(tmp_path / "hf"),
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert "owner/absent is not in the local cache and the hub cannot be reached" in done.stdout
        assert f"local folder with the model's files, a .gguf file, or the bundled alias {ALIAS}" in done.stdout


def test_a_hub_id_in_the_local_cache_loads_without_the_hub(folder: Path, tmp_path: Path) -> None:
    """The cache as the hub's own client lays it out."""
    commit = "a" * 40
    base = tmp_path / "hf" / "hub" / "models--owner--tiny"
    (base / "refs").mkdir(parents=True)
    (base / "refs" / "main").write_text(commit)
    (base / "snapshots").mkdir()
    folder.rename(base / "snapshots" / commit)
    code = (
        "from draftboard.models import *\n"
        "ref = resolve('owner/tiny')\n"
        "model = load_model(ref, dtype='float32', device='cpu')\n"
        "print(model.config.vocab_size, len(load_tokenizer(ref)), fingerprint(ref))\n"
        "print(vocabulary(ref).logit_width)\n"
    )
    environment = os.environ | {"HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": "http://127.0.0.1:9"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    width, tokens, digest, logit_width = done.stdout.split()
    assert (width, tokens, logit_width) == ("12", "8", "12")
    assert digest == fingerprint(ModelRef(name="t", kind="local", path=base / "snapshots" / commit))


def test_a_name_the_hub_would_never_take() -> None:
    with pytest.raises(UserError, match="cannot be a model on the hub"):
        hub.find_commit("a--b/c..d", None)


def test_a_head_is_a_folder_a_bundled_name_or_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub.find_folder(str(tmp_path)) == tmp_path
    monkeypatch.setattr(hub, "bundled_heads", lambda: ("smollm2-135m-eagle",))
    (tmp_path / "file").write_text("")
    for name, said in (
        ("smollm2-135m-eagel", "Did you mean smollm2-135m-eagle?"),
        ("", "unknown head ''"),
        ("./nowhere", "is no folder"),
        ("a/b/c", "is no folder"),
        (str(tmp_path / "file"), "is a file and not a folder"),
    ):
        with pytest.raises(UserError) as told:
            hub.find_folder(name)
        assert said in str(told.value)
        assert "a Hugging Face id (owner/name), or bundled: smollm2-135m-eagle." in str(told.value)


def test_a_head_on_an_unreachable_hub_is_told_within_seconds(tmp_path: Path, silent_server: int) -> None:
    code = (
        "import draftboard.hub as hub; hub._TIMEOUT_S = 0.5\n"
        "from draftboard.errors import UserError\n"
        "try: hub.find_folder('owner/absent')\n"
        "except UserError as error: print(error)\n"
    )
    for endpoint in ("http://127.0.0.1:9", f"http://127.0.0.1:{silent_server}"):
        environment = os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hf"), "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
        )
        assert "head owner/absent is not in the local cache and the hub cannot be reached" in done.stdout
        assert "A head is a folder with config.json and weights" in done.stdout


def test_a_head_in_the_local_cache_is_found_without_the_hub(tmp_path: Path) -> None:
    commit = "b" * 40
    base = tmp_path / "hf" / "hub" / "models--owner--head"
    (base / "refs").mkdir(parents=True)
    (base / "refs" / "main").write_text(commit)
    folder = base / "snapshots" / commit
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"")
    environment = os.environ | {"HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": "http://127.0.0.1:9"}
    code = "from draftboard.hub import find_folder; print(find_folder('owner/head'))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(folder)
