"""`draftboard check-head` from the command line, on a model of a few weights."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from draftboard.methods.eagle.config import HeadConfig
from draftboard.methods.eagle.export import save_head
from draftboard.methods.eagle.heads import EagleHead, make_head

Cli = Callable[..., Any]


def sizes(model: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(model) / "config.json").read_text())
    return found


def first_head(model: str, folder: Path, **changes: Any) -> Path:
    """An EAGLE-1 head of random weights for the session's model."""
    known = sizes(model)
    config = HeadConfig(
        **{
            "kind": "eagle",
            "hidden": known["hidden_size"],
            "target_hidden": known["hidden_size"],
            "vocab": known["vocab_size"],
            "draft_vocab": known["vocab_size"],
            "heads": 4,
            "kv_heads": 2,
            "head_dim": 8,
            "intermediate": 48,
            "taps": (known["num_hidden_layers"],),
            "own_lm_head": False,
            **changes,
        }
    )
    torch.manual_seed(1)
    head = make_head(config)
    assert isinstance(head, EagleHead)
    save_head(head, folder, record={"target": "tiny"})
    return folder


@pytest.fixture
def head(model: str, tmp_path: Path) -> Path:
    return first_head(model, tmp_path / "head", rope_theta=500000.0)


def test_a_random_head_is_broken_on_the_targets_own_answers(
    cli: Cli,
    model: str,
    head: Path,
) -> None:
    told = cli("check-head", str(head), "--model", model, "--tokens", "120", "--dtype", "float32", "--json")
    assert told.code == 1
    assert told.json["verdict"] == "broken"
    assert "answers of the target to suite mini" in told.json["text"]
    assert [base["base"] for base in told.json["bases"]] == [500000.0, 10000.0]
    assert [base["of"] for base in told.json["bases"]] == ["head", "default"]
    assert told.json["kind"] == "eagle"
    assert told.json["positions"] >= 100
    for base in told.json["bases"]:
        assert 0 <= base["top1"] <= base["top2"] <= base["top3"] <= 1
        assert len(base["depths"]) == 5


def test_the_table_says_what_is_wrong(
    cli: Cli,
    model: str,
    head: Path,
    tmp_path: Path,
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the ferry leaves at nine the bridge is closed who wrote the question " * 8)
    told = cli("check-head", str(head), "--model", model, "--text", str(text), "--dtype", "float32")
    assert told.code == 1
    assert "EAGLE-1/2, drafts" in told.out
    assert "text.txt" in told.out
    assert "broken: the first draft is the target's choice at" in told.out
    assert "warning: a head this far off is not just badly trained" in told.out
    assert max(len(line) for line in told.out.splitlines() if str(tmp_path.parent) not in line) <= 80


def test_the_targets_own_choice_repeated_is_healthy_where_the_target_repeats_itself(
    cli: Cli,
    model: str,
    tmp_path: Path,
) -> None:
    """A head that hands its feature on, checked on one word over and over, behind which the target sticks to one."""
    head = first_head(model, tmp_path / "head")
    path = head / "model.safetensors"
    tensors = {name: torch.zeros_like(value) for name, value in load_file(path).items()}
    width = tensors["fc.weight"].shape[0]
    tensors["fc.weight"][:, width:] = torch.eye(width)
    save_file(tensors, path)
    text = tmp_path / "text.txt"
    text.write_text("ferry " * 60)
    told = cli("check-head", str(head), "--model", model, "--text", str(text), "--dtype", "float32", "--json")
    assert told.code == 0
    assert told.json["verdict"] == "healthy"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--text", "x.txt", "--suite", "mini"], "--text and --suite exclude each other"),
        (["--tokens", "1"], "tokens must be at least 2"),
        (["--limit", "0"], "limit must be at least 1"),
        (["--text", "absent.txt"], "absent.txt"),
        (["--suite", "mini_"], "mini"),
        (["--model", "nothing-such"], "unknown model"),
    ],
)
def test_bad_input_is_told_before_weights_are_loaded(
    cli: Cli,
    model: str,
    head: Path,
    arguments: list[str],
    said: str,
) -> None:
    chosen = arguments if "--model" in arguments else ["--model", model, *arguments]
    told = cli("check-head", str(head), *chosen)
    assert told.code == 2
    assert said in told.err
    assert told.out == ""


def test_a_head_for_another_target_and_one_that_is_not_there(
    cli: Cli,
    model: str,
    models_made: dict[str, Path],
    head: Path,
    tmp_path: Path,
) -> None:
    told = cli("check-head", str(head), "--model", str(models_made["draft"]))
    assert told.code == 2
    assert "is a head for another target: width 32 and" in told.err
    told = cli("check-head", str(tmp_path / "absent"), "--model", model)
    assert told.code == 2
    assert "is no folder" in told.err
    (head / "model.safetensors").write_bytes((head / "model.safetensors").read_bytes()[:-9])
    told = cli("check-head", str(head), "--model", model)
    assert told.code == 2
    assert "model.safetensors cannot be read" in told.err
    assert "Traceback" not in told.err


