#!/bin/sh
# The table of families and weight types in flotilla-models(7): every cell is tried on a model of
# that family with random weights of that type, and the page must say what came of it.
#
#   testsuite/cli/models.sh          compares
#   testsuite/cli/models.sh --print  prints the lines for the page
#
# r: the logits are, bit for bit, those of the same file widened to f32 (and those of f32 files
# agree with torch, gates.sh). t: analytic gradients of the rows agree with central differences, in
# one of three draws: a router's choice that flips within the difference has no slope. g: two parts
# of a capture, composed, answer as the real prefill does, on both cache types.
. "$(dirname "$0")/lib.sh"
tiny=$FIXTURES/tiny
page=$SRCDIR/man/flotilla-models.7
types='f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q4_k q5_k q6_k'
# Slow builds try one line of the table.
[ -z "${FLOTILLA_BRIEF:-}" ] || types=q4_k
families='llama qwen2 qwen3 qwen3moe gemma3 gemma4-dense gemma4-moe'
"$FLOTILLA" info "$tiny/tiny-qwen3.gguf" --json >/dev/null || exit 1

# cell FAMILY TYPE: "rtg", a letter that failed as "-".
cell() {
  m=$work/m.gguf
  "$MAKE_MODEL" "$tiny/tiny-$1.gguf" "$2" "$m" || { echo '---'; return; }
  r='-' t='-' g='-'
  rm -f "$work/wide.gguf"
  if "$FLOTILLA" export -m "$m" --to f32 -o "$work/wide.gguf" -q &&
    "$FLOTILLA" gate logits -m "$work/wide.gguf" --ids "$tiny/ids40.txt" --write "$work/logits" -q \
      &&
    "$FLOTILLA" gate logits -m "$m" --ids "$tiny/ids40.txt" --ref "$work/logits" \
      --tol 0; then r=r; fi
  for seed in 42 43 44; do
    [ "$t" = t ] || "$FLOTILLA" gate grad -m "$m" -d "$docs/mine.md" --p 16 --seed $seed && t=t
  done
  "$FLOTILLA" gate compose -m "$m" -d "$docs/mine.md" --p 16 --suffix 8 && g=g
  echo "$r$t$g"
}

table() {
  for ty in $types; do
    line=".It $ty"
    for f in $families; do line="$line Ta $(cell "$f" "$ty" | tail -n 1)"; done
    echo "$line"
  done
}

table >"$work/table" 2>"$work/log"
# Types that are known and refused: by name, in one sentence.
refused='q2_k q3_k iq4_nl mxfp4'
for ty in $refused; do
  case $ty in q2_k) id='\012' ;; q3_k) id='\013' ;; iq4_nl) id='\024' ;; mxfp4) id='\047' ;; esac
  # The first matrix's type, which stands behind its name, two dimensions and their sizes.
  cp "$tiny/tiny-qwen3-k256-f16.gguf" "$work/m.gguf"
  at=$(grep -abo 'blk.0.attn_q.weight' "$work/m.gguf" | head -n 1 | cut -d: -f1)
  printf "$id" | dd of="$work/m.gguf" bs=1 seek=$((at + 19 + 4 + 16)) conv=notrunc 2>/dev/null
  run 4 gate compose -m "$work/m.gguf" -d "$docs" && says "$err" "type $ty," && one_sentence
done
if [ "${1:-}" = --print ]; then
  cat "$work/table"
  exit 0
fi
sed -n '/^\.\\" table begins/,/^\.\\" table ends/{/^\.It type/d;/^\.It [a-z0-9_]* Ta/p;}' "$page" \
  >"$work/lines"
for ty in $types; do grep "^\.It $ty Ta" "$work/lines"; done >"$work/documented"
checks=$((checks + 1))
cmp -s "$work/table" "$work/documented" ||
  fail "flotilla-models.7 does not say what came out: $(diff "$work/documented" "$work/table"; tail -n 3 "$work/log")"
[ "$(grep -c . "$work/table")" -eq "$(echo "$types" | wc -w)" ] || fail "the table has not a row for each type"
finish
