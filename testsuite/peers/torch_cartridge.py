"""torch_cartridge.py CARTRIDGE.safetensors FILE.pt halves|pairs: what torch reads from an exported file
equals the cartridge, bit for bit. pairs: the model's file keeps the dimensions of a key that are
rotated together beside each other."""
import json
import struct
import sys

import torch


def safetensors(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    out = {}
    for name, t in json.loads(data[8 : 8 + n]).items():
        if name == "__metadata__":
            continue
        a, b = t["data_offsets"]
        out[name] = torch.frombuffer(bytearray(data[8 + n + a : 8 + n + b]), dtype=torch.float32)
        out[name] = out[name].reshape(t["shape"])
    return out


def sort_pairs(k):
    return torch.cat([k[..., 0::2], k[..., 1::2]], dim=-1)


cart = safetensors(sys.argv[1])
pairs = {"halves": False, "pairs": True}[sys.argv[3]]
for mmap in (False, True):
    got = torch.load(sys.argv[2], map_location="cpu", weights_only=True, mmap=mmap)
    assert list(got) == ["trainable_keys", "trainable_values", "fixed_keys", "fixed_values"], list(got)
    n_layers = sum(name.endswith(".k") for name in cart)
    frozen = "layers.0.k_sink" in cart
    assert len(got["trainable_keys"]) == n_layers and len(got["trainable_values"]) == n_layers
    assert len(got["fixed_keys"]) == len(got["fixed_values"]) == (n_layers if frozen else 0)
    for i in range(n_layers):
        for which, suffix in (("trainable", ""), ("fixed", "_sink")):
            if which == "fixed" and not frozen:
                continue
            for part, letter in (("keys", "k"), ("values", "v")):
                want = cart[f"layers.{i}.{letter}{suffix}"].permute(1, 0, 2).unsqueeze(0)
                if letter == "k" and pairs:
                    want = sort_pairs(want)
                have = got[f"{which}_{part}"][i]
                assert have.dtype == torch.float32 and have.is_contiguous() and not have.requires_grad
                assert have.shape == want.shape, (have.shape, want.shape)
                assert torch.equal(have, want), (i, which, part)
    print(f"{n_layers} layers, {tuple(got['trainable_keys'][0].shape)}, frozen {frozen}, mmap {mmap}: equal")
