#!/bin/sh
# study: several turns, own instructions, looking into files, merging them, training on them; and
# the ways in which cartridges begin.
. "$(dirname "$0")/lib.sh"
small='--chunk-min 60 --chunk-max 120 --max-a 48'
lines() { wc -l <"$1" | tr -d ' '; }

# shellcheck disable=SC2086
{
run 0 study -m "$model" -d "$docs" --count 4 $small --turns 2 -t 2 -o "$work/two.jsonl" -q
run 0 study -m "$model" -d "$docs" --count 4 $small --turns 2 --batch 1 -t 1 -q &&
  same "$out" "$work/two.jsonl"
run 0 study -m "$model" -d "$docs" --count 4 $small -s 7 -o "$work/one.jsonl" -q
printf '{"kind":"names","text":"Write one question on a name in the document. Give the question alone."}\n\n' >"$work/seeds"
run 0 study -m "$model" -d "$docs/mine.md" --count 2 $small --seeds "$work/seeds" --think 1 \
  -o "$work/own.jsonl" -q
}
says "$work/own.jsonl" '"kind":"names"'

# What bot B is asked, as it stands.
echo '[{"kind":"quote","request":"Repeat the text."},{"kind":"names","text":"Write one question."}]' >"$work/seeds"
# shellcheck disable=SC2086
run 0 study -m "$model" -d "$docs/mine.md" --count 4 $small --turns 2 --seeds "$work/seeds" -q
says "$out" '"kind":"quote".*"request":"Repeat the text\.","answer":".*Tulby'
says "$out" '"kind":"names"'

# A signal gives what there is, a kill costs the batch that was being made: the same command goes on
# from there, to the bytes of a study that nothing stopped.
part=$work/long.jsonl.part
tried() { sed -n 's/.*"tried":\([0-9]*\),.*/\1/p' "$part" 2>/dev/null | tail -n 1; }
# stop SIGNAL: starts the study and sends it the signal once it has made a batch; $got is its status.
stop() {
  before=$(tried)
  # shellcheck disable=SC2086
  "$FLOTILLA" study -m "$model" -d "$docs" --count 9999 --batch 2 $small -o "$work/long.jsonl" \
    >"$out" 2>"$err" </dev/null &
  pid=$!
  until [ "$(tried)" -gt "${before:-0}" ] 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
  kill -s "$1" $pid
  wait $pid
  got=$?
  checks=$((checks + 1))
}
# In the first batch, which is all that is asked for: it is not waited for, and leaves nothing.
# shellcheck disable=SC2086
"$FLOTILLA" study -m "$model" -d "$docs" --count 32 --batch 32 $small --turns 8 -o "$work/never.jsonl" \
  >"$out" 2>"$err" </dev/null &
