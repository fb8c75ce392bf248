"""A model of a few weights, as a folder and as a GGUF file."""

from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = ["<unk>", "<s>", "</s>", "the", "ferry", "leaves", "at", "nine"]


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


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(torch.tensor([[1, 3, 4, 5]])).logits
    return found


def whole_folder(path: Path) -> Path:
    """A whole local model: output wider than the token table, tied head, two end tokens."""
    model = tiny_model()
    model.generation_config.eos_token_id = [2, 7]
    model.save_pretrained(path)
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(path)
    return path


def write_gguf(path: Path) -> Path:
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
    return path
