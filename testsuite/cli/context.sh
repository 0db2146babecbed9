#!/bin/sh
# The context length of the file holds everywhere: one sentence that names it, or an answer that
# ends.
. "$(dirname "$0")/lib.sh"
small=$work/small.gguf
cp "$FIXTURES/tiny/tiny-qwen3.gguf" "$small"
# qwen3.context_length, whose value stands behind its name and type, becomes 96.
at=$(grep -abo 'qwen3.context_length' "$small" | head -n 1 | cut -d: -f1)
printf '\140\000\000\000' | dd of="$small" bs=1 seek=$((at + 24)) conv=notrunc 2>/dev/null
run 0 info "$small" && says "$out" '^context +96$'

doc=$docs/mine.md
full='context of 96'
run 4 gate equiv -m "$small" -d "$doc" --p 90 --suffix 16 && says "$err" "$full" && one_sentence
train="train -m $small -d $doc --heldout 0 --chunk-min 8 --chunk-max 8 --max-q 4 --max-a 4 --template plain"
"$FLOTILLA" $train --p 95 --rounds 1 -q "$work/wide" >"$out" 2>"$err" &&
  fail 'a cartridge without room was taken'
says "$err" "$full" && one_sentence
"$FLOTILLA" $train --p 40 --rounds 0 -q "$work/fleet" >"$out" 2>"$err"
says "$err" "$full" # the index reads pieces of 256 tokens
run 0 train -m "$small" -d "$doc" --p 40 --rounds 0 --heldout 0 --chunk-min 8 --chunk-max 8 \
  --max-q 4 \
  --max-a 4 --embed-chunk 32 --template plain -q "$work/fit"
long=$(head -c 600 "$doc")
run 4 ask -m "$small" "$work/fit" "$long" --oracle "$doc" --template plain &&
  says "$err" "$full" && one_sentence
run 0 ask -m "$small" "$work/fit" what --oracle "$doc" --template plain -n 300 --json
says "$out" '"stop": "length"'
finish
