"""Serves a tiny model with random weights by llama.cpp's own HTTP server (the package `xllamacpp`).

Usage: serve.py MODEL.gguf PORT. Writes the model file first; prints the address when the server answers, and serves until
its standard input ends.
"""

import sys

import gguf
import numpy as np
import xllamacpp as xlc

EMBEDDING, HEADS, LAYERS, FEED_FORWARD, CONTEXT = 64, 4, 2, 128, 65536


def write_model(path):
    pieces = [b"<unk>", b"<s>", b"</s>"] + [b"<0x%02X>" % byte for byte in range(256)]
    kinds = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256
    words = [bytes([letter]) for letter in range(97, 123)] + ["\u2581".encode()]
    pieces += words
    kinds += [gguf.TokenType.NORMAL] * len(words)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(EMBEDDING)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(EMBEDDING // HEADS)
    writer.add_vocab_size(len(pieces))
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores([0.0] * len(pieces))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(
        "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant: "
    )
    random = np.random.default_rng(7)

    def tensor(name, *shape):
        writer.add_tensor(name, (random.standard_normal(shape) * 0.05).astype(np.float32))

    def ones(name, size):
        writer.add_tensor(name, np.ones(size, dtype=np.float32))

    tensor("token_embd.weight", len(pieces), EMBEDDING)
    ones("output_norm.weight", EMBEDDING)
    tensor("output.weight", len(pieces), EMBEDDING)
    for layer in range(LAYERS):
        ones(f"blk.{layer}.attn_norm.weight", EMBEDDING)
        ones(f"blk.{layer}.ffn_norm.weight", EMBEDDING)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(f"blk.{layer}.{name}.weight", EMBEDDING, EMBEDDING)
        tensor(f"blk.{layer}.ffn_gate.weight", FEED_FORWARD, EMBEDDING)
        tensor(f"blk.{layer}.ffn_up.weight", FEED_FORWARD, EMBEDDING)
        tensor(f"blk.{layer}.ffn_down.weight", EMBEDDING, FEED_FORWARD)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    path, port = sys.argv[1], int(sys.argv[2])
    write_model(path)
    params = xlc.CommonParams()
    params.model.path = path
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.warmup = False
    params.cpuparams.n_threads = 2
    server = xlc.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


main()
