#!/bin/sh
# The demonstration: in a terminal the dashboard opens by itself, leaves when the training has ended
# or when it is asked to, and the questions come in either case; without a terminal it stays away.
. "$(dirname "$0")/lib.sh"
demo() { echo "env DEMO_ROUNDS=$2 FLOTILLA=$FLOTILLA DEMO_FLEET=$work/$1 sh $SRCDIR/demo/demo.sh"; }

# What follows scrolls by: looked for in all that the terminal showed.
asked() { t capture-pane -p -S - | grep -q '== Who is the keeper'; }
answered() { grep -q '"ev":"answer"' "$1/events.jsonl"; }

# What is there for seconds only is looked for in all that the terminal was sent.
open_terminal 80 24
t pipe-pane "exec cat >'$work/sent'"
t respawn-pane -k "exec $(demo left 6)"
until_ asked || fail "no question when the dashboard closed"
grep -aq 'In memory' "$work/sent" || fail "the dashboard did not open by itself"
grep -aq 'closes' "$work/sent" || fail "the dashboard did not say that it would close"
until_ answered "$work/left" || fail "no answer"

start 80 24 "$(demo early 20)"
expect 'In memory: 3 of 4' 'the second demonstration began'
keys q
until_ asked || fail "no question after q"
grep -q '"ev":"end","status":"done"' "$work/early/events.jsonl" ||
  fail "the questions came too early"

# Output to a file, no terminal for the input: the plain lines of the trainer. A shell around it
# holds the terminal open.
start 80 24 "sh -c '$(demo plain 6) </dev/null >$work/out 2>&1; exit'"
first_question() { grep -q '== Who is the keeper' "$work/out"; }
until_ first_question || fail "no question without a terminal: $(tail -3 "$work/out")"
! grep -q "$(printf '\033')" "$work/out" || fail "escape sequences in a file"
