#!/bin/sh
# mpirun flotilla train: any number of ranks makes the files of one, byte for byte; ranks that are
# killed, stopped or wrong. Skipped where MPI is not compiled in or mpirun is missing.
grep -q '^#define HAVE_MPI 1' config.h 2>/dev/null || { echo "built without MPI"; exit 77; }
command -v mpirun >/dev/null || { echo "no mpirun"; exit 77; }
. "$(dirname "$0")/lib.sh"
# MPI never gives back some of its memory, and takes two locks of its own in either order; containers
# may forbid one of its ways to copy.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
echo 'deadlock:mca_btl_tcp' >"$work/tsan"
TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}suppressions=$work/tsan
OMPI_MCA_btl_vader_single_copy_mechanism=none
OMPI_ALLOW_RUN_AS_ROOT=1
OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS TSAN_OPTIONS OMPI_MCA_btl_vader_single_copy_mechanism OMPI_ALLOW_RUN_AS_ROOT \
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
rounds=6
small='--p 48 --chunk-min 60 --chunk-max 120 --max-a 64 --embed-chunk 100 --budget 3 --rotate-every 3 --save-every 2 --replay 1.5 --eval-every 4 --lr 3e-2'
counts='2 4'
[ -z "${FLOTILLA_BRIEF:-}" ] || { counts=2; rounds=5; }

# ranks WANTED-STATUS N ARGUMENT...: `run` on N ranks.
ranks() {
  wanted=$1
  n=$2
  shift 2
  checks=$((checks + 1))
  mpirun --oversubscribe -n "$n" "$FLOTILLA" "$@" >"$out" 2>"$err" </dev/null
  got=$?
  [ "$got" -eq "$wanted" ] && return 0
  fail "$n ranks: flotilla $* gave $got instead of $wanted; stderr: $(head -c 600 "$err")"
  return 1
}

# alone: one of our sentences among what mpirun says.
alone() {
  checks=$((checks + 1))
  [ "$(grep -c '^flotilla: ' "$err")" -eq 1 ] || fail "not one sentence: $(head -c 900 "$err")"
}

files() { (cd "$1" && ls | grep -Ev '^(events\.jsonl|lock|control.*)$'); }

# same_fleet FOLDER ONE: it has the files of ONE, which one process made.
same_fleet() {
  checks=$((checks + 1))
  [ "$(files "$1")" = "$(files "$2")" ] || fail "$1 has other files: $(files "$1")"
  for f in $(files "$2"); do same "$2/$f" "$1/$f"; done
}

# trained FOLDER: the rounds that its manifest counts.
trained() { sed -n 's/^  "rounds": \([0-9]*\).*/\1/p' "$1/fleet.json"; }

logged() { grep -c '"ev":"round"' "$work/killed/events.jsonl" 2>/dev/null; }

# begin ROUNDS ARGUMENT...: two ranks train in the background, far longer than this test lasts,
# until the log has told of so many more rounds; $mpi is mpirun, $first and $last are the ranks.
begin() {
  before=$(logged)
  more=$1
  shift
  # shellcheck disable=SC2086
  mpirun --oversubscribe -n 2 "$FLOTILLA" train "$work/killed" --rounds 100000 "$@" \
    >"$out" 2>"$err" </dev/null &
  mpi=$!
  until [ "$(($(logged) - ${before:-0}))" -ge "$more" ]; do
    kill -0 "$mpi" 2>/dev/null || break
    sleep 0.05
  done
  # shellcheck disable=SC2046
  set -- $(ps -o pid= --ppid "$mpi")
  first=$1
  last=$2
}

# ended WANTED-STATUS: what mpirun made of it.
ended() {
  checks=$((checks + 1))
  wait "$mpi"
  got=$?
  [ "$got" -eq "$1" ] || fail "mpirun gave $got instead of $1: $(head -c 900 "$err")"
}

# shellcheck disable=SC2086
run 0 train "$work/one" -m "$model" -d "$docs" $small --rounds $rounds -q
for n in $counts; do
  # shellcheck disable=SC2086
  ranks 0 "$n" train "$work/n$n" -m "$model" -d "$docs" $small --rounds $rounds
  same_fleet "$work/n$n" "$work/one"
  says "$err" "^round $rounds/$rounds "
  [ "$(grep -c "^round $rounds/" "$err")" -eq 1 ] || fail "more than one rank speaks"
  says "$work/n$n/events.jsonl" "\"ranks\":$n,"
done
# A fleet goes on with another number of ranks, and other ways of running.
# shellcheck disable=SC2086
ranks 0 2 train "$work/mixed" -m "$model" -d "$docs" $small --rounds 2 --threads 1 --no-pack
run 0 train "$work/mixed" --resume --rounds 1 --checkpoint
ranks 0 3 train "$work/mixed" --resume --rounds $((rounds - 3))
for f in "$work/one"/doc-* "$work/one"/index.*; do same "$f" "$work/mixed/${f##*/}"; done

# A rank is killed, another is; a signal that mpirun passes on stops all. The fleet is as it was
# last
# saved each time, and in the end as though nothing had happened.
# shellcheck disable=SC2086
begin 1 -m "$model" -d "$docs" $small
kill -KILL "$last"
ended 137
run 0 info "$work/killed"
begin 3 --resume
kill -KILL "$first"
ended 137
run 0 info "$work/killed"
begin 1 --resume
kill -USR1 "$mpi"
ended 130
says "$err" 'the state is saved' && alone
ranks 0 2 train "$work/killed" --resume --rounds 1
# shellcheck disable=SC2086
run 0 train "$work/straight" -m "$model" -d "$docs" $small --rounds "$(trained "$work/killed")" -q
same_fleet "$work/killed" "$work/straight"

# What is wrong is said once.
ranks 2 2 train "$work/x" --nonsense && alone
ranks 2 2 train "$work/one" -m "$model" -d "$docs" && alone
ranks 2 2 train "$work/x" -m "$model" -d "$docs" --tui && alone && says "$err" '--tui'
ranks 4 2 train "$work/one" --resume -m "$FIXTURES/tiny/tiny-qwen3.gguf" && alone
finish
