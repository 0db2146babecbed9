#!/bin/sh
# memory.sh - the memory of a training does not grow with the number of documents: 400 of 2 KB at
# budget 4 peak within 5 % of 40. Resuming them takes under a second per hundred before the
# first round. The figures are printed.
. "$SRCDIR/testsuite/cli/lib.sh"

# make FOLDER COUNT: documents of 2 KB, each with its own order of words.
make_docs() {
  mkdir -p "$work/$1"
  cat "$docs"/*.md | tr -s ' \n' '\n\n' >"$work/words"
  awk -v n="$2" -v dir="$work/$1" '
    { word[NR] = $0 }
    END {
      for (d = 0; d < n; d++) {
        text = "Document " d "."
        for (k = 0; length(text) < 2040; k++) text = text " " word[(d * 37 + k * (1 + d % 3)) % NR + 1]
        printf "%s\n", text >(dir "/" sprintf("doc%03d.txt", d))
        close(dir "/" sprintf("doc%03d.txt", d))
      }
    }' "$work/words"
}

# figure FILE NAME: a number of a JSON result.
figure() { sed -n "s/.*\"$2\": *\([0-9.]*\).*/\1/p" "$1" | head -n 1; }

# train FOLDER OPTION...
train() {
  folder=$1
  shift
  run 0 train "$work/fleet-$folder" --budget 4 --rotate-every 3 --rounds 16 --accum 2 \
    --chunk-min 32 --chunk-max 64 --max-q 24 --max-a 32 --heldout 1 --replay 2 --json "$@"
}

for n in 40 400; do
  make_docs $n $n
  train $n -m "$model" -d "$work/$n" --p 64
  eval "peak$n=$(figure "$out" peak_memory_bytes)"
done
echo "peak memory: $peak40 bytes for 40 documents, $peak400 for 400"
checks=$((checks + 1))
[ "$((peak400 * 100))" -le "$((peak40 * 105))" ] || fail "memory grows with the documents"

# Everything up to the first round: all that a resumed run does with --rounds 0.
began=$(date +%s%N)
run 0 train "$work/fleet-400" --resume --rounds 0
took=$((($(date +%s%N) - began) / 1000000))
echo "resuming 400 documents: $took ms until the first round"
checks=$((checks + 1))
[ "$took" -lt 4000 ] || fail "resuming is too slow"
finish
