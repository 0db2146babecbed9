#!/usr/bin/env python3
"""study_diff.py A B - the same conversations with probabilities from two places: the largest difference
of a kept probability, over the conversations whose tokens agree. Fails over 0.02, or when fewer than
half agree. The last row of each, the end of the turn, is left out: servers do not list it."""
import json
import sys


def load(path):
    with open(path) as f:
        return {(c["name"], c["index"]): c for c in map(json.loads, f) if "tokens" in c}


a, b = load(sys.argv[1]), load(sys.argv[2])
worst, rows, same = 0.0, 0, 0
for key in a.keys() & b.keys():
    x, y = a[key], b[key]
    if x["tokens"] != y["tokens"] or x["sup"] != y["sup"]:
        continue
    same += 1
    for r, s in list(zip(x["targets"], y["targets"]))[:-1]:
        r, s = dict(zip(r[::2], r[1::2])), dict(zip(s[::2], s[1::2]))
        rows += 1
        for token in r.keys() & s.keys():
            worst = max(worst, abs(r[token] - s[token]))
print(f"{same} of {len(a)} conversations with the same tokens, {rows} rows, largest difference {worst:.2e}")
sys.exit(0 if same * 2 >= len(a) and worst <= 0.02 else 1)
