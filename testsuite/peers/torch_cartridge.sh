#!/bin/sh
# export --to torch: torch reads the same values. Needs a python with torch, $PYTHON.
. "$(dirname "$0")/../cli/lib.sh"
: "${PYTHON:=python3}"
"$PYTHON" -c 'import torch' 2>/dev/null || { echo "no torch"; exit 77; }
compare() {
  checks=$((checks + 1))
  "$PYTHON" "$(dirname "$0")/torch_cartridge.py" "$@" || fail "torch reads something else: $*"
}

# each MODEL ORDER: cartridges with frozen rows and without.
each() {
  for frozen in 0 1 3; do
    rm -rf "$work/fleet" "$work/c.pt"
    run 0 train "$work/fleet" -m "$1" -d "$docs/mine.md" --p 24 --frozen $frozen --rounds 0 \
      --template plain -q
    cart=$(ls "$work/fleet"/doc-000.*.safetensors)
    run 0 export --to torch -m "$1" -o "$work/c.pt" "$cart"
    compare "$cart" "$work/c.pt" "$2"
  done
}
each "$model" halves
each "$FIXTURES/tiny/tiny-qwen3.gguf" halves
each "$FIXTURES/tiny/tiny-llama.gguf" pairs
finish
