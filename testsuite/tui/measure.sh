#!/bin/sh
# Figures of the dashboard on a log of 400 documents and a million events; no test, because figures
# depend on what else the machine does: seconds until the whole log is shown, processor seconds of
# that, memory, processor share when idle, and while a run is played back at ten frames a second.
. "$(dirname "$0")/lib.sh"
mkdir -p "$work/fleet"
"$build/testsuite/make_events" 400 166000 7 >"$work/fleet/events.jsonl"
echo "events: $(wc -l <"$work/fleet/events.jsonl")"

ticks() { awk '{ print $14 + $15 }' "/proc/$pid/stat"; }
hz=$(getconf CLK_TCK)
now() { date +%s.%N; }
rss() { awk '/VmRSS|VmHWM/ { printf "%s %d KiB  ", $1, $2 }' "/proc/$pid/status"; echo; }
share() { awk -v a="$1" -v b="$(ticks)" -v hz="$hz" -v s="$2" 'BEGIN { printf "%.2f %% of a core\n", (b - a) / hz / s * 100 }'; }

began=$(now)
start 200 60 "$watch --view fleet $work/fleet"
expect 'round 166000/166000'
ended=$(now)
pid=$(t display-message -p '#{pane_pid}')
echo "opened in: $(awk -v a="$began" -v b="$ended" 'BEGIN { printf "%.2f s", b - a }')," \
  "processor: $(awk -v t="$(ticks)" -v hz="$hz" 'BEGIN { printf "%.2f s", t / hz }')"
echo "memory: $(rss)"
a=$(ticks); sleep 5; echo "idle: $(share "$a" 5)"
for view in 1 2 5; do
  keys $view; keys f; keys '<'
  i=0; while [ $i -lt 9 ]; do keys ']'; i=$((i + 1)); done
  keys Space
  a=$(ticks); sleep 3; echo "playback, view $view: $(share "$a" 3)"
  keys Space
  i=0; while [ $i -lt 9 ]; do keys '['; i=$((i + 1)); done
done
echo "memory: $(rss)"

# A training that goes on: 20 events a second stream into the log; redraws are counted by the rounds
# that the header goes through.
shown_round() { screen | sed -n '1s/.*round \([0-9]*\).*/\1/p'; }
wall() { date +%s; }
keys f; keys 1
round=166000
printf '{"t":%d,"ev":"run","cmd":"train","pid":%d,"rounds":170000,"round0":%d,"host":"%s"}\n' \
  "$(wall)" $$ $round "$(hostname)" >>"$work/fleet/events.jsonl"
stream() {
  i=0
  while [ $i -lt 100 ]; do
    i=$((i + 1)); round=$((round + 1))
    printf '{"t":%d.5,"ev":"round","round":%d,"doc":%d,"loss":2.%d,"seconds":0.05}\n' \
      "$(wall)" $round \
      $((i % 400)) $((i % 7)) >>"$work/fleet/events.jsonl"
    sleep 0.05
  done
}
for view in 1 2 5; do
  keys $view
  stream &
  streamer=$!
  began=$(now); a=$(ticks)
  : >"$work/rounds"
  while kill -0 $streamer 2>/dev/null; do echo "$(now) $(shown_round)" >>"$work/rounds"; done
  ended=$(now)
  # from the first change seen to the last
  echo "streaming, view $view: $(awk 'NR > 1 && $2 != was { if (!n++) first = $1; last = $1 }
    { was = $2 }
    END { printf "%.1f redraws a second seen in %.1f s", (n - 1) / (last - first), last - first }' \
    "$work/rounds")," \
    "$(awk -v a="$a" -v b="$(ticks)" -v hz="$hz" -v s="$began" -v e="$ended" \
      'BEGIN { printf "%.2f %% of a core", (b - a) / hz / (e - s) * 100 }')"
  wait $streamer
  round=$((round + 100))
done
