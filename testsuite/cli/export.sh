#!/bin/sh
# export: a model in another type answers alike, and what cannot be done is refused.
. "$(dirname "$0")/lib.sh"
tiny=$FIXTURES/tiny

run 0 export -m "$model" --to f16 -o "$work/half.gguf" && says "$out" '^type +f16$'
run 0 info "$work/half.gguf" && says "$out" '^architecture +qwen3$'
run 0 gate compose -m "$work/half.gguf" -d "$docs" --p 40 --suffix 8
# A wider type holds the values of the narrower: logits are those of the file it came from.
run 0 export -m "$tiny/tiny-qwen3-k256-q4_k.gguf" --to f32 -o "$work/wide.gguf" --json
says "$out" '"converted": 8,'
run 0 gate logits -m "$work/wide.gguf" --ids "$tiny/ids40.txt" \
  --ref "$tiny/gold/tiny-qwen3-k256-q4_k.hf.f32" --tol 1e-4

# A cartridge as torch.save writes it; testsuite/peers/torch_cartridge.sh compares its values.
run 0 train "$work/born" -m "$model" -d "$docs/mine.md" --p 24 --rounds 0 -q
cart=$(ls "$work/born"/doc-000.*.safetensors)
run 0 export -m "$model" --to torch -o "$work/a.pt" "$cart" && says "$out" '^rows +24$'
run 0 export -m "$model" --to torch -o "$work/b.pt" "$cart" && same "$work/a.pt" "$work/b.pt"
says "$work/a.pt" 'cartridge/data.pkl' && says "$work/a.pt" 'trainable_keys' &&
  says "$work/a.pt" 'cartridge/version'
run 4 export -m "$tiny/tiny-qwen3.gguf" --to torch -o "$work/x.gguf" "$cart" && one_sentence
run 2 export -m "$model" --to torch -o "$work/x.gguf" && says "$err" 'cartridge' && one_sentence

run 2 export -m "$model" --to f16 && says "$err" 'out' && one_sentence
run 2 export -m "$model" -o "$work/x.gguf" && says "$err" '--to' && one_sentence
run 2 export --to f16 -o "$work/x.gguf" && says "$err" '--model' && one_sentence
run 2 export -m "$model" --to q4_k -o "$work/x.gguf" && one_sentence
run 2 export -m "$model" --to f16 -o "$work/half.gguf" && says "$err" '--force' && one_sentence
run 0 export -m "$model" --to f16 -o "$work/half.gguf" --force
run 2 export -m "$work/half.gguf" --to f32 -o "$work/half.gguf" --force && says "$err" 'itself' &&
  one_sentence
run 1 export -m "$model" --to f16 -o "$work/none/x.gguf" && one_sentence

# Inputs, and what is no file, are not replaced, whatever the command.
mkfifo "$work/pipe"
ln -s nowhere "$work/link"
mkdir "$work/folder"
for to in pipe link folder; do
  run 1 export -m "$model" --to f16 -o "$work/$to" --force &&
    says "$err" "$to: cannot be written: it is a" && one_sentence
  run 1 study -m "$model" -d "$docs/mine.md" -c 1 --chunk-min 60 --chunk-max 120 --out "$work/$to"
  says "$err" "$to: cannot be written: it is a" && one_sentence
done
[ -p "$work/pipe" ] && [ -L "$work/link" ] && [ -d "$work/folder" ] ||
  fail "replaced: $(ls -l "$work")"
cp "$model" "$work/m.gguf"
cp "$docs/mine.md" "$work/mine.md"
for to in m.gguf mine.md; do
  run 2 study -m "$work/m.gguf" -d "$work/mine.md" -c 1 --out "$work/$to" &&
    says "$err" 'itself' && one_sentence
done
run 0 train "$work/fleet" -m "$model" -d "$work/mine.md" --p 32 --rounds 0 --heldout 0 \
  --embed-chunk 100 -q
cp -R "$work/fleet" "$work/before"
cart=$(ls "$work/fleet"/doc-000.g*.safetensors)
printf '{"question": "Who?", "value": "x", "document": "mine"}\n' >"$work/q.jsonl"
for to in "$cart" "$work/m.gguf"; do
  run 2 export -m "$work/m.gguf" --to llama-state -o "$to" -f "$cart" && says "$err" 'itself' &&
    one_sentence
done
# The older state of llama.cpp lacks eight zero bytes before the rows, here of one cache.
run 0 export -m "$model" --to llama-state -o "$work/state.4" "$cart" --json &&
  says "$out" '"state_version": 4'
run 0 export -m "$model" --to llama-state -o "$work/state.3" "$cart" --state-version 3
n=32 # rows
at=$((12 + 4 * (n + 4) + 8 + 12 * n + 8))
{ printf 'qsgg\4\0\0\0'; head -c $at "$work/state.3" | tail -c +9; head -c 8 /dev/zero
  tail -c +$((at + 1)) "$work/state.3"; } | cmp -s - "$work/state.4" ||
    fail 'states of versions 3 and 4'
checks=$((checks + 1))
run 2 export -m "$model" --to torch -o "$work/x.pt" "$cart" --state-version 3 &&
  says "$err" 'belongs to' && one_sentence
for to in "$cart" "$work/fleet/fleet.json"; do
  run 2 export --to archive -o "$to" -f "$work/fleet" && says "$err" 'of the fleet' && one_sentence
  run 2 eval "$work/fleet" -Q "$work/q.jsonl" --html "$to" && says "$err" 'of the fleet' &&
    one_sentence
done
run 2 eval "$work/fleet" -Q "$work/q.jsonl" --html "$work/q.jsonl" && says "$err" 'itself' &&
  one_sentence
cp "$tiny/ids40.txt" "$work/ids.txt"
run 2 gate logits -m "$work/m.gguf" --ids "$work/ids.txt" --write "$work/ids.txt" &&
  says "$err" 'itself' && one_sentence
same "$work/m.gguf" "$model"
same "$work/mine.md" "$docs/mine.md"
same "$work/ids.txt" "$tiny/ids40.txt"
for f in "$work/before"/*; do same "$f" "$work/fleet/${f##*/}"; done
rm -r "$work/pipe" "$work/link"
run 4 export -m "$docs/mine.md" --to f16 -o "$work/x.gguf" && one_sentence
head -c 300000 "$model" >"$work/cut.gguf"
run 4 export -m "$work/cut.gguf" --to f16 -o "$work/x.gguf" && one_sentence
[ -e "$work/x.gguf" ] && fail "a refused export left a file"
ls "$work" | grep -q 'tmp-' && fail "a temporary file is left: $(ls "$work")"
finish
