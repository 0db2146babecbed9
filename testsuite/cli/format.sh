#!/bin/sh
# The sources are as .clang-format has them. Versions of clang-format differ in what they make of
# it: with another one than 14 this is skipped. CLANG_FORMAT names the program.
set -u
format=${CLANG_FORMAT:-clang-format}
cd "${SRCDIR:-.}" || exit 1
version=$("$format" --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p')
[ -n "$version" ] || { echo "$format is not installed"; exit 77; }
[ "$version" = 14 ] || { echo "$format is version $version, not 14"; exit 77; }
find src tui testsuite bench \( -name '*.c' -o -name '*.h' \) -print0 |
  xargs -0 "$format" --dry-run -Werror
