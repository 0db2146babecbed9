#!/bin/sh
# Logs that are damaged, foreign, cut, rotated, and names made to harm: no crash, and nothing of
# them reaches the terminal but glyphs.
. "$(dirname "$0")/lib.sh"
fleet=$work/fleet
mkdir -p "$fleet"
events=$fleet/events.jsonl
esc=$(printf '\033')

start 80 24 "$watch --view fleet $fleet"
expect 'waiting for the first event'

# growing, in pieces
{ printf '{"t":1,"ev":"run","cmd":"train","rounds":9,'; } >"$events"
{ printf '"round0":0}\n{"t":2,"ev":"doc","doc":0,"name":"first.md","tokens":100}\n'; } >>"$events"
expect 'first.md' 'the first lines'

# names: escape sequences raw and escaped, right-to-left, wide, towers of marks, 4 KB
{
  printf '{"t":3,"ev":"doc","doc":1,"name":"%s]0;owned%s[2Jraw","tokens":5}\n' "$esc" "$esc"
  printf '{"t":3,"ev":"doc","doc":2,"name":"\\u001b]0;owned\\u0007\\u001b[31mesc","tokens":5}\n'
  printf '{"t":3,"ev":"doc","doc":3,"name":"\\u202egpj.exe","tokens":5}\n'
  printf '{"t":3,"ev":"doc","doc":4,"name":"漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字.md"}\n'
  printf '{"t":3,"ev":"doc","doc":5,"name":"e%s.md"}\n' "$(printf '\314\201%.0s' $(seq 60))"
  printf '{"t":3,"ev":"doc","doc":6,"name":"%s"}\n' "$(head -c 4096 /dev/zero | tr '\0' x)"
  printf 'this is no event\n{"t":4,"ev":"round","round":1,"doc":0,"loss":2.5}\n'
} >>"$events"
expect '1/9' 'the round'
expect '漢字' 'a wide name'
expect '1 damaged line' 'a damaged line'
[ "$(t display-message -p '#{pane_title}')" != owned ] || fail "a document's name set the title"
screen | grep -q 'raw' || fail "the name with raw escapes is not shown"
for view in 2 3 4 5 6 1; do keys $view; done
keys Enter; keys Down; keys Down; keys Down; keys Down
expect 'e.*\.md' 'going through the names'

# cut short: read anew
printf '{"t":1,"ev":"run","cmd":"train","rounds":5,"round0":0}\n' >"$events"
expect '/5' 'the log was written anew'
expect_gone 'first.md' 'the log was written anew'
# rotated: goes on in the new file
mv "$events" "$events.1"
printf '{"t":9,"ev":"round","round":3,"doc":0,"loss":1}\n' >"$events"
expect '3/5' 'rotation'
# gone: what was read stays
rm "$events"
keys 2; expect 'Loss by round' 2
keys q; expect_dead q

# foreign files
printf '%0512d\nPK\003\004\000\377\n' 7 >"$events"
start 80 24 "$watch --view fleet $fleet"
expect 'this is not an event log of flotilla'
keys q; expect_dead q
rm "$events"; mkdir "$events"
start 80 24 "$watch --view fleet $fleet"
expect 'is not a regular file'
keys q; expect_dead q
rmdir "$events"; mkfifo "$events"
start 80 24 "$watch --view fleet $fleet"
expect 'is not a regular file'
keys q; expect_dead q
rm "$events"

$watch "$work/no-such-fleet" 2>"$work/error" && fail "a missing folder is no error"
grep -q 'no-such-fleet: no such fleet folder' "$work/error" || fail "$(cat "$work/error")"
