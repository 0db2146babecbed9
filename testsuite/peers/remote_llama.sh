#!/bin/sh
# llama.cpp's server beside ours, on the embedded model: study --generator against it and a fleet of
# four documents from its conversations; then the server continues from an exported cartridge. Run
# by hand, with
#   LLAMA_SERVER=/path/to/llama-server testsuite/peers/remote_llama.sh
# Needs FLOTILLA, FIXTURES, SRCDIR as the suite sets them, curl and python3.
. "$(dirname "$0")/../cli/lib.sh"
peers=$(dirname "$0")
: "${LLAMA_SERVER:=llama-server}"
command -v "$LLAMA_SERVER" >/dev/null || { echo "$LLAMA_SERVER is not there"; exit 77; }
url=http://127.0.0.1:${LLAMA_PORT:-18431}
server=
stop() {
  [ -z "$server" ] || { kill "$server"; wait "$server" 2>/dev/null; }
  server=
}
trap 'stop; rm -rf "$work"' EXIT

# start OPTION...: a server with those.
start() {
  stop
  "$LLAMA_SERVER" --port "${url##*:}" -t "${LLAMA_THREADS:-1}" "$@" >"$work/llama.log" 2>&1 &
  server=$!
  tries=0
  until curl -sf "$url/health" >/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { tail -20 "$work/llama.log"; fail \
      'llama-server does not come up'; finish; }
    sleep 0.1
  done
}

# The model's own template knows no thinking, but the model was trained with the closed block that
# our prompts have; the server gets a template that writes it.
cat >"$work/chatml.jinja" <<'END'
{%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n<think>\n\n</think>\n\n' }}{%- endif %}
END

# both MODEL TOLERANCE: conversations with probabilities from there, and the same with ours.
both() {
  make="study -m $1 -d $docs --count 32 --chunk-min 64 --chunk-max 160 --in-flight 4 --generator $url"
  # shellcheck disable=SC2086
  {
  run 0 $make -o "$work/there.jsonl"
  grep -q 'tokens of a prompt' "$err" && fail "the prompts differ: $(cat "$err")"
  run 0 $make -o "$work/here.jsonl" --teacher local -q
  }
  checks=$((checks + 1))
  python3 "$peers/study_diff.py" "$work/there.jsonl" "$work/here.jsonl" "$2" || fail 'they differ'
}

# In f32 throughout. A logit off by at most e moves a probability by at most tanh(e)/2 (the odds
# change by exp(2e) at most, and most at evens). Each of the 4 layers has 4 products in a row, of up
# to 512 terms, whose rounding errors of 2^-24 grow as their square root: 16 * sqrt(512) * 2^-24 =
# 2.2e-5 of logits of up to 25 is 5.4e-4 at worst, all in one direction. Without flash attention,
# which rounds to 16 bits there.
run 0 export --to f32 -m "$model" -o "$work/f32.gguf" -q
start -m "$work/f32.gguf" -c 4096 -np 4 --chat-template-file "$work/chatml.jinja" -ctk f32 \
  -ctv f32 -fa off
both "$work/f32.gguf" 2.7e-4
# As the server comes, activations and cache are rounded to 11 bits: terms off by 2^-12 / sqrt(3) at
# random put an output off by as much of its deviation; 24 such steps in a row give 6.9e-4, of the
# logits' deviation of 4.2 that is 2.9e-3, five times that (10000 entries are compared) 0.0145, and
# so 7.3e-3.
start -m "$model" -c 4096 -np 4 --chat-template-file "$work/chatml.jinja"
both "$model" 7.3e-3

run 0 study --show "$work/there.jsonl" --texts 2
cat "$out"
run 0 train "$work/fleet" -m "$model" -d "$docs" --study "$work/there.jsonl" --p 64 --rounds 160 \
  --accum 4 \
  --p-iso 1 --lr 3e-2 --embed-chunk 48 --heldout 0 --rotate-every 0 -q
run 0 eval "$work/fleet" -Q "$FIXTURES/embedded/questions.json" -a bare,oracle \
  --threshold 'oracle>=bare+0.1'
cat "$out"
stop
checks=$((checks + 1))
LLAMA_SERVER=$LLAMA_SERVER sh "$peers/llama_state.sh" || fail 'an exported cartridge'
finish
