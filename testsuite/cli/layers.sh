#!/bin/sh
# The order of the layers: a file includes headers of its own layer and of those left of it; each
# outside library is included where it belongs and nowhere else; raw allocation stays in base/mem.
. "$(dirname "$0")/lib.sh"
cd "$SRCDIR" || exit 1
order='base formats text sources kernels model cartridge study train fleet serve edge commands'

for f in src/*/*.[ch]; do
  checks=$((checks + 1))
  layer=${f#src/}
  awk -v order="$order" -v own="${layer%%/*}" '
    BEGIN { n = split(order, l, " "); for (i = 1; i <= n; i++) rank[l[i]] = i }
    /^#include "/ {
      split($2, part, /["\/]/)
      if (!(part[2] in rank)) next
      if (rank[part[2]] > rank[own]) { print FILENAME ":" FNR ": " $0; bad = 1 }
    }
    END { exit bad }' "$f" >"$work/bad" || fail "upward include: $(cat "$work/bad")"
done
if ls tui/*.[ch] >/dev/null 2>&1; then
  grep -nE '^#include "(formats|text|sources|kernels|model|cartridge|study|train|fleet|serve|edge|commands)/' \
    tui/*.[ch] >"$work/bad" && fail "the dashboard uses src/base only: $(cat "$work/bad")"
fi

# only HEADER FOLDER...: which folders may include it
only() {
  header=$1
  shift
  checks=$((checks + 1))
  for f in $(grep -lE "^ *# *include *<$header" src/*/*.[ch] tui/*.[ch] 2>/dev/null); do
    case " $* " in *" ${f%/*} "*) ;; *) fail "$f includes <$header" ;; esac
  done
}
only blis.h src/kernels
only cjson/ src/base
only cJSON src/base
only xxhash src/base
only histedit src/commands
only ncurses tui
only curses tui
only curl src/edge
only microhttpd src/edge
only mpi src/edge

checks=$((checks + 1))
grep -nE '(^|[^_[:alnum:]])(malloc|calloc|realloc|reallocarray|strdup|strndup) *\(' src/*/*.c tui/*.c 2>/dev/null |
  grep -v '^src/base/mem\.c:' | grep -vE ':[0-9]+: *(/?\*|//)' >"$work/bad" &&
  fail "raw allocation: $(cat "$work/bad")"
finish
