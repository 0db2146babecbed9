#!/bin/sh
# study --generator against llama.cpp on the embedded model: a fleet of four documents from its
# conversations. Run by hand, with one of
#   LLAMA_SERVER=/path/to/llama-server testsuite/peers/remote_llama.sh
#   LLAMA_URL=http://127.0.0.1:8000 testsuite/peers/remote_llama.sh     (a server with that model)
# Needs FLOTILLA, FIXTURES, SRCDIR as the suite sets them, curl and python3.
. "$(dirname "$0")/../cli/lib.sh"
server=
url=${LLAMA_URL:-}
if [ -z "$url" ]; then
  : "${LLAMA_SERVER:=llama-server}"
  command -v "$LLAMA_SERVER" >/dev/null || { echo "$LLAMA_SERVER is not there"; exit 77; }
  url=http://127.0.0.1:${LLAMA_PORT:-18431}
  "$LLAMA_SERVER" -m "$model" --port "${url##*:}" -c 4096 -np 4 >"$work/llama.log" 2>&1 &
  server=$!
  trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
  tries=0
  until curl -sf "$url/health" >/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { tail -20 "$work/llama.log"; fail 'llama-server does not come up'; finish; }
    sleep 0.1
  done
fi

make="study -m $model -d $docs --count 32 --chunk-min 64 --chunk-max 160 --in-flight 4 --generator $url"
# shellcheck disable=SC2086
{
run 0 $make -o "$work/there.jsonl" -q
run 0 $make -o "$work/here.jsonl" --teacher local -q
}
run 0 study --show "$work/there.jsonl" --texts 2
cat "$out"
checks=$((checks + 1))
python3 "$(dirname "$0")/study_diff.py" "$work/there.jsonl" "$work/here.jsonl" || fail 'probabilities differ'
run 0 train "$work/fleet" -m "$model" -d "$docs" --study "$work/there.jsonl" --p 64 --rounds 160 --accum 4 \
  --p-iso 1 --lr 3e-2 --embed-chunk 48 --heldout 0 --rotate-every 0 -q
run 0 eval "$work/fleet" -Q "$FIXTURES/embedded/questions.json" -a bare,oracle --threshold 'oracle>=bare+0.1'
cat "$out"
finish
