#!/bin/sh
# layers.sh - the map is checked: which layer includes which, which file includes an external
# library, that memory comes from base/mem alone, and that lines have at most 100 columns. Reads the
# sources, runs nothing.
#
# `layers.sh --self-test` feeds the checks small wrong trees and expects each to be found.
set -u
LC_ALL=C
export LC_ALL

# check TREE: prints one line for each violation; 0 when there is none.
check() {
  (cd "$1" && find src tui -name '*.[ch]' -print | sort | xargs awk '
    BEGIN {
      n = split("base formats text sources kernels model cartridge study train fleet retrieval " \
                "answer trainer serve net http eval gate convert bench info cli commands", order, " ")
      for (i = 1; i <= n; i++) rank[order[i]] = i
      # external header -> how many files may include it
      limit["blis"] = 1; limit["cJSON"] = 1; limit["curses"] = 2; limit["microhttpd"] = 1
      limit["xxhash"] = 1; limit["histedit"] = 1; limit["readline"] = 1; limit["curl"] = 1
      limit["mpi"] = 1; limit["sqlite3"] = 1
      allocators = "[^A-Za-z0-9_>.](malloc|calloc|realloc|reallocarray|aligned_alloc|" \
                   "posix_memalign|free|strdup|strndup|asprintf|vasprintf)[ \t]*[(]"
    }
    function fault(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; faults++ }

    FNR == 1 {
      split(FILENAME, part, "/")
      layer = part[1] == "tui" ? "tui" : part[2]
      if (part[1] == "src" && !(layer in rank)) fault("an unknown layer")
      comment = 0
    }

    length > 100 { fault("a line of " length " columns") }

    # Own headers.
    match($0, /^[ \t]*#[ \t]*include[ \t]*"[^"]*"/) {
      name = $0
      sub(/^[^"]*"/, "", name); sub(/".*$/, "", name)
      into = name; sub(/\/.*$/, "", into)
      if (name == "config.h") next
      if (index(name, "/") == 0) fault("include \"" name "\" without its layer")
      else if (into == "tui" && (layer == "tui" || name == "tui/tui.h" && layer == "commands")) next
      else if (!(into in rank)) fault("include \"" name "\" of an unknown layer")
      else if (layer == "tui" ? into != "base" : rank[into] > rank[layer])
        fault("layer " layer " may not include \"" name "\"")
      next
    }

    # External headers.
    match($0, /^[ \t]*#[ \t]*include[ \t]*<[^>]*>/) {
      name = $0
      sub(/^[^<]*</, "", name); sub(/>.*$/, "", name)
      kind = ""
      if (name ~ /(^|\/)blis\.h$/) kind = "blis"
      if (name ~ /(^|\/)cJSON\.h$/) kind = "cJSON"
      if (name ~ /(^|\/)(n?curses|term|panel|menu|form)\.h$/) kind = "curses"
      if (name ~ /(^|\/)microhttpd\.h$/) kind = "microhttpd"
      if (name ~ /(^|\/)xxh(ash|3)\.h$/) kind = "xxhash"
      if (name ~ /(^|\/)histedit\.h$/) kind = "histedit"
      if (name ~ /(^|\/)(readline|history)\.h$/) kind = "readline"
      if (name ~ /(^|\/)curl\.h$/) kind = "curl"
      if (name ~ /(^|\/)mpi\.h$/) kind = "mpi"
      if (name ~ /(^|\/)sqlite3(ext)?\.h$/) kind = "sqlite3"
      if (kind == "") next
      if (kind == "curses" && layer != "tui") fault("curses is for the dashboard only")
      if (!((kind, FILENAME) in seen)) {
        seen[kind, FILENAME] = 1
        if (++users[kind] > limit[kind])
          fault("one file too many includes <" name ">; the first was " first[kind])
        if (users[kind] == 1) first[kind] = FILENAME
      }
      next
    }

    # Memory. Comments and strings are taken out first.
    {
      line = $0
      gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
      if (comment) {
        if (!match(line, /\*\//)) next
        line = substr(line, RSTART + 2); comment = 0
      }
      while ((from = index(line, "/*")) > 0) {
        rest = substr(line, from + 2)
        end = index(rest, "*/")
        if (end == 0) { line = substr(line, 1, from - 1); comment = 1; break }
        line = substr(line, 1, from - 1) " " substr(rest, end + 2)
      }
      sub(/\/\/.*$/, "", line)
      if (FILENAME == "src/base/mem.c") next
      line = " " line
      if (match(line, allocators))
        fault("a call of the C library'\''s allocator; use base/mem.h:" line)
    }
    END { exit faults > 0 }
  ')
}

# expect WORD PATH TEXT: a tree with this one file must be refused with a message that has WORD.
expect() {
  tree=$(mktemp -d) || exit 1
  mkdir -p "$tree/src/base" "$tree/tui" "$tree/$(dirname "$2")"
  printf '%s\n' "$3" > "$tree/$2"
  [ $# -lt 5 ] || printf '%s\n' "$5" > "$tree/$4"
  said=$(check "$tree") && { echo "not found: $2: $3"; failed=1; }
  case $said in *"$1"*) ;; *) echo "another message for $2: $said"; failed=1 ;; esac
  rm -rf "$tree"
}

accept() {
  tree=$(mktemp -d) || exit 1
  mkdir -p "$tree/src/base" "$tree/tui" "$tree/$(dirname "$1")"
  printf '%s\n' "$2" > "$tree/$1"
  check "$tree" || { echo "refused: $1: $2"; failed=1; }
  rm -rf "$tree"
}

self_test() {
  failed=0
  expect 'may not include' src/base/a.c '#include "formats/gguf.h"'
  expect 'may not include' src/base/a.c '#  include   "commands/options.h"'
  expect 'may not include' tui/a.c '#include "formats/gguf.h"'
  expect 'unknown layer' src/base/a.c '#include "other/x.h"'
  expect 'unknown layer' src/base/a.c '#include "tui/x.h"'
  expect 'without its layer' src/base/a.c '#include "err.h"'
  expect 'unknown layer' src/new/a.c 'int x;'
  expect 'columns' src/base/a.c "$(printf '%101s' ';')"
  accept src/base/a.c "$(printf '%100s' ';')"
  expect 'too many' src/base/a.c '#include <cJSON.h>' src/base/b.c '#include <cjson/cJSON.h>'
  expect 'dashboard' src/base/a.c '#include <curses.h>'
  expect 'allocator' src/base/a.c 'p = malloc(3);'
  expect 'allocator' src/base/a.c 'free (p);'
  expect 'allocator' src/base/a.c '/* x */ q = strdup(s); /* y */'
  accept src/base/a.c 'p = fl_malloc(3); x.free(y); x->free(y); // free(p)'
  accept src/base/a.c '/* free(p) */ puts("free(p)"); /*
 malloc(3) */'
  accept src/base/mem.c 'p = malloc(3);'
  accept src/commands/a.c '#include "base/err.h"'
  accept src/commands/a.c '#include "tui/tui.h"'
  expect 'unknown layer' src/commands/a.c '#include "tui/x.h"'
  accept tui/a.c '#include "tui/x.h"
#include <ncursesw/curses.h>'
  return $failed
}

self_test || exit 1
[ "${1-}" = --self-test ] && exit 0
check "${SRCDIR:-.}" || exit 1
