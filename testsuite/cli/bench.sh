#!/bin/sh
# bench: its parts run and report on a small model; names that do not exist are refused. How fast
# anything is plays no role here.
. "$(dirname "$0")/lib.sh"

run 0 bench "$model" --reps 1 --only decode --only step --json
for word in '"cpu"' '"kernels"' '"eight streams"' '"one stream, weights"' '"optimizer"' \
  '"of_peak"'; do
  says "$out" "$word"
done
# A type that the program reads but does not write.
run 0 bench "$FIXTURES/tiny/tiny-qwen3-k256-q4_k.gguf" --reps 1 --only step
says "$out" '^step .*student over its operations'
run 0 bench "$model" --reps 1 --only prefill --out "$work/bench.json" --note 'an idle machine'
says "$out" '^prefill '
for word in '"program"' '"cpu"' '"note": "an idle machine"' '"128 tokens"'; do
  says "$work/bench.json" "$word"
done
run 0 bench "$model" --reps 1 --only first-token --document 512
says "$out" '^first-token .* in context [0-9.e-]+, ratio [0-9.]+$'
cp "$model" "$work/model.gguf"
run 2 bench "$work/model.gguf" --out "$work/model.gguf"
says "$err" '--out'
cmp -s "$model" "$work/model.gguf" || fail '--out has replaced the model'
run 2 bench "$model" --only speed
says "$err" '--only speed'
run 2 bench "$model" --peer fast
says "$err" '--peer fast'
run 2 bench
says "$err" 'model is needed'
run 1 bench "$model" --reps 1 --only prefill --peer llama.cpp --llama-bench "$work/none"
says "$err" "$work/none"
finish
