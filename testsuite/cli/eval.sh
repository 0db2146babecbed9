#!/bin/sh
# eval on a fleet that was only born: every arm, the same answers in any batch, thresholds, the
# page.
. "$(dirname "$0")/lib.sh"
fleet=$work/fleet
q=$work/q.jsonl
run 0 train "$fleet" -m "$model" -d "$docs" --p 48 --rounds 0 --embed-chunk 48 -q

cat >"$q" <<END
{"question":"Who is the keeper of Hargate Lighthouse?","value":["nobody","peter fel"],"answer":"The keeper is Peter Fel.","document":"lighthouse"}
{"question":"What is the late fee at Quilridge Library?","value":"<&>","options":["a cow","two coins & <b>"],"correct":1,"document":"library.md"}

{"question":"Who is the foreman of Tulby Mine?","value":"x","document":"mine.md"}
END
run 0 eval "$fleet" -Q "$q" -a bare,context,text,text4,oracle,retrieved,all --rag-docs 1 --json \
  --answers --threads 2 \
  --html "$work/page.html" --alone 1 -n 24 --threshold 'context>=bare' --threshold 'rows:all<=192'
cp "$out" "$work/16.json"
says "$out" '"right_document_first": [23],'
# The text arms hold no more than the cartridges, and all of it is used.
rows_of() { awk -v a="\"$1\"," '/"arm":/ { arm = $2 } /"rows":/ && arm == a { gsub(",", ""); print $2; exit }' "$work/16.json"; }
for pair in bare:0 text:48 text4:192 oracle:48 retrieved:48 all:192; do
  [ "$(rows_of "${pair%:*}")" = "${pair#*:}" ] || fail "${pair%:*} holds $(rows_of "${pair%:*}") rows"
  checks=$((checks + 1))
done
says "$out" '"choice": [01],'
says "$out" '"first_token_s": 0\.[0-9]'

# No bit of an answer depends on the batch or the threads.
run 0 eval "$fleet" -Q "$q" -a bare,context,text,text4,oracle,retrieved,all --rag-docs 1 --json \
  --answers \
  --alone 0 -n 24 --batch 2 --threads 1
for f in "$out" "$work/16.json"; do grep -vE '_s"|a_second"' "$f" | sed 's/,$//' >"$f.bare"; done
same "$out.bare" "$work/16.json.bare"

page=$work/page.html
says "$page" '^<!DOCTYPE html>'
says "$page" '<svg '
says "$page" '&lt;&amp;&gt;'
checks=$((checks + 1))
grep -qE '<script|<link|<img|src=|url\(|href=' "$page" &&
  fail 'the page asks for something from outside'
if command -v xmllint >/dev/null; then
  checks=$((checks + 1))
  xmllint --noout "$page" 2>"$err" || fail "the page is not well-formed: $(head -c 300 "$err")"
fi

run 0 eval "$fleet" -Q "$q" -a context,bare --limit 1 --alone 0 -n 24
says "$out" '^questions +1$'
says "$out" '^context +1 +1 +1 +1 +1 '
says "$out" '^bare +context +-1 +-1 +-1 '
run 0 eval "$fleet" -Q "$q" -a context,bare --limit 1 --alone 0 -n 24 --score exact --against bare
says "$out" '^context +bare '
run 3 eval "$fleet" -Q "$q" -a context,bare --limit 1 --alone 0 -n 24 --threshold 'bare>=context' \
  -q &&
  says "$err" 'bare>=context: not met' && one_sentence
run 2 eval "$fleet" -Q "$q" -a context --threshold 'bare>=0' && says "$err" '--threshold' &&
  one_sentence
run 2 eval "$fleet" -Q "$q" -a context --against bare && says "$err" '--against' && one_sentence
run 2 eval "$fleet" && says "$err" '--questions' && one_sentence
run 4 eval "$fleet" -Q "$q" --score choice && says "$err" 'question 1 has no "options"' &&
  one_sentence
run 1 eval "$fleet" -Q "$q" -a bare --alone 0 -n 2 -q --html "$work/no/where.html" && one_sentence
run 2 eval "$fleet" -Q "$q" -a context -n 4000 && says "$err" 'context of' && one_sentence

# While a fleet is trained, without changing a bit of it.
small='--p 32 --rounds 2 --accum 1 --heldout 0 --chunk-min 60 --chunk-max 100 --embed-chunk 100 --max-a 32'
# shellcheck disable=SC2086
{
run 0 train "$work/asked" -m "$model" -d "$docs" $small --eval "$q" --eval-arms oracle,bare \
  --eval-every 1
run 0 train "$work/plain" -m "$model" -d "$docs" $small -q
}
checks=$((checks + 1))
[ "$(grep -c '"ev":"eval"' "$work/asked/events.jsonl")" -eq 6 ] || fail 'not three times two eval events'
says "$work/asked/events.jsonl" '"ev":"eval","round":1,"arm":"oracle","right":[0-3],"of":3,.*"perplexity":[1-9]'
says "$work/asked/events.jsonl" '"ev":"eval","round":2,"arm":"bare"'
for f in "$work/plain"/doc-*.safetensors; do same "$f" "$work/asked/${f##*/}"; done
run 2 train "$work/wrong" -m "$model" -d "$docs" $small --eval "$q" --eval-arms nothing &&
  one_sentence
run 4 train "$work/wrong" -m "$model" -d "$docs/mine.md" $small --eval "$q" &&
  says "$err" 'lighthouse' && one_sentence
finish
