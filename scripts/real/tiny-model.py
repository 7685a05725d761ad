#!/usr/bin/env python3
"""Makes a tiny model that real engines serve, offline, and whose every answer is known byte for byte.

    pip install numpy tokenizers gguf
    tiny-model.py FOLDER [--layers 2 --hidden 128 --ffn 256 --context 8192]

writes, in about half a second:

    FOLDER/gguf/tiny.gguf    for llama.cpp
    FOLDER/hf/               for vLLM and transformers
    FOLDER/hub/              the same as a hub's cache: with HF_HOME=FOLDER and HF_HUB_OFFLINE=1 it is `local/tiny`
    FOLDER/expected.json     what it says: {"text", "think", "tool": {"name", "arguments"}, "tokens"}

It is a Llama whose weights are a script. What attention and feed-forward layers add is zero, so the hidden state stays the
embedding of the last token; row b of the output matrix is the sum of the embeddings of all tokens a that b follows. So each
token has one successor, at any temperature in use, while the engine does all of its work: tokenise, schedule, cache, attend,
sample, detokenise. The chat template ends in a token that begins one of four chains: the text; a tool call where tools are
given and the last word is the user's; a thought before the text (`enable_thinking`); or, for the prompt "Go on without end.",
words in a circle. A raw prompt ends in none of them: its completion runs through the vocabulary. Both stop only at max_tokens.
"""
import argparse
import os
import pydoc_data.topics
import random

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from tiny_files import HEAD_SIZE, Marks, heads, write_gguf, write_hugging_face, write_json

VOCABULARY = 2048
WORDS = 60
SEED = 11

END, TURN = "<|im_end|>", "<|im_start|>"
PAD = "<|endoftext|>"
TEXT, CALL, THINK, CIRCLE = "<|say|>", "<|call|>", "<|muse|>", "<|circle|>"
CONTROL = [PAD, TURN, END, TEXT, CALL, THINK, CIRCLE]
# Whole tokens, so that the call is short and the engines' own parsers of Hermes' format read it.
CALL_PIECES = ["<tool_call>", '{"name": "', "get_weather", '", "arguments": ', '{"city": "', "Paris", '"}}', "</tool_call>"]
THINK_PIECES = ["<think>", "</think>"]
# Several tokens for one character: a stream must not tear it.
SPLIT = "é🦊"

TEMPLATE = """\
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}

{% endif %}You may call these functions:
<tools>
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
</tools>
Call one by a JSON object with name and arguments within <tool_call></tool_call>.<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% elif message.role == 'assistant' %}<|im_start|>assistant
{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}
{%- set asked = call.function or call %}
<tool_call>
{"name": "{{ asked.name }}", "arguments": {{ asked.arguments if asked.arguments is string else asked.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% elif message.role == 'tool' %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking %}<|muse|>
{%- elif 'Go on without end.' in (messages[-1].content or '') %}<|circle|>
{%- elif tools and messages[-1].role == 'user' %}<|call|>
{%- else %}<|say|>{% endif %}{% endif %}"""


MARKS = Marks(end=END, pad=PAD, control=CONTROL, defined=CALL_PIECES + THINK_PIECES, template=TEMPLATE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--ffn", type=int, default=256)
    parser.add_argument("--context", type=int, default=8192)
    size = parser.parse_args()
    tokenizer = make_tokenizer()
    script = Script(tokenizer)
    tensors = make_tensors(size, script.successor)
    write_hugging_face(size, tokenizer, tensors, MARKS)
    write_gguf(size, tokenizer, tensors, MARKS)
    write_json(os.path.join(size.folder, "expected.json"), script.expected())


def make_tokenizer():
    """Byte-level pairs, learnt from the texts that every Python has."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    topics = pydoc_data.topics.topics
    learnt = VOCABULARY - len(CONTROL) - len(CALL_PIECES) - len(THINK_PIECES)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=learnt, show_progress=False, initial_alphabet=alphabet)
    tokenizer.train_from_iterator([topics[name] for name in sorted(topics)], trainer)
    tokenizer.add_special_tokens(CONTROL)
    tokenizer.add_tokens(CALL_PIECES + THINK_PIECES)
    return tokenizer


class Script:
    """What follows what, and what that comes to in words."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        number = tokenizer.token_to_id
        words = sorted(word for word in tokenizer.get_vocab() if is_word(word))
        random.Random(SEED).shuffle(words)
        split = tokenizer.encode(SPLIT).ids
        # A space before the first word would be cut off by the parsers of tool calls.
        self.text = [number("The")] + [number(word) for word in words[:WORDS]]
        self.text[10:10] = split
        self.think = [number(word) for word in words[WORDS : WORDS + 12]]
        self.circle = [number(word) for word in words[WORDS + 12 : WORDS + 24]]
        self.call = [number(piece) for piece in CALL_PIECES]
        self.call.insert(1, number("Ċ"))

        size = tokenizer.get_vocab_size()
        self.successor = [(token + 1) % size for token in range(size)]
        self.chain(TEXT, self.text, END)
        self.chain(CALL, self.call, END)
        self.chain(THINK, [number("<think>"), *self.think, number("</think>")], None)
        self.successor[number("</think>")] = self.text[0]
        self.chain(CIRCLE, self.circle, None)
        self.successor[self.circle[-1]] = self.circle[0]

    def chain(self, first, tokens, last):
        assert len(set(tokens)) == len(tokens), "a token with two successors"
        whole = [self.tokenizer.token_to_id(first), *tokens]
        for token, following in zip(whole, whole[1:]):
            self.successor[token] = following
        if last is not None:
            self.successor[whole[-1]] = self.tokenizer.token_to_id(last)

    def expected(self):
        return {
            "text": self.tokenizer.decode(self.text),
            "think": self.tokenizer.decode(self.think),
            "tool": {"name": "get_weather", "arguments": {"city": "Paris"}},
            "tokens": len(self.text) + 1,
        }


def is_word(token):
    return token.startswith("Ġ") and len(token) > 3 and token[1:].isascii() and token[1:].isalpha()


def make_tensors(size, successor):
    """Every weight by its name in Hugging Face's layout."""
    chance = np.random.default_rng(SEED)
    hidden = size.hidden
    # Signs have a mean square of 1, so that normalising leaves them as they are.
    embedding = chance.choice(np.array([-1, 1], np.float32), size=(len(successor), hidden))
    output = np.zeros_like(embedding)
    for token, following in enumerate(successor):
        output[following] += embedding[token]
    tensors = {"model.embed_tokens.weight": embedding, "lm_head.weight": output, "model.norm.weight": ones(hidden)}

    def some(*shape):
        return (0.02 * chance.standard_normal(shape)).astype(np.float32)

    queries, keys = (count * HEAD_SIZE for count in heads(size))
    for layer in range(size.layers):
        tensors |= {
            f"model.layers.{layer}.{name}.weight": weight
            for name, weight in {
                "input_layernorm": ones(hidden),
                "post_attention_layernorm": ones(hidden),
                "self_attn.q_proj": some(queries, hidden),
                "self_attn.k_proj": some(keys, hidden),
                "self_attn.v_proj": some(keys, hidden),
                "self_attn.o_proj": np.zeros((hidden, queries), np.float32),
                "mlp.gate_proj": some(size.ffn, hidden),
                "mlp.up_proj": some(size.ffn, hidden),
                "mlp.down_proj": np.zeros((hidden, size.ffn), np.float32),
            }.items()
        }
    return tensors


def ones(count):
    return np.ones(count, np.float32)



main()
