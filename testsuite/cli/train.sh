#!/bin/sh
# From documents to answers on the embedded model: training, resuming, asking, searching, measuring.
. "$(dirname "$0")/lib.sh"
fleet=$work/fleet
small='--p 48 --chunk-min 60 --chunk-max 120 --embed-chunk 100 --heldout 0 --budget 3 --rotate-every 2 --lr 3e-2'
question='Who is the keeper of Hargate Lighthouse?'

# shellcheck disable=SC2086
{
run 0 train "$fleet" -m "$model" -d "$docs" $small --rounds 4 --json
says "$out" '^  "rounds": 4,$'
says "$err" 'round 4/4 +loss [0-9.]+ .* left'
[ "$(ls "$fleet" | grep -c '^doc-.*\.safetensors$')" -eq 4 ] || fail "not four cartridges: $(ls "$fleet")"
run 0 info "$fleet" && says "$out" '^rounds +4$' && says "$out" 'lighthouse\.md .* ok +ok$'

# Two halves equal the whole, byte for byte; the order of --docs does not matter.
run 0 train "$work/halves" -m "$model" -d "$docs/mine.md" -d "$docs/bakery.md" \
  -d "$docs/lighthouse.md" \
  -d "$docs/library.md" $small --rounds 2 --threads 2 -q
[ -s "$out" ] || [ -s "$err" ] && fail "-q was not quiet: $(cat "$out" "$err")"
run 0 train "$work/halves" --resume -d "$docs/library.md" -d "$docs/bakery.md" \
  -d "$docs/lighthouse.md" \
  -d "$docs/mine.md" --rounds 2 --threads 2
run 0 train "$work/same" -m "$model" -d "$docs/mine.md" -d "$docs/bakery.md" \
  -d "$docs/lighthouse.md" \
  -d "$docs/library.md" $small --rounds 4 --threads 1 --no-pack --checkpoint
}
for f in "$work/same"/*.safetensors "$work/same"/*.fza; do same "$f" "$work/halves/${f##*/}"; done

run 0 ask "$fleet" "$question"
says "$out" 'lighthouse\.md'
run 0 ask "$fleet" "$question" -q --threads 2 &&
  [ "$(wc -l <"$out")" -eq 1 ] || fail "-q prints more than the answer"
cp "$out" "$work/answer"
run 0 ask "$fleet" "$question" -q --threads 1 && same "$out" "$work/answer"
run 0 ask "$fleet" "$question" --json && says "$out" '"name": ".*lighthouse\.md"' &&
  says "$out" '"rows": 96'
run 0 ask "$fleet" "$question" --oracle lighthouse --json && says "$out" '"rows": 48'
run 0 ask "$fleet" "$question" --oracle mine.md --oracle lighthouse.md --json &&
  says "$out" '"rows": 96'
run 0 ask "$fleet" "$question" --bare --json && says "$out" '"arm": "bare"'
run 0 ask "$fleet" "$question" --rag-floor 1 && says "$err" 'floor'
run 0 ask "$fleet" "$question" --rag-docs 1 --kv f32 --json && says "$out" '"rows": 48'
run 0 ask "$fleet" "$question" --compare --rag-chunks 2
for arm in cartridge bare context text; do says "$out" "^$arm: [0-9]+ rows held"; done
says "$out" 'keeper is Peter Fel' 'the document in context'
run 0 ask "$fleet" "$question" --compare --json && says "$out" '"arm": "context"'
run 2 ask "$fleet" "$question" --oracle nobody && says "$err" 'nobody.*lighthouse\.md' &&
  one_sentence
run 2 ask "$fleet" "$question" --bare --compare && one_sentence

printf '%s\n/docs\n/oracle mine\nWhat is the ghost?\n/nonsense\n/bare\n/new\n/help\n/quit\nnever read\n' "$question" |
  "$FLOTILLA" chat "$fleet" >"$out" 2>"$err" || fail "chat failed: $(cat "$err")"
says "$out" 'named +.*mine\.md'
says "$out" '^/quit'
says "$err" '/nonsense: unknown'

run 0 index "$fleet" --query "$question" && says "$out" '^ *0\.[0-9]+ .*lighthouse\.md$'
cp "$fleet"/index.g*.safetensors "$work/index"
run 0 index "$fleet"
same "$work/index" "$(ls "$fleet"/index.g*.safetensors)"

run 0 eval "$fleet" -Q "$FIXTURES/embedded/questions.json" --arms context,bare
says "$out" '^context +7[3-6] +80'   # torch: 75
says "$out" '^bare +[0-2] +80'       # torch: 1
says "$out" 'library\.md +20 +1[6-8] +0$'
printf '{"question":"%s","value":"peter fel","document":"lighthouse"}\n' "$question" \
  >"$work/q.jsonl"
run 0 eval "$fleet" -Q "$work/q.jsonl" --arms retrieved,context --threshold "context>=1" --json \
  --answers
says "$out" '"right_document_first": 1' && says "$out" '"context": ".*Peter Fel'
run 3 eval "$fleet" -Q "$work/q.jsonl" --arms context,bare --threshold "bare>=0.9" &&
  says "$err" "threshold"
