#!/bin/sh
# The examples with curl in flotilla-serve(1), run as they stand there but for the port.
. "$(dirname "$0")/lib.sh"
command -v curl >/dev/null || { echo 'curl is not installed'; exit 77; }
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
run 0 train "$work/fleet" -m "$model" -d "$docs" --p 48 --chunk-min 60 --chunk-max 120 \
  --embed-chunk 100 --heldout 0 --rounds 0 -q
KEY=0123456789abcdef0123456789abcdef
export KEY
(umask 077 && echo "$KEY" >"$work/keys")
: >"$work/url"
"$FLOTILLA" serve "$work/fleet" -p 0 --keys "$work/keys" >"$work/url" 2>"$work/serve.err" &
server=$!
tries=0
until [ -s "$work/url" ] || [ $tries -ge 1200 ]; do tries=$((tries + 1)); sleep 0.05; done
address=$(sed 's,^http://,,; s,/v1$,,' "$work/url")

# One example a file: a line with `$ curl` and the indented lines after it; \e is roff's backslash.
# A status of 400 or more ends curl with 22.
awk -v dir="$work" '
  /^\$ curl / { n++; file = dir "/example." n; sub(/^\$ curl /, "curl -fsS "); print > file; next }
  /^  / && file { print > file; next }
  { file = "" }' "$SRCDIR/man/flotilla-serve.1"
n=0
for example in "$work"/example.*; do
  n=$((n + 1))
  sed -i "s/\\\\e\$/\\\\/; s/127\\.0\\.0\\.1:8080/$address/" "$example"
  checks=$((checks + 1))
  sh "$example" >"$out" 2>"$err" && [ -s "$out" ] || fail "$(cat "$example"): $(head -c 300 "$err")"
done
[ $n -ge 10 ] || fail "only $n examples were found"
kill -TERM $server
checks=$((checks + 1))
wait $server || fail "the server ended with $?"
server=
finish
