#!/bin/sh
# A fleet as one file and back: the same files and answers; hostile archives are refused whole.
. "$(dirname "$0")/lib.sh"
run 0 train "$work/fleet" -m "$model" -d "$docs/mine.md" -d "$docs/bakery.md" --p 24 --rounds 0 \
  --heldout 0 -q
if ! "$FLOTILLA" export --to archive -o "$work/a.tar.gz" "$work/fleet" >"$out" 2>"$err"; then
  grep -q 'without libarchive' "$err" && { echo 'built without libarchive'; exit 77; }
  fail "export: $(cat "$err")"
fi
says "$out" '^docs +2$'
run 0 export --to archive -o "$work/b.tar.gz" "$work/fleet" &&
  same "$work/a.tar.gz" "$work/b.tar.gz"
# Compressed as the name says: by what such files begin with; without an end it is plain.
sed 's/"lexical_file": "[^"]*"/"lexical_file": ""/' "$work/fleet/fleet.json" >"$work/manifest"
begins() { # NAME OCTAL-BYTES
  run 0 export --to archive -o "$work/k.$1" "$work/fleet"
  [ "$(head -c 3 "$work/k.$1" | od -An -to1 | tr -d ' ')" = "$2" ] || fail "$1 begins otherwise"
  run 0 import -o "$work/k-$1" "$work/k.$1" && same "$work/manifest" "$work/k-$1/fleet.json"
}
begins tar.gz 037213010
begins tar.zst 050265057
begins tar.xz 375067172
begins tar 146154145
run 0 import -o "$work/back" "$work/a.tar.gz" && says "$out" '^docs +2$'
same "$work/manifest" "$work/back/fleet.json" # all but the index of words, which holds the texts
[ ! -e "$work/back/index.g000000.sqlite" ] || fail "the texts were exported"
for f in doc-000.g000000.safetensors doc-001.g000000.safetensors; do
  same "$work/fleet/$f" "$work/back/$f"
done
says "$work/back/README.md" '^\| .*mine\.md \| 430 \| 24 \| 0 \|'
run 0 ask -m "$model" "$work/fleet" 'Who is the foreman at Tulby Mine?' -q &&
  cp "$out" "$work/answer"
run 0 ask -m "$model" "$work/back" 'Who is the foreman at Tulby Mine?' -q &&
  same "$out" "$work/answer"

# Cartridges that torch saved (fixtures/tiny/torch/make.py): the values that torch has.
torch() { # FILE MODEL ROWS FROZEN
  run 0 import -m "$2" -o "$work/$1.safetensors" "$FIXTURES/tiny/torch/$1.pt" --json
  says "$out" "\"rows\": $3" && says "$out" "\"frozen\": $4"
  tail -c "$(wc -c <"$FIXTURES/tiny/torch/$1.f32")" "$work/$1.safetensors" >"$work/$1.f32"
  same "$work/$1.f32" "$FIXTURES/tiny/torch/$1.f32"
}
qwen3=$FIXTURES/tiny/tiny-qwen3.gguf llama=$FIXTURES/tiny/tiny-llama.gguf
torch module "$qwen3" 6 1
torch pairs "$llama" 5 2
torch plain "$qwen3" 4 0
run 0 info "$work/module.safetensors" && says "$out" 'names, shapes and values are whole'
# There and back again: the same rows; and a fleet begins with them.
run 0 train "$work/tiny" -m "$llama" -d "$docs/mine.md" --p 24 --rounds 0 --heldout 0 \
  --template plain -q
run 0 export --to torch -m "$llama" -o "$work/c.pt" "$work/tiny"/doc-000.*.safetensors
run 0 import -m "$llama" -o "$work/c.safetensors" "$work/c.pt"
n=$((2 * 2 * 24 * 32 * 4)) # keys and values of two layers, 24 rows of 32 floats
tail -c $n "$work/c.safetensors" >"$work/c.rows"
tail -c $n "$work/tiny"/doc-000.*.safetensors >"$work/tiny.rows"
same "$work/c.rows" "$work/tiny.rows"
run 0 train "$work/again" -m "$llama" -d "$docs/mine.md" --p 24 --rounds 0 --heldout 0 \
  --template plain -q \
  --init "$work/c.safetensors"
tail -c $n "$work/again"/doc-000.*.safetensors >"$work/again.rows"
same "$work/again.rows" "$work/tiny.rows"
run 2 import -o "$work/x" "$work/c.pt" && says "$err" '--model' && one_sentence
run 2 import -m "$qwen3" -o "$work/x" "$work/a.tar.gz" && says "$err" '--model' && one_sentence
run 4 import -m "$qwen3" -o "$work/x" "$work/c.pt" && says "$err" 'as the model wants it' &&
  one_sentence
run 4 import -m "$model" -o "$work/x" "$work/c.pt" && says "$err" 'has 2 layers, the model 4' &&
  one_sentence
head -c 3000 "$work/c.pt" >"$work/cut.pt"
run 4 import -m "$llama" -o "$work/x" "$work/cut.pt" && says "$err" 'cut short' && one_sentence

run 2 import "$work/a.tar.gz" && says "$err" '--out' && one_sentence
run 2 import -o "$work/back" "$work/a.tar.gz" && says "$err" 'exists' && one_sentence
run 4 import -o "$work/x" "$docs/mine.md" && one_sentence
size=$(wc -c <"$work/a.tar.gz")
for at in 10 $((size / 2)) $((size - 9)); do
  head -c "$at" "$work/a.tar.gz" >"$work/cut.tar.gz"
  run 4 import -o "$work/x" "$work/cut.tar.gz" && says "$err" 'cut\.tar\.gz' && one_sentence
done
# A link, a file of another name's folder, a fleet without its cartridges.
mkdir "$work/bad" && ln -s /etc/passwd "$work/bad/fleet.json"
tar -C "$work" -cf "$work/link.tar" bad
run 4 import -o "$work/x" "$work/link.tar" && one_sentence
mkdir "$work/few" && cp "$work/fleet/fleet.json" "$work/few"
tar -C "$work" -cf "$work/few.tar" few
"$FLOTILLA" import -o "$work/x" "$work/few.tar" >"$out" 2>"$err" &&
  fail 'a fleet without cartridges was taken'
one_sentence
tar -C "$work" -cf "$work/twice.tar" few/fleet.json few/fleet.json
run 4 import -o "$work/x" "$work/twice.tar" && says "$err" 'twice' && one_sentence
[ -e "$work/x" ] && fail 'a refused archive left a folder'
ls "$work" | grep -q 'part' && fail "something is left: $(ls "$work")"
run 2 export --to archive -o "$work/c.tar" && says "$err" 'folder' && one_sentence
run 1 export --to archive -o "$work/c.tar" "$work/bad2" && one_sentence
finish
