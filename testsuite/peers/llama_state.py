"""llama_state.py MODEL FOLDER KIND: restores FOLDER/state.4, or state.3 where that is refused, into a slot of a llama.cpp server (the
program in LLAMA_SERVER, else the package xllamacpp) with a cache of that type, and continues greedily from every FOLDER/<n>.ids, token ids of a turn; the server's text must
be FOLDER/<n>.text, up to a token that ties with ours for the server. The state's rows stand behind placeholders, FOLDER/rows of them."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=3600) as reply:
        return json.load(reply)


def restore(url, rows):
    def of(version):
        return post(url + "/slots/0?action=restore", {"filename": f"state.{version}"})
    try:
        restored = of(4)
    except urllib.error.HTTPError:
        restored = of(3)
    assert restored["n_restored"] == rows, restored


def program(path, model, folder, kind):
    """The address of a llama-server of our own, and its process."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    process = subprocess.Popen([path, "-m", model, "-c", "1024", "-np", "1", "--port", str(port), "--no-warmup",
                                "-t", os.environ.get("LLAMA_THREADS", "1"), "--slot-save-path", folder + "/",
                                "-ctk", kind, "-ctv", kind], stdout=sys.stderr)
    url = f"http://127.0.0.1:{port}"
    while process.poll() is None:
        try:
            urllib.request.urlopen(url + "/health", timeout=60).close()
            return url, process
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    sys.exit(f"{path} ended with {process.returncode}")


def package(model, folder, kind):
    import xllamacpp

    kind = getattr(xllamacpp.ggml_type, "GGML_TYPE_" + kind.upper())
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = 1024
    params.n_parallel = 1
    params.port = 0
    params.warmup = False
    params.slot_save_path = folder + "/"
    params.cache_type_k = params.cache_type_v = kind
    server = xllamacpp.Server(params)
    return server.listening_address, server


def main(model, folder, kind):
    here = pathlib.Path(folder)
    path = os.environ.get("LLAMA_SERVER")
    url, running = program(path, model, folder, kind) if path else package(model, folder, kind)
    try:
        return compare(here, url)
    finally:
        if path:
            running.terminate()
            running.wait()


def ties(reply, want):
    """Two likeliest tokens within 0.02, as far as logits of the two programs were seen apart (0.009 each
    way), and the second is ours."""
    said = ""
    for entry in reply["completion_probabilities"]:
        if not want.startswith((said + entry["token"]).strip()):
            first, second = entry["top_logprobs"][:2]
            return (want.startswith((said + second["token"]).strip())
                    and first["logprob"] - second["logprob"] < 0.02)
        said += entry["token"]
    return False


def compare(here, url):
    rows = int((here / "rows").read_text())
    wrong = 0
    for ids in sorted(here.glob("*.ids")):
        restore(url, rows)
        prompt = [0] * rows + [int(i) for i in ids.read_text().split()]
        reply = post(url + "/completion", {"prompt": prompt, "n_predict": 32, "temperature": 0,
                                           "cache_prompt": True, "id_slot": 0, "n_probs": 2})
        read = reply["timings"]["prompt_n"]
        want = ids.with_suffix(".text").read_text()
        same = reply["content"].strip() == want.strip()
        tied = not same and ties(reply, want.strip())
        wrong += not (same or tied) or read > len(prompt) - rows
        print(f"{ids.stem}: {read} tokens read, {reply['tokens_predicted']} written:",
              "same" if same else f"{reply['content']!r} instead of {want!r}", "after a tie" if tied else "")
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
