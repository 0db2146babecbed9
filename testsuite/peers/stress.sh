#!/bin/sh
# Twice the clients that the server has places for, and clients that misbehave, for a while (20 s, 8
# with FLOTILLA_BRIEF; as long as FLOTILLA_STRESS says, `make check-long` takes 600): every reply
# 200 or 429, none lost, memory settled, a clean end on SIGTERM under load. Spilled slots go to a
# disk that is full almost at once where one can be mounted. FLOTILLA_PEERS=1 asks for it.
. "$(dirname "$0")/../cli/lib.sh"
[ -n "${FLOTILLA_PEERS:-}" ] || { echo 'set FLOTILLA_PEERS=1 for the load test'; exit 77; }
command -v python3 >/dev/null || { echo 'python3 is not installed'; exit 77; }
seconds=${FLOTILLA_STRESS:-20}
# Where the same has run without a sanitiser before.
[ -z "${FLOTILLA_BRIEF:-}" ] || seconds=${FLOTILLA_STRESS:-8}
spill=$work/spill
mkdir "$spill"
if [ -z "${FLOTILLA_STRESS_INSIDE:-}" ] && unshare -rm true 2>/dev/null; then
  rm -rf "$work"
  FLOTILLA_STRESS_INSIDE=1 exec unshare -rm "$0"
fi
[ -z "${FLOTILLA_STRESS_INSIDE:-}" ] || mount -t tmpfs -o size=300k none "$spill" 2>/dev/null ||
  echo 'no full disk: a file system cannot be mounted'
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; umount "$spill" 2>/dev/null; rm -rf "$work"' EXIT
run 0 train "$work/fleet" -m "$model" -d "$docs" --p 48 --chunk-min 60 --chunk-max 120 \
  --embed-chunk 100 --heldout 0 --rounds 0 -q

# load SECONDS OPTION...
load() {
  : >"$work/url"
  "$FLOTILLA" serve "$work/fleet" -p 0 --slots 8 --queue 24 --spill-dir "$spill" --grace 5 \
    >"$work/url" 2>"$err" &
  server=$!
  tries=0
  until [ -s "$work/url" ] || [ $tries -ge 1200 ]; do tries=$((tries + 1)); sleep 0.05; done
  checks=$((checks + 1))
  python3 "$SRCDIR/testsuite/peers/stress.py" "$(cat "$work/url")" $server \
    --questions "$FIXTURES/embedded/questions.json" --seconds "$@" || fail "load $*"
  # With --stop it has its signal already, and a second one would end it at once.
  case $* in *--stop*) ;; *) kill -TERM $server ;; esac
  checks=$((checks + 1))
  wait $server || fail "the server ended with $?: $(tail -n 20 "$err")"
  server=
  [ ! -s "$err" ] || cat "$err"
}
# Hostile requests and a crowd first; what waits for more of them is given up after 2 s.
: >"$work/url"
"$FLOTILLA" serve "$work/fleet" -p 0 --head-time 2 --body-time 2 >"$work/url" 2>"$err" &
server=$!
tries=0
until [ -s "$work/url" ] || [ $tries -ge 1200 ]; do tries=$((tries + 1)); sleep 0.05; done
checks=$((checks + 1))
python3 "$SRCDIR/testsuite/peers/hostile.py" "$(cat "$work/url")" --connections 900 || fail hostile
kill -TERM $server
checks=$((checks + 1))
wait $server || fail "the server ended with $?: $(tail -n 20 "$err")"
load "$seconds"
load 5 --stop
finish