def test_notices_of_loading_are_warned_of(
    cli: Cli,
    model: str,
    head: Path,
    tmp_path: Path,
) -> None:
    path = head / "model.safetensors"
    known = sizes(model)
    save_file({**load_file(path), "embed_tokens.weight": torch.randn(known["vocab_size"], known["hidden_size"])}, path)
    text = tmp_path / "text.txt"
    text.write_text("the ferry leaves at nine")
    told = cli("check-head", str(head), "--model", model, "--text", str(text), "--dtype", "float32", "--json")
    assert "embed_tokens.weight is not the target's" in told.err
    assert len(told.json["notices"]) == 1


def test_a_better_base_is_warned_of_with_what_to_do() -> None:
    from draftboard.head_check import HeadReport, console_text
    from draftboard.methods.eagle.check import BaseCheck, Depth, HeadCheck

    def base(base: float, of: str, hits: int) -> BaseCheck:
        depths = (Depth(tried=1000, accepted=hits), *[Depth(tried=0, accepted=0)] * 4)
        return BaseCheck(base=base, of=of, positions=1000, hits=(hits, hits, hits), depths=depths)

    config = HeadConfig(
        **dict.fromkeys(("hidden", "target_hidden", "heads", "kv_heads", "head_dim", "intermediate"), 8),  # type: ignore[arg-type]
        kind="eagle3",
        vocab=100,
        draft_vocab=90,
        taps=(2, 4, 5),
        own_lm_head=True,
    )
    bases = (base(1e6, "head", 400), base(1e4, "default", 700))
    found = HeadCheck(bases=bases, texts=1, tokens=1001, draftable=0.8, better=1e4)
    report = HeadReport(
        head="h", model="m", dtype="float32", text="t.txt", config=config, drafts=90, found=found, notices=()
    )
    told = " ".join(console_text(report).split())
    assert "weak: the first draft is the target's choice at 40% of the positions" in told
    assert "warning: with RoPE base 10,000 it is clearly better (0.70 against 0.40)." in told
    assert "set rope_theta to 10000 in a copy of its config.json" in told
    assert "note: only 80% of the target's choices are in the head's vocabulary" in told
    assert "EAGLE-3, drafts 90 of 100 ids, reads states 2, 4, 5" in told


@pytest.mark.parametrize(("held_out", "verdict", "code"), [(0.0, "weak", 0), (0.9, "broken", 1)])
def test_a_head_as_bad_as_its_training_found_it_is_not_broken(
    cli: Cli, model: str, head: Path, tmp_path: Path, held_out: float, verdict: str, code: int
) -> None:
    record = json.loads((head / "artifact.json").read_text())
    (head / "artifact.json").write_text(json.dumps({**record, "held_out": {"first_draft_right": held_out}}))
    text = tmp_path / "text.txt"
    text.write_text("the ferry leaves at nine the bridge is closed who wrote the question " * 8)
    command = ("check-head", str(head), "--model", model, "--text", str(text), "--dtype", "float32")
    told = cli(*command)
    assert told.code == code
    assert f"{verdict}: the first draft" in told.out
    assert ("not just badly trained" in " ".join(told.out.split())) == (verdict == "broken")
    told = cli(*command, "--json")
    assert told.code == code
    assert (told.json["verdict"], told.json["first_draft_right_in_training"]) == (verdict, held_out)


def test_a_head_is_exported_with_official_names(cli: Cli, model: str, head: Path, tmp_path: Path) -> None:
    told = cli("export", "head", str(head), "--model", model, "--out", str(tmp_path / "out"))
    assert told.code == 0
    assert told.out.strip() == str(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["config.json", "model.safetensors"]
    for name, value in load_file(tmp_path / "out" / "model.safetensors").items():
        assert torch.equal(value, load_file(head / "model.safetensors")[name])
    again = cli("export", "head", str(head), "--model", model, "--out", str(tmp_path / "out"))
    assert again.code == 2
    assert "exists already" in again.err


def test_an_exported_head_has_the_rows_that_it_borrowed(cli: Cli, model: str, tmp_path: Path) -> None:
    known = sizes(model)
    config = HeadConfig(
        kind="eagle3",
        hidden=known["hidden_size"],
        target_hidden=known["hidden_size"],
        vocab=known["vocab_size"],
        draft_vocab=4,
        heads=4,
        kv_heads=2,
        head_dim=8,
        intermediate=48,
        taps=(0, 1),
        own_lm_head=False,
    )
    ids = torch.tensor([1, 3, 4, 7])
    save_head(make_head(config, ids), tmp_path / "head", record={"target": "tiny"})
    told = cli("export", "head", str(tmp_path / "head"), "--model", model, "--out", str(tmp_path / "out"))
    assert told.code == 0, told.err
    stored = load_file(tmp_path / "out" / "model.safetensors")
    weights = load_file(Path(model) / "model.safetensors")
    rows = weights.get("lm_head.weight", weights.get("model.embed_tokens.weight"))
    assert rows is not None
    assert torch.equal(stored["lm_head.weight"], rows[ids])
