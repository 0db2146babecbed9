#!/bin/sh
# export: a model in another type answers alike, and what cannot be done is refused.
. "$(dirname "$0")/lib.sh"
tiny=$FIXTURES/tiny

run 0 export -m "$model" --to f16 -o "$work/half.gguf" && says "$out" '^type +f16$'
run 0 info "$work/half.gguf" && says "$out" '^architecture +qwen3$'
run 0 gate compose -m "$work/half.gguf" -d "$docs" --p 40 --suffix 8
# A wider type holds the values of the narrower: logits are those of the file it came from.
run 0 export -m "$tiny/tiny-qwen3-k256-q4_k.gguf" --to f32 -o "$work/wide.gguf" --json
says "$out" '"converted": 8,'
run 0 gate logits -m "$work/wide.gguf" --ids "$tiny/ids40.txt" \
  --ref "$tiny/gold/tiny-qwen3-k256-q4_k.hf.f32" --tol 1e-4

run 2 export -m "$model" --to f16 && says "$err" 'out' && one_sentence
run 2 export -m "$model" -o "$work/x.gguf" && says "$err" '--to' && one_sentence
run 2 export --to f16 -o "$work/x.gguf" && says "$err" '--model' && one_sentence
run 2 export -m "$model" --to q4_k -o "$work/x.gguf" && one_sentence
run 2 export -m "$model" --to f16 -o "$work/half.gguf" && says "$err" '--force' && one_sentence
run 0 export -m "$model" --to f16 -o "$work/half.gguf" --force
run 2 export -m "$work/half.gguf" --to f32 -o "$work/half.gguf" --force && says "$err" 'itself' && one_sentence
run 1 export -m "$model" --to f16 -o "$work/none/x.gguf" && one_sentence
run 4 export -m "$docs/mine.md" --to f16 -o "$work/x.gguf" && one_sentence
head -c 300000 "$model" >"$work/cut.gguf"
run 4 export -m "$work/cut.gguf" --to f16 -o "$work/x.gguf" && one_sentence
[ -e "$work/x.gguf" ] && fail "a refused export left a file"
ls "$work" | grep -q 'tmp-' && fail "a temporary file is left: $(ls "$work")"
finish
