"""The control socket of a server: ping, retrieve, ask, a refusal, stop. argv: the fleet's folder."""
import json
import socket
import sys

with socket.socket(socket.AF_UNIX) as s:
    s.settimeout(60)
    s.connect(sys.argv[1] + "/control")
    lines = s.makefile("rw", encoding="utf-8", newline="\n")

    def say(**request):
        lines.write(json.dumps(request) + "\n")
        lines.flush()

    def hear():
        return json.loads(lines.readline())

    say(cmd="ping")
    pong = hear()
    assert pong["ok"] and pong["pid"] > 0 and pong["cmd"] == "serve", pong

    question = "Who is the keeper of Hargate Lighthouse?"
    say(cmd="retrieve", query=question)
    found = hear()
    assert found["ok"] and found["query"] == question, found
    assert found["docs"][0]["name"].endswith("lighthouse.md"), found
    assert found["chosen"][0] == found["docs"][0]["doc"] and found["chunks"], found

    for bare in (False, True):
        say(cmd="ask", query=question, bare=bare)
        text, reply = "", hear()
        while "token" in reply:
            text += reply["token"]
            reply = hear()
        assert reply["ok"] and reply["text"] == text != "", reply
        assert reply["docs"] == ([] if bare else found["chosen"]), reply
        assert (reply["rows"] > 0) == (not bare), reply

    for wrong in ({"cmd": "pause"}, {"cmd": "ask"}, {"cmd": "retrieve", "query": 3}):
        say(**wrong)
        assert not hear()["ok"], wrong
    say(cmd="stop")
    assert hear()["ok"]
