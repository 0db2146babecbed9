#!/usr/bin/env python3
"""Load on a server: tokens a second of 1 and of N clients, alternating in one run, and their ratio.

    load.py URL --questions FILE [--clients 8] [--seconds 3] [--rounds 4] [--field JSON]

Each client keeps one connection and asks one question after another, at temperature 1 so that no
two answers are alike. Plain sockets and one thread: what the tool itself takes from the machine
stays small. The last line is one JSON object.
"""
import argparse
import json
import re
import selectors
import socket
import statistics
import time
import urllib.parse

LENGTH = re.compile(rb"[Cc]ontent-[Ll]ength: (\d+)")
TOKENS = re.compile(rb'"completion_tokens":(\d+)')


class Client:
    """One connection; `take` returns the reply when it is whole."""

    def __init__(self, address, path, bodies, first):
        self.sock = socket.create_connection(address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = (f"POST {path} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n"
                     "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n").encode()
        self.bodies = bodies
        self.next = first
        self.got = b""

    def ask(self):
        body = self.bodies[self.next % len(self.bodies)]
        self.next += 1
        self.got = b""
        self.sock.sendall(self.head % len(body) + body)

    def take(self):
        piece = self.sock.recv(1 << 16)
        if not piece:
            raise ConnectionError("the server closed a connection")
        self.got += piece
        end = self.got.find(b"\r\n\r\n")
        if end < 0:
            return None
        length = LENGTH.search(self.got, 0, end + 2)
        if not length or len(self.got) < end + 4 + int(length.group(1)):
            return None
        return int(self.got[9:12]), self.got[end + 4:]


def measure(address, path, bodies, n, seconds, offset):
    """Tokens, replies and seconds of n clients; a reply counts when it is whole before the end."""
    sel = selectors.DefaultSelector()
    clients = [Client(address, path, bodies, offset + 37 * i) for i in range(n)]
    for c in clients:
        sel.register(c.sock, selectors.EVENT_READ, c)
        c.ask()
    tokens = replies = 0
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        for key, _ in sel.select(1):
            reply = key.data.take()
            if reply is None:
                continue
            if reply[0] != 200:
                raise SystemExit(f"status {reply[0]}: {reply[1][:300]!r}")
            tokens += int(TOKENS.search(reply[1]).group(1))
            replies += 1
            key.data.ask()
    took = time.monotonic() - began
    for c in clients:
        c.sock.close()
    return tokens, replies, took


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("url", help="as `flotilla serve` prints it")
    p.add_argument("--questions", required=True, help="JSON list of objects with `question`")
    p.add_argument("--clients", type=int, default=8)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--field", default="{}", help="JSON object of more fields for every request")
    a = p.parse_args()
    url = urllib.parse.urlsplit(a.url)
    address, path = (url.hostname, url.port), url.path + "/chat/completions"
    with open(a.questions, encoding="utf-8") as f:
        questions = [q["question"] for q in json.load(f)]
    more = {"temperature": 1, **json.loads(a.field)}
    bodies = [json.dumps({"messages": [{"role": "user", "content": q}], **more}).encode()
              for q in questions]
    measure(address, path, bodies, a.clients, 1, 0)
    rates = {1: [], a.clients: []}
    for r in range(a.rounds):
        for n in rates:
            tokens, replies, took = measure(address, path, bodies, n, a.seconds, r * 11)
            rates[n].append(tokens / took)
            print(f"{n:3} clients: {tokens / took:8.1f} tokens/s, {replies / took:7.1f} replies/s, "
                  f"{tokens / max(replies, 1):5.1f} tokens a reply", flush=True)
    one, many = (statistics.median(v) for v in rates.values())
    print(json.dumps({"clients": a.clients, "one": round(one, 1), "many": round(many, 1),
                      "ratio": round(many / one, 2)}))


if __name__ == "__main__":
    main()
