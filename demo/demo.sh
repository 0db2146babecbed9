#!/bin/sh
# demo.sh - trains a fleet on the four documents of fixtures/embedded with the small model that was
# made for them, asks it, and counts right answers beside the bare model and documents in context.
# Takes about two minutes on two cores. In a terminal the dashboard shows the training; leaving it
# early does no harm. $FLOTILLA is the program, $DEMO_FLEET the folder.
set -eu
cd "$(dirname "$0")/.."
flotilla=${FLOTILLA:-build/flotilla}
fleet=${DEMO_FLEET:-demo-fleet}
data=fixtures/embedded
rounds=${DEMO_ROUNDS:-800}

say() { printf '\n== %s\n' "$*"; }

if [ -e "$fleet/fleet.json" ]; then
  say "$fleet is there already; remove it to train anew"
else
  say "training: four documents, three cartridges of 100 rows in memory at a time, rotating"
  dashboard=
  if [ -t 0 ] && [ -t 1 ]; then dashboard='--tui --leave'; fi
  # shellcheck disable=SC2086  # a word list
  "$flotilla" train "$fleet" $dashboard --model $data/model.gguf --docs $data/docs --rounds "$rounds" \
    --p 100 --budget 3 --rotate-every 8 --accum 8 --p-iso 1 --chunk-min 64 --chunk-max 160 \
    --embed-chunk 48 --init match --kinds quote=1,sentence=3,seeds=2 --lr 3e-2 --decay 250 --replay 2 \
    --eval-every 100 --save-every 50
  if [ -n "$dashboard" ] && ! "$flotilla" watch --once --json "$fleet" | grep -q '"state":"done"'
  then
    say "the training goes on without the dashboard; the questions come when it has ended"
    "$flotilla" watch --headless "$fleet" | grep -E --line-buffered ' (held-out|saved|end)[ :]'
  fi
fi

while read -r question; do
  say "$question"
  "$flotilla" ask "$fleet" "$question" --rag-floor 0.2
done <<END
Who is the keeper of Hargate Lighthouse?
How do the people of Hargate Lighthouse keep the lamp warm?
Why does the oven of Calcove Bakery stop every spring?
What is the late fee at Quilridge Library?
Who is the foreman of Tulby Mine?
END

say "the same question four ways"
"$flotilla" ask "$fleet" 'Who is the architect of Calcove Bakery?' --rag-floor 0.2 --compare

say "80 questions: the model alone, the document in context, retrieved text, its cartridge, cartridges by retrieval"
"$flotilla" eval "$fleet" --questions $data/questions.json \
  --arms bare,context,text,text4,oracle,retrieved --rag-docs 1 --against context
