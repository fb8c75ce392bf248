"""Naming a model, finding it and loading it: the only place that knows where weights come from.

A model is a bundled alias, a Hugging Face id, a local folder or a `.gguf` file. Whatever it is, everything is
read through transformers' public interface, what cannot work is refused from its configuration before any
weight is read, and a hub that cannot be reached is told within seconds, with the ways that need none.
Importing this module does not import torch.
"""

import difflib
import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from draftboard.bundled import BUNDLED, bundled_folder, fetch, is_fetched, quiet_loading
from draftboard.errors import UserError
from draftboard.files import cache_dir, write_atomic
from draftboard.hub import find_commit
from draftboard.methods import Vocabulary

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

__all__ = [
    "ALIASES",
    "DTYPES",
    "ModelRef",
    "eos_ids",
    "fetch",
    "fingerprint",
    "fingerprint_model",
    "is_fetched",
    "load_config",
    "load_model",
    "load_tokenizer",
    "resolve",
    "resolve_device",
    "resolve_dtype",
    "vocabulary",
]

ALIASES: tuple[str, ...] = tuple(sorted(BUNDLED))
DTYPES = ("auto", "float32", "float16", "bfloat16")

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_ACCEPTED = (
    f"A model is a bundled alias ({', '.join(ALIASES)}), a Hugging Face id (owner/name), "
    "a local folder with a config.json, or a .gguf file."
)
_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")

