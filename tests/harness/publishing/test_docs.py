"""The commands of docs/publishing.md, run as they stand there on runs of their names."""

import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "publishing.md"
COMMANDS = re.findall(r"^draftboard .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_runs(command, cli, hub, write_run, tmp_path, monkeypatch):
    from draftboard.publishing import upload

    token = "hf_" + "x" * 34
    monkeypatch.setattr("huggingface_hub.get_token", lambda: token)
    monkeypatch.setattr("draftboard.publishing.upload", lambda *a, **k: upload(*a, endpoint=hub.endpoint, **k))
    monkeypatch.chdir(tmp_path)
    hub.datasets["someone/their-board"] = False
    write_run(tmp_path / "runs" / "mine", valid="--even-invalid" not in command)
    told = cli(*shlex.split(command)[1:])
    assert told.code == 0, told.err
    assert len(hub.commits) == ("--hub" in command and "--dry-run" not in command)


def test_the_page_shows_every_command_of_its_kind():
    shown = " ".join(COMMANDS)
    assert len(COMMANDS) >= 7
    for option in ("--hub", "--static", "--pr", "--public", "--dry-run", "--even-invalid", "--title"):
        assert option in shown
