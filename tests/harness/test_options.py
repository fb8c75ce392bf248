"""Settings as plan file and as command line."""

from dataclasses import fields
from pathlib import Path

import pytest

from draftboard.errors import UserError
from draftboard.options import RunOptions, merged, read_options


def plan(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_options(path)
    return str(caught.value)


def test_every_setting_can_stand_in_a_plan_file(tmp_path):
    text = """
        model = "m"
        revision = "main"
        method = ["pld", "samd[none]"]
        suite = ["mini"]
        limit = 2
        category = "qa"
        ids = "ids.txt"
        part = "test"
        max_prompt_tokens = 900
        shots = 3
        qa_references = "qa.jsonl"
        history = "reference"
        max_new_tokens = 64
        temperature = 1
        top_p = 0.9
        top_k = 40
        seed = 3
        repeats = 2
        dtype = "float32"
        device = "cpu"
        threads = 1
        template = "none"
        budget = "paper"
        draft_model = "d"
        stop = ["END"]
        warmup = "none"
        profile = true
        traces = true
        curve = "runs/good"
        [[methods]]
        method = "pld"
        label = "pld-5"
        draft_length = 5
    """
    options = read_options(plan(tmp_path, text))
    assert all(getattr(options, f.name) is not None for f in fields(RunOptions))
    assert options.temperature == 1.0
    assert options.methods == ({"method": "pld", "label": "pld-5", "draft_length": 5},)
    assert options.stop == ("END",)


def test_a_single_name_needs_no_list(tmp_path):
    options = read_options(plan(tmp_path, 'method = "pld"\nsuite = "mini"\nstop = "END"'))
    assert (options.method, options.suite, options.stop) == (("pld",), ("mini",), ("END",))


def test_unknown_keys_and_wrong_types_are_told_at_once_with_the_nearest_key(tmp_path):
    path = plan(tmp_path, 'temprature = 0.2\nlimit = "2"\nthreads = true\nbudget = "papr"\nzzz = 1\nmethods = ["pld"]')
    message = refused(path)
    assert message.startswith(f"{path}: 6 problem(s)")
    assert "unknown key 'temprature' — did you mean 'temperature'?" in message
    assert "unknown key 'zzz'\n" in message
    for start in ("limit = '2': ", "threads = True: ", "budget = 'papr': ", "methods = ['pld']: "):
        assert start in message
    assert "Keys: model, revision," in message


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"model = ", "is not valid TOML"),
        (b'model = "\xff"', "is not UTF-8 (byte 9)"),
    ],
)
def test_what_is_no_toml(tmp_path, content, what):
    path = tmp_path / "plan.toml"
    path.write_bytes(content)
    assert what in refused(path)
    assert "cannot be read" in refused(tmp_path / "none.toml")
    assert "cannot be read" in refused(tmp_path)


def test_what_the_command_line_says_wins_and_methods_named_there_replace_tables():
    file = RunOptions(model="a", limit=1, method=("pld",), methods=({"method": "samd"},), profile=True)
    both = merged(file, RunOptions(limit=2))
    assert (both.model, both.limit, both.method, both.methods, both.profile) == ("a", 2, ("pld",), file.methods, True)
    other = merged(file, RunOptions(method=("token_recycling",), profile=False))
    assert (other.method, other.methods, other.profile) == (("token_recycling",), None, False)


def test_zero_and_empty_are_said():
    assert merged(RunOptions(temperature=0.7, seed=5), RunOptions(temperature=0.0, seed=0)) == RunOptions(
        temperature=0.0, seed=0
    )


def test_a_plan_nested_beyond_reason_is_refused(tmp_path):
    assert "nested too deeply" in refused(plan(tmp_path, "stop = " + "[" * 2000 + "]" * 2000))