pid=$!
until [ -s "$work/never.jsonl.part" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -s TERM $pid
wait $pid
got=$?
checks=$((checks + 2))
[ $got -eq 130 ] || fail "a study that was stopped in its first batch gave $got: $(head -c 600 "$err")"
says "$err" 'stopped before the first conversations were done' && one_sentence
[ -e "$work/never.jsonl" ] || [ -e "$work/never.jsonl.part" ] && fail 'nothing was made, and a file stays'
stop TERM
[ $got -eq 130 ] || fail "a stopped study gave $got: $(head -c 600 "$err")"
says "$err" 'long.jsonl: holds the [0-9]+ conversations made so far' && one_sentence
checks=$((checks + 1))
grep -v '"tried"' "$part" | cmp -s - "$work/long.jsonl" || fail 'not what there is'
stop KILL
[ $got -eq 137 ] || fail "a killed study gave $got: $(head -c 600 "$err")"
run 0 study --show "$part" --texts 0 && says "$out" '^skipped +0$'
printf '{"doc":0,"name":"half a li' >>"$part"
# shellcheck disable=SC2086
{
run 2 study -m "$model" -d "$docs" --count 1 $small -o "$work/long.jsonl" && one_sentence
run 4 study -m "$model" -d "$docs" --count 9999 $small -s 7 -o "$work/long.jsonl" &&
  says "$err" 'other options' && one_sentence
all=$(($(tried) + 2))
run 0 study -m "$model" -d "$docs" --count $all --batch 3 $small -o "$work/long.jsonl" &&
  says "$err" "holds $((all - 2)) conversations of this study already"
run 0 study -m "$model" -d "$docs" --count $all $small -q && same "$out" "$work/long.jsonl"
}
checks=$((checks + 1))
[ -e "$part" ] && fail 'a study that is done left its part'

# Kinds that are about the text's own sentences: the same bytes alone, in company, and after a kill.
small="$small --kinds quote=2,cloze,sentence=2,seeds"
# shellcheck disable=SC2086
{
run 0 study -m "$model" -d "$docs" --count 18 $small -o "$work/kinds.jsonl" -q
run 0 study -m "$model" -d "$docs" --count 18 $small --batch 1 -t 1 -q && same "$out" "$work/kinds.jsonl"
}
for kind in quote sentence; do says "$work/kinds.jsonl" "\"kind\":\"$kind\".*\"at\":\["; done
says "$work/kinds.jsonl" '"kind":"quote".*"request":"[^"]*\\"(Hargate Lighthouse|Calcove Bakery|Quilridge Library|Tulby Mine)\\"'
stop KILL
[ $got -eq 137 ] || fail "a killed study gave $got: $(head -c 600 "$err")"
all=$(($(tried) + 2))
# shellcheck disable=SC2086
{
run 4 study -m "$model" -d "$docs" --count 9999 $small --kinds quote -o "$work/long.jsonl" -q && one_sentence
run 0 study -m "$model" -d "$docs" --count $all --batch 3 $small -o "$work/long.jsonl" -q
run 0 study -m "$model" -d "$docs" --count $all $small -q && same "$out" "$work/long.jsonl"
run 2 study -m "$model" -d "$docs" --count 2 $small --generator http://127.0.0.1:9 -q &&
  says "$err" 'kinds' && one_sentence
}
for list in '' quotes quote=21 quote, quote,quote seeds=0; do
  run 2 study -m "$model" -d "$docs" --kinds "$list" && says "$err" 'kinds' && one_sentence
done
# A training that was stopped and one that was not: the same files, and what of the kinds was gained.
kinds_train() {
  # shellcheck disable=SC2086
  run 0 train "$@" -m "$model" -d "$docs" --p 32 --budget 4 --accum 3 --heldout 1 --replay 2 \
    --embed-chunk 100 $small -q
}
kinds_train "$work/whole" --rounds 6
kinds_train "$work/parts" --rounds 2
run 0 train "$work/parts" --resume --rounds 4 -q
for f in "$work"/whole/*.safetensors "$work"/whole/*.jsonl; do
  case $f in */events.jsonl) continue ;; esac
  same "$f" "$work/parts/$(basename "$f")"
done
says "$work/whole/events.jsonl" '"ev":"round".*"gain":\{[^}]*"quote":[0-9.]+'
says "$work/whole/fleet.json" '"kinds": *"seeds=1,quote=2,cloze=1,sentence=2"'

run 0 study --show "$work/two.jsonl" --texts 1
says "$out" "^conversations +$(lines "$work/two.jsonl")\$"
says "$out" '^> [A-Z]'
run 0 study --show "$work/own.jsonl" --json
says "$out" '"kind": "names"' && says "$out" '"texts": \['
run 0 study --show "$work/two.jsonl" --texts 0 --json
checks=$((checks + 1))
grep -q texts "$out" && fail 'texts without --texts'

# Once each, numbered anew; order and content stay.
run 0 study --merge "$work/two.jsonl" --merge "$work/one.jsonl" --merge "$work/two.jsonl" \
  -o "$work/all.jsonl"
says "$err" "$(lines "$work/two.jsonl") that stood there already"
run 0 study --merge "$work/all.jsonl" && same "$out" "$work/all.jsonl"
checks=$((checks + 1))
[ "$(lines "$work/all.jsonl")" -eq $(($(lines "$work/two.jsonl") + $(lines "$work/one.jsonl"))) ] || fail 'lines lost'
for f in two one all; do
  sed 's/"doc":[0-9]*//; s/"index":[0-9]*//' "$work/$f.jsonl" | sort >"$work/$f.sorted"
