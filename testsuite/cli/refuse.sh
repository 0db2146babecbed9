#!/bin/sh
# What can't be right is refused by name, with the status that fits, and nothing is lost by it.
. "$(dirname "$0")/lib.sh"
fleet=$work/fleet
mkdir "$work/docs"
cp "$docs/mine.md" "$docs/bakery.md" "$work/docs/"
small='--p 32 --chunk-min 60 --chunk-max 120 --embed-chunk 100 --heldout 0'
tiny=$FIXTURES/tiny

# shellcheck disable=SC2086
{
run 2 train "$fleet" -m "$model" && says "$err" '--docs' && one_sentence
run 2 train "$fleet" -d "$docs" && says "$err" '--model' && one_sentence
run 2 train "$fleet" --resume -m "$model" -d "$docs" && says "$err" 'no fleet' && one_sentence
run 1 train "$fleet" -m "$work/none.gguf" -d "$docs" && one_sentence
run 2 train "$fleet" -m "$model" -d "$docs" --p 32 --frozen 32 && says "$err" '--frozen' &&
  one_sentence
run 2 train "$fleet" -m "$model" -d "$docs" --chunk-min 9 --chunk-max 8 && says "$err" '--chunk-min'
[ ! -e "$fleet/fleet.json" ] || fail "a refused training left a fleet"
"$FLOTILLA" train "$fleet" -m "$model" -d "$work/none.md" >"$out" 2>"$err"
case $? in 1 | 2 | 4) ;; *) fail "a missing document: $?" ;; esac
says "$err" 'none\.md'; one_sentence
: >"$work/empty.md"
run 4 train "$fleet" -m "$model" -d "$work/empty.md" && says "$err" 'empty\.md' && one_sentence
printf ' \n\t\n' >"$work/blank.md"
run 4 train "$fleet" -m "$model" -d "$work/blank.md" && says "$err" 'blank\.md: empty' &&
  one_sentence
printf 'h\303\251 a\377b' >"$work/bytes.md"
run 4 train "$fleet" -m "$model" -d "$work/bytes.md" && says "$err" 'bytes\.md' && one_sentence

# What is refused when the folder is there already leaves none, nor its parents, nor its files in
# one that was there.
mkdir "$work/empty"
for at in "$work/new" "$work/some/where/new" "$work/empty"; do
  run 2 train "$at" -m "$model" -d "$work/docs" $small --chunk-max 60000 &&
    says "$err" '--chunk-max'
  run 4 train "$at" -m "$model" -d "$work/docs" $small --study "$work/empty.md" && one_sentence
  run 4 train "$at" -m "$model" -d "$work/docs" $small --init "$work/empty.md" && one_sentence
done
[ ! -e "$work/new" ] && [ ! -e "$work/some" ] || fail "a refused training left a folder"
[ -z "$(ls -A "$work/empty")" ] || fail "a refused training left $(ls -A "$work/empty")"

run 0 train "$fleet" -m "$model" -d "$work/docs" $small --rounds 1 -q
cp -R "$fleet" "$work/kept"
run 2 train "$fleet" -m "$model" -d "$work/docs" $small && says "$err" '--resume' && one_sentence
for o in '--p 48' '--frozen 2' '--embed-chunk 64' '--seed 7' '--positions sequential'; do
  run 2 train "$fleet" --resume $o && says "$err" "^flotilla: train: ${o% *} " && one_sentence
done
run 0 train "$fleet" --resume --p 32 --seed 42 --rounds 0
}

# Another model, a changed and a missing document.
run 4 train "$fleet" --resume -m "$tiny/tiny-qwen3.gguf" && says "$err" 'model' && one_sentence
run 4 ask "$fleet" Who -m "$tiny/tiny-qwen3.gguf" && one_sentence
echo 'A new line.' >>"$work/docs/mine.md"
run 4 train "$fleet" --resume && says "$err" 'mine\.md.*--update' && one_sentence
run 0 train "$fleet" --resume --update --rounds 0
mv "$work/docs/mine.md" "$work/elsewhere.md"
"$FLOTILLA" train "$fleet" --resume -d "$work/docs" >"$out" 2>"$err"
case $? in 1 | 2 | 4) ;; *) fail "a missing document: $?" ;; esac
says "$err" 'mine\.md.*--remove'; one_sentence
mv "$work/elsewhere.md" "$work/docs/mine.md"

