"""From a head's `config.json` and the shapes of its tensors to a `HeadConfig`, whichever toolkit wrote them.

Configurations of heads are unreliable: layer counts of the target, vocabularies of the draft, missing switches
(native-methods 1.2, 1.5, 1.6). So sizes are taken from the tensors and switches from which tensors are there; the
configuration decides over what no tensor shows: attention heads, epsilon, RoPE, activation, taps, residual, recycling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from draftboard.methods.eagle.config import HeadConfig, TargetShape, default_taps
from draftboard.methods.eagle.naming import EMBEDDING, LM_HEAD, TARGET_LM_HEAD, Naming, check_names
from draftboard.methods.errors import MethodError

__all__ = ["describe"]

_SIZES = ("hidden", "target_hidden", "vocab", "draft_vocab", "heads", "kv_heads", "head_dim", "intermediate")

Shapes = Mapping[str, tuple[int, ...]]
"""Official tensor name to shape; `token_map` also where the table is in a file of its own."""


@dataclass(slots=True)
class _Fields:
    """Typed reading of a JSON object; what is of the wrong type is noted."""

    values: Mapping[str, Any]
    problems: list[str] = field(default_factory=list)

    def whole(self, name: str) -> int | None:
        """Return a whole number of at least 1, or None where it is absent or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 1 << 31:
            self.problems.append(f"{name} must be a whole number of at least 1, not {value!r}"[:160])
            return None
        return value

    def positive(self, name: str, default: float) -> float:
        """Return a positive number."""
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not (isfinite(value) and value > 0):
            self.problems.append(f"{name} must be a positive number, not {value!r}"[:160])
            return default
        return float(value)

    def flag(self, name: str) -> bool | None:
        """Return true, false, or None where it is absent."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            self.problems.append(f"{name} must be true or false, not {value!r}"[:160])
            return None
        return value

    def text(self, name: str, default: str) -> str:
        """Return a text."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            self.problems.append(f"{name} must be a text, not {value!r}"[:160])
        return value if isinstance(value, str) else default

    def table(self, name: str) -> Mapping[str, Any]:
        """Return an object; empty where it is absent."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, dict):
            self.problems.append(f"{name} must be an object, not {value!r}"[:160])
        return value if isinstance(value, dict) else {}

    def indices(self, name: str) -> tuple[int, ...]:
        """Return a list of whole numbers; empty where it is absent."""
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or any(isinstance(one, bool) or not isinstance(one, int) for one in value):
            self.problems.append(f"{name} must be a list of whole numbers, not {value!r}"[:160])
            return ()
        return tuple(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where a configuration says what: speculators nests the layer's fields."""

    top: _Fields
    layer: _Fields
    eagle: _Fields
    problems: list[str]
    speculators: str
    """`speculators_model_type`; empty in other toolkits' files."""


def describe(
    config: Mapping[str, Any],
    naming: Naming,
    shapes: Shapes,
    *,
    target: TargetShape,
    where: str,
    say: Callable[[str], None],
) -> HeadConfig:
    """Return what the head is made of.

    `where` names the head in messages, `say` takes notices. Raises MethodError for a head that is none, is of a kind
    that cannot be run, or was made for another target.
    """
    source = _source(config, where)
    _refuse_kinds(source, naming, where)
    switches = _switches(source, naming)
    taps = _taps(source, naming, target, where, say)
    none: dict[str, Any] = dict.fromkeys(_SIZES, 1)
    blank = HeadConfig(
        kind=naming.kind,
        **none,
        taps=taps,
        own_lm_head=naming.kind == "eagle3" and naming.has(LM_HEAD),
        layers=naming.layers if naming.kind == "eagle" else 1,
        **switches,
    )
    check_names(naming, blank, where)
    sizes = _sizes(source, naming, shapes, len(taps), target, where)
    theta, scaling = _rope(source)
    made: dict[str, Any] = {
        "eps": source.layer.positive("rms_norm_eps", 1e-6),
        "rope_theta": theta,
        "rope_scaling": scaling,
        "window": source.layer.whole("max_position_embeddings") or 2048,
        "act": source.layer.text("hidden_act", "silu"),
        **_paths(source, naming, where, say),
    }
    if source.problems:
        raise MethodError(f"{where}/config.json: {'; '.join(dict.fromkeys(source.problems))}")
    try:
        return HeadConfig(
            kind=naming.kind, taps=taps, own_lm_head=blank.own_lm_head, layers=blank.layers, **switches, **sizes, **made
        )
    except MethodError as error:
        raise MethodError(f"{where}: {error}") from error


