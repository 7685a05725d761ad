"""The files in which engines want a Llama model: Hugging Face's folder and llama.cpp's GGUF."""
import json
import os
import shutil
import struct
from dataclasses import dataclass

import numpy as np

HEAD_SIZE = 64


@dataclass
class Marks:
    """What the files say of the vocabulary beside the words."""

    end: str
    pad: str
    control: list  # tokens that text never becomes
    defined: list  # whole tokens of text that were put in by hand
    template: str


def heads(size):
    """Heads of queries, and of keys and values."""
    count = max(1, size.hidden // HEAD_SIZE)
    return count, max(1, count // 2)


def write_hugging_face(size, tokenizer, tensors, marks):
    folder = os.path.join(size.folder, "hf")
    os.makedirs(folder, exist_ok=True)
    end, pad = tokenizer.token_to_id(marks.end), tokenizer.token_to_id(marks.pad)
    numbers = {"bos_token_id": pad, "eos_token_id": end, "pad_token_id": pad}
    query_heads, key_heads = heads(size)
    files = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": tokenizer.get_vocab_size(),
            "hidden_size": size.hidden,
            "intermediate_size": size.ffn,
            "num_hidden_layers": size.layers,
            "num_attention_heads": query_heads,
            "num_key_value_heads": key_heads,
            "head_dim": HEAD_SIZE,
            "hidden_act": "silu",
            "max_position_embeddings": size.context,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "torch_dtype": "float32",
            "use_cache": True,
            **numbers,
        },
        "generation_config.json": numbers,
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": None,
            "eos_token": marks.end,
            "pad_token": marks.pad,
            "model_max_length": size.context,
            "clean_up_tokenization_spaces": False,
            "chat_template": marks.template,
        },
    }
    for name, content in files.items():
        write_json(os.path.join(folder, name), content)
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    write_safetensors(os.path.join(folder, "model.safetensors"), tensors)

    cache = os.path.join(size.folder, "hub", "models--local--tiny")
    revision = "0" * 40
    shutil.copytree(folder, os.path.join(cache, "snapshots", revision), dirs_exist_ok=True)
    os.makedirs(os.path.join(cache, "refs"), exist_ok=True)
    with open(os.path.join(cache, "refs", "main"), "w") as file:
        file.write(revision)


def write_safetensors(path, tensors):
    """The format: length of the header, the header in JSON padded to eight bytes, then all numbers."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.tobytes())


def write_gguf(size, tokenizer, tensors, marks):
    import gguf

    folder = os.path.join(size.folder, "gguf")
    os.makedirs(folder, exist_ok=True)
    query_heads, key_heads = heads(size)
    writer = gguf.GGUFWriter(os.path.join(folder, "tiny.gguf"), "llama")
    writer.add_name("tiny")
    writer.add_context_length(size.context)
    writer.add_embedding_length(size.hidden)
    writer.add_block_count(size.layers)
    writer.add_feed_forward_length(size.ffn)
    writer.add_head_count(query_heads)
    writer.add_head_count_kv(key_heads)
    writer.add_key_length(HEAD_SIZE)
    writer.add_value_length(HEAD_SIZE)
    writer.add_rope_dimension_count(HEAD_SIZE)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(tokenizer.get_vocab_size())
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)

    tokens = [token for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    kinds = dict.fromkeys(marks.control, gguf.TokenType.CONTROL)
    kinds |= dict.fromkeys(marks.defined, gguf.TokenType.USER_DEFINED)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([kinds.get(token, gguf.TokenType.NORMAL) for token in tokens])
    writer.add_token_merges([pair if isinstance(pair, str) else " ".join(pair) for pair in merges])
    writer.add_bos_token_id(tokenizer.token_to_id(marks.pad))
    writer.add_pad_token_id(tokenizer.token_to_id(marks.pad))
    writer.add_eos_token_id(tokenizer.token_to_id(marks.end))
    writer.add_add_bos_token(False)
    writer.add_chat_template(marks.template)
    for name, tensor in tensors.items():
        if name.endswith("q_proj.weight"):
            tensor = interleaved(tensor, query_heads)
        elif name.endswith("k_proj.weight"):
            tensor = interleaved(tensor, key_heads)
        writer.add_tensor(gguf_name(name), np.ascontiguousarray(tensor))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def interleaved(tensor, count):
    """Llama's rotary halves lie side by side in Hugging Face's layout and in turn in GGUF's."""
    rows, columns = tensor.shape
    return tensor.reshape(count, 2, rows // count // 2, columns).swapaxes(1, 2).reshape(rows, columns)


GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "lm_head": "output",
    "model.norm": "output_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name):
    whole = name.removesuffix(".weight")
    if whole in GGUF_NAMES:
        return f"{GGUF_NAMES[whole]}.weight"
    _, _, layer, part = whole.split(".", 3)
    return f"blk.{layer}.{GGUF_NAMES[part]}.weight"


def write_json(path, content):
    with open(path, "w") as file:
        json.dump(content, file, indent=1, ensure_ascii=False)
