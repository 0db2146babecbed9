#!/bin/sh
# train --tui in a terminal of its own: the dashboard comes up, leaving it leaves the trainer at
# work, and an error of the trainer reaches the user. Skipped without tmux.
command -v tmux >/dev/null || exit 77
. "$(dirname "$0")/lib.sh"
term="tmux -L flotilla-cli-$$ -f /dev/null"
trainer=
cleanup() {
  $term kill-server 2>/dev/null
  [ -z "$trainer" ] || kill -KILL "$trainer" 2>/dev/null
  rm -rf "$work"
}
trap cleanup EXIT

# until_shown PATTERN: waits for the screen to show it, as long as the terminal lives, 60 s at most.
until_shown() {
  checks=$((checks + 1))
  end=$(($(date +%s) + 60))
  while [ "$(date +%s)" -lt $end ]; do
    $term capture-pane -p -S -50 >"$work/screen" 2>/dev/null || break
    grep -Eq -e "$1" "$work/screen" && return 0
  done
  fail "the screen never showed '$1' but: $(cat "$work/screen")"
  return 1
}

small='--p 32 --chunk-min 60 --chunk-max 120 --embed-chunk 100 --heldout 0'
$term new-session -d -x 100 -y 30 "exec env TERM=screen-256color LC_ALL=C.UTF-8 sh" ||
  { echo "tmux does not start here"; exit 77; }
$term send-keys "$FLOTILLA train $work/fleet -m $model -d $docs $small --rounds 100000 --tui; echo left=\$?" Enter
if until_shown 'round [1-9]'; then
  $term send-keys q
  until_shown 'training goes on in process [0-9]+' && until_shown 'left=0'
  trainer=$(grep -o 'in process [0-9]*' "$work/screen" | tail -n 1 | grep -o '[0-9]*$')
  kill -0 "$trainer" || fail "the trainer ended with the dashboard"
  kill -TERM "$trainer"
  tail -n +1 -f --pid="$trainer" "$work/fleet/train.log" >"$work/log"
  says "$work/log" 'the state is saved'
  trainer=
  run 0 info "$work/fleet"
fi

$term send-keys clear Enter
$term send-keys "$FLOTILLA train $work/fleet --resume --tui -m $FIXTURES/tiny/tiny-qwen3.gguf; echo left=\$?" Enter
until_shown 'left=4' && says "$work/screen" 'flotilla: .*tiny-qwen3'
$term send-keys clear Enter
$term send-keys "$FLOTILLA train $work/new/other --tui -m $model -d $docs --study $FIXTURES/embedded/README.md; echo refused=\$?" Enter
until_shown "refused=4"
[ ! -e "$work/new" ] || fail "a refused training left $(find "$work/new")"
run 2 train "$work/other" -m "$model" -d "$docs" --tui && says "$err" '--tui' && one_sentence
finish