def _source(config: Mapping[str, Any], where: str) -> _Source:
    problems: list[str] = []
    top = _Fields(config, problems)
    kind = top.text("speculators_model_type", "")
    layer = top.table("transformer_layer_config") if kind else config
    if kind and not layer:
        raise MethodError(f"{where}/config.json: transformer_layer_config is missing, which speculators' heads have")
    return _Source(
        top=top,
        layer=_Fields(layer, problems),
        eagle=_Fields(top.table("eagle_config"), problems),
        problems=problems,
        speculators=kind,
    )


def _refuse_kinds(source: _Source, naming: Naming, where: str) -> None:
    """Refuse by name what would run and be wrong, or what is another kind of draft model."""
    said = source.speculators
    if said and said not in ("eagle", "eagle3"):
        raise MethodError(f"{where}: speculators_model_type {said!r} is not EAGLE; eagle and eagle3 are")
    if said and said != naming.kind:
        raise MethodError(f"{where}: config.json says {said} and the tensors are those of {naming.kind}")
    for fields in (source.eagle, source.top):
        if fields.flag("use_aux_hidden_state") is False:
            raise MethodError(
                f"{where}: eagle_config.use_aux_hidden_state is false, a head that reads one plain state without fc; "
                "it is not supported"
            )
    if str(source.layer.values.get("model_type", "")).startswith("llama4"):
        raise MethodError(f"{where}: a Llama-4 head rotates interleaved pairs; it is not supported")
    if source.layer.positive("partial_rotary_factor", 1.0) != 1.0:
        raise MethodError(f"{where}: partial_rotary_factor is not 1; it is not supported")


def _switches(source: _Source, naming: Naming) -> dict[str, Any]:
    """What a tensor shows, or what the configuration promises: a promised tensor that is missing is told as missing."""
    prefix = "layers.0." if naming.kind == "eagle" else "midlayer."
    bias = naming.has(f"{prefix}self_attn.q_proj.bias") or bool(source.layer.flag("qkv_bias"))
    found = {
        "fc_bias": naming.has("fc.bias"),
        "qkv_bias": bias,
        "qk_norm": naming.has(f"{prefix}self_attn.q_norm.weight") or source.layer.values.get("model_type") == "qwen3",
    }
    if naming.kind == "eagle":
        norms = ("embedding_layernorm.weight", "hidden_states_layernorm.weight")
        return {**found, "input_norms": any(map(naming.has, norms)) or bool(source.top.flag("add_para_norm"))}
    whole = naming.has("input_norm.weight") or bool(source.top.flag("norm_before_fc"))
    each = naming.has("fc_norm.0.weight") or bool(source.top.flag("fc_norm"))
    return {**found, "norm_before_fc": whole, "fc_norm": each}


def _paths(source: _Source, naming: Naming, where: str, say: Callable[[str], None]) -> dict[str, bool]:
    """Read the two switches of EAGLE-3 that no tensor shows."""
    if naming.kind == "eagle":
        return {}
    before = source.top.flag("norm_before_residual")
    if before is None and source.speculators:
        say(
            f"{where}: config.json does not say norm_before_residual; it is taken as false, as speculators does "
            "(vLLM takes true)"
        )
    output = source.top.flag("norm_output")
    recycles_normed = bool(source.eagle.flag("return_hidden_post_norm"))
    # In EAGLE-3.1, which comes with fc_norm, and in speculators the flag says what is recycled; in SpecForge's other
    # heads only that the output layer reads behind the norm, as it always does here.
    if source.speculators or naming.has("fc_norm.0.weight"):
        recycles_normed |= bool(output)
    elif output is False and "LlamaForCausalLMEagle3" in (source.top.values.get("architectures") or ()):
        raise MethodError(f"{where}: norm_output is false, an output layer without the norm; it is not supported")
    return {"norm_before_residual": bool(before), "norm_output": recycles_normed}


