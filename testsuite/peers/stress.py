#!/usr/bin/env python3
"""More than a server can do, for a while, with clients that misbehave beside those that do not.

    stress.py URL PID --questions FILE [--seconds 20] [--clients 64] [--stop]

Good clients ask all the time; every reply has to be 200 with a whole body, or 429 with Retry-After.
How long a reply may take is counted in answers to others, so that a slow machine or a sanitiser
changes nothing: first come, first served, so a request that was taken has fewer than --places before
it, and what overtakes it is only what comes and goes while its own answer is made. --patience is
for all together: seconds in which nobody gets an answer.
Beside them: readers that take a stream slowly, connections that stay half open, clients that vanish
in the middle. Memory is looked at all along: in a run of two minutes or more, what its peak grows by
after the first minute must stay under a sixteenth; in one of four or more, the last minute's median
must not be over the second's by a sixty-fourth. With --stop the server gets a SIGTERM under this load
at the end, and then a reply may also be 503 or a refused connection, but nothing may hang.
"""
import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import sys
import time
import urllib.parse

OVERTAKEN = 4  # times the places


class Tally:
    def __init__(self):
        self.status = {}
        self.faults = []
        self.stopping = False
        self.began = self.last = time.monotonic()
        self.served = 0     # answers in all
        self.overtaken = 0  # the most that were given while one waited
        self.longest = 0.0

    def count(self, status):
        self.status[status] = self.status.get(status, 0) + 1

    def answered(self, sent, before):
        self.served += 1
        self.last = time.monotonic()
        self.longest = max(self.longest, self.last - sent)
        self.overtaken = max(self.overtaken, self.served - 1 - before)

    def fault(self, text):
        if len(self.faults) < 20:
            self.faults.append(f"{time.monotonic() - self.began:.1f} s: {text}")


