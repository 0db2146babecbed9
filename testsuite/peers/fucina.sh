#!/bin/sh
# fucina.sh - Fucina 0.2.0 answers from a fleet of ours; we answer from a fleet of its making, train
# on, and it answers from that. Greedy answers from the same cartridge must be the same text.
#
# Its program is $FUCINA, or fucina-cartridge-fleet in the PATH, or is built from its sources in
# $FUCINA_SOURCE with `zig` 0.16 (or python's package ziglang). Exit 77 where it cannot be had.
# Answers are cut at a number of tokens that no answer here ends before: built without optimisation,
# that program faults when an answer ends by itself.
. "$SRCDIR/testsuite/cli/lib.sh"

skip() {
  echo "skipped: $*"
  exit 77
}

fucina=${FUCINA:-$(command -v fucina-cartridge-fleet || true)}
if [ -z "$fucina" ] && [ -n "${FUCINA_SOURCE:-}" ]; then
  zig=$(command -v zig || true)
  [ -n "$zig" ] || { python3 -c 'import ziglang' 2>/dev/null && zig='python3 -m ziglang'; }
  [ -n "$zig" ] ||
    skip "Fucina's sources are there, but no zig to build them with (pip install ziglang==0.16.0)"
  echo "building $FUCINA_SOURCE"
  # The step runs the program, which refuses to start without arguments; what counts is the file.
  (cd "$FUCINA_SOURCE" && $zig build cartridge-fleet -Dblas=none >"$work/build" 2>&1)
  fucina=$FUCINA_SOURCE/zig-out/bin/fucina-cartridge-fleet
  [ -x "$fucina" ] || skip "Fucina does not build: $(grep -m 1 error "$work/build")"
fi
[ -n "$fucina" ] || skip "no Fucina: name its program in FUCINA or its sources in FUCINA_SOURCE"

question='Who is the keeper of Hargate Lighthouse?'
tokens=10
shape='--p 48 --embed-chunk 100 --chunk-min 60 --chunk-max 120 --budget 2 --rotate-every 2 --lr 2e-2'

# theirs FLEET: its answer from the lighthouse's cartridge, in $work/theirs.
theirs() {
  checks=$((checks + 1))
  "$fucina" --model "$model" --docs "$docs" --fleet "$1" --ask "$question" \
    --oracle "$docs/lighthouse.md" --max-a $tokens >"$work/log" 2>&1 ||
    fail "Fucina does not answer from $1: $(tail -n 3 "$work/log")"
  awk 'on { print; exit } /composed cartridge/ { on = 1 }' "$work/log" >"$work/theirs"
  grep -q '1 composed cartridge(s), 48 KV rows' "$work/log" || fail "Fucina holds other rows"
}

# ours FLEET: ours, in $work/ours.
ours() {
  run 0 ask "$1" "$question" -m "$model" --oracle lighthouse --max-tokens $tokens -q
  head -n 1 "$out" >"$work/ours"
}

agree() {
  theirs "$1"
  ours "$1"
  same "$work/theirs" "$work/ours"
  echo "$2: both say \"$(cat "$work/ours")\""
}

# shellcheck disable=SC2086
{
run 0 train "$work/a" -m "$model" -d "$docs" $shape --rounds 12 --accum 4 --seed 7
agree "$work/a" "our fleet"
checks=$((checks + 1))
"$fucina" --model "$model" --docs "$docs" --fleet "$work/a" --ask "$question" --max-a $tokens \
  >"$work/log" 2>&1 && grep -q 'best-chunk cosine' "$work/log" ||
    fail "Fucina does not search our index"

checks=$((checks + 1))
"$fucina" --model "$model" --docs "$docs" --fleet "$work/b" $shape --rounds 3 --accum 1 --max-q 40 \
  --max-a 160 >"$work/log" 2>&1 || fail "Fucina does not train: $(tail -n 3 "$work/log")"
before=$(sed -n 's/.*: \([0-9]*\) steps$/\1/p' "$work/log" | awk '{ n += $1 } END { print n }')
agree "$work/b" "Fucina's fleet"
run 0 ask "$work/b" "$question" -m "$model" --json --max-tokens $tokens
run 0 train "$work/b" --resume -m "$model" -d "$docs" --rounds 3 --accum 2 --max-a 48 --json
after=$(sed -n 's/.*"steps": \([0-9]*\).*/\1/p' "$out" | awk '{ n += $1 } END { print n }')
checks=$((checks + 1))
[ "$after" -ge $((before + 3)) ] || fail "steps went from $before to $after"
agree "$work/b" "Fucina's fleet, trained on by us ($before and then $after steps)"
}
finish