def _taps(
    source: _Source, naming: Naming, target: TargetShape, where: str, say: Callable[[str], None]
) -> tuple[int, ...]:
    """Return the target's states that the head reads, as indices into HF's hidden states.

    speculators and vLLM write such indices; SpecForge and SGLang write, in `eagle_config`, layers whose *output* is
    meant, one less. A list that is the other toolkit's default is taken as that: converted files keep their numbers.
    """
    layers = target.layers
    if naming.kind == "eagle":
        return (layers,)
    name = "eagle_aux_hidden_state_layer_ids"
    states = source.top.indices(name) or source.top.indices("aux_hidden_state_layer_ids")
    outputs = tuple(index + 1 for index in source.eagle.indices(name) or source.top.indices("layer_ids"))
    found = states or outputs
    if not found:
        if layers < 7:
            raise MethodError(
                f"{where}: config.json names no states of the target ({name}), and a target of {layers} layers has no "
                "default: it is a head for another target"
            )
        return default_taps(layers)
    if layers >= 7 and not (states and outputs):
        usual = default_taps(layers)
        shifted = tuple(index - 1 for index in usual)
        if states == shifted or outputs == tuple(index + 1 for index in usual):
            say(f"{where}: {name} counts in the other toolkit's way; the states {list(usual)} are read")
            found = usual
    beyond = [index for index in found if not 0 <= index <= layers]
    if beyond:
        raise MethodError(
            f"{where}: the head reads states {list(found)} and {target.name} has layers 1 to {layers}: "
            "it is a head for another target"
        )
    if layers in found:
        raise MethodError(
            f"{where}: the head reads the state behind the last layer and before the final norm ({layers}), which "
            "transformers does not hand over; it is not supported"
        )
    return found


def _sizes(
    source: _Source, naming: Naming, shapes: Shapes, taps: int, target: TargetShape, where: str
) -> dict[str, Any]:
    prefix = "layers.0." if naming.kind == "eagle" else "midlayer."
    flat = [name for name in naming.found if name.endswith("_proj.weight") or name == "fc.weight"]
    wrong = [name for name in flat if len(shapes[name]) != 2]
    if wrong:
        raise MethodError(f"{where}: {wrong[0]} has shape {list(shapes[wrong[0]])}, which is no matrix")
    hidden, wide = shapes["fc.weight"]
    given = source.top.whole("target_hidden_size")
    theirs = hidden if naming.kind == "eagle" else given or wide // taps
    reads = 2 if naming.kind == "eagle" else taps
    expected = reads * theirs
    if wide != expected:
        raise MethodError(f"{where}: fc.weight has {wide} columns where {reads} × {theirs} = {expected} are needed")
    vocab = _vocabulary(source, naming, shapes, target)
    if (theirs, vocab) != (target.hidden, target.vocab):
        raise MethodError(
            f"{where} is a head for another target: width {theirs} and {vocab} ids, "
            f"where {target.name} has width {target.hidden} and {target.vocab} ids"
        )
    draft = _draft_vocabulary(source, naming, shapes, vocab)
    if naming.kind == "eagle3":
        borrows = bool(source.top.flag(TARGET_LM_HEAD))
        _check_ends(naming, hidden, theirs, vocab, draft, where, borrows=borrows)
    rows = {part: shapes[f"{prefix}self_attn.{part}_proj.weight"][0] for part in "qk"}
    return {
        "hidden": hidden,
        "target_hidden": theirs,
        "vocab": vocab,
        "draft_vocab": draft,
        "intermediate": shapes[f"{prefix}mlp.gate_proj.weight"][0],
        "own_embedding": naming.kind == "eagle3" and hidden != theirs,
        **_heads(source, rows["q"], rows["k"], where),
    }


