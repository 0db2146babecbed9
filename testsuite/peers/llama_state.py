"""llama_state.py MODEL FOLDER: restores FOLDER/state.bin into a slot of a llama.cpp server (the package
xllamacpp) and continues greedily from every FOLDER/<n>.ids, token ids of a turn; the server's text must
be FOLDER/<n>.text. The state's rows stand behind placeholders, FOLDER/rows of them."""
import json
import pathlib
import sys
import urllib.request

import xllamacpp


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=3600) as reply:
        return json.load(reply)


def server(model, folder, kind):
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = 1024
    params.n_parallel = 1
    params.port = 0
    params.warmup = False
    params.slot_save_path = folder + "/"
    params.cache_type_k = params.cache_type_v = kind
    return xllamacpp.Server(params)


def main(model, folder, kind):
    here = pathlib.Path(folder)
    running = server(model, folder, getattr(xllamacpp.ggml_type, "GGML_TYPE_" + kind.upper()))
    url = running.listening_address
    rows = int((here / "rows").read_text())
    wrong = 0
    for ids in sorted(here.glob("*.ids")):
        restored = post(url + "/slots/0?action=restore", {"filename": "state.bin"})
        assert restored["n_restored"] == rows, restored
        prompt = [0] * rows + [int(i) for i in ids.read_text().split()]
        reply = post(url + "/completion", {"prompt": prompt, "n_predict": 32, "temperature": 0,
                                           "cache_prompt": True, "id_slot": 0})
        read = reply["timings"]["prompt_n"]
        want = ids.with_suffix(".text").read_text()
        same = reply["content"].strip() == want.strip() and read <= len(prompt) - rows
        wrong += not same
        print(f"{ids.stem}: {read} tokens read, {reply['tokens_predicted']} written:",
              "same" if same else f"{reply['content']!r} instead of {want!r}")
    return 1 if wrong else 0


sys.exit(main(*sys.argv[1:]))
