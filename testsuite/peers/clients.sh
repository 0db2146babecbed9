#!/bin/sh
# The stock client packages of OpenAI and Anthropic against the server. They are fetched by name
# into a virtual environment in the user's cache; where that cannot be done the test is skipped
# (77). FLOTILLA_PEERS=1 asks for it: it needs the network.
. "$(dirname "$0")/../cli/lib.sh"
[ -n "${FLOTILLA_PEERS:-}" ] ||
  { echo 'set FLOTILLA_PEERS=1 to fetch and run the client packages'; exit 77; }
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
venv=${FLOTILLA_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/flotilla/clients}
if ! "$venv/bin/python" -c 'import openai, anthropic' 2>/dev/null; then
  python3 -m venv "$venv" 2>/dev/null && "$venv/bin/pip" -q install openai anthropic >&2 ||
    { echo 'openai and anthropic are not to be had'; exit 77; }
fi
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
run 0 train "$work/fleet" -m "$model" -d "$docs" --p 48 --chunk-min 60 --chunk-max 120 \
  --embed-chunk 100 --heldout 0 --rounds 0 -q
printf 'a-key-for-tests\n' >"$work/keys"
chmod 600 "$work/keys"
: >"$work/url"
"$FLOTILLA" serve "$work/fleet" -p 0 --keys "$work/keys" --slots 2 --queue 1 >"$work/url" &
server=$!
tries=0
until [ -s "$work/url" ] || [ $tries -ge 600 ]; do tries=$((tries + 1)); sleep 0.05; done
for client in openai anthropic; do
  checks=$((checks + 1))
  "$venv/bin/python" "$(dirname "$0")/${client}_client.py" "$(cat "$work/url")" a-key-for-tests ||
    fail "$client"
done
# The control socket, and what the log says of the run.
checks=$((checks + 2))
"$venv/bin/python" "$(dirname "$0")/control_client.py" "$work/fleet" || fail 'the control socket'
wait $server || fail "the server ended with $?"
server=
says "$work/fleet/events.jsonl" '"ev":"run","cmd":"serve"'
says "$work/fleet/events.jsonl" '"ev":"control","cmd":"stop","by":"socket"'
says "$work/fleet/events.jsonl" '"ev":"end","status":"done"'
checks=$((checks + 1))
[ ! -e "$work/fleet/control" ] || fail 'the control socket was left behind'
finish
