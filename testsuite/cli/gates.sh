#!/bin/sh
# The gates hold on every family and every weight type of the fixtures, and fail when they should.
# equiv, compose and grad know no type, and models.sh tries compose and grad on each: here the files
# of other types than f32 pass the gate of batches alone. FLOTILLA_WHOLE=1, as `make check-long`
# says, asks for every gate on every file.
. "$(dirname "$0")/lib.sh"
tiny=$FIXTURES/tiny

for m in "$model" "$tiny"/*.gguf; do
  case $m in *moe* | *gemma* | *llama* | *qwen2* | *qwen3.gguf | *embedded*) p=40 ;; *) p=16 ;; esac
  gates='equiv compose'
  case ${FLOTILLA_WHOLE:+whole}$m in
    whole* | *k256-q4_k.gguf) ;;
    *-f16.gguf | *-bf16.gguf | *-q[4-8]_*.gguf) gates= ;;
  esac
  for gate in $gates; do
    run 0 gate $gate -m "$m" -d "$docs" --p $p --suffix 24
    [ "$(grep -c ': max |dlogit| 0\.000000, greedy 24/24: PASS$' "$out")" -eq 2 ] ||
      fail "gate $gate on $m: $(cat "$out")"
  done
  run 0 gate batch -m "$m" -d "$docs" --p 33 --suffix 8
  [ "$(grep -c 'PASS$' "$out")" -eq 6 ] || fail "gate batch on $m: $(cat "$out")"
  [ -z "$gates" ] || run 0 gate grad -m "$m" -d "$docs" --p 16
done

# Against torch: tolerances of single precision sums; deviations of these logits are 0.1 to 4.
for ref in "$tiny"/gold/*.hf.f32; do
  m=$tiny/$(basename "$ref" .hf.f32).gguf
  run 0 gate logits -m "$m" --ids "$tiny/ids40.txt" --ref "$ref" --tol 1e-4
  says "$out" 'greedy 40/40'
done

ref=$tiny/gold/tiny-qwen3.hf.f32
run 3 gate logits -m "$tiny/tiny-llama.gguf" --ids "$tiny/ids40.txt" --ref "$ref"
says "$out" 'FAIL$'
run 3 gate grad -m "$model" -d "$docs" --p 16 --tol 0
run 0 gate equiv -m "$model" -d "$docs" --p 16 --suffix 4 --kv f16 --json
says "$out" '"pass": true'

# The shape of passes moves no logit, with experts and windows too.
for m in qwen3moe gemma4-moe gemma3; do
  run 0 gate compose -m "$tiny/tiny-$m.gguf" -d "$docs" --p 20 --suffix 8 --envelope
  [ "$(grep -c 'envelope at [0-9]* rows a pass: max |dlogit| 0\.000000: PASS$' "$out")" -eq 6 ] ||
    fail "envelope of $m: $(cat "$out")"
done
run 0 gate logits -m "$tiny/tiny-qwen3.gguf" --ids "$tiny/ids40.txt" --write "$work/written.f32"
run 0 gate logits -m "$tiny/tiny-qwen3.gguf" --ids "$tiny/ids40.txt" --ref "$work/written.f32" \
  --tol 0
run 2 gate logits -m "$tiny/tiny-qwen3.gguf" --ids "$tiny/ids40.txt" && says "$err" '--write' &&
  one_sentence

head -c 1000 "$ref" >"$work/short.f32"
run 4 gate logits -m "$tiny/tiny-qwen3.gguf" --ids "$tiny/ids40.txt" --ref "$work/short.f32" &&
  one_sentence
echo '1 2 x' >"$work/ids"
run 4 gate logits -m "$tiny/tiny-qwen3.gguf" --ids "$work/ids" --ref "$ref" && one_sentence
run 2 gate equiv -m "$model" -d "$docs" --p 4000 && says "$err" 'tokens where' && one_sentence
run 1 gate equiv -m "$work/none.gguf" -d "$docs" && one_sentence
finish
