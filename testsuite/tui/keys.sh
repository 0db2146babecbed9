#!/bin/sh
# Keys in a terminal: what each does is seen on the screen.
. "$(dirname "$0")/lib.sh"

start 80 24 "$watch --view fleet $log"
expect 'In memory: 4 of 12'
keys F1; expect 'Help - arrows scroll' F1
keys Down; keys Escape; expect_gone 'Help - arrows' Escape
keys '?'; expect 'Help - arrows scroll' '?'
keys x; expect_gone 'Help - arrows' 'any key'
keys F2; expect 'Settings - Enter' F2
keys Down Enter; expect 'ASCII drawing +on' 'Enter on ASCII'
expect '^\+ In memory' 'ASCII drawing'
keys Enter; expect 'ASCII drawing +off' 'Enter again'
keys Escape; expect_gone 'Settings -' Escape
keys F3; expect 'search:' F3
keys -l rope; keys Enter; expect_gone 'search:' Enter
keys Enter; expect 'docs/rope-manual.md ─' 'Enter on the found document'
expect 'read 63% in' 'opening it'
keys Escape; expect_gone 'read 63%' Escape
keys F4; expect 'filter:' F4
keys -l tide; expect_gone 'crew-contract.md +[█▏▎▍▌▋▊▉·]+ +[0-9]' 'the filter'
keys Escape; expect 'crew-contract.md +[█▏▎▍▌▋▊▉·]+ +[0-9]' 'Escape in the filter'
keys F6; expect 'sorted by name' F6
keys s; expect 'sorted by steps' s
keys I; expect '▲steps' I
keys w; keys F7; expect 'docs/weather-1911.txt ─' 'w and F7'
keys F7; expect_gone 'docs/weather-1911.txt ─' 'F7 again'
keys End; keys Home; keys PageDown; keys PageUp; keys G; keys g; keys j; keys k
keys m; expect '★' m
keys F8; expect 'nothing runs on this fleet now' F8
keys F5; expect 'pause: nothing runs' F5
keys F9; expect 'Set the learning rate' F9
keys Escape; expect_gone 'Set the learning rate' Escape
keys :; keys -l 'lr 9'; keys Enter; expect ':lr takes a number from' ':lr 9'
keys X; expect 'Stop training' X
keys n; expect 'training goes on' 'n'

keys Tab; expect 'Loss by round' Tab
keys BTab; expect 'In memory' BackTab
keys 2; expect 'round 60 \(the last\)' 2
keys Left; expect 'round 59,' Left
keys h; expect 'round 58,' h
keys l; expect 'round 59,' l
keys End; expect 'the last' End
keys s; expect 'smoothed over 100' s
keys F7; expect 'smoothed over 500' F7
keys c; expect 'Loss by round: the selected document' c
keys Down; keys F6; expect 'Loss by round: the worst documents' F6
keys y; expect 'log scale' y
keys +; keys +; keys PageUp; keys -; keys 0; expect 'the last' 0
keys o; keys F10; expect_dead F10

start 80 24 "$watch --view study $log"
expect 'Conversations as they come'
keys Down; expect 'Conversations \(round' Down
keys Escape; expect 'as they come' Escape
keys x; expect 'only the rejected' x
keys F6; expect_gone 'only the rejected' F6
keys F7; expect 'Coverage of the documents' F7
expect '20% cargo-list.md' 'the coverage'
keys v; expect 'The selected conversation' v
keys 3; expect 'Recent queries' 3
keys Down; keys j; expect '13:02:00' 'down in retrieval'
keys i; keys -l 'q1'; expect 'q1' 'typing a query'
keys Escape; keys 4; expect 'Answers in the log|Chat with the fleet' 4
keys F7; expect 'The bare model' F7
keys F7; keys 6; expect 'Where the time goes' 6

# time: slider and playback
keys 1; keys ,; expect 'round 59/60' ,
keys .; expect 'round 60/60' .
keys '<'; expect 'round 5[0-9]/60' '<'
keys '>'; keys f; expect 'round 60/60' f
keys ']'; expect 'playback at 2 times' ']'
keys '['; expect 'playback at 1 times' '['
keys Space; expect 'round (–|[0-9]|1[0-9])/60' 'Space at the end: from the beginning'
for i in 1 2 3 4 5 6 7 8 9 10; do keys ']'; done
expect 'round 60/60' 'playback to the end'
cd "$work" || exit 1
keys q; expect_dead q

# exports go to the folder that it was started from
start 80 24 "sh -c 'cd $work && exec $watch --view fleet $log'"
expect 'In memory'
keys e; expect 'written to flotilla-fleet-001.txt' e
keys E; expect 'written to flotilla-fleet-001.svg' E
sed -n 3p "$work/flotilla-fleet-001.txt" | grep -q 'In memory: 4 of 12' ||
  fail "the text export is wrong"
tail -1 "$work/flotilla-fleet-001.svg" | grep -q '</svg>' || fail "the SVG export is cut"
keys F6; keys q; expect_dead q
grep -q '^sort ' "$XDG_CONFIG_HOME/flotilla/watch.conf" || fail "settings are not kept"
