#!/bin/sh
# Experts used where they lie in the file, and packed: the same bits forward and backward.
. "$(dirname "$0")/lib.sh"
tiny=$FIXTURES/tiny

# Conversations as a study file has them, of made-up tokens: models of random weights write none.
conversations() { # FLEET
  sed -n 's/.*"\(name\|hash\)": "\(.*\)".*/\1 \2/p' "$1/fleet.json" | awk '
    function list(n, from, step,   i, s) {
      for (i = 0; i < n; i++) s = s (i ? "," : "") (from + i * step) % 480 + 20
      return s
    }
    function about(name, hash, k,   i) {
      printf "{\"doc\":0,\"name\":\"%s\",\"hash\":\"%s\",\"index\":%d", name, hash, k
      printf ",\"kind\":\"question\",\"first\":0,\"end\":40,\"tokens\":[%s]", list(24, k, 37)
      printf ",\"sup\":[9,10,12,13,22],\"targets\":["
      for (i = 0; i < 5; i++) printf "%s[%d,0.75,%d,0.125]", i ? "," : "", 30 + k + i, 50 + i
      print "]}"
    }
    $1 == "name" && $2 ~ /md$/ { name = substr($0, 6) }
    $1 == "hash" && name != "" { for (k = 0; k < 3; k++) about(name, $2, k); name = "" }'
}

for m in tiny-qwen3moe tiny-gemma4-moe; do
  for how in borrow pack; do
    fleet=$work/$m-$how
    run 0 train -m "$tiny/$m.gguf" -d "$docs/mine.md" -d "$docs/bakery.md" --p 24 --rounds 0 \
      --heldout 0 --lr 0.02 --template plain --experts $how "$fleet"
    conversations "$fleet" >"$work/study.jsonl"
    run 0 train -m "$tiny/$m.gguf" --resume --study "$work/study.jsonl" --rounds 4 --accum 2 \
      --template plain --experts $how "$fleet"
    says "$out" 'mine\.md +[0-9]+ +24 +[1-9]'
    run 0 gate logits -m "$tiny/$m.gguf" --ids "$tiny/ids40.txt" --ref "$tiny/gold/$m.hf.f32" \
      --tol 1e-4 --experts $how
  done
  n=0
  for f in "$work/$m-pack"/doc-*; do
    n=$((n + 1))
    same "$f" "$work/$m-borrow/$(basename "$f")"
  done
  [ $n -eq 4 ] || fail "$m: $n files of cartridges instead of 4"
  run 0 gate compose -m "$tiny/$m.gguf" -d "$docs" --p 40 --suffix 8 --experts pack
done
run 2 ask --experts some "$work/x" 'what' && one_sentence
finish
