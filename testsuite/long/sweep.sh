#!/bin/sh
# Every view of the dashboard at every size from 20x5 to 400x120: no text over another. Minutes.
build=$(dirname "$FLOTILLA")
FL_SWEEP=1 CK_RUN_SUITE=pictures CK_RUN_CASE=Sweep "$build/testsuite/check_tui"
