#!/bin/sh
# The demonstration: in a terminal the dashboard opens by itself, leaves when the training has ended
# or when it is asked to, and the questions come in either case; without a terminal it stays away.
. "$(dirname "$0")/lib.sh"
demo="env DEMO_ROUNDS=6 FLOTILLA=$FLOTILLA DEMO_FLEET=$work"

# What follows scrolls by: looked for in all that the terminal showed.
asked() { t capture-pane -p -S - | grep -q '== Who is the keeper'; }
answered() { grep -q '"ev":"answer"' "$1/events.jsonl"; }

start 80 24 "exec $demo/left sh $SRCDIR/demo/demo.sh"
expect 'In memory: 3 of 4' 'the demonstration began'
expect 'this screen closes in [1-8] s' 'the end of the training'
until_ asked || fail "no question when the dashboard closed"
until_ answered "$work/left" || fail "no answer"

start 80 24 "exec $demo/early sh $SRCDIR/demo/demo.sh"
expect 'In memory: 3 of 4' 'the second demonstration began'
keys q
until_ asked || fail "no question after q"
grep -q '"ev":"end","status":"done"' "$work/early/events.jsonl" || fail "the questions came too early"

# Output to a file, no terminal for the input: the plain lines of the trainer.
start 80 24 "$demo/plain sh $SRCDIR/demo/demo.sh </dev/null >$work/out 2>&1"
first_question() { grep -q '== Who is the keeper' "$work/out"; }
until_ first_question || fail "no question without a terminal: $(tail -3 "$work/out")"
! grep -q "$(printf '\033')" "$work/out" || fail "escape sequences in a file"
