#!/bin/sh
# No test is forgotten: where a layer's suites stand in TESTS one by one, all of them do, and every
# script of tests is listed. Reads the sources, runs nothing.
set -u
cd "${SRCDIR:-.}/testsuite" || exit 1
status=0
for file in layer_*.c; do
  layer=${file#layer_}
  layer=${layer%.c}
  grep -q "^${layer}_suites =" "$layer.mk" || continue
  for suite in $(grep -o 'suite_[a-z0-9_]*' "$file" | sort -u); do
    case $suite in suite_fn | suite_main) continue ;; esac
    grep -q "testsuite/$layer/${suite#suite_}\.suite" "$layer.mk" ||
      { echo "$layer.mk: $layer/${suite#suite_}.suite is missing"; status=1; }
  done
done
for script in cli/*.sh tui/*.sh peers/*.sh long/*.sh; do
  cat ./*.mk | grep -q "testsuite/$script" || { echo "$script: no .mk lists it"; status=1; }
done
exit $status