Kind = Literal["bundled", "hub", "local", "gguf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRef:
    """A model by name, with the kind of place it is in. Nothing has been loaded."""

    name: str
    """As the user wrote it; for a path, what is shown and stored is this and never the absolute path."""
    kind: Kind
    revision: str | None = None
    """A branch, tag or commit of a Hugging Face id; None means the default branch."""
    path: Path | None = None
    """The folder (bundled, local) or the file (gguf); None for a Hugging Face id."""


def resolve(name: str, revision: str | None = None) -> ModelRef:
    """Tell what `name` means, without loading anything or asking the network.

    An existing folder wins over a Hugging Face id of the same spelling. Raises UserError for a path that is
    not there, for a name that is nothing we know (with the nearest alias), and for a revision of anything but
    a Hugging Face id.
    """
    ref = _resolve(name.strip(), revision)
    if revision is not None and ref.kind != "hub":
        raise UserError(
            f"model {name!r} has no revisions, so {revision!r} cannot be chosen",
            advice="A revision belongs to a Hugging Face id (owner/name).",
        )
    return ref


def _resolve(name: str, revision: str | None) -> ModelRef:
    if name in BUNDLED:
        return ModelRef(name=name, kind="bundled", path=bundled_folder(name))
    path = Path(name).expanduser()
    if name.lower().endswith(".gguf"):
        if not path.is_file():
            raise UserError(f"no such file: {name}", advice=_ACCEPTED)
        return ModelRef(name=name, kind="gguf", path=path)
    if name and path.is_dir():
        return ModelRef(name=name, kind="local", path=_model_folder(name, path))
    looks_like_path = name.startswith((".", "~", "/")) or "\\" in name or name.count("/") > 1
    if looks_like_path:
        raise UserError(f"no such model folder: {name}", advice=_ACCEPTED)
    if _HUB_ID.fullmatch(name):
        return ModelRef(name=name, kind="hub", revision=revision)
    near = difflib.get_close_matches(name.lower(), ALIASES, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise UserError(f"unknown model {name!r}", advice=hint + _ACCEPTED)


def _model_folder(name: str, path: Path) -> Path:
    if not (path / "config.json").is_file():
        ggufs = sorted(file.name for file in path.glob("*.gguf"))
        inside = f" It holds {ggufs[0]}: name that file." if ggufs else ""
        raise UserError(f"the folder {name} has no config.json", advice=_ACCEPTED + inside)
    return path


@dataclass(frozen=True, slots=True)
class _Place:
    """A model as transformers' `from_pretrained` takes it."""

    target: str
    options: dict[str, Any]


def _place(ref: ModelRef) -> _Place:
    match ref.kind:
        case "hub":
            commit, offline = find_commit(ref.name, ref.revision)
            return _Place(ref.name, {"revision": commit, "local_files_only": offline})
        case "gguf":
            path = _path(ref)
            return _Place(str(path.parent), {"gguf_file": path.name})
        case "bundled" if not is_fetched(ref.name):
            raise UserError(f"model {ref.name} is not in the cache yet", advice=f"Run: draftboard fetch {ref.name}")
        case _:
            return _Place(str(_path(ref)), {"local_files_only": True})


def _path(ref: ModelRef) -> Path:
    if ref.path is None:
        raise ValueError(f"a {ref.kind} model needs a path")
    return ref.path


def load_config(ref: ModelRef) -> "PretrainedConfig":
    """Read the model's configuration and refuse, by name, what is not a decoder-only causal language model.

    Raises UserError also for a folder or hub that does not give a readable configuration.
    """
    return _config(ref, _place(ref))


def _config(ref: ModelRef, place: _Place) -> "PretrainedConfig":
    from huggingface_hub.errors import StrictDataclassError
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(place.target, **place.options)
    except (OSError, ValueError, KeyError, TypeError, StrictDataclassError) as error:
        raise UserError(
            f"model {ref.name} has no configuration that transformers understands",
            problems=_first_lines(error),
            advice=_ACCEPTED,
        ) from error
    _refuse_other_kinds(ref, config)
    return config


def _refuse_other_kinds(ref: ModelRef, config: "PretrainedConfig") -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    kind = config.model_type or type(config).__name__
    named = list(config.architectures or ())
    advice = "draftboard decodes with decoder-only causal language models, such as Llama, Mistral or Qwen."
    if config.is_encoder_decoder:
        raise UserError(f"model {ref.name} ({kind}) is an encoder–decoder", advice=advice)
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise UserError(f"model {ref.name} ({kind}) is not a causal language model", advice=advice)
    classes = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    causal = {found.__name__ for found in (classes if isinstance(classes, tuple) else (classes,))}
    if named and causal.isdisjoint(named):
        raise UserError(f"model {ref.name} ({', '.join(named)}) is not a causal language model", advice=advice)


def load_tokenizer(ref: ModelRef) -> "PreTrainedTokenizerBase":
    """Load the model's tokenizer. Raises UserError when there is none that transformers understands."""
    return _tokenizer(ref, _place(ref))


def _tokenizer(ref: ModelRef, place: _Place) -> "PreTrainedTokenizerBase":
    from transformers import AutoTokenizer

    try:
        with quiet_loading():
            return AutoTokenizer.from_pretrained(place.target, **place.options)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise UserError(
            f"model {ref.name} has no tokenizer that transformers understands",
            problems=_first_lines(error),
            advice="The folder needs a tokenizer.json (or tokenizer.model) beside the weights.",
        ) from error


def load_model(ref: ModelRef, *, dtype: str = "auto", device: str = "auto") -> "PreTrainedModel":
    """Load the model's weights in `dtype` onto `device`, in evaluation mode and without gradients.

    Attention is SDPA, which takes the tree masks of verification. Raises UserError for everything that stands
    in the way: not a causal language model, a dtype or device that is not there, weights that are missing, of
    another shape, unreadable or too large for the memory.
    """
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, GgufConfig

    where = resolve_device(device)
    kind = resolve_dtype(dtype, where)
    place = _place(ref)
    config = _config(ref, place)
    options: dict[str, Any] = dict(place.options)
    if ref.kind == "gguf":
        options["quantization_config"] = GgufConfig(dequantize=True)
    try:
        with quiet_loading():
            model, info = AutoModelForCausalLM.from_pretrained(
                place.target,
                config=config,
                dtype=kind,
                attn_implementation="sdpa",
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # told below, by name and with those that are missing
                **options,
            )
        _refuse_holes(ref, info)
        model.to(where)
    except (OSError, ValueError, ImportError, SafetensorError, torch.OutOfMemoryError, MemoryError) as error:
        raise UserError(f"model {ref.name} cannot be loaded", problems=_first_lines(error)) from error
    model.eval()
    model.requires_grad_(False)
    return model


def _refuse_holes(ref: ModelRef, info: dict[str, Any]) -> None:
    """Weights that a file lacks would be random numbers, and every figure measured on them worthless."""
    missing = [str(name) for name in info.get("missing_keys") or ()]
    mismatched = [str(found[0]) for found in info.get("mismatched_keys") or ()]
    problems = [f"missing: {name}" for name in sorted(missing)[:5]]
    problems += [f"of another shape: {name}" for name in sorted(mismatched)[:5]]
    if problems:
        raise UserError(
            f"model {ref.name}: its files do not hold all weights that its configuration asks for "
            f"({len(missing)} missing, {len(mismatched)} of another shape)",
            problems=tuple(problems),
        )


def resolve_device(device: str) -> "torch.device":
    """`auto` (CUDA when present, else CPU), `cpu`, `cuda` or `cuda:N`, as a device that is really there."""
    import torch

    if device == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    if device == "cpu":
        return torch.device("cpu")
    found = re.fullmatch(r"cuda(?::(\d+))?", device)
    if found is None:
        raise UserError(f"unknown device {device!r}", advice="Devices: auto, cpu, cuda, cuda:N.")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    index = int(found.group(1) or 0)
    if index >= count:
        advice = "Use --device cpu." if count == 0 else f"Use cuda:0 to cuda:{count - 1}."
        raise UserError(f"device {device} is not there: {count} CUDA device(s) found", advice=advice)
    return torch.device(f"cuda:{index}")


def resolve_dtype(dtype: str, device: "torch.device") -> "torch.dtype":
    """A dtype name as torch's dtype; `auto` is the fastest that `device` computes natively.

    On CUDA that is bfloat16, or float16 on older chips; on a CPU bfloat16 where the processor has
    instructions for it, else float32.
    """
    import torch

    from draftboard.hardware import cpu_has_bfloat16

    if dtype not in DTYPES:
        near = difflib.get_close_matches(dtype.lower(), DTYPES, n=1, cutoff=0.4)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise UserError(f"unknown dtype {dtype!r}", advice=f"{hint}Dtypes: {', '.join(DTYPES)}.")
    if dtype != "auto":
        kind: torch.dtype = getattr(torch, dtype)
        return kind
    if device.type == "cuda":
        # Emulated bfloat16 on pre-Ampere chips counts as unsupported: float16 is native there.
        native = torch.cuda.get_device_capability(device) >= (8, 0)
        return torch.bfloat16 if native else torch.float16
    return torch.bfloat16 if cpu_has_bfloat16() else torch.float32


def eos_ids(*sources: object) -> frozenset[int]:
    """Every token id that ends an answer, as told by models, generation configs, configs and tokenizers.

    A model speaks through its generation config, and through its config where that says nothing. Chat models
    often have several; stopping on only one of them lets a model talk past its answer.
    """
    found: set[int] = set()
    for source in sources:
        for holder in (getattr(source, "generation_config", None), getattr(source, "config", None), source):
            value = getattr(holder, "eos_token_id", None)
            ids = [value] if isinstance(value, int) else list(value or ())
            if ids:
                found.update(int(item) for item in ids)
                break
    return frozenset(found)


def vocabulary(ref: ModelRef) -> Vocabulary:
    """Read the model's token table from its tokenizer and configuration, without its weights."""
    from transformers import GenerationConfig

    place = _place(ref)
    config = _config(ref, place)
    tokenizer = _tokenizer(ref, place)
    ends: list[object] = [config, tokenizer]
    if ref.kind != "gguf":
        try:
            ends[0] = GenerationConfig.from_pretrained(place.target, **place.options)
        except OSError:  # an optional file; the configuration then speaks
            ends[0] = config
        if not eos_ids(ends[0]):
            ends[0] = config
    return Vocabulary(
        tokens=dict(tokenizer.get_vocab()),
        logit_width=int(config.get_text_config().vocab_size),
        eos_ids=eos_ids(*ends),
    )


def fingerprint(ref: ModelRef) -> str:
    """A sha256 over the model's configuration and weight files: the same wherever and as whatever it is
    loaded.

    Whole files are hashed, a few seconds per gigabyte at worst; each file's hash is remembered in the cache
    for as long as its size and time of change stay the same. Of the configuration, what only tells who wrote
    the file (versions, names, storage dtype) is left out. For a Hugging Face id, the files must have been
    loaded before.
    """
    if ref.kind == "gguf":
        return _combine([("weights", _file_sha256(_path(ref)))])
    folder = _folder(ref)
    config = msgspec.json.decode((folder / "config.json").read_bytes())
    for name in ("transformers_version", "_name_or_path", "_model_name_or_path", "dtype", "torch_dtype"):
        config.pop(name, None)
    canonical = msgspec.json.encode(config, order="deterministic")
    parts = [("config", hashlib.sha256(canonical).hexdigest())]
    weights: list[Path] = []
    for pattern in _WEIGHTS:
        weights = sorted(folder.glob(pattern))
        if weights:
            break
    if not weights:
        raise UserError(f"model {ref.name} has no weight files", advice="Load it once, then try again.")
    parts += [(file.name, _file_sha256(file)) for file in weights]
    return _combine(parts)


def fingerprint_model(model: "torch.nn.Module") -> str:
    """A sha256 over a model in memory: names, shapes, dtypes and values of its parameters and buffers.

    For models that were never saved, such as the fakes of a test. It differs from `fingerprint` of the same
    model.
    """
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _folder(ref: ModelRef) -> Path:
    place = _place(ref)
    if ref.kind != "hub":
        return Path(place.target)
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(ref.name, "config.json", revision=place.options["revision"])
    if not isinstance(cached, str):
        raise UserError(f"model {ref.name} is not in the local cache", advice="Load it once, then try again.")
    return Path(cached).parent


def _combine(parts: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256("".join(f"{name} {digest}\n" for name, digest in parts).encode()).hexdigest()


class _Remembered(msgspec.Struct, frozen=True):
    size: int
    mtime_ns: int
    sha256: str


def _file_sha256(path: Path) -> str:
    real = path.resolve()
    status = real.stat()
    note = cache_dir() / "hashes" / f"{hashlib.sha256(os.fsencode(real)).hexdigest()}.json"
    try:
        known = msgspec.json.decode(note.read_bytes(), type=_Remembered)
        if (known.size, known.mtime_ns) == (status.st_size, status.st_mtime_ns):
            return known.sha256
    except (OSError, msgspec.MsgspecError):
        pass  # not hashed yet, or a note of another version: hash it
    with real.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    write_atomic(note, msgspec.json.encode(_Remembered(status.st_size, status.st_mtime_ns, digest)))
    return digest


def _first_lines(error: BaseException) -> tuple[str, ...]:
    return tuple(line for line in str(error).splitlines() if line.strip())[:3]
