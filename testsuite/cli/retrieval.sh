#!/bin/sh
# Retrieval by words and vectors: what index --query says, the index of words through changes of the
# documents, lost, damaged, and of a fleet from before there was one.
. "$(dirname "$0")/lib.sh"
mkdir "$work/docs"
for d in lighthouse bakery library; do cp "$docs/$d.md" "$work/docs/"; done
fleet=$work/fleet
query() { # QUESTION OPTION...
  q=$1
  shift
  run 0 index "$fleet" -Q "$q" "$@"
}
train() { run 0 train "$fleet" -m "$model" -d "$work/docs" --p 24 --embed-chunk 48 --rounds 0 --heldout 0 -q "$@"; }
words_file() { sed -n 's/.*"lexical_file": "\([^"]*\)".*/\1/p' "$fleet/fleet.json"; }
first() { sed -n '/"chosen"/,/]/s/.*"name": ".*\/\([a-z]*\)\.md".*/\1/p' "$out" | head -n 1; }
found() { # WHAT NAME
  checks=$((checks + 1))
  [ "$(first)" = "$2" ] || fail "$1: $(first) is first, not $2"
}
train
[ -s "$fleet/$(words_file)" ] || fail "no index of words was written"
question='How do the people of Hargate Lighthouse keep the lamp warm?'
for by in hybrid lexical embedding; do
  query "$question" --rag $by --json && found "$by" lighthouse
  says "$out" "\"rag\": \"$by\""
  case $by in
    lexical) ! grep -q '"cosine"' "$out" || fail 'vectors were asked' ;;
    embedding) ! grep -q '"words"' "$out" || fail 'words were asked' ;;
    hybrid)
      says "$out" '"cosine_rank": [0-9]' && says "$out" '"words_rank": 1'
      says "$out" '"matched": "people hargate lighthouse keep lamp warm"'
      says "$out" '"passage": [0-9]' && says "$out" '"piece": [0-9]' ;;
  esac
done
run 2 index "$fleet" -Q x --rag best && says "$err" 'rag'
query "$question" --rerank 2 --json && found rerank lighthouse && says "$out" '"gain": [0-9.]+'
# No document knows: nothing is taken where the model has weighed, and the bare model answers.
query 'Who invented the telephone?' --rerank 4 --rag-floor 0.2 --json && says "$out" '"chosen": \[\]'
run 0 ask "$fleet" 'Who invented the telephone?' --rerank 4 --rag-floor 0.2 -n 4 && says "$err" floor
run 0 ask "$fleet" "$question" --rag lexical -n 4 --json && says "$out" '"matched": "people hargate'
run 0 ask "$fleet" "$question" --compare --rag-chunks 1 -n 4 --json && says "$out" '"arm": "text"'
says "$fleet/events.jsonl" '"by":"lexical"' && says "$fleet/events.jsonl" '"matched":\["people",'

# A document changes, one goes, one comes: each alone.
before=$(words_file)
echo 'The zeppelin hangar lies behind Calcove Bakery.' >>"$work/docs/bakery.md"
rm "$work/docs/library.md"
cp "$docs/mine.md" "$work/docs/"
train --resume --update --remove "$work/docs/library.md"
[ "$(words_file)" != "$before" ] || fail 'the name of the index of words stayed'
[ ! -e "$fleet/$before" ] || fail 'the index of words before was left'
query 'the zeppelins' --rag lexical --json && found update bakery
query 'Who is the foreman of Tulby Mine?' --rag lexical --json && found add mine
query 'What is the late fee at Quilridge Library?' --rag lexical --json
! grep -q 'library\.md' "$out" || fail 'a document that was removed is found'

# Lost and damaged: one sentence, and the documents are read; the next index is whole again.
cp "$fleet/$(words_file)" "$work/words"
head -c 3000 "$work/words" >"$fleet/$(words_file)"
query 'the zeppelins' --rag lexical --json && found damaged bakery && one_sentence
says "$err" 'damaged'
rm "$fleet/$(words_file)"
query 'the zeppelins' --rag lexical --json && found lost bakery
mv "$work/docs" "$work/moved"
query "$question" --json && says "$err" 'vectors alone'
run 4 index "$fleet" -Q "$question" --rag lexical && says "$err" 'no index of words'
mv "$work/moved" "$work/docs"
run 0 index "$fleet" -q
query 'the zeppelins' --rag lexical --json && found rebuilt bakery
[ ! -s "$err" ] || fail "still: $(cat "$err")"

# A fleet from before: searched from its documents, and given its words without training.
rm "$fleet/$(words_file)"
grep -v '"lexical_file"' "$fleet/fleet.json" >"$work/old" && cp "$work/old" "$fleet/fleet.json"
query 'the zeppelins' --rag lexical --json && found before bakery
[ ! -s "$err" ] || fail "a fleet from before is warned about: $(cat "$err")"
cp "$fleet"/doc-000.* "$work/"
train --resume
[ -s "$fleet/$(words_file)" ] || fail 'a fleet from before got no index of words'
for f in "$work"/doc-000.*; do same "$f" "$fleet/$(basename "$f")"; done
finish
