import json

import pytest

from draftboard.methods import MethodError
from draftboard.methods.artifact import SCHEMA, check_free, read_artifact, write_artifact


def test_an_artifact_is_read_as_written(tmp_path):
    out = tmp_path / "deep" / "made"
    write_artifact(out, {"kind": "x", "note": "ä"}, lambda folder: (folder / "t").write_text("1"))
    assert read_artifact(out, "x") == {"schema": SCHEMA, "kind": "x", "note": "ä"}
    assert [path.name for path in out.parent.iterdir()] == ["made"]
    assert (out / "t").read_text() == "1"


def test_what_stands_is_not_overwritten(tmp_path):
    with pytest.raises(MethodError, match="exists already; choose another --out"):
        check_free(tmp_path)
    with pytest.raises(MethodError, match="exists already"):
        write_artifact(tmp_path, {"kind": "x"}, lambda folder: None)


def test_a_half_made_one_leaves_nothing(tmp_path):
    def fail(folder):
        (folder / "t").write_text("1")
        raise OSError(28, "No space left on device")

    with pytest.raises(MethodError, match="made cannot be written: No space left on device"):
        write_artifact(tmp_path / "made", {"kind": "x"}, fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is no artifact"),
        ("{", "cannot be read: .*make it anew"),
        ("[1]", "is not an artifact of kind 'x'"),
        (json.dumps({"schema": 1, "kind": "y"}), "is not an artifact of kind 'x'"),
        (json.dumps({"kind": "x"}), "is not an artifact of kind 'x'"),
        (json.dumps({"schema": SCHEMA + 1, "kind": "x"}), "has schema 2, .* upgrade draftboard"),
    ],
)
def test_what_is_none_is_told(tmp_path, text, message):
    if text is not None:
        (tmp_path / "artifact.json").write_text(text)
    with pytest.raises(MethodError, match=message):
        read_artifact(tmp_path, "x")
