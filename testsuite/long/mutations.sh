#!/bin/sh
# mutations.sh [LAYER]... - breaks one place a layer, one at a time, and sees whether the layer's own
# tests notice. At most one of twenty may stay unseen. A copy of the sources is changed, never the
# tree; compiling takes most of the time, and ccache helps.
#
# Every line: layer, file, what stands there (its first place), what stands there instead, the test
# that is run, and its suite where one is enough.
set -u
: "${SRCDIR:?}" "${FIXTURES:?}"
work=$(mktemp -d "${TMPDIR:-/tmp}/flotilla-mutations.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM

cat >"$work/table" <<'END'
base@src/base/sort.c@i = 1; i < n@i = 2; i < n@check_base@
formats@src/formats/gguf.c@end <= g->map.size@first <= g->map.size@check_formats@gguf
text@src/text/merge.c@i + 1 < m->n_symbols; i++@i + 2 < m->n_symbols; i++@check_text@
sources@src/sources/source_csv.c@t->s >= t->end || *t->s != '"') return@t->s >= t->end || *t->s != '\'') return@check_sources@
kernels@src/kernels/attention_isa.c@pos + 1 - w->window : 0@pos + 2 - w->window : 0@check_kernels@attention
model@src/model/block_moe.c@w[k] *= c->w->expert_scale[id[k]]@w[k] *= c->w->expert_scale[k]@check_model@pass
cartridge@src/cartridge/adam.c@beta2 = 0.999@beta2 = 0.99@check_cartridge@
study@src/study/conv_json.c@c->targets.n_rows <= limits->max_sup@c->targets.n_rows <= limits->max_sup + 1@check_study@
train@src/train/step.c@c->sup[i] <= c->sup[i - 1]@c->sup[i] < c->sup[i - 1]@check_train@
fleet@src/fleet/coverage.c@c->span[hi].first <= end@c->span[hi].first < end@check_fleet@
retrieval@src/retrieval/index.c@h->ranked[0].score - h->ranked[1].score@h->ranked[0].score - h->ranked[h->n_ranked - 1].score@check_retrieval@
answer@src/answer/cartridge_cache.c@x->place[i].used < best->used@x->place[i].used > best->used@check_answer@
trainer@src/trainer/rotate.c@return a->steps < b->steps@return a->steps > b->steps@check_trainer@rotate
serve@src/serve/speculate.c@if (accepted < drafted)@if (accepted > drafted)@check_serve@speculate
net@src/net/fetch.c@if (x->too_long) r->status = 0@if (x->too_long) r->status = 200@cli/remote.sh@
http@src/http/auth.c@differs == 0 ? (int)i@differs < 2 ? (int)i@check_http@
eval@src/eval/stats.c@n * 25 / 1000@n * 50 / 1000@check_eval@
gate@src/gate/util.c@!(delta <= d.max) && !isnan(d.max)@delta > d.max@check_gate@
convert@src/convert/state.c@< 65520.0f@< 65536.0f@check_convert@
bench@src/bench/turns.c@t->n / 2@0@check_bench@
commands@src/commands/options.c@v >= s->min && v <= s->max@v > s->min && v <= s->max@check_options@
tui@tui/scan.c@*cp >= 0xD800 && *cp < 0xDC00@*cp > 0xD800 && *cp < 0xDC00@check_tui@
END

# replace FILE FROM TO: the first place, byte for byte.
replace() {
  FROM=$2 TO=$3 awk '
    !done && (at = index($0, ENVIRON["FROM"])) {
      $0 = substr($0, 1, at - 1) ENVIRON["TO"] substr($0, at + length(ENVIRON["FROM"]))
      done = 1
    }
    { print }
    END { exit !done }' "$1" >"$work/changed" && cp "$work/changed" "$1"
}

# passes TEST SUITE: builds what it needs and runs it.
passes() {
  case $1 in
    *.sh) needs='flotilla testsuite/fake_openai testsuite/make_model' ;;
    *) needs=testsuite/$1 ;;
  esac
  # shellcheck disable=SC2086
  make -s $needs >"$work/log" 2>&1 || { echo "does not build: $(tail -n 5 "$work/log")"; exit 1; }
  case $1 in
    *.sh) FLOTILLA=$work/build/flotilla sh "$work/tree/testsuite/$1" >"$work/log" 2>&1 ;;
    *) CK_RUN_SUITE=$2 timeout 600 "testsuite/$1" >"$work/log" 2>&1 ;;
  esac
}

mkdir "$work/tree" "$work/build" || exit 1
(cd "$SRCDIR" && tar cf - --exclude=./.git --exclude=./build --exclude='./build-ci*' --exclude=./fixtures \
  --exclude='*.o' --exclude='*.a' .) | tar xf - -C "$work/tree" || exit 1
ln -s "$FIXTURES" "$work/tree/fixtures"
cd "$work/build" || exit 1
cc=gcc
! command -v ccache >/dev/null || cc='ccache gcc'
CC=$cc "$work/tree/configure" --quiet >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
SRCDIR=$work/tree
MAKE_MODEL=$work/build/testsuite/make_model
export SRCDIR MAKE_MODEL

caught=0
tried=0
while IFS=@ read -r layer file from to test suite; do
  case "$* " in ' ' | *"$layer "*) ;; *) continue ;; esac
  tried=$((tried + 1))
  cp "$work/tree/$file" "$work/kept"
  passes "$test" "$suite" </dev/null || { echo "$layer: $test fails as it is: $(tail -n 5 "$work/log")"; exit 1; }
  replace "$work/tree/$file" "$from" "$to" || { echo "$file: '$from' does not stand there"; exit 1; }
  if passes "$test" "$suite" </dev/null; then
    echo "$layer: not noticed: $file: '$to' for '$from'"
  else
    caught=$((caught + 1))
    echo "$layer: noticed: $(grep -m1 -E ':[FE]:|FAILED|WRONG' "$work/log" | cut -c 1-150)"
  fi
  cp "$work/kept" "$work/tree/$file"
done <"$work/table"
echo "$caught of $tried noticed"
[ $((caught * 20)) -ge $((tried * 19)) ]