def request(url, body):
    return (f"POST {url.path}/chat/completions HTTP/1.1\r\nHost: {url.netloc}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode() + body


async def read_reply(reader):
    """Status, headers, body; streams come in chunks."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    fields = {k.lower(): v.strip() for k, _, v in (s.partition(":") for s in lines[1:] if s)}
    if "content-length" in fields:
        return int(lines[0][9:12]), fields, await reader.readexactly(int(fields["content-length"]))
    body = b""
    while True:
        size = int(await reader.readline(), 16)
        body += await reader.readexactly(size)
        await reader.readexactly(2)
        if size == 0:
            return int(lines[0][9:12]), fields, body


def check(tally, status, fields, body, stream):
    if status == 429:
        if not fields.get("retry-after", "").isdigit():
            tally.fault("429 without Retry-After")
    elif status == 200 and stream:
        if not body.endswith(b"data: [DONE]\n\n"):
            tally.fault(f"a stream ends with {body[-80:]!r}")
    elif status == 200:
        if not json.loads(body)["choices"][0]["message"]["role"] == "assistant":
            tally.fault(f"a reply without answer: {body[:200]!r}")
    elif not (status == 503 and tally.stopping):
        tally.fault(f"status {status}: {body[:200]!r}")


async def reply_in_turn(reader, tally, a):
    """The reply. TimeoutError: nobody got an answer for too long, or too many others got one."""
    sent, before = time.monotonic(), tally.served
    task = asyncio.ensure_future(read_reply(reader))
    while not task.done():
        idle = time.monotonic() - max(sent, tally.last)
        if idle > a.patience or tally.served - before > OVERTAKEN * a.places:
            task.cancel()
            raise asyncio.TimeoutError(f"no reply for {time.monotonic() - sent:.1f} s, the last "
                                       f"{idle:.1f} of them without any, while "
                                       f"{tally.served - before} others were answered")
        await asyncio.wait([task], timeout=1)
    status, fields, body = task.result()
    if status == 200:
        tally.answered(sent, before)
    return status, fields, body


async def good(url, bodies, tally, until, a):
    rng = random.Random()
    while time.monotonic() < until and not tally.stopping:
        try:
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            while time.monotonic() < until and not tally.stopping:
                stream, body = rng.choice(bodies)
                writer.write(request(url, body))
                status, fields, got = await reply_in_turn(reader, tally, a)
                tally.count(status)
                check(tally, status, fields, got, stream)
                if fields.get("connection", "").lower() == "close":
                    break
                if status == 429:  # Retry-After is for the polite; these insist
                    await asyncio.sleep(0.02 + 0.1 * rng.random())
            writer.close()
        except asyncio.TimeoutError as e:
            tally.fault(str(e))
        except (ConnectionError, asyncio.IncompleteReadError, OSError) as e:
            if not tally.stopping:
                tally.fault(f"a reply was lost: {e!r}")


async def bad(kind, url, bodies, tally, until):
    """A slow reader, a connection that is half open, a client that vanishes."""
    rng = random.Random()
    while time.monotonic() < until and not tally.stopping:
        try:
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            whole = request(url, rng.choice(bodies)[1])
            if kind == "slow":
                writer.write(whole)
                for _ in range(40):
                    if not await asyncio.wait_for(reader.read(16), 60):
                        break
                    await asyncio.sleep(0.1)
            elif kind == "half":
                writer.write(whole[:rng.randrange(1, len(whole))])
                await asyncio.sleep(2)
                if rng.random() < 0.5:
                    writer.write_eof()
                    await asyncio.sleep(1)
            else:
                writer.write(whole)
                await asyncio.sleep(0.05 * rng.random())
                writer.transport.abort()
            writer.close()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.TimeoutError, OSError):
            await asyncio.sleep(0.1)


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0


async def watch(pid, sizes, until, seconds, tally):
    while time.monotonic() < until and not tally.stopping:
        sizes.append((seconds - (until - time.monotonic()), resident(pid)))
        await asyncio.sleep(seconds / 200)


async def run(a, url, bodies, tally, sizes):
    until = time.monotonic() + a.seconds
    tasks = [good(url, bodies, tally, until, a) for _ in range(a.clients)]
    tasks += [bad(k, url, bodies, tally, until) for k in ("slow", "half", "gone") for _ in range(4)]
    tasks.append(watch(a.pid, sizes, until, a.seconds, tally))
    if a.stop:
        async def stop():
            await asyncio.sleep(a.seconds * 0.9)
            tally.stopping = True
            os.kill(a.pid, signal.SIGTERM)
        tasks.append(stop())
    await asyncio.gather(*tasks)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("url")
    p.add_argument("pid", type=int)
    p.add_argument("--questions", required=True)
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--clients", type=int, default=64)
    p.add_argument("--places", type=int, default=32, help="slots and queue of the server")
    p.add_argument("--patience", type=float, default=300)
    p.add_argument("--stop", action="store_true")
    a = p.parse_args()
    url = urllib.parse.urlsplit(a.url)
    with open(a.questions, encoding="utf-8") as f:
        questions = [q["question"] for q in json.load(f)]
    bodies = []
    for i, q in enumerate(questions):
        body = {"messages": [{"role": "user", "content": q}], "stream": i % 3 == 0,
                "temperature": i % 2, "max_tokens": 64}
        if i % 5 == 0:
            body["flotilla"] = {"retrieval": "none"}
        bodies.append((body["stream"], json.dumps(body).encode()))
    tally, sizes = Tally(), []
    began = time.monotonic()
    asyncio.run(run(a, url, bodies, tally, sizes))
    took = time.monotonic() - began
    settled = [s for t, s in sizes if t > 60 or a.seconds < 120]
    base, peak = settled[0], max(settled)
    if a.seconds >= 120 and peak > base * 17 / 16:
        tally.fault(f"memory grew from {base} to {peak} KiB")
    second = [s for t, s in sizes if 60 < t <= 120]
    last = [s for t, s in sizes if t > a.seconds - 60]
    if a.seconds >= 240 and statistics.median(last) > statistics.median(second) * 65 / 64:
        tally.fault(f"memory grows: {statistics.median(second)} to {statistics.median(last)} KiB")
    print(json.dumps({"seconds": round(took, 1), "status": tally.status,
                      "longest_s": round(tally.longest, 1), "overtaken": tally.overtaken,
                      "resident_kib": base, "peak_kib": peak,
                      "by_tenths": [s for _, s in sizes[::max(len(sizes) // 10, 1)]],
                      "faults": tally.faults}))
    sys.exit(1 if tally.faults or tally.status.get(200, 0) == 0 else 0)


if __name__ == "__main__":
    main()