done
sort "$work/two.sorted" "$work/one.sorted" | cmp -s - "$work/all.sorted" ||
  fail 'merging changed a conversation'

run 0 train "$work/fleet" -m "$model" -d "$docs" --p 32 --rounds 4 --accum 2 --heldout 0 \
  --embed-chunk 100 \
  --max-a 48 --turns 2 --study "$work/all.jsonl" -q
says "$work/fleet/events.jsonl" '"ev":"round","round":4'
run 4 train "$work/short" -m "$model" -d "$docs" --p 32 --rounds 4 --accum 2 --heldout 0 \
  --embed-chunk 100 \
  --max-a 8 --max-q 8 --study "$work/all.jsonl" -q && says "$err" 'longer than' && one_sentence

# Ids of another tokenizer are refused before anything is trained on them.
sed 's/"tokenizer":"xxh3:[0-9a-f]*"/"tokenizer":"xxh3:00"/' "$work/one.jsonl" >"$work/foreign"
run 4 train "$work/foreign-fleet" -m "$model" -d "$docs" --p 32 --rounds 1 --heldout 0 \
  --embed-chunk 100 \
  --chunk-min 60 --chunk-max 120 --study "$work/foreign" -q
says "$err" 'line 1 was made with a model of another tokenizer' && one_sentence

# What is no study file, no file of instructions.
printf '{"name":"a","hash":"b"}\n' >"$work/bad"
run 4 study --show "$work/bad" && says "$err" 'line 1 is no conversation' && one_sentence
head -c 300 "$work/one.jsonl" >"$work/cut"
run 4 study --merge "$work/one.jsonl" --merge "$work/cut" -o "$work/never" &&
  says "$err" 'cut: line 1' && one_sentence
checks=$((checks + 1))
[ -e "$work/never" ] && fail 'a merge that failed left a file'
sed 's/"sup":\[[0-9]*/"sup":[99999/' "$work/one.jsonl" >"$work/bad"
run 4 study --show "$work/bad" && one_sentence
run 1 study --show "$work/nowhere" && one_sentence
for text in '' '[]' '{}' '{"kind":"","text":"a"}' '{"kind":"a","text":1}' \
  '{"kind":"a","request":""}' '{"kind":"a","text":"b","request":"c"}' '[{"kind":"a"}]' '{'; do
  printf '%s' "$text" >"$work/seeds"
  run 4 study -m "$model" -d "$docs/mine.md" --seeds "$work/seeds" && says "$err" seeds &&
    one_sentence
done
run 2 study --show "$work/one.jsonl" -d "$docs" && one_sentence
run 2 study --merge "$work/one.jsonl" -d "$docs" && one_sentence

# How cartridges begin.
born() {
  run 0 train "$work/$1" -m "$model" -d "$docs/mine.md" --p 40 --rounds 0 --embed-chunk 100 -q \
    --init "$2"
}
born first first
born random random
born again random
born summary summary
born taken "$(ls "$work/first"/doc-000.*.safetensors)"
one() { ls "$work/$1"/doc-000.*.safetensors; }
same "$(one random)" "$(one again)"
same "$(one first)" "$(one taken)"
for f in random summary; do
  checks=$((checks + 1))
  cmp -s "$(one first)" "$(one $f)" && fail "$f begins as first does"
done
run 0 train "$work/plain" -m "$model" -d "$docs/mine.md" --p 40 --rounds 0 --embed-chunk 100 -q
same "$(one first)" "$(one plain)"
run 2 train "$work/no" -m "$model" -d "$docs/mine.md" --init nothing && says "$err" 'init' &&
  one_sentence
run 4 train "$work/no" -m "$model" -d "$docs/mine.md" --rounds 0 --p 16 --init "$(one first)" &&
  says "$err" '40 rows' && one_sentence
run 4 train "$work/no2" -m "$model" -d "$docs/mine.md" --rounds 0 --init "$docs/mine.md" &&
  one_sentence
finish
