#!/bin/sh
# whole.sh - what `make check` thins: every family in every weight type, and every gate on every file.
status=0
for script in models gates; do
  FLOTILLA_WHOLE=1 sh "$SRCDIR/testsuite/cli/$script.sh" || status=1
done
exit $status
