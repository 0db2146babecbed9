#!/bin/sh
# kills.sh - a training killed at thirty random instants, some inside a commit, and resumed after
# each leaves the files of one that ran through, byte for byte.
. "$SRCDIR/testsuite/cli/lib.sh"
run 0 gate resume -m "$model" -d "$docs" --p 48 --chunk-min 60 --chunk-max 120 --budget 2 \
  --rotate-every 3 --save-every 1 --rounds 60 --accum 2 --max-a 48 --replay 2 --kills 30
says "$out" 'killed 30 times: .*PASS$'
cat "$out"
finish