# Files cut short, each kind in turn: refused by name, usable again when restored.
cart=$(ls "$fleet"/doc-000.g*.safetensors)
for at in 0 7 100 4096; do
  cp "$cart" "$work/whole"
  head -c "$at" "$work/whole" >"$cart"
  run 4 info "$fleet"
  run 4 ask "$fleet" 'What is the ghost of Tulby Mine?' --oracle bakery &&
    says "$err" "${cart##*/}" && one_sentence
  run 4 train "$fleet" --resume --rounds 1 && says "$err" "${cart##*/}" && one_sentence
  cp "$work/whole" "$cart"
done
moments=$(ls "$fleet"/doc-000.g*.fza)
cp "$moments" "$work/whole"
head -c 5000 "$work/whole" >"$moments"
run 4 train "$fleet" --resume --rounds 1 && says "$err" "${moments##*/}" && one_sentence
rm "$moments"
run 0 train "$fleet" --resume --rounds 0
run 0 train "$fleet" --resume --redo "$work/docs/bakery.md" --rounds 0
index=$(ls "$fleet"/index.g*.safetensors)
cp "$index" "$work/whole"
head -c 500 "$work/whole" >"$index"
run 4 ask "$fleet" 'Who?' && says "$err" "${index##*/}.*flotilla index" && one_sentence
cp "$work/whole" "$index"
cp "$fleet/fleet.json" "$work/whole"
for at in 0 1 50 500; do
  head -c "$at" "$work/whole" >"$fleet/fleet.json"
  run 4 ask "$fleet" 'Who?' && says "$err" 'fleet\.json' && one_sentence
  run 4 train "$fleet" --resume && says "$err" 'fleet\.json' && one_sentence
done
cp "$work/whole" "$fleet/fleet.json"
sed 's/"cart_file": "/&..\//' "$work/whole" >"$fleet/fleet.json"
run 4 ask "$fleet" 'Who?' && says "$err" 'plain' && one_sentence
cp "$work/whole" "$fleet/fleet.json"
run 0 ask "$fleet" 'What is the ghost of Tulby Mine?'

# One writer at a time; readers are welcome.
if command -v flock >/dev/null; then
  flock "$fleet/lock" sh -c '"$@"' - "$FLOTILLA" train "$fleet" --resume --rounds 1 >"$out" 2>"$err"
  [ $? -eq 1 ] || fail "a second writer was let in"
  one_sentence
  flock "$fleet/lock" "$FLOTILLA" ask "$fleet" 'Who?' >"$out" 2>"$err" ||
    fail "a reader was kept out: $(cat "$err")"
fi

# A signal: saved, status 130, and the training can go on. The event log tells when it is under way.
run 0 train "$work/long" -m "$model" -d "$work/docs" --p 32 --rounds 0 --heldout 0 --embed-chunk 100
"$FLOTILLA" train "$work/long" --resume --rounds 100000 --chunk-min 60 --chunk-max 120 \
  >"$out" 2>"$err" &
pid=$!
tail -n +1 -f --pid=$pid "$work/long/events.jsonl" 2>/dev/null | grep -q -m1 '"ev":"round"'
kill -INT $pid
wait $pid
[ $? -eq 130 ] || fail "a signal did not give status 130: $(tail -3 "$err")"
says "$err" 'saved'
run 0 info "$work/long" && says "$out" '^rounds +[1-9]'
run 0 train "$work/long" --resume --rounds 1

# A model that is cut short while it is in use: one sentence, and the fleet as it was saved.
cp "$model" "$work/m.gguf"
run 0 train "$work/lost" -m "$work/m.gguf" -d "$work/docs" --p 32 --rounds 0 --heldout 0 \
  --embed-chunk 100
"$FLOTILLA" train "$work/lost" --resume --rounds 3000 --chunk-min 60 --chunk-max 120 \
  >"$out" 2>"$err" &
pid=$!
tail -n +1 -f --pid=$pid "$work/lost/events.jsonl" 2>/dev/null | grep -q -m1 '"ev":"round"'
: >"$work/m.gguf"
wait $pid
[ $? -eq 4 ] || fail "a model that was cut short: $(tail -3 "$err")"
says "$err" '/m\.gguf: was cut short' && one_sentence
run 0 train "$work/lost" --resume --rounds 1 -m "$model"

# Kept conversations: none, a part of a line, whole lines that are missing.
# shellcheck disable=SC2086
run 0 train "$work/kept2" -m "$model" -d "$work/docs/mine.md" $small --accum 3 --replay 2 \
  --rounds 2 -q
