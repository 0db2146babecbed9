# lib.sh - what the command-line tests share. A test sources this, makes its checks and ends with
# `finish`. Needs FLOTILLA (the program), FIXTURES, SRCDIR from the makefile.
set -u
: "${FLOTILLA:?}" "${FIXTURES:?}" "${SRCDIR:?}"
checks=0
failures=0
work=$(mktemp -d "${TMPDIR:-/tmp}/flotilla-cli.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
out=$work/out
err=$work/err
model=$FIXTURES/embedded/model.gguf
docs=$FIXTURES/embedded/docs
tab=$(printf '\t')

fail() {
  failures=$((failures + 1))
  printf 'FAILED: %s\n' "$*"
}

# flotilla COMMAND ARGUMENT...: the program, on one thread: several tests run at once. A test whose
# subject is threads says --threads, and the last one counts.
flotilla() {
  case ${1:-} in
    ask | chat | eval | gate | index | study | train) ;;
    *) "$FLOTILLA" "$@"; return ;;
  esac
  command_=$1
  shift
  "$FLOTILLA" "$command_" --threads 1 "$@"
}

# run WANTED-STATUS ARGUMENT...: runs the program; its output is in $out and $err.
run() {
  wanted=$1
  shift
  checks=$((checks + 1))
  flotilla "$@" >"$out" 2>"$err" </dev/null
  got=$?
  [ "$got" -eq "$wanted" ] && return 0
  fail "flotilla $* gave $got instead of $wanted; stderr: $(head -c 600 "$err")"
  return 1
}

# says FILE PATTERN [WHAT]: a line matches the extended regular expression.
says() {
  checks=$((checks + 1))
  grep -Eq -e "$2" "$1" ||
    fail "${3:-$(basename "$1")}: no line matches '$2'; it has: $(head -c 600 "$1")"
}

# same FILE FILE
same() {
  checks=$((checks + 1))
  cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

# one_sentence: the output ends with the only line that begins with the program's name; progress may
# stand before it.
one_sentence() {
  checks=$((checks + 1))
  [ "$(grep -c '^flotilla: ' "$err")" -eq 1 ] && tail -n 1 "$err" | grep -q '^flotilla: ' ||
    fail "not one sentence: $(head -c 600 "$err")"
}

finish() {
  printf '%s checks, %s failed\n' "$checks" "$failures"
  [ "$failures" -eq 0 ] || exit 1
  exit 0
}
