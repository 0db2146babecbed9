#!/bin/sh
# Cartridges restored into a slot of a llama.cpp server (LLAMA_SERVER, else the Python package
# xllamacpp, fetched into a virtual environment in the user's cache): the same greedy answers for 32
# tokens, without the rows' text being read again.
. "$(dirname "$0")/../cli/lib.sh"
[ -n "${FLOTILLA_PEERS:-}${LLAMA_SERVER:-}" ] ||
  { echo 'set FLOTILLA_PEERS=1 to fetch and run llama.cpp, or LLAMA_SERVER'; exit 77; }
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
python=python3
venv=${FLOTILLA_LLAMA_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/flotilla/llama}
if [ -z "${LLAMA_SERVER:-}" ] && ! "$venv/bin/python" -c 'import xllamacpp' 2>/dev/null; then
  python3 -m venv "$venv" 2>/dev/null && "$venv/bin/pip" -q install --no-deps xllamacpp >&2 ||
    { echo 'xllamacpp is not to be had'; exit 77; }
fi
[ -n "${LLAMA_SERVER:-}" ] || python=$venv/bin/python

# answers KV TURN QUESTION...: ours beside theirs; TURN is a format with the question in it.
answers() {
  kv=$1 turn=$2
  shift 2
  rm -rf "$work/state"
  mkdir "$work/state"
  for version in 3 4; do
    run 0 export -m "$model" --to llama-state --kv "$kv" --state-version $version --json \
      -o "$work/state/state.$version" "$work/fleet"/doc-000.g*.safetensors
  done
  sed -n 's/.*"rows": \([0-9]*\).*/\1/p' "$out" >"$work/state/rows"
  n=0
  for question; do
    n=$((n + 1))
    # shellcheck disable=SC2059
    printf "$turn" "$question" >"$work/question"
    run 0 info "$model" --tokenize "$work/question" --special && cp "$out" "$work/state/$n.ids"
    run 0 ask "$work/fleet" "$question" -m "$model" -n 32 --kv "$kv" --json $template
    python3 -c 'import json, sys; sys.stdout.write(json.load(sys.stdin)["text"])' <"$out" \
      >"$work/state/$n.text"
  done
  checks=$((checks + 1))
  "$python" "$(dirname "$0")/llama_state.py" "$model" "$work/state" "$kv" 2>"$work/log" ||
    fail "llama.cpp continues otherwise from $model ($kv): $(tail -n 2 "$work/log")"
}

template=
run 0 train "$work/fleet" -m "$model" -d "$docs/mine.md" --p 96 --heldout 0 --rounds 0 -q
for kv in f16 f32; do
  answers $kv '<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n' \
    'Who is the foreman at Tulby Mine?' 'What is the depth of Tulby Mine?' \
    'Give a short summary of Tulby Mine.' 'Repeat a sentence about the mine word for word.'
done

# Other families with random weights: interleaved rotary rows; windows, values that are keys,
# experts.
template='--template plain'
for family in llama gemma3 gemma4-moe; do
  model=$FIXTURES/tiny/tiny-$family.gguf
  rm -rf "$work/fleet"
  # shellcheck disable=SC2086
  run 0 train "$work/fleet" -m "$model" -d "$docs/mine.md" --p 100 --heldout 0 --rounds 0 \
    -q $template
  answers f32 'Question: %s\nAnswer:' 'What is it?' 'Tell me about the mine and the town'
done
template=

# Real models, widened so that neither program rounds activations; answers that go on for 32 tokens.
# The server reads everything again where the rows are not more than the window, 512 in the second.
cat "$docs/mine.md" "$docs/library.md" >"$work/mine.md"
cache=${FLOTILLA_MODEL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/flotilla/models}
real() { # FILE ROWS TURN
  [ -f "$cache/$1" ] || { echo "$1 is not in $cache: left out (testsuite/fetch-models)"; return; }
  rm -rf "$work/fleet" "$work/model.gguf"
  model=$work/model.gguf
  run 0 export -m "$cache/$1" --to f32 -o "$model"
  # shellcheck disable=SC2086
  run 0 train "$work/fleet" -m "$model" -d "$work/mine.md" --p "$2" --heldout 0 --rounds 0 \
    -q $template
  answers f16 "$3" 'Write a long story about Tulby Mine.' \
    'Explain how a mine is worked, step by step.'
}
real smollm2-135m-instruct-q4_1.gguf 96 '<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n'
template='--template plain'
# The first of its answers has a tie: 0.003 between two tokens, for the server.
real gemma3-270m-q4_k_m.gguf 560 'Question: %s\nAnswer:'
finish