for study in "$work/kept2"/*.study.jsonl; do
  cp "$study" "$work/whole"
  for lines in 0 1; do
    head -n $lines "$work/whole" >"$study"
    run 4 train "$work/kept2" --resume --rounds 1 && says "$err" 'study\.jsonl.*--redo' &&
      one_sentence
  done
  head -c 300 "$work/whole" >"$study"
  run 4 train "$work/kept2" --resume --rounds 1 && says "$err" 'study\.jsonl: line 1.*--redo' &&
    one_sentence
  cp "$work/whole" "$study"
done
run 0 train "$work/kept2" --resume --rounds 1 -q

# Shorter answers than those that were kept.
run 4 train "$work/kept2" --resume --rounds 1 --max-a 1 --max-q 1
says "$err" 'longer than --max-q, --max-a' && one_sentence

# Held-out conversations: whole lines and a part of a line that are missing come back as they were.
# shellcheck disable=SC2086
run 0 train "$work/held" -m "$model" -d "$work/docs/mine.md" $small --heldout 3 --rounds 1 -q
cp "$work/held/heldout.jsonl" "$work/whole"
[ "$(wc -l <"$work/whole")" -eq 3 ] || fail "not three held-out conversations: $(cut -c 1-60 "$work/whole")"
for cut in '-n 2' '-c 500' "-c $(($(wc -c <"$work/whole") - 9))"; do
  # shellcheck disable=SC2086
  head $cut "$work/whole" >"$work/held/heldout.jsonl"
  run 0 train "$work/held" --resume --rounds 1
  says "$err" 'held-out conversations of .*mine\.md are damaged.*made again'
  same "$work/held/heldout.jsonl" "$work/whole"
done
run 0 train "$work/held" --resume --rounds 1
! grep -q damaged "$err" || fail "whole held-out conversations are called damaged"

# No conversation comes out: that is said, and is not a loss of 0.
# shellcheck disable=SC2086
run 0 train "$work/none" -m "$model" -d "$work/docs/mine.md" $small --max-a 1 --rounds 1
says "$err" 'round 1/1  no conversation came out'
says "$err" 'nothing was learned.*--max-a'

# A fleet's own files never become documents.
mkdir "$work/notes"
cp "$docs/mine.md" "$work/notes/"
# shellcheck disable=SC2086
{
run 2 train "$work/notes" -m "$model" -d "$work/notes/" $small && says "$err" "fleet's folder" &&
  one_sentence
run 0 train "$work/notes/fleet" -m "$model" -d "$work/notes" -R $small --rounds 0 -q
run 0 train "$work/notes/fleet" --resume -d "$work/notes" -R $small --rounds 0 --json
says "$out" 'mine\.md' && ! grep -q 'jsonl\|fleet\.json' "$out" || fail "documents: $(cat "$out")"
}

# A folder without a fleet, or none: said before anything about its model.
mkdir "$work/nothing"
for c in ask chat serve index; do
  for dir in "$work/nothing" "$work/nowhere"; do
    if [ $c = ask ]; then run 1 $c "$dir" Who; else run 1 $c "$dir"; fi
    says "$err" 'no fleet here' && one_sentence
  done
done

# A file over the limit of its size: a failure like a full disk, and nothing left of it.
if (ulimit -f 1) 2>/dev/null; then
  (ulimit -f 1000; "$FLOTILLA" export -m "$model" --to f32 -o "$work/large.gguf") >"$out" 2>"$err"
  [ $? -eq 1 ] || fail "a file over the limit: $(cat "$err")"
  says "$err" 'large\.gguf.*allowed size' && one_sentence
  set -- "$work"/large*
  [ ! -e "$1" ] || fail "left behind: $*"
fi

# A full disk: an error that says so, and the last generation stays whole.
if [ "$(id -u)" = 0 ] && mkdir "$work/small" && mount -t tmpfs -o size=700k none "$work/small" 2>/dev/null; then
  trap 'umount "$work/small"; rm -rf "$work"' EXIT
  # shellcheck disable=SC2086
  run 0 train "$work/small/fleet" -m "$model" -d "$work/docs/mine.md" $small --rounds 1 -q
  cp -R "$work/small/fleet" "$work/before"
  dd if=/dev/zero of="$work/small/fill" bs=1k count=2000 2>/dev/null
  run 1 train "$work/small/fleet" --resume --rounds 1 &&
    says "$err" 'no space left.*nothing was changed'
  # Room for the texts, not for a cartridge.
  truncate -s -24k "$work/small/fill"
  run 1 train "$work/small/fleet" --resume --rounds 1 &&
    says "$err" 'no space left.*last saved generation|last saved generation.*no space left'
  rm "$work/small/fill"
  for f in "$work/before"/fleet.json "$work/before"/*.safetensors "$work/before"/*.fza; do
    same "$f" "$work/small/fleet/${f##*/}"
  done
  run 0 train "$work/small/fleet" --resume --rounds 0
fi
finish
