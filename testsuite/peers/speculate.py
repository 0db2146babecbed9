#!/usr/bin/env python3
"""What drafts bring: the same requests to a server with and to one without speculation, in turn, so
that whatever else the machine does meets both.

    speculate.py URL-WITH URL-WITHOUT --docs FOLDER --questions FILE [--rounds 3]

Quoting: the model has a piece of a document before it and is asked to repeat a sentence; the answers
that do (at least six words that stand in the piece) count. Other: those that do not, and answers
drawn at temperature 1 to questions that the model knows nothing of. Times are those of decoding, from the first token
to the last. The answers have to be the same. The last line is one JSON object.
"""
import argparse
import json
import pathlib
import sys
import urllib.request

SYSTEM = "Everything you know about the user's documents is below.\n\n<document>\n%s\n</document>"


def ask(url, body):
    request = urllib.request.Request(url + "/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=300) as f:
        reply = json.load(f)
    x = reply["flotilla"]
    return (reply["choices"][0]["message"]["content"], reply["usage"]["completion_tokens"],
            x["seconds"] - x["ttft_s"], x["drafted"], x["accepted"])


def quoting(folder):
    """Requests for single sentences, as a study makes them; each stands within its paragraph."""
    for path in sorted(pathlib.Path(folder).iterdir()):
        for piece in path.read_text(encoding="utf-8").split("\n\n"):
            sentences = [s for s in piece.replace("\n", " ").split(". ") if len(s.split()) > 6]
            for s in sentences:
                first = " ".join(s.split()[:4])
                yield {"messages": [{"role": "system", "content": SYSTEM % piece}, {
                    "role": "user",
                    "content": f'Repeat word for word the sentence that begins with "{first}".'}],
                       "max_tokens": 64, "flotilla": {"retrieval": "none"}}


def quotes(body, answer):
    """Whether the answer stands in the system message."""
    plain = [" ".join(t.split()).strip(" .\"").lower()
             for t in (answer, body["messages"][0]["content"])]
    return len(answer.split()) >= 6 and plain[0] in plain[1]


def other(questions, rounds):
    for seed in range(rounds):
        for q in questions:
            yield {"messages": [{"role": "user", "content": q["question"]}], "temperature": 1,
                   "seed": seed, "max_tokens": 64, "flotilla": {"retrieval": "none"}}


class Sum:
    def __init__(self):
        self.n, self.tokens, self.drafted, self.accepted = 0, 0, 0, 0
        self.took = [0.0, 0.0]

    def add(self, replies):
        self.n += 1
        self.tokens += replies[0][1]
        self.drafted += replies[0][3]
        self.accepted += replies[0][4]
        for k in (0, 1):
            self.took[k] += replies[k][2]

    def show(self, name):
        ratio = self.took[1] / self.took[0] if self.took[0] > 0 else 0
        print(f"{name}: {self.n} answers, {self.tokens} tokens, {self.drafted} drafted, "
              f"{self.accepted} accepted, {self.took[1]:.3f} s without, {self.took[0]:.3f} s with "
              f"drafts: {ratio:.3f}", flush=True)
        return round(ratio, 3)


def compare(urls, bodies, sums):
    """sums: by whether the answer quotes."""
    for i, body in enumerate(bodies):
        replies = [None, None]
        for k in ((0, 1), (1, 0))[i % 2]:
            replies[k] = ask(urls[k], body)
        if replies[0][0] != replies[1][0]:
            sys.exit(f"{replies[0][0]!r} is not {replies[1][0]!r}")
        sums[quotes(body, replies[0][0])].add(replies)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("with_drafts")
    p.add_argument("without")
    p.add_argument("--docs", required=True)
    p.add_argument("--questions", required=True)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--limit", type=int, default=1000, help="requests of each kind at most")
    a = p.parse_args()
    with open(a.questions, encoding="utf-8") as f:
        questions = json.load(f)
    urls = (a.with_drafts, a.without)
    a.step = max(len(list(quoting(a.docs))) // a.limit, 1)
    for body in list(quoting(a.docs))[:3]:
        for url in urls:
            ask(url, {**body, "messages": body["messages"][1:]})
    quoted, unquoted, drawn = Sum(), Sum(), Sum()
    compare(urls, list(quoting(a.docs))[::a.step][:a.limit], {True: quoted, False: unquoted})
    compare(urls, list(other(questions, a.rounds))[:a.limit], {True: drawn, False: drawn})
    print(json.dumps({"quoting": quoted.show("quoting"), "not_quoting": unquoted.show("not quoting"),
                      "other": drawn.show("other")}))


if __name__ == "__main__":
    main()
