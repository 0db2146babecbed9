#!/bin/sh
# What a real training, and a question, write into the event log is what flotilla-events(5) says;
# and the line mode of the dashboard shows it.
. "$(dirname "$0")/lib.sh"
[ -x "$FLOTILLA" ] || { echo "flotilla is not built"; exit 77; }
fleet=$work/fleet
"$FLOTILLA" train -q -m "$FIXTURES/embedded/model.gguf" --docs "$FIXTURES/embedded/docs" \
  --rounds 4 \
  --budget 2 --rotate-every 2 --save-every 2 --p 16 --max-q 24 --max-a 24 --replay 2 "$fleet" ||
  { echo "FAIL: the training failed"; exit 1; }
"$FLOTILLA" ask "$fleet" 'Who keeps the lighthouse?' >"$work/answer" ||
  { echo "FAIL: the question failed"; exit 1; }
EVENTS_LOG=$fleet/events.jsonl CK_RUN_SUITE=schema "$build/testsuite/check_tui" || exit 1
$watch --headless "$fleet" >"$work/lines" || { echo "FAIL: the line mode failed"; exit 1; }
for what in 'run: train with' 'study .*:' 'round 4/4 ' 'rotation: out ' 'held-out ' \
  'saved: round 4' \
  'index: ' 'retrieve: Who keeps' 'answer: ' 'end: done, round 4'; do
  grep -q "$what" "$work/lines" || { echo "FAIL: no line \"$what\" in:"; cat \
    "$work/lines"; exit 1; }
done
$watch --once "$fleet" | grep -q '^time: generate .*, student .* trained tokens/s$' ||
  { echo "FAIL: $($watch --once "$fleet")"; exit 1; }
rates='"gflops":[0-9.]*,"peak_gflops":[0-9.]*,"read_gbs":[0-9.]*,"peak_gbs":[0-9.]'
$watch --once --json "$fleet" | grep -q "$rates" ||
  { echo "FAIL: $($watch --once --json "$fleet")"; exit 1; }
$watch --once --json "$fleet" | grep -q '"state":"done","t":.*"round":4,"rounds":4' ||
  { echo "FAIL: $($watch --once --json "$fleet")"; exit 1; }
