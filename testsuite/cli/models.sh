#!/bin/sh
# The table of families and weight types in flotilla-models(7): cells are tried on a model of that
# family with random weights of that type, and the page must say what came of them.
#
#   testsuite/cli/models.sh          compares: every family in f16 and q4_k, every type in qwen3;
#                                    with FLOTILLA_WHOLE=1, as `make check-long` does, all cells
#   testsuite/cli/models.sh --print  tries all and prints the lines for the page
#
# A type is read and multiplied by code that knows no family, and a family's by code that knows no
# type, but for q4_k and the like, whose blocks are as long as rows may be: hence these cells.
#
# r: the logits are, bit for bit, those of the same file widened to f32 (and those of f32 files
# agree with torch, gates.sh). t: analytic gradients of the rows agree with central differences, in
# one of three draws: a router's choice that flips within the difference has no slope. g: two parts
# of a capture, composed, answer as the real prefill does, on both cache types.
. "$(dirname "$0")/lib.sh"
tiny=$FIXTURES/tiny
page=$SRCDIR/man/flotilla-models.7
types='f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q4_k q5_k q6_k'
families='llama qwen2 qwen3 qwen3moe gemma3 gemma4-dense gemma4-moe'
"$FLOTILLA" info "$tiny/tiny-qwen3.gguf" --json >/dev/null || exit 1

# cell FAMILY TYPE: "rtg", a letter that failed as "-".
cell() {
  m=$work/m.gguf
  "$MAKE_MODEL" "$tiny/tiny-$1.gguf" "$2" "$m" || { echo '---'; return; }
  r='-' t='-' g='-'
  rm -f "$work/wide.gguf"
  if "$FLOTILLA" export -m "$m" --to f32 -o "$work/wide.gguf" -q &&
    flotilla gate logits -m "$work/wide.gguf" --ids "$tiny/ids40.txt" --write "$work/logits" -q \
      &&
    flotilla gate logits -m "$m" --ids "$tiny/ids40.txt" --ref "$work/logits" \
      --tol 0; then r=r; fi
  for seed in 42 43 44; do
    [ "$t" = t ] || flotilla gate grad -m "$m" -d "$docs/mine.md" --p 16 --seed $seed && t=t
  done
  flotilla gate compose -m "$m" -d "$docs/mine.md" --p 16 --suffix 8 && g=g
  echo "$r$t$g"
}

# tried TYPE FAMILY
whole=${FLOTILLA_WHOLE:-}
[ "${1:-}" != --print ] || whole=1
tried() {
  [ -z "$whole" ] || return 0
  case $1:$2 in f16:* | q4_k:* | *:qwen3) return 0 ;; esac
  return 1
}

# A line a cell: type, family, what came out.
for ty in $types; do
  for f in $families; do
    ! tried "$ty" "$f" || echo "$ty $f $(cell "$f" "$ty" 2>>"$work/log" | tail -n 1)"
  done
done >"$work/cells"
if [ "${1:-}" = --print ]; then
  awk '{ line[$1] = ($1 in line ? line[$1] : ".It " $1) " Ta " $3; if ($1 != last) order[++n] = last = $1 }
    END { for (i = 1; i <= n; i++) print line[order[i]] }' "$work/cells"
  exit 0
fi

# The page's, of the same cells; its columns stand in the order of the families.
sed -n '/^\.\\" table begins/,/^\.\\" table ends/{/^\.It type/d;s/^\.It \([a-z0-9_]*\) Ta/\1/p;}' "$page" |
  sed 's/ Ta / /g' >"$work/lines"
while read -r ty results; do
  # shellcheck disable=SC2086
  set -- $results
  for f in $families; do
    ! tried "$ty" "$f" || echo "$ty $f ${1:-?}"
    [ $# -eq 0 ] || shift
  done
done <"$work/lines" >"$work/documented"
checks=$((checks + $(wc -l <"$work/cells")))
cmp -s "$work/cells" "$work/documented" ||
  fail "flotilla-models.7 does not say what came out: $(diff "$work/documented" "$work/cells"; tail -n 3 "$work/log")"
[ "$(wc -l <"$work/lines")" -eq "$(echo "$types" | wc -w)" ] || fail "the table has not a row for each type"

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
finish