def _heads(source: _Source, q_rows: int, k_rows: int, where: str) -> dict[str, int]:
    """Divide the rows of q and k into heads, by the head count or, without one, by the head's width."""
    heads, width = source.layer.whole("num_attention_heads"), source.layer.whole("head_dim")
    if heads is None and width is not None and q_rows % width == 0:
        heads = q_rows // width
    if heads is None or q_rows % heads:
        raise MethodError(
            f"{where}/config.json: num_attention_heads is {heads}, which does not divide the {q_rows} rows of q_proj"
        )
    width = q_rows // heads
    shared = source.layer.whole("num_key_value_heads") or k_rows // width
    if shared < 1 or shared * width != k_rows:
        raise MethodError(
            f"{where}: k_proj has {k_rows} rows, which are not the {shared} key/value heads of {width} that "
            "config.json asks for"
        )
    return {"heads": heads, "kv_heads": shared, "head_dim": width}


def _vocabulary(source: _Source, naming: Naming, shapes: Shapes, target: TargetShape) -> int:
    """Return V: of a tensor with a row for each id, else as configured, unless that is the draft's vocabulary."""
    for name in ("t2d", EMBEDDING):
        if naming.has(name) and shapes[name]:
            return shapes[name][0]
    said = source.layer.whole("vocab_size") or source.top.whole("target_vocab_size")
    reduced = naming.has("d2t") and naming.has(LM_HEAD) and shapes[LM_HEAD][:1] == (said,)
    return target.vocab if said is None or reduced else said


def _draft_vocabulary(source: _Source, naming: Naming, shapes: Shapes, vocab: int) -> int:
    for name in (LM_HEAD, "d2t") if naming.kind == "eagle3" else ("token_map",):
        if shapes.get(name):
            return shapes[name][0]
    said = source.top.whole("draft_vocab_size") or source.top.whole("truncated_vocab_size")
    return said if said is not None and naming.kind == "eagle3" else vocab


def _check_ends(naming: Naming, hidden: int, theirs: int, vocab: int, draft: int, where: str, *, borrows: bool) -> None:
    """Refuse an EAGLE-3 file whose way in or out of the layer is missing and cannot be the target's.

    `borrows`: the configuration says that the target's output layer is meant. That a reduced one was forgotten in an
    export is otherwise likelier.
    """
    if draft > vocab:
        raise MethodError(f"{where} drafts {draft} ids of a vocabulary of {vocab}: it is a head for another target")
    if hidden != theirs and not naming.has(EMBEDDING):
        raise MethodError(
            f"{where} has no {EMBEDDING}, and its width {hidden} is not the target's {theirs}, whose embedding could "
            "stand in: the export is incomplete"
        )
    if not naming.has(LM_HEAD) and (hidden != theirs or (draft != vocab and not borrows)):
        raise MethodError(
            f"{where} has no {LM_HEAD}, and with {draft} of {vocab} ids the target's cannot stand in: the export is "
            "incomplete"
        )
    if draft != vocab and not naming.has("d2t") and not naming.has("t2d"):
        raise MethodError(f"{where} drafts {draft} of {vocab} ids and has neither d2t nor t2d, which say which")


def _rope(source: _Source) -> tuple[float, dict[str, Any] | None]:
    """Return base and scaling: what the head says, else 10000 and none; never the target's (1.5)."""
    layer = source.layer
    table = _Fields(layer.table("rope_parameters"), source.problems)
    if any(isinstance(value, dict) for value in table.values.values()):
        table = _Fields(_Fields(table.values, source.problems).table("full_attention"), source.problems)
    theta = table.positive("rope_theta", layer.positive("rope_theta", 10000.0))
    scaling = {**layer.table("rope_scaling"), **table.values}
    scaling.pop("rope_theta", None)
    kind = scaling.pop("rope_type", scaling.pop("type", "default"))
    scaling.pop("type", None)
    if kind in (None, "default"):
        return theta, None
    if not isinstance(kind, str):
        source.problems.append(f"rope_type must be a text, not {kind!r}"[:160])
        return theta, None
    return theta, {"rope_type": kind, **scaling}
