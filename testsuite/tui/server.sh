#!/bin/sh
# A server's fleet in the dashboard: its state, scores for what is typed, an answer, and its end.
. "$(dirname "$0")/lib.sh"
fleet=$work/fleet
"$FLOTILLA" train -q -m "$FIXTURES/embedded/model.gguf" --docs "$FIXTURES/embedded/docs" \
  --rounds 2 \
  --budget 2 --p 16 --max-q 24 --max-a 24 --heldout 0 "$fleet" || fail "the training failed"
"$FLOTILLA" serve -p 0 "$fleet" >"$work/url" 2>"$work/serve.err" </dev/null &
trainer=$!
until_ test -s "$work/url" || fail "the server does not start: $(cat "$work/serve.err")"

start 80 24 "$watch --view fleet $fleet"
expect '● serving'
hasnt ' left$' || fail "a time left of a server"
expect 'In memory: 2 of 4' 'the fleet of a server'
keys 3; keys -l 'the late fee at Quilridge Library'
expect '✓ [0-9.]+ .*library.md' 'typing a query'
expect 'Took [0-9]+ with the best scores' 'the choice'
keys Escape; keys 4; keys -l 'Who?'; keys Enter
expect 'rows ·' 'an answer'
kill -TERM "$trainer"
expect '■ stopped' 'the end of the server'
wait "$trainer" || fail "the server ended with an error"
trainer=
keys q; keys Escape; keys q; expect_dead q
