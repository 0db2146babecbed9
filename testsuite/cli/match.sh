#!/bin/sh
# train --init match: cartridges that answer without a step, the same by any number of threads, and
# training that goes on from them.
. "$(dirname "$0")/lib.sh"
fleet=$work/fleet
same_flags='--p 100 --embed-chunk 48 --chunk-min 60 --chunk-max 120 --heldout 0'

# shellcheck disable=SC2086  # a word list
{
run 0 train "$fleet" -m "$model" -d "$docs" $same_flags --init match --rounds 0 -q
run 0 train "$work/one" -m "$model" -d "$docs" $same_flags --init match --rounds 0 -q --threads 1
run 0 train "$work/first" -m "$model" -d "$docs" $same_flags --rounds 0 -q
}
for f in "$fleet"/*.safetensors; do same "$f" "$work/one/${f##*/}"; done

# right FLEET: how many of the 80 questions.
right() {
  run 0 eval "$1" --questions "$FIXTURES/embedded/questions.json" --arms oracle --alone 0 --json
  sed -n 's/^ *"right": \([0-9]*\).*/\1/p' "$out" | head -n 1
}
matched=$(right "$fleet")
first=$(right "$work/first")
[ "$matched" -ge 45 ] || fail "matched rows answer $matched of 80 without a step"
[ "$first" -lt 30 ] || fail "first tokens answer $first of 80: the questions prove nothing"

# What is born stays as it is; two rounds and two more are four.
cp -r "$fleet" "$work/halves"
run 0 train "$fleet" --resume --rounds 0 -q
for f in "$fleet"/doc-*.safetensors; do same "$f" "$work/one/${f##*/}"; done
run 0 train "$fleet" --resume --rounds 4 -q
run 0 train "$work/halves" --resume --rounds 2 -q
run 0 train "$work/halves" --resume --rounds 2 -q
for f in "$fleet"/*.safetensors; do same "$f" "$work/halves/${f##*/}"; done
finish
