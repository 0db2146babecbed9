#!/usr/bin/env python3
"""One student step by PyTorch on random weights, for `flotilla bench --peer torch`.

    torch_step.py f32|bf16 ROWS PREFIX SUPERVISED CONVS LAYERS D_MODEL HEADS KV_HEADS HEAD_DIM FF
                  VOCAB THREADS

The work is that of bench's step: CONVS conversations of ROWS tokens, each behind PREFIX trained key
and value rows, the last SUPERVISED rows of each through the head, cross-entropy against twenty
teacher entries a row, the gradient of the prefix rows. Weights are frozen. Prints the seconds of the
better of two steps, or of one long one, as JSON.
"""
import json
import sys
import time

import torch
import torch.nn.functional as F


def rms(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Layer:
    def __init__(self, d, heads, kv, hd, ff, dtype):
        def weight(n, m):
            return (torch.randn(n, m) / m ** 0.5).to(dtype)
        self.q, self.o = weight(heads * hd, d), weight(d, heads * hd)
        self.k, self.v = weight(kv * hd, d), weight(kv * hd, d)
        self.gate, self.up, self.down = weight(ff, d), weight(ff, d), weight(d, ff)
        self.n1, self.n2 = torch.ones(d, dtype=dtype), torch.ones(d, dtype=dtype)
        self.nq, self.nk = torch.ones(hd, dtype=dtype), torch.ones(hd, dtype=dtype)

    def forward(self, x, pk, pv, cos, sin, mask, heads, kv, hd):
        n, t, _ = x.shape
        h = rms(x, self.n1)
        q = F.linear(h, self.q).view(n, t, heads, hd).transpose(1, 2)
        q = rotate(rms(q, self.nq), cos, sin)
        k = rotate(rms(F.linear(h, self.k).view(n, t, kv, hd).transpose(1, 2), self.nk), cos, sin)
        v = F.linear(h, self.v).view(n, t, kv, hd).transpose(1, 2)
        pk, pv = (r.to(x.dtype).expand(n, -1, -1, -1) for r in (pk, pv))
        k = torch.cat((pk, k), 2).repeat_interleave(heads // kv, 1)
        v = torch.cat((pv, v), 2).repeat_interleave(heads // kv, 1)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + F.linear(a.transpose(1, 2).reshape(n, t, heads * hd), self.o)
        h = rms(x, self.n2)
        return x + F.linear(F.silu(F.linear(h, self.gate)) * F.linear(h, self.up), self.down)


def main():
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[sys.argv[1]]
    rows, prefix, sup, n, n_layers, d, heads, kv, hd, ff, vocab, threads = map(int, sys.argv[2:14])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    layers = [Layer(d, heads, kv, hd, ff, dtype) for _ in range(n_layers)]
    embd = (torch.randn(vocab, d) / d ** 0.5).to(dtype)
    pk = [torch.randn(1, kv, prefix, hd, requires_grad=True) for _ in layers]
    pv = [torch.randn(1, kv, prefix, hd, requires_grad=True) for _ in layers]
    tokens = torch.randint(vocab, (n, rows))
    ids, prob = torch.randint(vocab, (n, sup, 20)), torch.full((n, sup, 20), 0.95 / 20)
    frequency = 1e6 ** (-torch.arange(hd // 2) / (hd // 2))
    angle = torch.arange(prefix, prefix + rows)[:, None] * frequency
    cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)
    mask = torch.ones(rows, prefix + rows, dtype=torch.bool).tril(prefix)
    best = None
    for _ in range(2):
        start = time.perf_counter()
        x = embd[tokens]
        for i, layer in enumerate(layers):
            x = layer.forward(x, pk[i], pv[i], cos, sin, mask, heads, kv, hd)
        logits = F.linear(rms(x[:, rows - sup:], 1), embd).float()
        loss = -(prob * F.log_softmax(logits, -1).gather(2, ids)).sum() / (n * sup)
        loss.backward()
        seconds = time.perf_counter() - start
        best = seconds if best is None else min(best, seconds)
        if seconds > 20:
            break
        for t in pk + pv:
            t.grad = None
    print(json.dumps({"seconds": best, "torch": torch.__version__}))


main()
