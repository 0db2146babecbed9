#!/bin/sh
# With somebody at the other end of the socket: state, control, retrieval, chat, and his death.
. "$(dirname "$0")/lib.sh"
live_fleet

start 80 24 "$watch --view fleet $fleet"
expect 'round 31/60'
expect 'paused' 'the trainer holds'
keys p; expect '● training' 'p'
expect 'round 60/60' 'going on'
keys P; keys :; keys -l 'budget 6'; keys Enter
expect 'set budget: taken by the trainer' ':budget 6'
expect 'budget 6\)' 'the control event'
keys :; keys -l 'lr 13'; keys Enter
expect '1e-09 to 1' 'a value out of range'
keys S; expect 'save: taken by the trainer' S
keys m; expect '★' m

keys 3; keys -l 'tide'; expect '✓ 0.810 █+ (docs/)?tide-tables.md' 'typing a query'
expect 'Took 1 with the best scores: 0.810, the next document 0.320, a margin of' 'the reply'
keys C-u; keys -l 'lamp'; expect '✓ 0.810 █+ (docs/)?lighthouse-log.txt' 'typing another'
keys Escape; keys 4; keys F7; keys -l 'Who lit it?'; keys Enter
expect 'The keeper lit the lamp.' 'asking'
expect 'I do not know of a keeper.' 'asking the bare model'
expect 'tide-tables.md · 512 rows' 'the sources'

# Killed dashboards leave the trainer alone.
dash=$(t display-message -p '#{pane_pid}')
kill -KILL "$dash"
expect_dead SIGKILL
kill -0 "$trainer" || fail "the trainer died with the dashboard"
start 80 24 "$watch --view fleet $fleet"
expect 'budget 6'
t kill-server
kill -0 "$trainer" || fail "the trainer died with the terminal"

start 80 24 "$watch --view fleet $fleet"
expect 'budget 6'
keys X; expect 'Stop training' X
keys y; expect 'stopped, saved' 'y'
wait "$trainer"
trainer=
keys q; expect_dead q

rm -rf "$fleet"
live_fleet
start 80 24 "$watch --view fleet $fleet"
expect 'paused'
kill -KILL "$trainer"
expect 'the trainer is gone; saved at round' 'the trainer was killed'
trainer=
