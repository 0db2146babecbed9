#!/bin/sh
# The table of commands, --help and the manual pages name the same commands and options.
. "$(dirname "$0")/lib.sh"
man=$SRCDIR/man

run 0 --version
says "$out" '^flotilla [0-9]+\.[0-9]+\.[0-9]+$'
run 0 --help
cp "$out" "$work/usage"
run 0 help --commands
cp "$out" "$work/commands"
[ "$(wc -l <"$work/commands")" -ge 2 ] || fail "hardly a command is listed"

# Words after "Fl Fl" in the tags of a page, which are its options.
documented() { sed -n 's/^\.It //p' "$1" | grep -o 'Fl Fl [a-z][a-z-]*' | sed 's/Fl Fl /--/' |
  sort -u; }

while read -r c; do
  says "$work/usage" "^  $c +[A-Z]" "flotilla --help"
  says "$man/flotilla.1" "^\.It Cm $c\$"
  says "$man/flotilla.1" "^\.Xr flotilla-$c 1( |\$)"
  page=$man/flotilla-$c.1
  [ -f "$page" ] || { fail "$page is missing"; continue; }
  run 0 "$c" --help && says "$out" "^Usage: flotilla $c "
  run 0 help "$c" && cp "$out" "$work/help"
  run 0 "$c" -h && same "$out" "$work/help"
  run 0 help "$c" --options
  cut -f1 "$out" | sort -u >"$work/options"
  documented "$page" >"$work/documented"
  checks=$((checks + 1))
  cmp -s "$work/options" "$work/documented" ||
    fail "$page: options differ from the program's: $(diff "$work/options" "$work/documented" | grep '^[<>]' | tr '\n' ' ')"
  while IFS=$tab read -r long short rest; do
    says "$work/help" "^ .*$long( |\$)" "flotilla help $c"
    [ "$short" = - ] || says "$page" "^\.It Fl ${short#-} .*, Fl Fl ${long#--}( |\$)"
  done <"$out"
done <"$work/commands"

# No page without its command.
for page in "$man"/flotilla-*.1; do
  c=${page##*/flotilla-}
  grep -qx "${c%.1}" "$work/commands" || fail "$page: no such command"
done
sed -n 's/^\.It Cm //p' "$man/flotilla.1" | sort >"$work/listed"
sort "$work/commands" | diff - "$work/listed" >"$work/diff" ||
  fail "flotilla.1: $(cat "$work/diff")"

if command -v mandoc >/dev/null; then
  for page in "$man"/flotilla*.[157]; do
    checks=$((checks + 1))
    mandoc -T lint -W warning "$page" >"$work/lint" 2>&1 || fail "$(cat "$work/lint")"
  done
fi
finish
