#!/bin/sh
# study --generator: a server that behaves, and the many ways in which one does not.
. "$(dirname "$0")/lib.sh"
fake=${FAKE_OPENAI:-$(dirname "$FLOTILLA")/testsuite/fake_openai}
[ -x "$fake" ] || { echo "$fake is not built"; exit 77; }
server=
stop() {
  [ -z "$server" ] || { kill "$server"; wait "$server" 2>/dev/null; }
  server=
}
trap 'stop; rm -rf "$work"' EXIT
unset FLOTILLA_GENERATOR_KEY

# against MODE: a server that behaves so; its address is in $url.
against() {
  stop
  : >"$work/url"
  "$fake" "$1" >"$work/url" &
  server=$!
  tries=0
  until [ -s "$work/url" ]; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || { fail "$1: no server"; exit 1; }
    sleep 0.05
  done
  url=$(cat "$work/url")
}
# make WANTED-STATUS OPTION...: four conversations from it.
make() {
  wanted=$1
  shift
  rm -f "$work/made"
  run "$wanted" study -m "$model" -d "$docs" --count 4 --chunk-min 60 --chunk-max 120 -q \
    --timeout 20s \
    -o "$work/made" --generator "$url" "$@"
}
made() {
  checks=$((checks + 1))
  [ "$(grep -c '"answer":"Peter Fel is."' "$work/made")" -eq "$1" ] || fail "$url: not $1 conversations"
}

against good
make 0 || { grep -q 'without libcurl' "$err" && { echo 'built without libcurl'; exit 77; }; }
made 4
# Every character is a row, and the end one; two alternatives up to the mass.
run 0 study --show "$work/made" --json && says "$out" '"supervised": 56' &&
  says "$out" '"probability_each": 0\.9'
cp "$work/made" "$work/first"
make 0 --in-flight 1 --batch 1 && same "$work/made" "$work/first"
make 0 --teacher local && made 4
make 2 --turns 2 && says "$err" '--turns' && one_sentence
against nobytes
make 0 && same "$work/made" "$work/first"
# A server that lists the end of the turn, spelled as nothing: two entries where the others had one.
against listsend
make 0 && made 4
checks=$((checks + 1))
sed 's/,[^,]*,[^,]*\]\]}$/]]}/' "$work/made" | cmp -s - "$work/first" &&
  fail 'the end is not in the list'
grep -Eq ',[0-9]+,0\.606530666\]|,0\.606530666,[0-9]+,0\.36787945' "$work/made" ||
  fail 'the end is not exp(-0.5)'
# One that lists it with its id, among other control tokens: each is counted once, exp(-0.1) and so
# on.
against ids
make 0 && made 4
checks=$((checks + 1))
[ "$(grep -c ',\[2045,0\.904837[0-9]*,87,0\.049787[0-9]*,2044,0\.018315[0-9]*\]\]}$' "$work/made")" -eq 4 ] ||
  fail 'the end is not three entries'
sed 's/,\[[^[]*\]\]}$/]}/' "$work/made" >"$work/made.rows"
sed 's/,\[[^[]*\]\]}$/]}/' "$work/first" | cmp -s - "$work/made.rows" ||
  fail 'the rows before the end differ'
# One that makes other prompts: a warning, once; where the prompts are not counted, none.
against otherprompt
rm -f "$work/made"
run 0 study -m "$model" -d "$docs" --count 4 --batch 2 --chunk-min 60 --chunk-max 120 \
  -o "$work/made" \
  --generator "$url" && made 4
checks=$((checks + 1))
[ "$(grep -Ec '^flotilla: .*makes 7 tokens of a prompt that is [0-9]+ here' "$err")" -eq 1 ] ||
  fail "not one warning: $(cat "$err")"
run 0 study -m "$model" -d "$docs" --count 2 --chunk-min 60 --chunk-max 120 -o "$work/local" \
  --generator "$url" --teacher local
checks=$((checks + 1))
grep -q 'tokens of a prompt' "$err" && fail 'a local teacher does not care for prompts'
against nameless
make 1 && says "$err" 'no spelling' && one_sentence
make 0 --teacher local && made 4
against noprobs
make 4 && says "$err" '--teacher local' && one_sentence
make 0 --teacher local && made 4
against busy
make 0 --tries 16 && made 4
against flaky
make 0 && made 4
against meet
make 0 --in-flight 2 && made 4
against manyprobs
make 4 && one_sentence
for mode in wrongtoken badid badbytes; do
  against $mode
  make 4 && says "$err" "vocabulary has not" && one_sentence
done
for mode in badprob spell; do
  against $mode
  make 4 && says "$err" 'a reply' && one_sentence
done
against othertok
make 4 && says "$err" 'other tokens' && one_sentence
make 0 --teacher local && made 4
for mode in truncated words empty deep nochoices; do
  against $mode
  make 1 && says "$err" 'of no use: a reply' && one_sentence
done
against short
make 1 --tries 2 && says "$err" 'of no use' && one_sentence
against broken
make 1 --tries 2 && says "$err" 'status 500' && one_sentence
against redirect
make 1 && says "$err" 'status 302' && one_sentence
against endless
make 1 --count 1 && says "$err" 'an answer over' && one_sentence
against hang
make 1 --timeout 0.3s --tries 2 && says "$err" 'of no use' && one_sentence
# All are cut: skipped and counted, as with the bots here.
against cut
make 0 && made 0

against key
make 1 && says "$err" 'status 401' && one_sentence
echo 'sesame ' >"$work/key"
make 0 --generator-key-file "$work/key" && made 4
FLOTILLA_GENERATOR_KEY=sesame
export FLOTILLA_GENERATOR_KEY
make 0 && made 4
unset FLOTILLA_GENERATOR_KEY
: >"$work/key"
make 4 --generator-key-file "$work/key" && one_sentence
printf 'two words\n' >"$work/key"
make 2 --generator-key-file "$work/key" && says "$err" 'key' && one_sentence
stop
make 1 --tries 2 && says "$err" 'of no use' && one_sentence
for url in nowhere ftp://a.b 'http://a b' 'http://a/?x=1' http://; do
  run 2 study -m "$model" -d "$docs/mine.md" -q --tries 1 -o "$work/made" --generator "$url" &&
    one_sentence
done

# The program's own server, on the same model: tokens, supervised places and the number of the
# teacher's entries are those of a pass here, and the probability they hold in six digits.
: >"$work/url"
"$FLOTILLA" serve -p 0 -m "$model" --kv f32 -q >"$work/url" 2>"$work/serve.err" </dev/null &
server=$!
tries=0
until [ -s "$work/url" ]; do
  tries=$((tries + 1))
  [ $tries -lt 600 ] || { fail "no server: $(cat "$work/serve.err")"; finish; }
  sleep 0.05
done
url=$(sed 's,/v1$,,' "$work/url")
make 0 && cp "$work/made" "$work/there"
run 0 study -m "$model" -d "$docs" --count 1 --chunk-min 60 --chunk-max 120 --generator "$url"
checks=$((checks + 1))
grep -q 'tokens of a prompt' "$err" && fail "the server's prompts are ours, and yet: $(cat "$err")"
make 0 --teacher local
for f in made there; do
  sed 's/,"targets":.*//' "$work/$f" >"$work/$f.head"
  run 0 study --show "$work/$f" --json --texts 0
  grep -E 'supervised|entries_each|probability_each' "$out" |
    sed 's/\(0\.[0-9]\{5\}\)[0-9]*/\1/' >"$work/$f.sums"
done
same "$work/made.head" "$work/there.head"
same "$work/made.sums" "$work/there.sums"
finish
