"""The embedded model as a GGUF file, for servers built on llama.cpp. Weights in float32, so that scores can be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import load_file

_LAYER_TENSORS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_gguf(folder: Path, target: Path, chat_template: str | None = None) -> None:
    """A checkpoint folder of the embedded model's kind (Llama, byte-level BPE with single digits) as one file."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    writer = gguf.GGUFWriter(target, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _add_tokenizer(writer, folder, config)
    if chat_template is not None:
        writer.add_chat_template(chat_template)
    for name, tensor in load_file(folder / "model.safetensors").items():
        writer.add_tensor(*_renamed(name, tensor.astype(np.float32), config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: gguf.GGUFWriter, folder: Path, config: dict[str, Any]) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    tokens = {place: token for token, place in tokenizer["model"]["vocab"].items()}
    kinds = dict.fromkeys(tokens, gguf.TokenType.NORMAL)
    for added in tokenizer["added_tokens"]:
        tokens[added["id"]] = added["content"]
        kinds[added["id"]] = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
    places = range(config["vocab_size"])
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")  # single digits, then GPT-2's pattern
    writer.add_token_list([tokens.get(place, f"[PAD{place}]") for place in places])
    writer.add_token_types([kinds.get(place, gguf.TokenType.UNUSED) for place in places])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_add_bos_token(True)


def _renamed(name: str, tensor: np.ndarray, config: dict[str, Any]) -> tuple[str, np.ndarray]:
    """A tensor under llama.cpp's name. It turns pairs of neighbours where Llama turns halves: rows are reordered."""
    whole = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    if name in whole:
        return whole[name], tensor
    _, _, layer, part = name.removesuffix(".weight").split(".", 3)
    heads = {"self_attn.q_proj": "num_attention_heads", "self_attn.k_proj": "num_key_value_heads"}
    if part in heads:
        rows, width = tensor.shape
        halves = tensor.reshape(config[heads[part]], 2, -1, width)
        tensor = halves.swapaxes(1, 2).reshape(rows, width)
    return f"blk.{layer}.{_LAYER_TENSORS[part]}.weight", tensor
