#!/bin/sh
# A dashboard that is watched, killed, hung up and left changes no byte of what a training writes.
. "$(dirname "$0")/lib.sh"
[ -x "$FLOTILLA" ] || { echo "flotilla is not built"; exit 77; }
model=$FIXTURES/embedded/model.gguf
docs=$FIXTURES/embedded/docs

train() {
  "$FLOTILLA" train -q -m "$model" --docs "$docs" --rounds 8 --budget 2 --rotate-every 3 --p 32 \
    --max-q 24 --max-a 24 --lr 2e-2 --seed 5 --replay 2 "$1"
}
# The event log holds times, the manifest names no other folder than the documents'.
sums() { (cd "$1" && sha256sum doc-* index* heldout.jsonl fleet.json); }

train "$work/alone" || fail "the training without a dashboard failed"

train "$work/watched" &
trainer=$!
for end in KILL HUP KILL TERM; do
  start 80 24 "$FLOTILLA watch --wait --view fleet $work/watched"
  expect 'flotilla +watched'
  kill -$end "$(t display-message -p '#{pane_pid}')"
  expect_dead "SIG$end"
done
start 80 24 "$FLOTILLA watch --wait $work/watched"
t kill-server
wait "$trainer" || fail "the training that was watched failed"
trainer=
sums "$work/alone" >"$work/a"
sums "$work/watched" >"$work/b"
[ -s "$work/a" ] || fail "no files to compare"
cmp "$work/a" "$work/b" || fail "the files differ: $(diff "$work/a" "$work/b")"
