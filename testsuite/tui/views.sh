#!/bin/sh
# Every view on a real terminal is the picture that the tests without a terminal compare; sizes,
# ASCII, colours off.
. "$(dirname "$0")/lib.sh"

for size in '80 24' '200 60' '60 15'; do
  set -- $size
  start "$1" "$2" "$watch $log"
  n=1
  for view in fleet loss retrieval chat study cost; do
    keys $n
    expect_golden "$view-$1x$2"
    n=$((n + 1))
  done
done

start 80 24 "$watch --ascii $log"
n=1
for view in fleet loss retrieval chat study cost; do
  keys $n
  expect_golden "$view-ascii-80x24"
  n=$((n + 1))
done

# A locale without UTF-8 means ASCII by itself.
start 80 24 "env LC_ALL=C $watch --view fleet $log"
expect_golden fleet-ascii-80x24

start 20 5 "$watch --view fleet $log"
expect_golden small-20x5
# A window that grows and shrinks.
t resize-window -x 80 -y 24
expect_golden fleet-80x24
t resize-window -x 200 -y 60
expect_golden fleet-200x60
t resize-window -x 60 -y 15
expect_golden fleet-60x15
t resize-window -x 20 -y 5
expect_golden small-20x5

# Escape sequences of colour: there with colours, none under NO_COLOR, --color none and vt100.
colored() { t capture-pane -pe | grep -qE '\[([0-9;]*;)?[349][0-8][;m]'; }
for how in 'TERM=xterm' 'TERM=linux' 'TERM=tmux-256color'; do
  start 80 24 "env $how $watch --view fleet $log"
  expect 'In memory'
  until_ colored || fail "no colours with $how"
done
for colors in 8 16 256; do
  start 80 24 "$watch --color $colors --view fleet $log"
  expect_golden fleet-80x24
  until_ colored || fail "no colours with --color $colors"
  t capture-pane -pe >"$work/colors$colors"
done
grep -q '\[38;5;' "$work/colors256" || fail "no colour of the 256"
! grep -q '\[38;5;' "$work/colors16" || fail "--color 16 uses colours of the 256"
! grep -qE '\[[0-9;]*9[0-7]m' "$work/colors8" || fail "--color 8 uses bright colours"
uncolored() { ! colored; }
start 80 24 "env NO_COLOR=1 $watch --view fleet $log"
expect_golden fleet-80x24
uncolored || fail "colours under NO_COLOR"
start 80 24 "$watch --color none --view fleet $log"
expect_golden fleet-80x24
uncolored || fail "colours with --color none"
start 80 24 "env TERM=vt100 $watch --view fleet $log"
expect 'In memory: 4 of 12'
uncolored || fail "colours on a vt100"

start 80 24 "env TERM=no-such-terminal $watch $log"
expect 'or use --headless'
