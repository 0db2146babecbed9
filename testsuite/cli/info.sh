#!/bin/sh
# info: models, tokens, and damaged files of every kind.
. "$(dirname "$0")/lib.sh"

run 0 info "$model" && says "$out" '^architecture +qwen3$' && says "$out" '^layers +4$'
run 0 info "$model" -v && says "$out" 'blk\.3\.attn_k\.weight'
run 0 info --json "$model" && says "$out" '^  "kind": "gguf",$' &&
  says "$out" '"parameters": 2886400'

# The ids of the fixtures come from the reference tokenizer of the model's makers.
printf 'Hello' >"$work/text"
run 0 info "$model" --tokenize "$work/text" && cp "$out" "$work/ids"
"$FLOTILLA" info "$model" --tokenize=- <"$work/text" >"$work/ids2" && same "$work/ids" "$work/ids2"
printf '<|im_end|>' >"$work/marker"
run 0 info "$model" --tokenize "$work/marker" --special && says "$out" '^[0-9]+$'
run 0 info "$model" --tokenize "$work/marker" && says "$out" '^[0-9]+ [0-9 ]+$'
run 0 info "$model" --tokenize "$work/text" -j && says "$out" '^\[[0-9]+(, [0-9]+)*\]$'
: >"$work/empty"
run 0 info "$model" --tokenize "$work/empty" && says "$out" '^$'
run 1 info "$model" --tokenize "$work/none" && one_sentence
run 2 info "$model" --bos && one_sentence

run 1 info "$work/none" && one_sentence
run 4 info "$work/empty" && one_sentence
run 1 info "$work" && says "$err" 'no fleet' && one_sentence

# A model cut anywhere is refused as damaged, with its name.
size=$(wc -c <"$model")
for at in 3 4 20 24 100 4000 20000 $((size / 2)) $((size - 1)); do
  head -c "$at" "$model" >"$work/cut.gguf"
  run 4 info "$work/cut.gguf" && says "$err" 'cut\.gguf' && one_sentence
done
cart=$FIXTURES/embedded/goldens.safetensors
for at in 7 8 9 100 $(($(wc -c <"$cart") - 1)); do
  head -c "$at" "$cart" >"$work/cut.safetensors"
  run 4 info "$work/cut.safetensors" && one_sentence
done
printf 'FZA3\001\000\000\000\004\000' >"$work/cut.fza"
run 4 info "$work/cut.fza" && says "$err" 'cut\.fza' && one_sentence
printf 'FZA3\000\000\000\000x' >"$work/tail.fza"
run 4 info "$work/tail.fza" && one_sentence

# Results that can't be written are an error.
if [ -w /dev/full ]; then
  "$FLOTILLA" info "$model" >/dev/full 2>"$err"
  [ $? -eq 1 ] || fail "a full standard output went unnoticed"
fi
finish
