#!/bin/sh
# The terminal is as it was after any end: modes of the line, the screen, the cursor, the mouse.
. "$(dirname "$0")/lib.sh"

# The shell around it prints its own marker, and the modes before and after.
cat >"$work/around.sh" <<EOF
trap : INT QUIT
stty -a >"$work/before"
sh -c 'echo \$\$ >"$work/pid"; exec $watch --view fleet "$log"'
echo "status \$?" >"$work/status"
stty -a >"$work/after"
echo back in the shell
read -r nothing
EOF

terminal_is_restored() {
  expect 'back in the shell' "$1"
  cmp -s "$work/before" "$work/after" ||
    fail "the modes differ after $1: $(diff "$work/before" "$work/after")"
  flags=$(t display-message -p '#{alternate_on}#{cursor_flag}#{mouse_any_flag}#{keypad_cursor_flag}')
  [ "$flags" = 0100 ] || fail "alternate screen, cursor, mouse, keypad are $flags after $1"
}

start 80 24 "sh $work/around.sh"
expect 'In memory'
[ "$(t display-message -p '#{alternate_on}#{mouse_any_flag}')" = 11 ] || fail "no full screen with mouse"
keys q
terminal_is_restored q
grep -q 'status 0' "$work/status" || fail "q: $(cat "$work/status")"

start 80 24 "sh $work/around.sh"
expect 'In memory'
keys C-c
terminal_is_restored Ctrl-C

for sig in TERM HUP QUIT SEGV ABRT BUS FPE; do
  start 80 24 "sh $work/around.sh"
  expect 'In memory'
  kill -$sig "$(cat "$work/pid")"
  terminal_is_restored "SIG$sig"
done
