"""llama.cpp's own HTTP server with a tiny model that is made here.

The model knows one thing: which token follows which. A question is answered by a call of Read, what
came of a call by a sentence; llama.cpp does the rest, as with any model: it applies the template,
holds the answer to the grammar of the tools, takes the call out of the text, and streams it.
"""

import struct
import sys

import xllamacpp

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6

# What the model says when it is asked, and what when it was told the result of a call. Each token
# occurs once, so that its successor is known.
CALL = ["<tool_call>", "\n{\"name\":", "\u2581\"Read\",", "\u2581\"arguments\":", "\u2581{\"path\":",
        "\u2581\"a.", "txt\"", "}}", "\n</tool_call>"]
WORDS = ["The\u2581file", "\u2581has\u2581been", "\u2581read\u2581\u2713"]
ASKED, TOLD = "<|asked|>", "<|told|>"

TEMPLATE = """{%- if tools %}<|im_start|>system
# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>{%- for tool in tools %}
{{ tool | tojson }}{%- endfor %}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
{% endif %}{%- for message in messages %}
{%- if message.role == "assistant" and message.tool_calls %}<|im_start|>assistant
{{ message.content if message.content else "" }}
{%- for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{%- endfor %}<|im_end|>
{% elif message.role == "tool" %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}{%- endfor %}{%- if add_generation_prompt %}<|im_start|>assistant
{% if messages[-1].role == "tool" %}<|told|>{% else %}<|asked|>{% endif %}{%- endif %}"""


def vocabulary():
    tokens = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    tokens += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    tokens += [("\u2581", NORMAL)]
    tokens += [(text, CONTROL) for text in (ASKED, TOLD, "<|im_start|>", "<|im_end|>")]
    tokens += [(text, USER_DEFINED if text == CALL[0] else NORMAL) for text in CALL + WORDS]
    return tokens


def successors(tokens):
    number = {text: index for index, (text, _) in enumerate(tokens)}
    follows = {}
    for chain in ([ASKED] + CALL + ["</s>"], [TOLD] + WORDS + ["</s>"]):
        for one, next_one in zip(chain, chain[1:]):
            follows[number[one]] = number[next_one]
    return follows


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value_of(value):
    """A value with its type before it, as GGUF has it."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    kind, pack = {str: (8, text), int: (5, lambda n: struct.pack("<i", n)),
                  float: (6, lambda n: struct.pack("<f", n))}[type(value[0])]
    return struct.pack("<IIQ", 9, kind, len(value)) + b"".join(map(pack, value))


def write_model(path):
    tokens = vocabulary()
    size = 32 * -(-len(tokens) // 32)  # one dimension for each token
    ones, flat = [1.0] * size, [0.0] * (size * size)
    embedding, output = [0.0] * (size * len(tokens)), [0.0] * (size * len(tokens))
    for token in range(len(tokens)):
        embedding[token * size + token] = 1.0
    for token, follower in successors(tokens).items():
        output[follower * size + token] = 10.0
    tensors = [("token_embd.weight", [size, len(tokens)], embedding),
               ("output_norm.weight", [size], ones),
               ("output.weight", [size, len(tokens)], output)]
    for name in ("attn_norm", "ffn_norm"):
        tensors.append((f"blk.0.{name}.weight", [size], ones))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        tensors.append((f"blk.0.{name}.weight", [size, size], flat))
    members = {
        "general.architecture": "llama", "general.name": "bigram", "general.alignment": 32,
        "llama.context_length": 32768, "llama.embedding_length": size, "llama.block_count": 1,
        "llama.feed_forward_length": size, "llama.attention.head_count": 8,
        "llama.attention.head_count_kv": 8, "llama.rope.dimension_count": size // 8,
        "llama.attention.layer_norm_rms_epsilon": 1e-6, "llama.vocab_size": len(tokens),
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": [it for it, _ in tokens],
        "tokenizer.ggml.scores": [0.0] * len(tokens),
        "tokenizer.ggml.token_type": [kind for _, kind in tokens],
        "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0, "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_space_prefix": False, "tokenizer.chat_template": TEMPLATE,
    }
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(members))
    head += b"".join(text(name) + value_of(value) for name, value in members.items())
    offset = 0
    for name, dimensions, numbers in tensors:
        head += text(name) + struct.pack("<I", len(dimensions))
        head += struct.pack(f"<{len(dimensions)}Q", *dimensions) + struct.pack("<IQ", 0, offset)
        offset += 32 * -(-4 * len(numbers) // 32)
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % 32))
        for _, _, numbers in tensors:
            data = struct.pack(f"<{len(numbers)}f", *numbers)
            file.write(data + b"\0" * (-len(data) % 32))


def main():
    key, path, told = sys.argv[1:]
    write_model(path)
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.api_keys = [key]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 32768
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.warmup = False
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    with open(told, "w") as file:
        file.write(server.listening_address + "\n")
    sys.stdin.read()


main()