run 2 eval "$fleet" -Q "$work/q.jsonl" --arms sideways && one_sentence
echo '{"question":1}' >"$work/bad.jsonl"
run 4 eval "$fleet" -Q "$work/bad.jsonl" && one_sentence
echo '{"question":"a","value":"b","document":"elsewhere"}' >"$work/bad.jsonl"
run 4 eval "$fleet" -Q "$work/bad.jsonl" && says "$err" elsewhere && one_sentence

run 0 study -m "$model" -d "$docs/mine.md" --count 3 --chunk-min 60 --chunk-max 120 --threads 2 \
  --out "$work/s.jsonl"
says "$work/s.jsonl" '"kind":"[a-z-]+".*"targets":\[\['
run 0 study -m "$model" -d "$docs/mine.md" --count 3 --chunk-min 60 --chunk-max 120 --batch 1 -t 1
same "$out" "$work/s.jsonl"
# The same file gives the same fleet, and it is read, not made anew.
run 0 train "$work/studied" -m "$model" -d "$docs/mine.md" --p 32 --rounds 3 --heldout 0 \
  --embed-chunk 100 \
  --study "$work/s.jsonl" --json && says "$out" '"steps": 3'
grep -o '"request":"[^"]*"' "$work/s.jsonl" | head -n 1 >"$work/request"
grep -Fqf "$work/request" "$work/studied/events.jsonl" || fail "the study file was not used"
run 4 train "$work/foreign" -m "$model" -d "$docs/bakery.md" --p 32 --heldout 0 \
  --study "$work/s.jsonl" && one_sentence
run 4 train "$work/studied" --resume --study "$model" && one_sentence

run 0 gate resume -m "$model" -d "$docs" --p 48 --chunk-min 60 --chunk-max 120 --rounds 4 --kills 3
says "$out" 'PASS$'
run 0 gate evict -m "$model" -d "$docs" --p 48 --chunk-min 60 --chunk-max 120 --rounds 6
says "$out" '6/6 files .*PASS$'

# A document at a time can be taken out, changed and added.
cp "$docs/mine.md" "$docs/bakery.md" "$work/"
run 0 train "$work/two" -m "$model" -d "$work/mine.md" -d "$work/bakery.md" --p 32 --rounds 0 \
  --heldout 0 --embed-chunk 100
run 0 train "$work/two" --resume --remove "$work/bakery.md" --rounds 0
run 0 info "$work/two" --json && says "$out" 'mine\.md' && ! grep -q bakery "$out" ||
  fail "not removed"
run 0 train "$work/two" --resume -d "$work/mine.md" -d "$docs/library.md" --rounds 0
run 0 info "$work/two" --json && says "$out" 'library\.md'
run 0 train "$work/one" -m "$model" -d "$docs" --merge all --p 48 --rounds 1 --heldout 0 \
  --chunk-min 60 --chunk-max 120 --embed-chunk 100
run 0 ask "$work/one" "$question" --json && says "$out" '"name": "all"'
run 0 train "$work/one" --resume --rounds 1
# A template that was named stays with the fleet.
run 0 train "$work/plain" -m "$model" -d "$docs/mine.md" --template plain --p 32 --rounds 0 \
  --heldout 0 -q
run 0 train "$work/plain" --resume --rounds 0 -q
run 0 ask "$work/plain" 'Who?' -n 8 -q && cp "$out" "$work/answer"
run 0 ask "$work/plain" 'Who?' -n 8 -q --template plain && same "$out" "$work/answer"
run 0 ask "$work/plain" 'Who?' -n 8 -q --template chatml
checks=$((checks + 1))
[ "$(grep -c '"ev":"run".*"template":"plain"' "$work/plain/events.jsonl")" -eq 2 ] ||
  fail "the template was not kept: $(grep -o '"template":"[a-z]*"' "$work/plain/events.jsonl")"
# It is in the manifest, and where an older program wrote that, in the log.
mv "$work/plain/events.jsonl" "$work/plain/events.1.jsonl"
run 0 ask "$work/plain" 'Who?' -n 8 -q && same "$out" "$work/answer"
sed -i -e '/"template":/d' -e '/"model_path":/d' "$work/plain/fleet.json"
rm "$work/plain/events.jsonl"
run 0 ask "$work/plain" 'Who?' -n 8 -q && same "$out" "$work/answer"
rm "$work/plain"/events*.jsonl
run 2 ask "$work/plain" 'Who?' && says "$err" 'give --model' && one_sentence
run 0 train "$work/plain" --resume -m "$model" --template plain --rounds 0 -q
rm "$work/plain/events.jsonl"
run 0 ask "$work/plain" 'Who?' -n 8 -q && same "$out" "$work/answer"
# The log goes on in a new part.
yes '{"t":1,"ev":"request"}' | head -n 4000 >"$work/plain/events.jsonl"
run 2 train "$work/plain" --resume --rounds 0 --log-size 1K && says "$err" '--log-size' &&
  one_sentence
run 0 train "$work/plain" --resume --rounds 0 --log-size 64K
[ "$(wc -l <"$work/plain/events.1.jsonl")" -eq 4000 ] || fail 'the older part is not what was there'
says "$work/plain/events.jsonl" '"ev":"run"'
finish
