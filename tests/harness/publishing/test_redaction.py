import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.errors import UserError
from draftboard.publishing.redaction import known_environment, refuse_secrets, without_paths

SUPERUSER = "/root"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/someone/models/llama-7b", "llama-7b"),
        ("/mnt/disk/models/llama 7b", "llama 7b"),
        ("C:\\Users\\someone\\models\\llama", "llama"),
        ("~/models/llama", "llama"),
        ("jsonl@/data/mine/q.jsonl", "jsonl@q.jsonl"),
        ("mini, jsonl@/home/someone/q.jsonl 4", "mini, jsonl@q.jsonl 4"),
        ("no file '/home/someone/a/b.bin' in /Users/other", "no file 'b.bin' in ~"),
        ("cannot read /home/someone", "cannot read ~"),
        ("at /srv/models/x: failed", "at x: failed"),
        # The home of every system's superuser, which is no folder under /home.
        (f"at {SUPERUSER}/x: failed", "at x: failed"),
        (f"at {SUPERUSER}: failed", "at ~: failed"),
        ("https://example.org/a/b/c", "https://example.org/a/b/c"),
        ("meta-llama/Llama-2-7b", "meta-llama/Llama-2-7b"),
        ("and/or, 1/2, spec_bench/qa", "and/or, 1/2, spec_bench/qa"),
        ("/", "/"),
        ("/home/someone/My Models/llama", "llama"),
        ("/home/someone/x and /home/other", "x and ~"),
        ("tokens/s", "tokens/s"),
    ],
)
def test_a_path_is_told_by_its_last_part(text, expected):
    assert without_paths(text) == expected


def test_the_home_folder_of_this_user_is_never_told(monkeypatch):
    monkeypatch.setenv("HOME", "/srv/people/someone")
    said = without_paths({"/srv/people/someone/m": ["in:/srv/people/someone/models/a", "/srv/people/someone"]})
    assert said == {"m": ["in:a", "~"]}


@given(st.text(), st.text(alphabet="abc/ .", max_size=8))
def test_no_home_folder_stays(before, after):
    assert not re.search("/home/someone", without_paths(f"{before} /home/someone/{after}"))


def test_of_the_machine_only_known_facts_are_told():
    record = {
        "schema": 1,
        "hardware": "a GPU",
        "cpu": {"model": "a CPU", "serial": "1"},
        "gpus": [{"name": "a GPU", "uuid": "2"}],
        "packages": {"torch": "2.6"},
        "user": "me",
        "environment": {"HF_TOKEN": "x"},
        "peak_rss_bytes": 5,
    }
    assert known_environment(record) == {
        "schema": 1,
        "hardware": "a GPU",
        "cpu": {"model": "a CPU"},
        "gpus": [{"name": "a GPU"}],
        "packages": {"torch": "2.6"},
        "peak_rss_bytes": 5,
    }


def test_a_key_or_the_value_of_a_secret_variable_stops_everything(monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "correct horse battery")
    key = "hf_" + "a" * 34
    with pytest.raises(UserError) as caught:
        refuse_secrets([("a.md", f"x {key}"), ("b.json", "correct horse battery"), ("c", "harmless")])
    told = str(caught.value)
    assert "a.md: holds what looks like a key" in told
    assert "b.json: holds MY_API_KEY" in told
    assert "c:" not in told
    assert key not in told
    assert "correct horse" not in told


def test_harmless_texts_pass():
    refuse_secrets([("a", "hf_short and sk-1 and the token"), ("b", str(Path.cwd()))])
