#!/usr/bin/env python3
"""study_diff.py A B TOLERANCE - the same conversations with probabilities from two places. All tokens
must agree, and every probability kept in both to TOLERANCE. A last row that is sure, the end of the
turn that a server did not list, is left out."""
import json
import sys


def load(path):
    with open(path) as f:
        return {(c["name"], c["index"]): c for c in map(json.loads, f) if "tokens" in c}


a, b, tolerance = load(sys.argv[1]), load(sys.argv[2]), float(sys.argv[3])
worst, rows, same = 0.0, 0, 0
for key in a.keys() & b.keys():
    x, y = a[key], b[key]
    if x["tokens"] != y["tokens"] or x["sup"] != y["sup"]:
        print("other tokens:", repr(x["answer"]), "there,", repr(y["answer"]), "here")
        continue
    same += 1
    for r, s in zip(x["targets"], y["targets"], strict=True):
        r, s = dict(zip(r[::2], r[1::2])), dict(zip(s[::2], s[1::2]))
        if list(r.values()) == [1.0]:
            continue
        rows += 1
        # Where the mass is just reached one side may keep an entry more; the likeliest are in both.
        assert r.keys() & s.keys()
        worst = max([worst] + [abs(r[t] - s[t]) for t in r.keys() & s.keys()])
print(f"{same} of {len(a)} conversations with the same tokens, {rows} rows, largest difference {worst:.2e}")
sys.exit(0 if a and same == len(a) == len(b) and worst <= tolerance else 1)
