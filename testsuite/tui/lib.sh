# lib.sh - the dashboard in a real terminal: a private tmux server, keys sent, the screen polled for
# what is expected. Nothing here waits a fixed time for something to happen.
set -u
command -v tmux >/dev/null || { echo "tmux is not installed"; exit 77; }
build=$(dirname "$FLOTILLA")
watch="$FLOTILLA watch"
log=$FIXTURES/events/voyage.jsonl
golden=$SRCDIR/testsuite/tui/golden
work=$(mktemp -d)
server=0
XDG_CONFIG_HOME=$work/config TZ=UTC LC_ALL=C.UTF-8
export XDG_CONFIG_HOME TZ LC_ALL
unset NO_COLOR TMUX

t() { tmux -S "$work/tmux$server" -f /dev/null "$@"; }
cleanup() {
  t kill-server 2>/dev/null
  [ -z "${trainer:-}" ] || kill "$trainer" 2>/dev/null
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

fail() {
  echo "FAIL: $*"
  echo "--- the screen:"
  screen
  exit 1
}
screen() { t capture-pane -p 2>/dev/null; }

# open_terminal WIDTH HEIGHT: a fresh server with one window; remain-on-exit keeps the last screen.
open_terminal() {
  t kill-server 2>/dev/null
  server=$((server + 1)) # the old socket may live on for a moment
  t new-session -d -x "$1" -y "$2" "exec sh" \; set-option -g remain-on-exit on \; \
    set-option -g default-terminal "${terminal:-tmux-256color}" \; set-option -sg escape-time 0
}
# start WIDTH HEIGHT COMMAND: the command in a fresh terminal.
start() {
  open_terminal "$1" "$2"
  t respawn-pane -k "exec $3"
}
keys() { t send-keys "$@"; }

# until_ COMMAND...: polls, for at most two minutes: a machine may be busy, and what comes comes.
until_() {
  deadline=$(($(date +%s) + 120))
  until "$@"; do
    [ "$(date +%s)" -lt $deadline ] || return 1
    sleep 0.05
  done
}
has() { screen | grep -qE -- "$1"; }
hasnt() { ! has "$1"; }
expect() { until_ has "$1" || fail "no \"$1\" after ${2:-the start}"; }
expect_gone() { until_ hasnt "$1" || fail "\"$1\" is still there after ${2:-the start}"; }

# A picture of tests without a terminal, but for blanks at the ends of lines.
trimmed() { sed 's/ *$//' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'; }
is_golden() { screen | trimmed >"$work/now"; trimmed <"$golden/$1.txt" | cmp -s - "$work/now"; }
expect_golden() {
  until_ is_golden "$1" || {
    diff "$golden/$1.txt" "$work/now"
    fail "the screen is not $1"
  }
}
dead() { [ "$(t display-message -p '#{pane_dead}')" = 1 ]; }
expect_dead() { until_ dead || fail "it still runs after $1"; }

# Where a terminal cannot be opened at all (no /dev/pts, no sockets) there is nothing to be tested.
open_terminal 80 24 2>"$work/no-terminal" && [ "$(t display-message -p '#{pane_width}')" = 80 ] || {
  echo "tmux opens no terminal here: $(head -1 "$work/no-terminal"); is /dev/pts mounted?"
  exit 77
}

# live_fleet: a fleet that fake_trainer trains up to its middle, in $fleet.
live_fleet() {
  fleet=$work/fleet
  mkdir -p "$fleet"
  "$build/testsuite/fake_trainer" "$fleet" "$log" hold &
  trainer=$!
  until_ test -S "$fleet/control" || fail "the stand-in trainer does not listen"
}
