#!/bin/sh
# Curves of two trainings of different length beside each other, each with the loss that its own log
# has, and the end of the shorter one named.
. "$(dirname "$0")/lib.sh"
[ -x "$FLOTILLA" ] || { echo "flotilla is not built"; exit 77; }

train() {
  "$FLOTILLA" train -q -m "$FIXTURES/embedded/model.gguf" --docs "$FIXTURES/embedded/docs" \
    --rounds "$2" --budget 2 --p 16 --max-q 24 --max-a 24 --heldout 0 --seed "$3" "$work/$1/notes" \
      ||
    fail "the training failed"
}
# The loss of a round, to the three places that the dashboard shows.
loss() {
  sed -n 's/.*"ev":"round","round":'"$2"',.*"loss":\([0-9.]*\).*/\1/p' \
    "$work/$1/notes/events.jsonl" |
    awk '{ printf "%.3f", $1 }'
}
mkdir "$work/first" "$work/second"
train first 3 1
train second 7 2
[ "$(loss first 3)" != "$(loss second 3)" ] || fail "two seeds gave one loss"

start 80 24 "$watch --view loss $work/first/notes $work/second/notes"
expect '1/2 first/notes'
keys c; keys c; keys c; expect 'Loss by round: all runs' 'c, three times'
expect "1 first/notes $(loss first 3) at 3  2 second/notes $(loss second 7)" 'all runs'
for round in 6 5 4; do keys Left; done
expect 'round 4,' 'Left, three times'
expect "1 first/notes $(loss first 3) at 3  2 second/notes $(loss second 4)" 'round 4'
keys Left
expect "1 first/notes $(loss first 3)  2 second/notes $(loss second 3)" 'round 3'
keys Left
expect "1 first/notes $(loss first 2)  2 second/notes $(loss second 2)" 'round 2'
keys r; expect '2/2 second/notes' r
expect 'round 7/7' 'the second run'
keys q; expect_dead q
