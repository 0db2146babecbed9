#!/usr/bin/env python3
"""make_vocab_gguf.py TOKENIZER.json OUT.gguf --pre NAME [--eos TEXT] [--bos TEXT] [--size N]

Writes a GGUF that holds only the vocabulary of a byte-level BPE tokenizer.json: tokens, types,
merges and the end and begin tokens. It has no weights. Ids that the file leaves out up to --size
become unused tokens. Needs nothing but Python's own library.
"""
import argparse
import json
import struct

STRING, ARRAY, UINT32, INT32, BOOL = 8, 9, 4, 5, 7
NORMAL, CONTROL, USER, UNUSED = 1, 3, 4, 5


def text(value):
    data = value.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def pair(key, kind, payload):
    return text(key) + struct.pack("<I", kind) + payload


def array(key, kind, items):
    return pair(key, ARRAY, struct.pack("<IQ", kind, len(items)) + b"".join(items))


def vocabulary(tokenizer, size):
    """Lists of token texts and types by id; added tokens decide their own type."""
    known = {i: (t, NORMAL) for t, i in tokenizer["model"]["vocab"].items()}
    for added in tokenizer["added_tokens"]:
        known[added["id"]] = (added["content"], CONTROL if added["special"] else USER)
    count = max(max(known) + 1, size)
    full = [known.get(i, (f"[unused {i}]", UNUSED)) for i in range(count)]
    return [t for t, _ in full], [k for _, k in full]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokenizer")
    parser.add_argument("out")
    parser.add_argument("--pre", required=True)
    parser.add_argument("--eos")
    parser.add_argument("--bos")
    parser.add_argument("--size", type=int, default=0)
    args = parser.parse_args()
    with open(args.tokenizer, encoding="utf-8") as file:
        tokenizer = json.load(file)
    texts, types = vocabulary(tokenizer, args.size)
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    pairs = [
        pair("general.architecture", STRING, text("vocabulary")),
        pair("tokenizer.ggml.model", STRING, text("gpt2")),
        pair("tokenizer.ggml.pre", STRING, text(args.pre)),
        array("tokenizer.ggml.tokens", STRING, [text(t) for t in texts]),
        array("tokenizer.ggml.token_type", INT32, [struct.pack("<i", k) for k in types]),
        array("tokenizer.ggml.merges", STRING, [text(m) for m in merges]),
        pair("tokenizer.ggml.add_bos_token", BOOL, struct.pack("<?", args.bos is not None)),
    ]
    for key, mark in (("eos", args.eos), ("bos", args.bos)):
        if mark is not None:
            value = struct.pack("<I", texts.index(mark))
            pairs.append(pair(f"tokenizer.ggml.{key}_token_id", UINT32, value))
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)
    with open(args.out, "wb") as file:
        file.write(data + bytes(-len(data) % 32))


if __name__ == "__main__":
    main()
